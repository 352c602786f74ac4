// Perfetto's protobuf, for ui.perfetto.dev.
//
// Flows (arrows of messages) lead from whichever end comes first in time to the other: Perfetto
// knows no arrow back in time, so that one of a tachyon begins at its receive, and an annotation says what it is.
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/outputs/outputs.hpp"
#include "trace/outputs/perfetto_packets.hpp"
#include "trace/outputs/spans.hpp"
#include "trace/outputs/titles.hpp"

namespace elbowroom::trace {
namespace {

constexpr std::uint64_t kJobTrack = 1;

class Perfetto : public Viewer {
 public:
  explicit Perfetto(const std::string& path) : packets_(path) {}

  void begin(const MergedJob& job) override;
  void message(const MergedMessage& /*message*/) override {}  // its events have been told, with its number
  void gap(const MergedGap& gap) override;
  void end() override { packets_.keep(); }

 private:
  // The name that a slice has: interned, or written out where `iid` is 0.
  struct Name {
    std::uint64_t iid;
    std::string_view text;
  };

  void intern(const std::vector<std::string>& fields);
  void describe();
  void warn();
  Name named(std::uint32_t thread, std::uint32_t type, std::uint64_t first);
  void put(PerfettoWriter& event, const Name& name, std::uint32_t type) const;
  void say_fields(PerfettoWriter& event, const Span& span) const;
  void opens(const MergedEvent& e, const Span& span, bool again) override;
  void closes(const MergedEvent& e, const Span& span, bool interrupted) override;
  void instant(const MergedEvent& e, const char* unpaired) override;
  void message_end(const MergedEvent& e) override;
  void counts(const MergedEvent& e) override;

  PerfettoPackets packets_;
  std::unique_ptr<Texts> texts_;
  std::vector<std::array<std::uint64_t, 3>> fields_;      // of each type: annotation names, 0: none
  std::vector<std::array<std::uint64_t, 3>> end_fields_;  // "cells at end"
  std::vector<std::uint64_t> threads_;                    // tracks
  std::vector<std::uint64_t> gaps_;                       // tracks of each thread; 0: none yet
  std::map<std::array<std::uint32_t, 3>, std::uint64_t> counters_;
  std::unordered_map<std::string_view, std::uint64_t> names_;  // of tasks
  std::uint64_t next_track_ = kJobTrack + 1;
  std::uint64_t latest_message_ = 0;
};

// Numbers of names are known from here on: type t is t + 1, category c is c + 1.
void Perfetto::intern(const std::vector<std::string>& fields) {
  packets_.interns(true, [&](PerfettoWriter& data) {
    for (std::size_t i = 0; i < job_->categories.size(); ++i) {
      add_interned(data, interned::kCategories, i + 1, job_->categories[i]);
    }
    for (std::size_t i = 0; i < job_->types.size(); ++i) {
      add_interned(data, interned::kNames, i + 1, job_->types[i].name);
    }
    for (std::size_t i = 1; i <= kAnnotationCount; ++i) {
      add_interned(data, interned::kAnnotationNames, i, annotation_name(i));
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      add_interned(data, interned::kAnnotationNames, static_cast<std::uint64_t>(Annotation::kFields) + i, fields[i]);
    }
  });
}

void Perfetto::begin(const MergedJob& job) {
  Viewer::begin(job);
  texts_ = std::make_unique<Texts>(job);
  std::unordered_map<std::string, std::uint64_t> iids;
  std::vector<std::string> names;
  const auto iid = [&](const std::string& name) {
    const auto [at, fresh] = iids.try_emplace(name, static_cast<std::uint64_t>(Annotation::kFields) + names.size());
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
    packets_.track(processes.back(), 0, [&](PerfettoWriter& one) {
      PerfettoWriter process(one, descriptor::kProcess);
      process.add_int32(descriptor::kPid, numbers.process[i]);
      process.add_int32(descriptor::kSort, job_->ranks[i].rank);
      process.add_string(descriptor::kProcessName, process_title(job_->ranks[i]));
    });
  }
  for (std::size_t i = 0; i < job_->threads.size(); ++i) {
    const MergedThread& thread = job_->threads[i];
    threads_.push_back(next_track_++);
    packets_.track(threads_.back(), processes[thread.rank], [&](PerfettoWriter& one) {
      PerfettoWriter fields(one, descriptor::kThread);
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
  packets_.track(kJobTrack, 0, [](PerfettoWriter& one) { one.add_string(descriptor::kName, "warnings"); });
  for (const std::string& warning : job_->warnings) {
    packets_.event(0, kJobTrack, track_event::kInstant,
                   [&](PerfettoWriter& event) { event.add_string(track_event::kNameText, valid_utf8(warning)); });
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
  if (names_.size() == kMostTaskNames) {
    return {0, text};
  }
  const std::uint64_t iid = job_->types.size() + names_.size() + 1;
  names_.emplace(text, iid);
  packets_.interns(false, [&](PerfettoWriter& data) { add_interned(data, interned::kNames, iid, text); });
  return {iid, {}};
}

void Perfetto::put(PerfettoWriter& event, const Name& name, std::uint32_t type) const {
  event.add_uint64(track_event::kCategory, job_->types[type].category + 1ULL);
  if (name.iid != 0) {
    event.add_uint64(track_event::kName, name.iid);
  } else {
    event.add_string(track_event::kNameText, valid_utf8(name.text));
  }
}

void Perfetto::say_fields(PerfettoWriter& event, const Span& span) const {
  const auto values = span.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (fields_[span.type][i] != 0) {
      annotate(event, fields_[span.type][i], annotation::kUnsigned, values[i]);
    }
  }
}

void Perfetto::opens(const MergedEvent& e, const Span& span, bool again) {
  const Name name = named(e.thread, span.type, span.first);
  packets_.event(e.time, threads_[e.thread], track_event::kBegin, [&](PerfettoWriter& event) {
    put(event, name, span.type);
    say_fields(event, span);
    if (again) {
      annotate(event, Annotation::kContinued, annotation::kBool, 1);
      return;
    }
    say_flags(event, e);
    const std::string_view text = texts_->task(span.type) ? std::string_view() : texts_->of(e);
    if (!text.empty()) {
      annotate(event, Annotation::kText, text);
    }
  });
}

void Perfetto::closes(const MergedEvent& e, const Span& span, bool interrupted) {
  packets_.event(e.time, threads_[e.thread], track_event::kEnd, [&](PerfettoWriter& event) {
    if (interrupted) {
      annotate(event, Annotation::kInterrupted, annotation::kBool, 1);
      return;
    }
    const auto before = span.values();
    const std::array<std::uint64_t, 3> now = {e.small, e.first, e.second};
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (end_fields_[e.type][i] != 0 && now[i] != before[i]) {
        annotate(event, end_fields_[e.type][i], annotation::kUnsigned, now[i]);
      }
    }
  });
}

void Perfetto::instant(const MergedEvent& e, const char* unpaired) {
  const Name name = named(e.thread, e.type, e.first);
  packets_.event(e.time, threads_[e.thread], track_event::kInstant, [&](PerfettoWriter& event) {
    put(event, name, e.type);
    say_fields(event, {e.type, e.small, e.first, e.second, e.time});
    say_flags(event, e);
    if (unpaired != nullptr) {
      annotate(event, Annotation::kUnpaired, unpaired);
    }
    const std::string_view text = texts_->task(e.type) ? std::string_view() : texts_->of(e);
    if (!text.empty()) {
      annotate(event, Annotation::kText, text);
    }
  });
}

// Numbers of messages rise as their first ends come, so that an end with a smaller one is a second.
void Perfetto::message_end(const MergedEvent& e) {
  const bool second = e.message != 0 && e.message <= latest_message_;
  latest_message_ = std::max(latest_message_, e.message);
  packets_.event(e.time, threads_[e.thread], track_event::kInstant, [&](PerfettoWriter& event) {
    put(event, {e.type + 1ULL, {}}, e.type);
    annotate(event, e.kind == ELBOW_TRACE_SEND ? Annotation::kTo : Annotation::kFrom, annotation::kUnsigned,
             peer_of(e));
    annotate(event, Annotation::kCommunicator, annotation::kUnsigned, communicator_of(e));
    annotate(event, Annotation::kTag, annotation::kSigned,
             static_cast<std::uint64_t>(static_cast<std::int32_t>(e.small)));
    annotate(event, Annotation::kBytes, annotation::kUnsigned, e.second);
    if (e.sequence != 0) {
      annotate(event, Annotation::kSequence, annotation::kUnsigned, e.sequence);
    }
    say_flags(event, e);
    if (e.message != 0) {
      annotate(event, Annotation::kMessage, annotation::kUnsigned, e.message);
      event.add_fixed64(second ? track_event::kFlowEnd : track_event::kFlow, e.message);
    }
  });
}

void Perfetto::counts(const MergedEvent& e) {
  std::uint64_t& counter = counters_[{e.thread, e.type, e.small}];
  if (counter == 0) {
    counter = next_track_++;
    packets_.track(counter, threads_[e.thread], [&](PerfettoWriter& one) {
      one.add_string(descriptor::kName, counter_title(job_->types[e.type], e.small));
      PerfettoWriter empty(one, descriptor::kCounter);
    });
  }
  packets_.event(e.time, counter, track_event::kCounter, [&](PerfettoWriter& event) {
    put(event, {e.type + 1ULL, {}}, e.type);
    event.add_int64(track_event::kCounterValue, static_cast<std::int64_t>(e.first));
  });
}

void Perfetto::gap(const MergedGap& gap) {
  std::uint64_t& on = gaps_[gap.thread];
  if (on == 0) {
    on = next_track_++;
    packets_.track(on, threads_[gap.thread], [](PerfettoWriter& one) { one.add_string(descriptor::kName, "lost"); });
  }
  packets_.event(gap.begin, on, track_event::kBegin, [&](PerfettoWriter& event) {
    event.add_string(track_event::kNameText, gap_title(gap.lost));
    annotate(event, Annotation::kLost, annotation::kUnsigned, gap.lost);
  });
  packets_.event(gap.end, on, track_event::kEnd, [](PerfettoWriter&) {});
}

}  // namespace

std::unique_ptr<Sink> perfetto_output(const std::string& path) { return std::make_unique<Perfetto>(path); }

}  // namespace elbowroom::trace
