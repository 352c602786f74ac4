// Packets of Perfetto's protobuf (numbers of fields: perfetto/trace/trace_packet.proto, track_event/*.proto), one sequence.
#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>

#include "trace/merge/sink.hpp"
#include "trace/outputs/whole_file.hpp"

namespace elbowroom::trace {

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

// Annotations that are no fields of a type, interned in this order.
enum class Annotation : std::uint64_t {
  kError = 1,
  kTachyon,  // and the others of kFlagNames, in their order
  kSuspect,
  kUnmatched,
  kUnsynced,
  kExtrapolated,
  kMoved,
  kMismatched,
  kClipped,
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

using PerfettoWriter = protozero::pbf_writer;

// The name of annotation `number` of those, from 1.
const char* annotation_name(std::size_t number);
constexpr std::size_t kAnnotationCount = static_cast<std::size_t>(Annotation::kFields) - 1;

void annotate(PerfettoWriter& event, std::uint64_t name, int kind, std::uint64_t value);
inline void annotate(PerfettoWriter& event, Annotation name, int kind, std::uint64_t value) {
  annotate(event, static_cast<std::uint64_t>(name), kind, value);
}
void annotate(PerfettoWriter& event, Annotation name, std::string_view text);
// How wrong the event's time may be, and its flags.
void say_flags(PerfettoWriter& event, const MergedEvent& e);
void add_interned(PerfettoWriter& data, int kind, std::uint64_t iid, std::string_view text);

class PerfettoPackets {
 public:
  explicit PerfettoPackets(const std::string& path) : file_(path) {}

  // An event of this type on this track; `body` adds what it has besides.
  template <class Body>
  void event(std::int64_t time, std::uint64_t on, int type, Body body) {
    {
      PerfettoWriter whole(bytes_);
      whole.add_uint64(packet::kTimestamp, static_cast<std::uint64_t>(time));
      whole.add_uint32(packet::kSequence, kSequenceId);
      whole.add_uint32(packet::kFlags, packet::kNeeded);
      PerfettoWriter one(whole, packet::kTrackEvent);
      one.add_enum(track_event::kType, type);
      one.add_uint64(track_event::kTrack, on);
      body(one);
    }
    write();
  }

  // `parent` 0: none.
  template <class Body>
  void track(std::uint64_t uuid, std::uint64_t parent, Body body) {
    {
      PerfettoWriter whole(bytes_);
      whole.add_uint32(packet::kSequence, kSequenceId);
      PerfettoWriter one(whole, packet::kTrackDescriptor);
      one.add_uint64(descriptor::kUuid, uuid);
      if (parent != 0) {
        one.add_uint64(descriptor::kParent, parent);
      }
      body(one);
    }
    write();
  }

  // Names that packets from here on refer to by number; `first` of all packets.
  template <class Body>
  void interns(bool first, Body body) {
    {
      PerfettoWriter whole(bytes_);
      whole.add_uint32(packet::kSequence, kSequenceId);
      whole.add_uint32(packet::kFlags, first ? packet::kCleared : packet::kNeeded);
      if (first) {
        whole.add_bool(packet::kFirstOfSequence, true);
      }
      PerfettoWriter data(whole, packet::kInterned);
      body(data);
    }
    write();
  }

  void keep() { file_.keep(); }

 private:
  void write();

  WholeFile file_;
  std::string bytes_;
};

}  // namespace elbowroom::trace
