// OTF2 archives, for Vampir and Score-P's tools: times as each process read them, and the offsets by which readers correct
// them (ClockOffset; otf2-print shows corrected times).
//
// Between two offsets readers interpolate, which is what the merge did; one ns apart at most, since they round otherwise.
// Outside them the merge holds the nearest offset, and readers go on along the line: offsets around all events hold them.
#include <otf2/otf2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/host_clock.hpp"
#include "trace/outputs/otf2_archive.hpp"
#include "trace/outputs/otf2_definitions.hpp"
#include "trace/outputs/outputs.hpp"
#include "trace/outputs/spans.hpp"

namespace elbowroom::trace {
namespace {

// A process's clock, and the offsets that were used.
struct ProcessClock {
  HostClock stamps;
  std::vector<MergedSync> offsets;  // rising; without any, the one of the first event
};

class Otf2 : public Viewer {
 public:
  explicit Otf2(const std::string& path)
      : archive_(path), attributes_(OTF2_AttributeList_New(), &OTF2_AttributeList_Delete) {}

  void begin(const MergedJob& job) override;
  void message(const MergedMessage& /*message*/) override {}  // readers match the events
  void gap(const MergedGap& gap) override;
  void end() override;

 private:
  struct Location {
    OTF2_EvtWriter* writer = nullptr;
    bool any = false;
    std::int64_t first = 0;  // of its process's clock
    std::int64_t last = 0;
  };

  // On its process's clock; never before the event before, as OTF2 wants it.
  OTF2_TimeStamp local(const MergedEvent& e);
  OTF2_TimeStamp at_location(std::uint32_t thread, std::int64_t local);
  std::int64_t uncorrected(const ProcessClock& clock, std::int64_t time) const;
  OTF2_AttributeList* list() { return attributes_.get(); }
  void add(OTF2_AttributeRef attribute, std::uint64_t value) {
    archive_.check(OTF2_AttributeList_AddUint64(list(), attribute, value));
  }
  void add(Otf2Attribute attribute, std::uint64_t value) { add(static_cast<OTF2_AttributeRef>(attribute), value); }
  void add_string(Otf2Attribute attribute, OTF2_StringRef text) {
    archive_.check(OTF2_AttributeList_AddStringRef(list(), static_cast<OTF2_AttributeRef>(attribute), text));
  }
  OTF2_StringRef flag_names(std::uint8_t flags, std::string text);
  void fields(const Span& span);
  void flags(const MergedEvent& e, const std::string& more);
  void text(const MergedEvent& e);
  void opens(const MergedEvent& e, const Span& span, bool again) override;
  void closes(const MergedEvent& e, const Span& span, bool interrupted) override;
  void leave(std::uint32_t thread, OTF2_TimeStamp time, const Span& span, const char* why);
  void instant(const MergedEvent& e, const char* unpaired) override;
  void pass(const MergedEvent& e, OTF2_TimeStamp time);
  void message_end(const MergedEvent& e) override;
  void counts(const MergedEvent& e) override;
  void write_gap(const MergedGap& gap);
  void write_waiting(std::uint32_t rank);
  void write_offsets();

  Otf2Archive archive_;
  std::unique_ptr<OTF2_AttributeList, OTF2_ErrorCode (*)(OTF2_AttributeList*)> attributes_;
  std::unique_ptr<Otf2Definitions> definitions_;
  std::vector<ProcessClock> clocks_;  // of each rank
  std::vector<Location> locations_;
  std::vector<MergedGap> waiting_;                            // of processes whose clock is not known yet
  std::array<std::optional<OTF2_StringRef>, 64> flag_names_;  // of each set of flags
  std::vector<std::optional<OTF2_StringRef>> type_names_;
  std::int64_t last_ = 0;
};

void Otf2::begin(const MergedJob& job) {
  Viewer::begin(job);
  definitions_ = std::make_unique<Otf2Definitions>(job);
  for (const MergedRank& rank : job.ranks) {
    ProcessClock clock{{rank.counter, rank.start_ticks, rank.start_ns, rank.scale}, {}};
    std::copy_if(rank.syncs.begin(), rank.syncs.end(), std::back_inserter(clock.offsets),
                 [](const MergedSync& sync) { return sync.used; });
    clock.offsets.insert(clock.offsets.end(), rank.turns.begin(), rank.turns.end());
    std::stable_sort(clock.offsets.begin(), clock.offsets.end(),
                     [](const MergedSync& a, const MergedSync& b) { return a.local < b.local; });
    const auto same = [](const MergedSync& a, const MergedSync& b) { return a.local == b.local; };
    clock.offsets.erase(std::unique(clock.offsets.begin(), clock.offsets.end(), same), clock.offsets.end());
    clocks_.push_back(std::move(clock));
  }
  type_names_.resize(job.types.size());
  archive_.open(definitions_->locations());
  for (std::size_t i = 0; i < definitions_->locations(); ++i) {
    locations_.push_back({archive_.events(i)});
  }
  for (std::size_t i = 0; i < job.warnings.size(); ++i) {
    const std::string name = "ELBOWROOM::WARNING_" + std::to_string(i);
    archive_.check(
        OTF2_Archive_SetProperty(archive_.handle(), name.c_str(), valid_utf8(job.warnings[i]).c_str(), true));
  }
}

OTF2_TimeStamp Otf2::at_location(std::uint32_t thread, std::int64_t local) {
  Location& location = locations_[thread];
  if (!location.any) {
    location.any = true;
    location.first = location.last = local;
  }
  location.last = std::max(location.last, local);
  return static_cast<OTF2_TimeStamp>(location.last);
}

OTF2_TimeStamp Otf2::local(const MergedEvent& e) {
  last_ = std::max(last_, e.time);
  const std::uint32_t rank = job_->threads[e.thread].rank;
  ProcessClock& clock = clocks_[rank];
  const bool moved = (e.flags & kMoved) != 0;  // the stamp is wrong: the time is that of the event before
  const std::int64_t at = clock.stamps.counter ? clock.stamps.at(e.stamp) : static_cast<std::int64_t>(e.stamp);
  if (clock.offsets.empty()) {
    const std::int64_t offset = moved ? 0 : job_->start + e.time - at;
    clock.offsets.push_back({job_->start + e.time - offset, offset, offset, offset, true});
    write_waiting(rank);
  }
  if (!moved) {
    return at_location(e.thread, at);
  }
  const Location& location = locations_[e.thread];
  return at_location(e.thread, location.any ? location.last : uncorrected(clock, e.time));
}

// Offsets change by parts in a million: a few steps find the local time to the ns.
std::int64_t Otf2::uncorrected(const ProcessClock& clock, std::int64_t time) const {
  const std::vector<MergedSync>& offsets = clock.offsets;
  const std::int64_t wanted = job_->start + time;
  std::int64_t local = wanted;
  constexpr int kSteps = 4;
  for (int step = 0; step < kSteps && !offsets.empty(); ++step) {
    const auto right = std::upper_bound(offsets.begin(), offsets.end(), local,
                                        [](std::int64_t at, const MergedSync& sync) { return at < sync.local; });
    if (right == offsets.begin() || right == offsets.end()) {
      local = wanted - (right == offsets.begin() ? offsets.front() : offsets.back()).offset;
      continue;
    }
    const MergedSync& left = *(right - 1);
    const double share = static_cast<double>(local - left.local) / static_cast<double>(right->local - left.local);
    local = wanted - left.offset - std::llround(share * static_cast<double>(right->offset - left.offset));
  }
  return local;
}

void Otf2::fields(const Span& span) {
  const auto values = span.values();
  const auto& names = definitions_->fields(span.type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Two fields of one name are one attribute: the first is told.
    const bool duplicate = std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
                           names.begin() + static_cast<std::ptrdiff_t>(i);
    if (names[i] != OTF2_UNDEFINED_ATTRIBUTE && !duplicate) {
      add(names[i], values[i]);
    }
  }
}

OTF2_StringRef Otf2::flag_names(std::uint8_t flags, std::string text) {
  for (const auto& [flag, name] : kFlagNames) {
    if ((flags & flag) != 0) {
      text += text.empty() ? "" : ",";
      text += name;
    }
  }
  return definitions_->string(text);
}

void Otf2::flags(const MergedEvent& e, const std::string& more) {
  if (e.flags == 0 && more.empty()) {
    return;
  }
  if (!more.empty()) {
    return add_string(Otf2Attribute::kFlags, flag_names(e.flags, more));
  }
  std::optional<OTF2_StringRef>& known = flag_names_[e.flags % flag_names_.size()];
  if (!known) {
    known = flag_names(e.flags, "");
  }
  add_string(Otf2Attribute::kFlags, *known);
}

// Of other events than tasks, which have it as their name.
void Otf2::text(const MergedEvent& e) {
  const Texts& texts = definitions_->texts();
  const std::string_view own = texts.task(e.type) ? std::string_view() : texts.of(e);
  if (!own.empty()) {
    add_string(Otf2Attribute::kText, definitions_->string(own));
  }
}

void Otf2::opens(const MergedEvent& e, const Span& span, bool again) {
  const OTF2_TimeStamp time = local(e);
  fields(span);
  if (again) {
    add_string(Otf2Attribute::kFlags, definitions_->string("continued"));
  } else {
    flags(e, {});
    text(e);
  }
  archive_.check(OTF2_EvtWriter_Enter(locations_[e.thread].writer, list(), time,
                                      definitions_->span(e.thread, span.type, span.first)));
}

void Otf2::leave(std::uint32_t thread, OTF2_TimeStamp time, const Span& span, const char* why) {
  if (why != nullptr) {
    add_string(Otf2Attribute::kFlags, definitions_->string(why));
  }
  archive_.check(
      OTF2_EvtWriter_Leave(locations_[thread].writer, list(), time, definitions_->span(thread, span.type, span.first)));
}

void Otf2::closes(const MergedEvent& e, const Span& span, bool interrupted) {
  const OTF2_TimeStamp time = local(e);
  const Span ended{e.type, e.small, e.first, e.second, e.time};
  if (!interrupted && ended.values() != span.values()) {
    fields(ended);
  }
  leave(e.thread, time, span, interrupted ? "interrupted" : nullptr);
}

void Otf2::instant(const MergedEvent& e, const char* unpaired) {
  const OTF2_TimeStamp time = local(e);
  fields({e.type, e.small, e.first, e.second, e.time});
  flags(e, unpaired == nullptr ? "" : std::string("unpaired_") + unpaired);
  text(e);
  pass(e, time);
}

// A region that is left when it is entered.
void Otf2::pass(const MergedEvent& e, OTF2_TimeStamp time) {
  const OTF2_RegionRef region = definitions_->instant(e.type);
  archive_.check(OTF2_EvtWriter_Enter(locations_[e.thread].writer, list(), time, region));
  archive_.check(OTF2_EvtWriter_Leave(locations_[e.thread].writer, nullptr, time, region));
}

// Readers match messages by their order. One that is known to have one end only would join others' ends wrongly: it is an
// event, with all that is known of it.
void Otf2::message_end(const MergedEvent& e) {
  const bool sent = e.kind == ELBOW_TRACE_SEND;
  if (e.message == 0 || peer_of(e) >= job_->ranks.size()) {
    add(Otf2Attribute::kPeer, peer_of(e));
    add(Otf2Attribute::kCommunicator, communicator_of(e));
    add(Otf2Attribute::kTag, e.small);
    add(Otf2Attribute::kBytes, e.second);
    const OTF2_TimeStamp time = local(e);
    flags(e, sent ? "send" : "receive");
    return pass(e, time);
  }
  const OTF2_TimeStamp time = local(e);
  std::optional<OTF2_StringRef>& name = type_names_[e.type];
  if (!name) {
    name = definitions_->string(job_->types[e.type].name);
  }
  add_string(Otf2Attribute::kType, *name);
  add(Otf2Attribute::kMessage, e.message);
  if (e.sequence != 0) {
    add(Otf2Attribute::kSequence, e.sequence);
  }
  flags(e, {});
  const auto write = sent ? &OTF2_EvtWriter_MpiSend : &OTF2_EvtWriter_MpiRecv;
  archive_.check(write(locations_[e.thread].writer, list(), time, peer_of(e),
                       definitions_->communicator(communicator_of(e)), e.small, e.second));
}

void Otf2::counts(const MergedEvent& e) {
  const OTF2_Type type = OTF2_TYPE_INT64;
  OTF2_MetricValue value;
  value.signed_int = static_cast<std::int64_t>(e.first);
  const OTF2_TimeStamp time = local(e);
  archive_.check(OTF2_EvtWriter_Metric(locations_[e.thread].writer, nullptr, time,
                                       definitions_->counter(e.type, e.small), 1, &type, &value));
}

void Otf2::gap(const MergedGap& gap) {
  last_ = std::max(last_, gap.end);
  if (clocks_[job_->threads[gap.thread].rank].offsets.empty()) {
    waiting_.push_back(gap);  // until an event tells the offset
  } else {
    write_gap(gap);
  }
}

void Otf2::write_waiting(std::uint32_t rank) {
  const auto of_rank = [&](const MergedGap& gap) { return job_->threads[gap.thread].rank == rank; };
  for (const MergedGap& gap : waiting_) {
    if (of_rank(gap)) {
      write_gap(gap);
    }
  }
  std::erase_if(waiting_, of_rank);
}

// A gap lies between two events of its thread, or before or behind all; 1 ns earlier, so that no rounding moves the next.
void Otf2::write_gap(const MergedGap& gap) {
  const ProcessClock& clock = clocks_[job_->threads[gap.thread].rank];
  const auto at = [&](std::int64_t time) { return std::max<std::int64_t>(uncorrected(clock, time) - 1, 0); };
  const OTF2_TimeStamp begin = at_location(gap.thread, at(gap.begin));
  const OTF2_TimeStamp end = std::max(begin, static_cast<OTF2_TimeStamp>(at(gap.end)));
  add(Otf2Attribute::kLost, gap.lost);
  archive_.check(OTF2_EvtWriter_BufferFlush(locations_[gap.thread].writer, list(), begin, end));
}

void Otf2::write_offsets() {
  const double kUniform = std::sqrt(12.0);  // standard deviation of what is anywhere between two bounds
  archive_.check(OTF2_Archive_OpenDefFiles(archive_.handle()));
  for (std::size_t i = 0; i < locations_.size(); ++i) {
    OTF2_DefWriter* writer = OTF2_Archive_GetDefWriter(archive_.handle(), i);
    const auto write = [&](std::int64_t local, const MergedSync& sync) {
      const double width = static_cast<double>(sync.high - sync.low);
      archive_.check(
          OTF2_DefWriter_WriteClockOffset(writer, static_cast<OTF2_TimeStamp>(local), sync.offset, width / kUniform));
    };
    const std::vector<MergedSync>* offsets =
        i < job_->threads.size() ? &clocks_[job_->threads[i].rank].offsets : nullptr;
    if (offsets != nullptr && !offsets->empty()) {
      const Location& location = locations_[i];
      const std::int64_t first = location.any ? location.first : offsets->front().local;
      const std::int64_t before = std::min(first, offsets->front().local) - 1;
      if (before >= 0) {
        write(before, offsets->front());
      }
      for (const MergedSync& sync : *offsets) {
        write(sync.local, sync);
      }
      write(std::max(location.last, offsets->back().local) + 1, offsets->back());
    }
    archive_.check(OTF2_Archive_CloseDefWriter(archive_.handle(), writer));
  }
  archive_.check(OTF2_Archive_CloseDefFiles(archive_.handle()));
}

void Otf2::end() {
  while (!waiting_.empty()) {  // of processes without an event
    const std::uint32_t rank = job_->threads[waiting_.front().thread].rank;
    clocks_[rank].offsets.push_back({job_->start, 0, 0, 0, true});
    write_waiting(rank);
  }
  for (std::uint32_t thread = 0; thread < job_->threads.size(); ++thread) {
    const std::vector<Span>& spans = open(thread);
    for (std::size_t i = spans.size(); i-- > 0;) {
      leave(thread, static_cast<OTF2_TimeStamp>(locations_[thread].last), spans[i], "unpaired_begin");
    }
  }
  const std::vector<std::uint64_t> events = archive_.close_events(locations_.size());
  write_offsets();
  definitions_->write(archive_, events, last_);
  archive_.keep();
}

}  // namespace

std::unique_ptr<Sink> otf2_output(const std::string& path) { return std::make_unique<Otf2>(path); }

}  // namespace elbowroom::trace
