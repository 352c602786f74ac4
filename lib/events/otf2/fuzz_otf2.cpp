// libFuzzer: any bytes as what libotf2 reads from an archive. It stands in for libotf2, which ends the process on some
// damage: bytes become definitions and events, in any order and with any numbers, and the reader of elbowroom is called
// back with them. What it writes is checked: classes and lanes that are there, durations above 0.
#include <otf2/otf2.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "events/otf2/archive.hpp"

namespace {

// The input: what is next of it, 0 behind its end.
struct Bytes {
  std::span<const std::uint8_t> left;

  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (; bytes > 0 && !left.empty(); --bytes, left = left.subspan(1)) {
      value = value << 8 | left[0];
    }
    return value;
  }
  // Mostly a small number, so that references meet what is defined; else any.
  std::uint64_t reference() {
    const std::uint64_t value = number(1);
    return value < 0xf0 ? value % 5 : number(8);
  }
};

Bytes input;

}  // namespace

struct OTF2_GlobalDefReaderCallbacks_struct {
  OTF2_GlobalDefReaderCallback_String string;
  OTF2_GlobalDefReaderCallback_Region region;
  OTF2_GlobalDefReaderCallback_Location location;
  OTF2_GlobalDefReaderCallback_LocationGroup group;
  OTF2_GlobalDefReaderCallback_ClockProperties clock;
};

struct OTF2_EvtReaderCallbacks_struct {
  OTF2_EvtReaderCallback_Enter enter;
  OTF2_EvtReaderCallback_Leave leave;
  OTF2_EvtReaderCallback_MpiIsend isend;
  OTF2_EvtReaderCallback_MpiIrecvRequest request;
  OTF2_EvtReaderCallback_MpiIsendComplete sent;
  OTF2_EvtReaderCallback_MpiIrecv received;
};

struct OTF2_Reader_struct {
  const OTF2_GlobalDefReaderCallbacks* definitions;
  const OTF2_EvtReaderCallbacks* events;
  void *of_definitions, *of_events;
};

namespace {

OTF2_Reader_struct reader;
char handle;  // of readers that hold nothing

void define(const OTF2_GlobalDefReaderCallbacks& call, void* data) {
  const auto id = static_cast<std::uint32_t>(input.reference()), name = static_cast<std::uint32_t>(input.reference());
  switch (input.number(1) % 5) {
    case 0: {
      const std::string text(input.number(1) % 9, static_cast<char>(input.number(1)));
      call.string(data, id, text.c_str());
      return;
    }
    case 1:
      call.region(data, id, name, 0, 0, static_cast<OTF2_RegionRole>(input.number(1)),
                  static_cast<OTF2_Paradigm>(input.number(1)), 0, 0, 0, 0);
      return;
    case 2:
      call.location(data, input.reference(), name, static_cast<OTF2_LocationType>(input.number(1) % 4),
                    input.reference(), static_cast<OTF2_LocationGroupRef>(input.reference()));
      return;
    case 3:
#if OTF2_VERSION_MAJOR >= 3
      call.group(data, id, name, static_cast<OTF2_LocationGroupType>(input.number(1) % 4), 0,
                 static_cast<OTF2_LocationGroupRef>(input.reference()));
#else
      call.group(data, id, name, static_cast<OTF2_LocationGroupType>(input.number(1) % 4), 0);
#endif
      return;
    default:
#if OTF2_VERSION_MAJOR >= 3
      call.clock(data, input.reference(), 0, 0, 0);
#else
      call.clock(data, input.reference(), 0, 0);
#endif
  }
}

void happen(const OTF2_EvtReaderCallbacks& call, void* data) {
  static OTF2_TimeStamp time;
  const std::uint64_t later = input.number(1);
  time = later < 0xf0 ? time + later : input.number(8);
  const std::uint64_t number = input.reference();
  const auto region = static_cast<OTF2_RegionRef>(number);
  switch (input.number(1) % 6) {
    case 0: call.enter(0, time, 0, data, nullptr, region); return;
    case 1: call.leave(0, time, 0, data, nullptr, region); return;
    case 2: call.isend(0, time, 0, data, nullptr, 0, 0, 0, 0, number); return;
    case 3: call.request(0, time, 0, data, nullptr, number); return;
    case 4: call.sent(0, time, 0, data, nullptr, number); return;
    default: call.received(0, time, 0, data, nullptr, 0, 0, 0, 0, number);
  }
}

OTF2_ErrorCode result() { return input.number(1) == 0xff ? OTF2_ERROR_INVALID_DATA : OTF2_SUCCESS; }

}  // namespace

extern "C" {

OTF2_Reader* OTF2_Reader_Open(const char*) { return &reader; }
OTF2_ErrorCode OTF2_Reader_Close(OTF2_Reader*) { return OTF2_SUCCESS; }
OTF2_ErrorCode OTF2_Reader_SetSerialCollectiveCallbacks(OTF2_Reader*) { return OTF2_SUCCESS; }
OTF2_ErrorCode OTF2_Reader_SelectLocation(OTF2_Reader*, OTF2_LocationRef) { return OTF2_SUCCESS; }
OTF2_ErrorCode OTF2_Reader_OpenDefFiles(OTF2_Reader*) { return result(); }
OTF2_ErrorCode OTF2_Reader_CloseDefFiles(OTF2_Reader*) { return OTF2_SUCCESS; }
OTF2_ErrorCode OTF2_Reader_OpenEvtFiles(OTF2_Reader*) { return result(); }
OTF2_DefReader* OTF2_Reader_GetDefReader(OTF2_Reader*, OTF2_LocationRef) { return nullptr; }
OTF2_ErrorCode OTF2_Reader_CloseDefReader(OTF2_Reader*, OTF2_DefReader*) { return OTF2_SUCCESS; }
OTF2_ErrorCode OTF2_Reader_ReadAllLocalDefinitions(OTF2_Reader*, OTF2_DefReader*, std::uint64_t*) {
  return OTF2_SUCCESS;
}
OTF2_EvtReader* OTF2_Reader_GetEvtReader(OTF2_Reader*, OTF2_LocationRef) {
  return reinterpret_cast<OTF2_EvtReader*>(&handle);
}
OTF2_ErrorCode OTF2_Reader_CloseEvtReader(OTF2_Reader*, OTF2_EvtReader*) { return OTF2_SUCCESS; }
OTF2_GlobalDefReader* OTF2_Reader_GetGlobalDefReader(OTF2_Reader*) {
  return reinterpret_cast<OTF2_GlobalDefReader*>(&handle);
}

OTF2_GlobalDefReaderCallbacks* OTF2_GlobalDefReaderCallbacks_New() {
  return new OTF2_GlobalDefReaderCallbacks_struct{};
}
void OTF2_GlobalDefReaderCallbacks_Delete(OTF2_GlobalDefReaderCallbacks* callbacks) { delete callbacks; }
OTF2_EvtReaderCallbacks* OTF2_EvtReaderCallbacks_New() { return new OTF2_EvtReaderCallbacks_struct{}; }
void OTF2_EvtReaderCallbacks_Delete(OTF2_EvtReaderCallbacks* callbacks) { delete callbacks; }

// How a callback is set: all in the same way.
#define ELBOWROOM_SET(of, name, field)                                                           \
  OTF2_ErrorCode OTF2_##of##Callbacks_Set##name##Callback(OTF2_##of##Callbacks* callbacks,       \
                                                          OTF2_##of##Callback_##name callback) { \
    callbacks->field = callback;                                                                 \
    return OTF2_SUCCESS;                                                                         \
  }
ELBOWROOM_SET(GlobalDefReader, String, string)
ELBOWROOM_SET(GlobalDefReader, Region, region)
ELBOWROOM_SET(GlobalDefReader, Location, location)
ELBOWROOM_SET(GlobalDefReader, LocationGroup, group)
ELBOWROOM_SET(GlobalDefReader, ClockProperties, clock)
ELBOWROOM_SET(EvtReader, Enter, enter)
ELBOWROOM_SET(EvtReader, Leave, leave)
ELBOWROOM_SET(EvtReader, MpiIsend, isend)
ELBOWROOM_SET(EvtReader, MpiIrecvRequest, request)
ELBOWROOM_SET(EvtReader, MpiIsendComplete, sent)
ELBOWROOM_SET(EvtReader, MpiIrecv, received)
#undef ELBOWROOM_SET

OTF2_ErrorCode OTF2_Reader_RegisterGlobalDefCallbacks(OTF2_Reader* of, OTF2_GlobalDefReader*,
                                                      const OTF2_GlobalDefReaderCallbacks* callbacks, void* data) {
  of->definitions = callbacks;
  of->of_definitions = data;
  return OTF2_SUCCESS;
}

OTF2_ErrorCode OTF2_Reader_RegisterEvtCallbacks(OTF2_Reader* of, OTF2_EvtReader*,
                                                const OTF2_EvtReaderCallbacks* callbacks, void* data) {
  of->events = callbacks;
  of->of_events = data;
  return OTF2_SUCCESS;
}

OTF2_ErrorCode OTF2_Reader_ReadAllGlobalDefinitions(OTF2_Reader* of, OTF2_GlobalDefReader*, std::uint64_t* read) {
  for (*read = 0; *read < 64 && !input.left.empty() && input.number(1) < 0xe0; ++*read) {
    define(*of->definitions, of->of_definitions);
  }
  return result();
}

OTF2_ErrorCode OTF2_Reader_ReadLocalEvents(OTF2_Reader* of, OTF2_EvtReader*, std::uint64_t count, std::uint64_t* read) {
  for (*read = 0; *read < count && !input.left.empty() && input.number(1) < 0xf8; ++*read) {
    happen(*of->events, of->of_events);
  }
  return result();
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace elbowroom::events;
  static const int out = ::memfd_create("events", 0);
  (void)::ftruncate(out, 0);
  (void)::lseek(out, 0, SEEK_SET);
  input = {{data, size}};
  try {
    Otf2Reader("archive", out).run();
  } catch (const Otf2Declined&) {
    return 0;
  }
  // Blocks of kinds, lanes, begins and durations (events/table.hpp).
  off_t at = 0;
  for (std::uint32_t count = 0; ::pread(out, &count, sizeof count, at) == sizeof count && count > 0;) {
    count &= ~Columns::kUncorrelated;
    std::vector<std::int32_t> numbers(std::size_t{2} * count);
    std::vector<double> times(std::size_t{2} * count);
    const auto bytes = static_cast<ssize_t>(numbers.size() * sizeof numbers[0]);
    const auto more = static_cast<ssize_t>(times.size() * sizeof times[0]);
    if (::pread(out, numbers.data(), numbers.size() * sizeof numbers[0], at + 4) != bytes ||
        ::pread(out, times.data(), times.size() * sizeof times[0], at + 4 + bytes) != more) {
      __builtin_trap();
    }
    for (std::size_t event = 0; event < count; ++event) {
      // At most 64 definitions: regions of hosts and devices, and a class of messages.
      if (numbers[event] < 0 || numbers[event] > 128 || numbers[count + event] < 0 || numbers[count + event] > 128 ||
          !std::isfinite(times[event]) || !(times[count + event] > 0)) {
        __builtin_trap();
      }
    }
    at += 4 + bytes + more;
  }
  return 0;
}
}
