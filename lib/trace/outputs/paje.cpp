// Paje's traces (G. Mello Schnorr, "Paje trace file format", 2014), for pajeng and ViTE; pj_dump checks them.
//
// Its lines must rise in time, and its links must have both ends: ends whose other one never came lead to a container
// "unmatched" at the end. What is lost is an event at the end of the gap, since a state could not begin in the past.
#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/outputs/line.hpp"
#include "trace/outputs/outputs.hpp"
#include "trace/outputs/paje_text.hpp"
#include "trace/outputs/spans.hpp"
#include "trace/outputs/titles.hpp"
#include "trace/outputs/whole_file.hpp"

namespace elbowroom::trace {
namespace {

class Paje : public Viewer {
 public:
  explicit Paje(const std::string& path) : file_(path) {}

  void begin(const MergedJob& job) override;
  void event(const MergedEvent& e) override {
    gaps_until(e.time);
    Viewer::event(e);
  }
  void message(const MergedMessage& /*message*/) override {}  // its events have been told, with its number
  void gap(const MergedGap& gap) override { gaps_.push(gap); }
  void end() override;

 private:
  struct LaterEnd {
    bool operator()(const MergedGap& a, const MergedGap& b) const { return a.end > b.end; }
  };
  // An alias, or where `kind` is 0 the text itself.
  struct Value {
    char kind;
    std::size_t number;
    std::string_view text;
  };

  void write() {
    line_ << '\n';
    file_.write(line_.text());
    line_.clear();
  }
  Line& start(int definition, std::int64_t time) {
    now_ = std::max(now_, time);
    line_ << definition << ' ';
    return line_.decimal<9>(now_);
  }
  void containers();
  void gaps_until(std::int64_t time);
  Value value(std::uint32_t thread, std::uint32_t type, std::uint64_t first);
  void fields(const Span& span);
  void flags(const MergedEvent& e, std::string_view more);
  void opens(const MergedEvent& e, const Span& span, bool again) override;
  void closes(const MergedEvent& e, const Span& span, bool interrupted) override;
  void instant(const MergedEvent& e, const char* unpaired) override;
  void message_end(const MergedEvent& e) override;
  void link(bool start, std::uint32_t thread, std::uint64_t message, std::uint64_t bytes);
  void counts(const MergedEvent& e) override;
  void close_links();

  WholeFile file_;
  std::unique_ptr<Texts> texts_;
  std::map<std::array<std::uint32_t, 2>, std::size_t> counters_;  // of a type and `which`: the variable's number
  std::unordered_map<std::string_view, std::size_t> names_;       // of tasks
  std::priority_queue<MergedGap, std::vector<MergedGap>, LaterEnd> gaps_;
  std::vector<bool> sent_only_;  // of each message, by number - 1
  std::vector<bool> received_only_;
  std::int64_t now_ = 0;
  Line line_;
};

void Paje::begin(const MergedJob& job) {
  Viewer::begin(job);
  texts_ = std::make_unique<Texts>(job);
  for (const std::string& warning : job.warnings) {
    line_ << "# " << paje_quoted(warning);
    write();
  }
  file_.write(paje_definitions(job));
  containers();
}

void Paje::containers() {
  start(paje::kCreate, 0) << " j J 0 \"job\"";
  write();
  for (std::size_t i = 0; i < job_->ranks.size(); ++i) {
    start(paje::kCreate, 0) << " r" << i << " R j " << paje_quoted(process_title(job_->ranks[i]));
    write();
  }
  for (std::size_t i = 0; i < job_->threads.size(); ++i) {
    const MergedThread& thread = job_->threads[i];
    // Containers of equal names are one to pj_dump.
    const std::string name = "rank " + std::to_string(job_->ranks[thread.rank].rank) + " thread " +
                             std::to_string(thread.thread) + (thread.name.empty() ? "" : ": " + thread.name);
    start(paje::kCreate, 0) << " t" << i << " T r" << thread.rank << ' ' << paje_quoted(name);
    write();
  }
}

void Paje::gaps_until(std::int64_t time) {
  for (; !gaps_.empty() && gaps_.top().end <= time; gaps_.pop()) {
    const MergedGap& gap = gaps_.top();
    start(paje::kGap, gap.end) << " L t" << gap.thread << (gap.lost > 0 ? " lost " : " busy ");
    line_.decimal<9>(gap.begin) << ' ' << gap.lost;
    write();
  }
}

// The value of a state: a task's name, or its type.
Paje::Value Paje::value(std::uint32_t thread, std::uint32_t type, std::uint64_t first) {
  const std::string_view own = texts_->task(type) ? texts_->of(thread, type, first) : std::string_view();
  if (own.empty()) {
    return {'s', type, {}};
  }
  const auto known = names_.find(own);
  if (known != names_.end()) {
    return {'n', known->second, {}};
  }
  if (names_.size() == kMostTaskNames) {
    return {0, 0, own};
  }
  const std::size_t number = names_.size();
  names_.emplace(own, number);
  line_ << paje::kValue << " n" << number << " S " << paje_quoted(own) << ' '
        << paje_color(job_->types.size() + number);
  write();
  return {'n', number, {}};
}

void Paje::fields(const Span& span) {
  const auto values = span.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!job_->types[span.type].fields[i].empty()) {
      line_ << ' ' << values[i];
    }
  }
}

// The error, and what is to be said besides; "-": nothing.
void Paje::flags(const MergedEvent& e, std::string_view more) {
  line_ << ' ' << e.error << ' ' << more;
  bool more_attributes = !more.empty();
  for (const auto& [flag, name] : kFlagNames) {
    if ((e.flags & flag) != 0) {
      line_ << (more_attributes ? "," : "") << name;
      more_attributes = true;
    }
  }
  line_ << (more_attributes ? "" : "-");
}

void Paje::opens(const MergedEvent& e, const Span& span, bool again) {
  const Value named = value(e.thread, span.type, span.first);
  start(paje::kPush + 2 * static_cast<int>(span.type), e.time) << " S t" << e.thread << ' ';
  if (named.kind == 0) {
    line_ << paje_quoted(named.text);
  } else {
    line_ << named.kind << named.number;
  }
  line_ << " s" << span.type;
  fields(span);
  flags(e, again ? "continued" : "");
  write();
}

void Paje::closes(const MergedEvent& e, const Span& /*span*/, bool /*interrupted*/) {
  start(paje::kPop, e.time) << " S t" << e.thread;
  write();
}

void Paje::instant(const MergedEvent& e, const char* unpaired) {
  start(paje::kPush + 1 + 2 * static_cast<int>(e.type), e.time) << " E t" << e.thread << " e" << e.type;
  fields({e.type, e.small, e.first, e.second, e.time});
  flags(e, unpaired == nullptr ? std::string() : std::string("unpaired_") + unpaired);
  write();
}

void Paje::message_end(const MergedEvent& e) {
  const bool sent = e.kind == ELBOW_TRACE_SEND;
  start(paje::kMessageEnd, e.time) << " P t" << e.thread << " p" << e.type << (sent ? " send " : " receive ")
                                   << peer_of(e) << ' ' << communicator_of(e) << ' '
                                   << static_cast<std::int32_t>(e.small) << ' ' << e.second << ' ' << e.message;
  flags(e, {});
  write();
  if (e.message == 0) {
    return;
  }
  link(sent, e.thread, e.message, e.second);
  if (e.message > sent_only_.size()) {
    sent_only_.resize(e.message);
    received_only_.resize(e.message);
  }
  std::vector<bool>& same = sent ? sent_only_ : received_only_;
  std::vector<bool>& other = sent ? received_only_ : sent_only_;
  const bool second = other[e.message - 1];
  same[e.message - 1] = !second;
  other[e.message - 1] = false;
}

void Paje::link(bool sent, std::uint32_t thread, std::uint64_t message, std::uint64_t bytes) {
  start(sent ? paje::kStartLink : paje::kEndLink, now_) << " M j t" << thread << " m m" << message;
  if (sent) {
    line_ << ' ' << bytes;
  }
  write();
}

void Paje::counts(const MergedEvent& e) {
  const auto [counter, fresh] = counters_.try_emplace({e.type, e.small}, counters_.size());
  if (fresh) {
    line_ << paje::kVariableType << " v" << counter->second << " T "
          << paje_quoted(counter_title(job_->types[e.type], e.small)) << ' ' << paje_color(e.type);
    write();
  }
  start(paje::kSetVariable, e.time) << " v" << counter->second << " t" << e.thread << ' '
                                    << static_cast<std::int64_t>(e.first);
  write();
}

void Paje::close_links() {
  const bool any = std::find(sent_only_.begin(), sent_only_.end(), true) != sent_only_.end() ||
                   std::find(received_only_.begin(), received_only_.end(), true) != received_only_.end();
  if (!any) {
    return;
  }
  const std::size_t unmatched = job_->threads.size();
  start(paje::kCreate, now_) << " r" << job_->ranks.size() << " R j \"unmatched\"";
  write();
  start(paje::kCreate, now_) << " t" << unmatched << " T r" << job_->ranks.size() << " \"unmatched messages\"";
  write();
  for (std::size_t i = 0; i < sent_only_.size(); ++i) {
    if (sent_only_[i] || received_only_[i]) {
      link(received_only_[i], static_cast<std::uint32_t>(unmatched), i + 1, 0);
    }
  }
  start(paje::kDestroy, now_) << " T t" << unmatched;
  write();
  start(paje::kDestroy, now_) << " R r" << job_->ranks.size();
  write();
}

void Paje::end() {
  gaps_until(std::numeric_limits<std::int64_t>::max());
  close_links();
  for (std::size_t i = 0; i < job_->threads.size(); ++i) {
    start(paje::kDestroy, now_) << " T t" << i;
    write();
  }
  for (std::size_t i = 0; i < job_->ranks.size(); ++i) {
    start(paje::kDestroy, now_) << " R r" << i;
    write();
  }
  start(paje::kDestroy, now_) << " J j";
  write();
  file_.keep();
}

}  // namespace

std::unique_ptr<Sink> paje_output(const std::string& path) { return std::make_unique<Paje>(path); }

}  // namespace elbowroom::trace
