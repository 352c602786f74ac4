#include "events/otf2/archive.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "events/json_text.hpp"

namespace elbowroom::events {

namespace {

constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 20;  // events of a call
constexpr double kLatest = 0x1p61;                         // ns: later times are damage

Otf2Reader& reader_of(void* data) { return *static_cast<Otf2Reader*>(data); }

OTF2_CallbackCode enter(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* data, OTF2_AttributeList*,
                        OTF2_RegionRef region) {
  reader_of(data).enter(time, region);
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode leave(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* data, OTF2_AttributeList*,
                        OTF2_RegionRef region) {
  reader_of(data).leave(time, region);
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode isend(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* data, OTF2_AttributeList*,
                        std::uint32_t, OTF2_CommRef, std::uint32_t, std::uint64_t, std::uint64_t request) {
  reader_of(data).post(time, request);
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode irecv_request(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* data, OTF2_AttributeList*,
                                std::uint64_t request) {
  reader_of(data).post(time, request);
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode isend_complete(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* data, OTF2_AttributeList*,
                                 std::uint64_t request) {
  reader_of(data).complete(time, request);
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode irecv(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* data, OTF2_AttributeList*,
                        std::uint32_t, OTF2_CommRef, std::uint32_t, std::uint64_t, std::uint64_t request) {
  reader_of(data).complete(time, request);
  return OTF2_CALLBACK_SUCCESS;
}

using EventCallbacks = std::unique_ptr<OTF2_EvtReaderCallbacks, decltype(&OTF2_EvtReaderCallbacks_Delete)>;

EventCallbacks event_callbacks() {
  EventCallbacks callbacks(OTF2_EvtReaderCallbacks_New(), &OTF2_EvtReaderCallbacks_Delete);
  OTF2_EvtReaderCallbacks_SetEnterCallback(callbacks.get(), &enter);
  OTF2_EvtReaderCallbacks_SetLeaveCallback(callbacks.get(), &leave);
  OTF2_EvtReaderCallbacks_SetMpiIsendCallback(callbacks.get(), &isend);
  OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(callbacks.get(), &irecv_request);
  OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(callbacks.get(), &isend_complete);
  OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(callbacks.get(), &irecv);
  return callbacks;
}

}  // namespace

Otf2Reader::Otf2Reader(const std::string& anchor, int out) : reader_(OTF2_Reader_Open(anchor.c_str())), out_(out) {
  if (reader_ == nullptr) {
    throw Otf2Declined("it cannot be opened");
  }
  OTF2_Reader_SetSerialCollectiveCallbacks(reader_);
}

Otf2Reader::~Otf2Reader() { OTF2_Reader_Close(reader_); }

void Otf2Reader::run() {
  if (!definitions_.read(reader_)) {
    throw Otf2Declined("its definitions are damaged");
  }
  tick_ = 1e9 / static_cast<double>(definitions_.resolution);
  for (const Otf2Definitions::Location& one : definitions_.locations) {
    OTF2_Reader_SelectLocation(reader_, one.number);
  }
  const bool have_definitions = OTF2_Reader_OpenDefFiles(reader_) == OTF2_SUCCESS;
  if (OTF2_Reader_OpenEvtFiles(reader_) != OTF2_SUCCESS) {
    throw Otf2Declined("its events cannot be opened");
  }
  if (have_definitions) {  // the numbers of each location, and its clock
    for (const Otf2Definitions::Location& one : definitions_.locations) {
      if (OTF2_DefReader* local = OTF2_Reader_GetDefReader(reader_, one.number); local != nullptr) {
        std::uint64_t count = 0;
        OTF2_Reader_ReadAllLocalDefinitions(reader_, local, &count);
        OTF2_Reader_CloseDefReader(reader_, local);
      }
    }
    OTF2_Reader_CloseDefFiles(reader_);
  }
  close(read_events());
}

bool Otf2Reader::read_events() {
  const EventCallbacks callbacks = event_callbacks();
  const auto regions = static_cast<std::int32_t>(definitions_.regions.size());
  const auto threads = static_cast<std::int32_t>(definitions_.locations.size());
  bool whole = true;
  for (const Otf2Definitions::Location& one : definitions_.locations) {
    first_class_ = one.type == OTF2_LOCATION_TYPE_ACCELERATOR_STREAM ? regions : 0;
    messages_lane_ = threads + processes_[definitions_.process(one)];
    open_.clear();
    posted_.clear();
    whole = read_location(one, callbacks.get()) && whole;
    ++lane_;
  }
  return whole;
}

// False where its events cannot be read to their end.
bool Otf2Reader::read_location(const Otf2Definitions::Location& location, OTF2_EvtReaderCallbacks* callbacks) {
  OTF2_EvtReader* events = OTF2_Reader_GetEvtReader(reader_, location.number);
  if (events == nullptr) {
    return true;
  }
  OTF2_Reader_RegisterEvtCallbacks(reader_, events, callbacks, this);
  bool whole = true;
  // A call at the end of a location fails.
  for (std::uint64_t left = location.events, count = kAtOnce; whole && count == kAtOnce && left > 0; left -= count) {
    whole = OTF2_Reader_ReadLocalEvents(reader_, events, kAtOnce, &count) == OTF2_SUCCESS;
    count = std::min(count, left);
  }
  OTF2_Reader_CloseEvtReader(reader_, events);
  return whole;
}

std::int64_t Otf2Reader::ns(OTF2_TimeStamp time) {
  if (!begun_) {
    begun_ = true;
    first_ = time;
  }
  const double ns = static_cast<double>(static_cast<std::int64_t>(time - first_)) * tick_;
  return std::llrint(std::clamp(ns, -kLatest, kLatest));
}

void Otf2Reader::enter(OTF2_TimeStamp time, OTF2_RegionRef region) { open_.push_back({region, ns(time)}); }

void Otf2Reader::leave(OTF2_TimeStamp time, OTF2_RegionRef region) {
  const std::int64_t end = ns(time);
  // The innermost one of this region, which is the last but in damaged traces.
  const auto at = std::find_if(open_.rbegin(), open_.rend(), [&](const Open& one) { return one.region == region; });
  if (at == open_.rend()) {
    return;
  }
  const std::int64_t start = at->start;
  open_.erase(std::next(at).base());
  if (const auto known = definitions_.region_numbers.find(region); known != definitions_.region_numbers.end()) {
    add(first_class_ + known->second, lane_, start, end);
  }
}

void Otf2Reader::post(OTF2_TimeStamp time, std::uint64_t request) { posted_[request] = ns(time); }

void Otf2Reader::complete(OTF2_TimeStamp time, std::uint64_t request) {
  const std::int64_t end = ns(time);
  if (const auto at = posted_.find(request); at != posted_.end()) {
    ++messages_;
    add(static_cast<std::int32_t>(2 * definitions_.regions.size()), messages_lane_, at->second, end);
    posted_.erase(at);
  }
}

void Otf2Reader::add(std::int32_t kind, std::int32_t lane, std::int64_t start, std::int64_t end) {
  if (end <= start) {
    return;  // an event without a duration is none to the analysis
  }
  RawEvent event;
  event.kind = kind;
  event.lane = lane;
  event.start = static_cast<double>(start) / 1e3;
  event.duration = static_cast<double>(end - start) / 1e3;
  columns_.add(event);
  if (columns_.size() == Columns::kBlock) {
    columns_.write(out_);
  }
}

void Otf2Reader::close(bool whole) {
  if (columns_.size() > 0) {
    columns_.write(out_);
  }
  columns_.write(out_);
  std::vector<std::string> regions(definitions_.regions.size()), locations;
  for (const auto& [number, at] : definitions_.region_numbers) {
    const Otf2Definitions::Region& one = definitions_.regions[static_cast<std::size_t>(at)];
    regions[static_cast<std::size_t>(at)] = list({std::to_string(number), in_quotes(definitions_.text(one.name)),
                                                  std::to_string(one.role), std::to_string(one.paradigm)});
  }
  for (const Otf2Definitions::Location& one : definitions_.locations) {
    locations.push_back(list({std::to_string(one.number), in_quotes(definitions_.text(one.name)),
                              std::to_string(one.type), in_quotes(definitions_.process(one))}));
  }
  const std::string text = "{\"regions\":" + list(regions) + ",\"locations\":" + list(locations) +
                           ",\"messages\":" + std::to_string(messages_) +
                           ",\"doubt\":" + in_quotes(whole ? "" : "ends early or is damaged") + "}";
  write_all(out_, text.data(), text.size());
}

}  // namespace elbowroom::events
