#include "trace/outputs/columns.hpp"

#include <bit>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "trace/outputs/outputs.hpp"
#include "trace/outputs/whole_file.hpp"

namespace elbowroom::trace {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBlockRecords = 16384;

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

Json types_of(const MergedJob& job) {
  Json types = Json::array();
  for (const MergedType& type : job.types) {
    types.push_back({{"name", type.name}, {"category", type.category}, {"fields", type.fields}});
  }
  return types;
}

Json ranks_of(const MergedJob& job) {
  Json ranks = Json::array();
  for (const MergedRank& rank : job.ranks) {
    Json syncs = Json::array();
    for (const MergedSync& sync : rank.syncs) {
      syncs.push_back({{"local", sync.local},
                       {"offset", sync.offset},
                       {"low", sync.low},
                       {"high", sync.high},
                       {"used", sync.used}});
    }
    ranks.push_back({{"rank", rank.rank},
                     {"pid", rank.pid},
                     {"host", rank.host},
                     {"there", rank.there},
                     {"ended", rank.ended},
                     {"syncs", std::move(syncs)}});
  }
  return ranks;
}

Json threads_of(const MergedJob& job) {
  Json threads = Json::array();
  for (const MergedThread& thread : job.threads) {
    threads.push_back({{"rank", thread.rank},
                       {"thread", thread.thread},
                       {"tid", thread.tid},
                       {"name", thread.name},
                       {"recorded", thread.recorded},
                       {"kept", thread.kept},
                       {"lost", thread.lost},
                       {"damage", thread.damage}});
  }
  return threads;
}

std::string job_line(const MergedJob& job) {
  Json texts = Json::array();
  for (const MergedText& text : job.texts) {
    texts.push_back({{"thread", text.thread}, {"type", text.type}, {"key", text.key}, {"text", text.text}});
  }
  const Json line = {{"schema", "elbowroom/trace-columns"},
                     {"version", kColumnsVersion},
                     {"job", job.job},
                     {"start", job.start},
                     {"duration", job.duration},
                     {"categories", job.categories},
                     {"types", types_of(job)},
                     {"ranks", ranks_of(job)},
                     {"threads", threads_of(job)},
                     {"texts", std::move(texts)},
                     {"warnings", job.warnings}};
  // Names are what a program gave: bytes that are no UTF-8 must not end the output.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Records of one kind until a block of them is full.
template <class Record>
class Records {
 public:
  explicit Records(const char (&tag)[5]) : tag_(tag) { waiting_.reserve(kBlockRecords); }

  void add(WholeFile& file, const Record& record) {
    waiting_.push_back(record);
    ++count_;
    if (waiting_.size() == kBlockRecords) {
      flush(file);
    }
  }

  void flush(WholeFile& file) {
    if (waiting_.empty()) {
      return;
    }
    const ColumnBlock head = {{tag_[0], tag_[1], tag_[2], tag_[3]}, static_cast<std::uint32_t>(waiting_.size())};
    file.write(&head, sizeof(head));
    file.write(waiting_.data(), waiting_.size() * sizeof(Record));
    waiting_.clear();
  }

  std::uint64_t count() const { return count_; }

 private:
  const char* tag_;
  std::uint64_t count_ = 0;
  std::vector<Record> waiting_;
};

class Columns : public Sink {
 public:
  explicit Columns(const std::string& path) : file_(path) {}

  void begin(const MergedJob& job) override { file_.write(job_line(job)); }

  void event(const MergedEvent& e) override {
    events_.add(file_, {e.time,
                        e.error,
                        e.stamp,
                        e.first,
                        e.second,
                        e.message,
                        e.sequence,
                        e.thread,
                        e.type,
                        e.small,
                        e.kind,
                        e.flags,
                        {}});
  }

  void message(const MergedMessage& m) override {
    messages_.add(file_, {m.message, m.sent, m.received, m.bytes, m.from, m.to, m.communicator, m.tag, m.flags, {}});
  }

  void gap(const MergedGap& g) override { gaps_.add(file_, {g.begin, g.end, g.lost, g.thread, 0}); }

  void end() override {
    events_.flush(file_);
    messages_.flush(file_);
    gaps_.flush(file_);
    const ColumnBlock head = {{'D', 'O', 'N', 'E'}, 1};
    const ColumnTotals totals = {events_.count(), messages_.count(), gaps_.count()};
    file_.write(&head, sizeof(head));
    file_.write(&totals, sizeof(totals));
    file_.keep();
  }

 private:
  WholeFile file_;
  Records<ColumnEvent> events_{"EVNT"};
  Records<ColumnMessage> messages_{"MESG"};
  Records<ColumnGap> gaps_{"GAPS"};
};

}  // namespace

std::unique_ptr<Sink> columns_output(const std::string& path) { return std::make_unique<Columns>(path); }

}  // namespace elbowroom::trace
