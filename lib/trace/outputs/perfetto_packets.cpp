#include "trace/outputs/perfetto_packets.hpp"

#include <iterator>

#include "trace/outputs/titles.hpp"

namespace elbowroom::trace {
namespace {

constexpr const char* kAnnotations[] = {"error_ns", "tachyon",     "suspect",  "unmatched", "unsynced", "extrapolated",
                                        "moved",    "mismatched",  "clipped",  "to",        "from",     "communicator",
                                        "tag",      "bytes",       "sequence", "message",   "text",     "lost",
                                        "unpaired", "interrupted", "continued"};
static_assert(std::size(kAnnotations) == kAnnotationCount);

}  // namespace

const char* annotation_name(std::size_t number) { return kAnnotations[number - 1]; }

void annotate(PerfettoWriter& event, std::uint64_t name, int kind, std::uint64_t value) {
  PerfettoWriter one(event, track_event::kAnnotation);
  one.add_uint64(annotation::kName, name);
  one.add_uint64(static_cast<protozero::pbf_tag_type>(kind), value);
}

void annotate(PerfettoWriter& event, Annotation name, std::string_view text) {
  PerfettoWriter one(event, track_event::kAnnotation);
  one.add_uint64(annotation::kName, static_cast<std::uint64_t>(name));
  one.add_string(annotation::kString, valid_utf8(text));
}

void say_flags(PerfettoWriter& event, const MergedEvent& e) {
  if (e.error >= 0) {
    annotate(event, Annotation::kError, annotation::kSigned, static_cast<std::uint64_t>(e.error));
  }
  for (std::size_t i = 0; i < std::size(kFlagNames); ++i) {
    if ((e.flags & kFlagNames[i].first) != 0) {
      annotate(event, static_cast<std::uint64_t>(Annotation::kTachyon) + i, annotation::kBool, 1);
    }
  }
}

void add_interned(PerfettoWriter& data, int kind, std::uint64_t iid, std::string_view text) {
  PerfettoWriter one(data, static_cast<protozero::pbf_tag_type>(kind));
  one.add_uint64(interned::kIid, iid);
  one.add_string(interned::kText, valid_utf8(text));
}

void PerfettoPackets::write() {
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

}  // namespace elbowroom::trace
