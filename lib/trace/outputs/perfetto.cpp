// Perfetto's protobuf (numbers of fields: perfetto/trace/trace_packet.proto, track_event/*.proto), for ui.perfetto.dev.
//
// One sequence of packets. Flows (arrows of messages) lead from whichever end comes first in time to the other: Perfetto
// knows no arrow back in time, so that one of a tachyon begins at its receive, and an annotation says what it is.
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/outputs/outputs.hpp"
#include "trace/outputs/spans.hpp"
#include "trace/outputs/titles.hpp"
#include "trace/outputs/whole_file.hpp"

namespace elbowroom::trace {
namespace {

using protozero::pbf_writer;

namespace packet {
constexpr int kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInterned = 12, kFlags = 13, kTrackDescriptor = 60,
              kFirstOfSequence = 87;
constexpr std::uint32_t kCleared = 1, kNeeded = 2;  // SequenceFlags
}  // namespace packet
namespace track_event {
constexpr int kCategory = 3, kAnnotation = 4, kType = 9, kName = 10, kTrack = 11, kNameText = 23, kCounterValue = 30,
              kFlow = 47, kFlowEnd = 48;
constexpr int kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;  // Type
}  // namespace track_event
namespace descriptor {
constexpr int kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
constexpr int kPid = 1, kTid = 2, kSort = 3, kThreadName = 5, kProcessName = 6;
}  // namespace descriptor
namespace interned {
constexpr int kCategories = 1, kNames = 2, kAnnotationNames = 3, kIid = 1, kText = 2;
}  // namespace interned
namespace annotation {
constexpr int kName = 1, kBool = 2, kUnsigned = 3, kSigned = 4, kString = 6;
}  // namespace annotation

constexpr std::uint32_t kSequenceId = 1;
constexpr std::uint64_t kJobTrack = 1;
constexpr std::size_t kMostNames = 1 << 16;  // of tasks, interned; others are written where they are used

// Annotations that are no fields of a type, interned in this order.
enum class Said : std::uint64_t {
  kError = 1,
  kTachyon,  // and the others of kFlagNames, in their order
  kSuspect,
  kUnmatched,
  kUnsynced,
  kExtrapolated,
  kMoved,
  kTo,
  kFrom,
  kCommunicator,
  kTag,
  kBytes,
  kSequence,
  kMessage,
  kText,
  kLost,
  kUnpaired,
  kInterrupted,
  kContinued,
  kFields  // the first of the types'
};
constexpr const char* kSaid[] = {"error_ns",     "tachyon",  "suspect",     "unmatched", "unsynced",
                                 "extrapolated", "moved",    "to",          "from",      "communicator",
                                 "tag",          "bytes",    "sequence",    "message",   "text",
                                 "lost",         "unpaired", "interrupted", "continued"};
static_assert(std::size(kSaid) + 1 == static_cast<std::size_t>(Said::kFields));

void say(pbf_writer& event, std::uint64_t name, int kind, std::uint64_t value) {
  pbf_writer one(event, track_event::kAnnotation);
  one.add_uint64(annotation::kName, name);
  one.add_uint64(static_cast<protozero::pbf_tag_type>(kind), value);
}

void say(pbf_writer& event, Said name, int kind, std::uint64_t value) {
  say(event, static_cast<std::uint64_t>(name), kind, value);
}

void say(pbf_writer& event, Said name, std::string_view text) {
  pbf_writer one(event, track_event::kAnnotation);
  one.add_uint64(annotation::kName, static_cast<std::uint64_t>(name));
  one.add_string(annotation::kString, valid_utf8(text));
}

void say_flags(pbf_writer& event, const MergedEvent& e) {
  if (e.error >= 0) {
    say(event, Said::kError, annotation::kSigned, static_cast<std::uint64_t>(e.error));
  }
  for (std::size_t i = 0; i < std::size(kFlagNames); ++i) {
    if ((e.flags & kFlagNames[i].first) != 0) {
      say(event, static_cast<std::uint64_t>(Said::kTachyon) + i, annotation::kBool, 1);
    }
  }
}

class Perfetto : public Sink {
 public:
  explicit Perfetto(const std::string& path) : file_(path) {}

  void begin(const MergedJob& job) override;
  void event(const MergedEvent& event) override;
  void message(const MergedMessage& /*message*/) override {}  // its events have been told, with its number
  void gap(const MergedGap& gap) override;
  void end() override { file_.keep(); }

 private:
  // The name that a slice has: interned, or written out where `iid` is 0.
  struct Name {
    std::uint64_t iid;
    std::string_view text;
  };

  void write_packet();
  void intern(const std::vector<std::string>& fields);
  void describe();
  void warn();
  template <class Body>
  void track(std::uint64_t uuid, std::uint64_t parent, Body body);
  template <class Body>
  void write(std::int64_t time, std::uint64_t on, int type, Body body);
  Name named(std::uint32_t thread, std::uint32_t type, std::uint64_t first);
  void put(pbf_writer& event, const Name& name, std::uint32_t type) const;
  void say_fields(pbf_writer& event, const Span& span) const;
  void opens(std::uint32_t thread, const Span& span, const MergedEvent& e, bool again);
  void ends(const MergedEvent& e);
  void instant(const MergedEvent& e, const char* unpaired);
  void message_end(const MergedEvent& e);
  void counts(const MergedEvent& e);

  WholeFile file_;
  const MergedJob* job_ = nullptr;
  std::unique_ptr<Spans> spans_;
  std::unique_ptr<Texts> texts_;
  std::vector<std::array<std::uint64_t, 3>> fields_;      // of each type: annotation names, 0: none
  std::vector<std::array<std::uint64_t, 3>> end_fields_;  // "cells at end"
  std::vector<std::uint64_t> threads_;                    // tracks
  std::vector<std::uint64_t> gaps_;                       // tracks of each thread; 0: none yet
  std::map<std::array<std::uint32_t, 3>, std::uint64_t> counters_;
  std::unordered_map<std::string_view, std::uint64_t> names_;  // of tasks
  std::uint64_t next_track_ = kJobTrack + 1;
  std::uint64_t latest_message_ = 0;
  std::string bytes_;
};

void Perfetto::write_packet() {
  char head[16];
  head[0] = 1 << 3 | 2;  // Trace.packet
  std::size_t length = 1;
  std::uint64_t rest = bytes_.size();
  for (; rest >= 0x80; rest >>= 7) {
    head[length++] = static_cast<char>(rest | 0x80);
  }
  head[length++] = static_cast<char>(rest);
  file_.write(head, length);
  file_.write(bytes_);
  bytes_.clear();
}

template <class Body>
void Perfetto::write(std::int64_t time, std::uint64_t on, int type, Body body) {
  {
    pbf_writer whole(bytes_);
    whole.add_uint64(packet::kTimestamp, static_cast<std::uint64_t>(time));
    whole.add_uint32(packet::kSequence, kSequenceId);
    whole.add_uint32(packet::kFlags, packet::kNeeded);
    pbf_writer event(whole, packet::kTrackEvent);
    event.add_enum(track_event::kType, type);
    event.add_uint64(track_event::kTrack, on);
    body(event);
  }
  write_packet();
}

template <class Body>
void Perfetto::track(std::uint64_t uuid, std::uint64_t parent, Body body) {
  {
    pbf_writer whole(bytes_);
    whole.add_uint32(packet::kSequence, kSequenceId);
    pbf_writer one(whole, packet::kTrackDescriptor);
    one.add_uint64(descriptor::kUuid, uuid);
    if (parent != 0) {
      one.add_uint64(descriptor::kParent, parent);
    }
    body(one);
  }
  write_packet();
}

// Numbers of names are known from here on: type t is t + 1, category c is c + 1.
void Perfetto::intern(const std::vector<std::string>& fields) {
  {
    pbf_writer whole(bytes_);
    whole.add_uint32(packet::kSequence, kSequenceId);
    whole.add_uint32(packet::kFlags, packet::kCleared);
    whole.add_bool(packet::kFirstOfSequence, true);
    pbf_writer data(whole, packet::kInterned);
    const auto add = [&](int kind, std::uint64_t iid, std::string_view text) {
      pbf_writer one(data, static_cast<protozero::pbf_tag_type>(kind));
      one.add_uint64(interned::kIid, iid);
      one.add_string(interned::kText, valid_utf8(text));
    };
    for (std::size_t i = 0; i < job_->categories.size(); ++i) {
      add(interned::kCategories, i + 1, job_->categories[i]);
    }
    for (std::size_t i = 0; i < job_->types.size(); ++i) {
      add(interned::kNames, i + 1, job_->types[i].name);
    }
    for (std::size_t i = 0; i < std::size(kSaid); ++i) {
      add(interned::kAnnotationNames, i + 1, kSaid[i]);
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      add(interned::kAnnotationNames, static_cast<std::uint64_t>(Said::kFields) + i, fields[i]);
    }
  }
  write_packet();
}

void Perfetto::begin(const MergedJob& job) {
  job_ = &job;
  spans_ = std::make_unique<Spans>(job);
  texts_ = std::make_unique<Texts>(job);
  std::unordered_map<std::string, std::uint64_t> iids;
  std::vector<std::string> names;
  const auto iid = [&](const std::string& name) {
    const auto [at, fresh] = iids.try_emplace(name, static_cast<std::uint64_t>(Said::kFields) + names.size());
    if (fresh) {
      names.push_back(name);
    }
    return at->second;
  };
  for (const MergedType& type : job.types) {
    fields_.emplace_back();
    end_fields_.emplace_back();
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      if (!type.fields[i].empty()) {
        fields_.back()[i] = iid(type.fields[i]);
        end_fields_.back()[i] = iid(type.fields[i] + " at end");
      }
    }
  }
  intern(names);
  describe();
  warn();
}

void Perfetto::describe() {
  const Numbers numbers(*job_);
  std::vector<std::uint64_t> processes;
  for (std::size_t i = 0; i < job_->ranks.size(); ++i) {
    processes.push_back(next_track_++);
    track(processes.back(), 0, [&](pbf_writer& one) {
      pbf_writer process(one, descriptor::kProcess);
      process.add_int32(descriptor::kPid, numbers.process[i]);
      process.add_int32(descriptor::kSort, job_->ranks[i].rank);
      process.add_string(descriptor::kProcessName, process_title(job_->ranks[i]));
    });
  }
  for (std::size_t i = 0; i < job_->threads.size(); ++i) {
    const MergedThread& thread = job_->threads[i];
    threads_.push_back(next_track_++);
    track(threads_.back(), processes[thread.rank], [&](pbf_writer& one) {
      pbf_writer fields(one, descriptor::kThread);
      fields.add_int32(descriptor::kPid, numbers.process[thread.rank]);
      fields.add_int64(descriptor::kTid, numbers.thread[i]);
      fields.add_int32(descriptor::kSort, thread.thread);
      fields.add_string(descriptor::kThreadName, thread_title(thread));
    });
  }
  gaps_.assign(threads_.size(), 0);
}

// What is not to be trusted stands at the beginning, on a track of its own.
void Perfetto::warn() {
  if (job_->warnings.empty()) {
    return;
  }
  track(kJobTrack, 0, [](pbf_writer& one) { one.add_string(descriptor::kName, "warnings"); });
  for (const std::string& warning : job_->warnings) {
    write(0, kJobTrack, track_event::kInstant,
          [&](pbf_writer& event) { event.add_string(track_event::kNameText, valid_utf8(warning)); });
  }
}

Perfetto::Name Perfetto::named(std::uint32_t thread, std::uint32_t type, std::uint64_t first) {
  const std::string_view text = texts_->task(type) ? texts_->of(thread, type, first) : std::string_view();
  if (text.empty()) {
    return {type + 1ULL, {}};
  }
  const auto known = names_.find(text);
  if (known != names_.end()) {
    return {known->second, {}};
  }
  if (names_.size() == kMostNames) {
    return {0, text};
  }
  const std::uint64_t iid = job_->types.size() + names_.size() + 1;
  names_.emplace(text, iid);
  {
    pbf_writer whole(bytes_);
    whole.add_uint32(packet::kSequence, kSequenceId);
    whole.add_uint32(packet::kFlags, packet::kNeeded);
    pbf_writer data(whole, packet::kInterned);
    pbf_writer one(data, interned::kNames);
    one.add_uint64(interned::kIid, iid);
    one.add_string(interned::kText, valid_utf8(text));
  }
  write_packet();
  return {iid, {}};
}

void Perfetto::put(pbf_writer& event, const Name& name, std::uint32_t type) const {
  event.add_uint64(track_event::kCategory, job_->types[type].category + 1ULL);
  if (name.iid != 0) {
    event.add_uint64(track_event::kName, name.iid);
  } else {
    event.add_string(track_event::kNameText, valid_utf8(name.text));
  }
}

void Perfetto::say_fields(pbf_writer& event, const Span& span) const {
  const std::array<std::uint64_t, 3> values = {span.small, span.first, span.second};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (fields_[span.type][i] != 0) {
      say(event, fields_[span.type][i], annotation::kUnsigned, values[i]);
    }
  }
}

// `again`: what went on around an end that was not its own is begun anew.
void Perfetto::opens(std::uint32_t thread, const Span& span, const MergedEvent& e, bool again) {
  const Name name = named(thread, span.type, span.first);
  write(e.time, threads_[thread], track_event::kBegin, [&](pbf_writer& event) {
    put(event, name, span.type);
    say_fields(event, span);
    if (again) {
      say(event, Said::kContinued, annotation::kBool, 1);
      return;
    }
    say_flags(event, e);
    const std::string_view text = texts_->task(span.type) ? std::string_view() : texts_->of(e);
    if (!text.empty()) {
      say(event, Said::kText, text);
    }
  });
}

void Perfetto::ends(const MergedEvent& e) {
  const std::ptrdiff_t which = spans_->ending(e);
  if (which < 0) {
    spans_->end(e, which);
    instant(e, "end");
    return;
  }
  const std::vector<Span>& open = spans_->open(e.thread);
  for (std::ptrdiff_t i = 0; i < which; ++i) {
    write(e.time, threads_[e.thread], track_event::kEnd,
          [](pbf_writer& event) { say(event, Said::kInterrupted, annotation::kBool, 1); });
  }
  const Span span = open[open.size() - 1 - static_cast<std::size_t>(which)];
  write(e.time, threads_[e.thread], track_event::kEnd, [&](pbf_writer& event) {
    const std::array<std::uint64_t, 3> before = {span.small, span.first, span.second};
    const std::array<std::uint64_t, 3> now = {e.small, e.first, e.second};
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (end_fields_[e.type][i] != 0 && now[i] != before[i]) {
        say(event, end_fields_[e.type][i], annotation::kUnsigned, now[i]);
      }
    }
  });
  spans_->end(e, which);
  for (std::size_t i = open.size() - static_cast<std::size_t>(which); i < open.size(); ++i) {
    opens(e.thread, open[i], e, true);
  }
}

void Perfetto::instant(const MergedEvent& e, const char* unpaired) {
  const Name name = named(e.thread, e.type, e.first);
  write(e.time, threads_[e.thread], track_event::kInstant, [&](pbf_writer& event) {
    put(event, name, e.type);
    say_fields(event, {e.type, e.small, e.first, e.second, e.time});
    say_flags(event, e);
    if (unpaired != nullptr) {
      say(event, Said::kUnpaired, unpaired);
    }
    const std::string_view text = texts_->task(e.type) ? std::string_view() : texts_->of(e);
    if (!text.empty()) {
      say(event, Said::kText, text);
    }
  });
}

// Numbers of messages rise as their first ends come, so that an end with a smaller one is a second.
void Perfetto::message_end(const MergedEvent& e) {
  const bool second = e.message != 0 && e.message <= latest_message_;
  latest_message_ = std::max(latest_message_, e.message);
  write(e.time, threads_[e.thread], track_event::kInstant, [&](pbf_writer& event) {
    put(event, {e.type + 1ULL, {}}, e.type);
    say(event, e.kind == ELBOW_TRACE_SEND ? Said::kTo : Said::kFrom, annotation::kUnsigned, peer_of(e));
    say(event, Said::kCommunicator, annotation::kUnsigned, communicator_of(e));
    say(event, Said::kTag, annotation::kSigned, static_cast<std::uint64_t>(static_cast<std::int32_t>(e.small)));
    say(event, Said::kBytes, annotation::kUnsigned, e.second);
    if (e.sequence != 0) {
      say(event, Said::kSequence, annotation::kUnsigned, e.sequence);
    }
    say_flags(event, e);
    if (e.message != 0) {
      say(event, Said::kMessage, annotation::kUnsigned, e.message);
      event.add_fixed64(second ? track_event::kFlowEnd : track_event::kFlow, e.message);
    }
  });
}

void Perfetto::counts(const MergedEvent& e) {
  std::uint64_t& counter = counters_[{e.thread, e.type, e.small}];
  if (counter == 0) {
    counter = next_track_++;
    track(counter, threads_[e.thread], [&](pbf_writer& one) {
      one.add_string(descriptor::kName, counter_title(job_->types[e.type], e.small));
      pbf_writer empty(one, descriptor::kCounter);
    });
  }
  write(e.time, counter, track_event::kCounter, [&](pbf_writer& event) {
    put(event, {e.type + 1ULL, {}}, e.type);
    event.add_int64(track_event::kCounterValue, static_cast<std::int64_t>(e.first));
  });
}

void Perfetto::event(const MergedEvent& e) {
  switch (e.kind) {
    case ELBOW_TRACE_BEGIN:
      if (spans_->begin(e)) {
        opens(e.thread, spans_->open(e.thread).back(), e, false);
      } else {
        instant(e, "begin");
      }
      break;
    case ELBOW_TRACE_END: ends(e); break;
    case ELBOW_TRACE_COUNTER: counts(e); break;
    case ELBOW_TRACE_SEND:
    case ELBOW_TRACE_RECEIVE: message_end(e); break;
    default: instant(e, nullptr);
  }
}

void Perfetto::gap(const MergedGap& gap) {
  std::uint64_t& on = gaps_[gap.thread];
  if (on == 0) {
    on = next_track_++;
    track(on, threads_[gap.thread], [](pbf_writer& one) { one.add_string(descriptor::kName, "lost"); });
  }
  write(gap.begin, on, track_event::kBegin, [&](pbf_writer& event) {
    event.add_string(track_event::kNameText, gap_title(gap.lost));
    say(event, Said::kLost, annotation::kUnsigned, gap.lost);
  });
  write(gap.end, on, track_event::kEnd, [](pbf_writer&) {});
}

}  // namespace

std::unique_ptr<Sink> perfetto_output(const std::string& path) { return std::make_unique<Perfetto>(path); }

}  // namespace elbowroom::trace
