// Chrome's Trace Event Format in JSON, one event a line: chrome://tracing, ui.perfetto.dev, Speedscope.
//
// Times are us with three decimals, which is ns exactly. Numbers beyond 2^53, which readers of JSON would round, are strings;
// but those of counters, which must be numbers to be drawn. Ends of messages are slices of no length, since arrows lead
// from slice to slice only.
#include <map>
#include <string>
#include <vector>

#include "trace/outputs/line.hpp"
#include "trace/outputs/outputs.hpp"
#include "trace/outputs/spans.hpp"
#include "trace/outputs/titles.hpp"
#include "trace/outputs/whole_file.hpp"

namespace elbowroom::trace {
namespace {

constexpr std::uint64_t kExact = 1ULL << 53;

std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char one : valid_utf8(text)) {
    if (one == '"' || one == '\\') {
      json += '\\';
      json += one;
    } else if (static_cast<unsigned char>(one) < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      json += "\\u00";
      json += kHex[one >> 4];
      json += kHex[one & 15];
    } else {
      json += one;
    }
  }
  return json + '"';
}

class Chrome : public Viewer {
 public:
  explicit Chrome(const std::string& path) : file_(path) {}

  void begin(const MergedJob& job) override;
  void message(const MergedMessage& message) override;
  void gap(const MergedGap& gap) override;
  void end() override;

 private:
  void describe();
  void metadata(const char* what, std::int32_t process, std::int32_t thread, std::string_view arguments);
  // {"ph":"B","pid":..,"tid":..,"ts":..
  Line& start(char phase, std::uint32_t thread, std::int64_t time);
  void named(std::uint32_t thread, std::uint32_t type, std::uint64_t first);
  void arguments();
  void argument(std::string_view key);
  void number(std::string_view key, std::uint64_t value);
  void fields(const Span& span);
  void flags(const MergedEvent& e);
  void text(const MergedEvent& e);
  void finish(bool with_arguments);
  void opens(const MergedEvent& e, const Span& span, bool again) override;
  void closes(const MergedEvent& e, const Span& span, bool interrupted) override;
  void instant(const MergedEvent& e, const char* unpaired) override;
  void message_end(const MergedEvent& e) override;
  void counts(const MergedEvent& e) override;

  WholeFile file_;
  std::unique_ptr<Texts> texts_;
  std::vector<std::string> threads_;                              // of each: "pid":1,"tid":2
  std::vector<std::string> names_;                                // of each type: "name":"solve","cat":"task"
  std::vector<std::string> categories_;                           // of each type: "cat":"task"
  std::vector<std::array<std::string, 3>> fields_;                // of each type, quoted; empty: none
  std::map<std::array<std::uint32_t, 3>, std::string> counters_;  // ids
  std::vector<std::int32_t> gaps_;                                // of each thread the row of its gaps; 0: none yet
  std::vector<std::int32_t> processes_;                           // of each thread
  std::int32_t next_row_ = 0;
  Line line_;
  bool first_argument_ = true;
};

void Chrome::begin(const MergedJob& job) {
  Viewer::begin(job);
  texts_ = std::make_unique<Texts>(job);
  for (const MergedType& type : job.types) {
    categories_.push_back("\"cat\":" + quoted(job.categories[type.category]));
    names_.push_back("\"name\":" + quoted(type.name) + ',' + categories_.back());
    fields_.emplace_back();
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      fields_.back()[i] = type.fields[i].empty() ? "" : quoted(type.fields[i]);
    }
  }
  Line head;
  head << "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"made by\":\"elbowroom\",\"start_ns\":\"" << job.start
       << "\",\"warnings\":[";
  for (std::size_t i = 0; i < job.warnings.size(); ++i) {
    head << (i == 0 ? "" : ",") << quoted(job.warnings[i]);
  }
  head << "]},\"traceEvents\":[\n";
  file_.write(head.text());
  describe();
}

void Chrome::metadata(const char* what, std::int32_t process, std::int32_t thread, std::string_view arguments) {
  line_ << R"({"ph":"M","name":")" << what << R"(","pid":)" << process << ",\"tid\":" << thread << ",\"args\":{"
        << arguments << "}},\n";
  file_.write(line_.text());
  line_.clear();
}

void Chrome::describe() {
  const Numbers numbers(*job_);
  next_row_ = numbers.next;
  for (std::size_t i = 0; i < job_->ranks.size(); ++i) {
    const std::int32_t process = numbers.process[i];
    metadata("process_name", process, process, "\"name\":" + quoted(process_title(job_->ranks[i])));
    metadata("process_sort_index", process, process, "\"sort_index\":" + std::to_string(job_->ranks[i].rank));
  }
  for (std::size_t i = 0; i < job_->threads.size(); ++i) {
    const MergedThread& thread = job_->threads[i];
    const std::int32_t process = numbers.process[thread.rank];
    metadata("thread_name", process, numbers.thread[i], "\"name\":" + quoted(thread_title(thread)));
    metadata("thread_sort_index", process, numbers.thread[i], "\"sort_index\":" + std::to_string(2 * thread.thread));
    threads_.push_back("\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(numbers.thread[i]));
    processes_.push_back(process);
  }
  gaps_.assign(threads_.size(), 0);
}

Line& Chrome::start(char phase, std::uint32_t thread, std::int64_t time) {
  line_ << "{\"ph\":\"" << phase << "\"," << threads_[thread] << ",\"ts\":";
  return line_.decimal<3>(time);
}

void Chrome::named(std::uint32_t thread, std::uint32_t type, std::uint64_t first) {
  const std::string_view own = texts_->task(type) ? texts_->of(thread, type, first) : std::string_view();
  if (own.empty()) {
    line_ << ',' << names_[type];
  } else {
    line_ << ",\"name\":" << quoted(own) << ',' << categories_[type];
  }
}

void Chrome::arguments() {
  line_ << ",\"args\":{";
  first_argument_ = true;
}

void Chrome::argument(std::string_view key) {
  line_ << (first_argument_ ? "" : ",") << key << ':';
  first_argument_ = false;
}

void Chrome::number(std::string_view key, std::uint64_t value) {
  argument(key);
  if (value <= kExact) {
    line_ << value;
  } else {
    line_ << '"' << value << '"';
  }
}

void Chrome::fields(const Span& span) {
  const auto values = span.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!fields_[span.type][i].empty()) {
      number(fields_[span.type][i], values[i]);
    }
  }
}

void Chrome::flags(const MergedEvent& e) {
  if (e.error >= 0) {
    number("\"error_ns\"", static_cast<std::uint64_t>(e.error));
  }
  for (const auto& [flag, name] : kFlagNames) {
    if ((e.flags & flag) != 0) {
      line_ << (first_argument_ ? "\"" : ",\"") << name << "\":true";
      first_argument_ = false;
    }
  }
}

// Of other events than tasks, which have it as their name.
void Chrome::text(const MergedEvent& e) {
  const std::string_view own = texts_->task(e.type) ? std::string_view() : texts_->of(e);
  if (!own.empty()) {
    argument("\"text\"");
    line_ << quoted(own);
  }
}

void Chrome::finish(bool with_arguments) {
  line_ << (with_arguments ? "}},\n" : "},\n");
  file_.write(line_.text());
  line_.clear();
}

void Chrome::opens(const MergedEvent& e, const Span& span, bool again) {
  start('B', e.thread, e.time);
  named(e.thread, span.type, span.first);
  arguments();
  fields(span);
  if (again) {
    argument("\"continued\"");
    line_ << "true";
  } else {
    flags(e);
    text(e);
  }
  finish(true);
}

void Chrome::closes(const MergedEvent& e, const Span& span, bool interrupted) {
  start('E', e.thread, e.time);
  if (interrupted) {
    line_ << ",\"args\":{\"interrupted\":true";
    finish(true);
    return;
  }
  named(e.thread, e.type, span.first);
  const Span ended{e.type, e.small, e.first, e.second, e.time};
  const bool differs = ended.values() != span.values();
  if (differs) {
    arguments();
    fields(ended);
  }
  finish(differs);
}

void Chrome::instant(const MergedEvent& e, const char* unpaired) {
  start('i', e.thread, e.time) << ",\"s\":\"t\"";
  named(e.thread, e.type, e.first);
  arguments();
  fields({e.type, e.small, e.first, e.second, e.time});
  flags(e);
  if (unpaired != nullptr) {
    argument("\"unpaired\"");
    line_ << '"' << unpaired << '"';
  }
  text(e);
  finish(true);
}

void Chrome::message_end(const MergedEvent& e) {
  start('X', e.thread, e.time) << ",\"dur\":0," << names_[e.type];
  arguments();
  number(e.kind == ELBOW_TRACE_SEND ? "\"to\"" : "\"from\"", peer_of(e));
  number("\"communicator\"", communicator_of(e));
  argument("\"tag\"");
  line_ << static_cast<std::int32_t>(e.small);
  number("\"bytes\"", e.second);
  if (e.sequence != 0) {
    number("\"sequence\"", e.sequence);
  }
  if (e.message != 0) {
    number("\"message\"", e.message);
  }
  flags(e);
  finish(true);
}

void Chrome::counts(const MergedEvent& e) {
  std::string& id = counters_[{e.thread, e.type, e.small}];
  if (id.empty()) {
    const MergedThread& thread = job_->threads[e.thread];
    id = quoted("thread " + std::to_string(thread.thread) + ": " + counter_title(job_->types[e.type], e.small));
  }
  start('C', e.thread, e.time) << ',' << names_[e.type] << ",\"id\":" << id
                               << ",\"args\":{\"value\":" << static_cast<std::int64_t>(e.first);
  finish(true);
}

void Chrome::message(const MergedMessage& message) {
  const std::string_view same = R"(,"name":"message","cat":"message","id":)";
  start('s', message.from, message.sent) << same << message.message;
  finish(false);
  start('f', message.to, message.received) << ",\"bp\":\"e\"" << same << message.message;
  finish(false);
}

void Chrome::gap(const MergedGap& gap) {
  std::int32_t& row = gaps_[gap.thread];
  const std::int32_t process = processes_[gap.thread];
  if (row == 0) {
    row = next_row_++;
    const MergedThread& thread = job_->threads[gap.thread];
    metadata("thread_name", process, row, "\"name\":" + quoted(thread_title(thread) + ": lost"));
    metadata("thread_sort_index", process, row, "\"sort_index\":" + std::to_string(2 * thread.thread + 1));
  }
  line_ << R"({"ph":"X","pid":)" << process << ",\"tid\":" << row << ",\"ts\":";
  line_.decimal<3>(gap.begin) << ",\"dur\":";
  line_.decimal<3>(gap.end - gap.begin) << R"(,"name":")" << gap_title(gap.lost) << R"(","cat":"trace","args":{)";
  first_argument_ = true;
  number("\"lost\"", gap.lost);
  finish(true);
}

// An event without a comma behind it, so that what precedes it need not know that it is the last.
void Chrome::end() {
  file_.write(R"({"ph":"M","name":"trace_end","pid":0,"tid":0,"args":{}})"
              "\n]}\n");
  file_.keep();
}

}  // namespace

std::unique_ptr<Sink> chrome_output(const std::string& path) { return std::make_unique<Chrome>(path); }

}  // namespace elbowroom::trace
