#include "trace/reader.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace elbowroom::trace {
namespace {

constexpr std::uint64_t kMostSlots = 1ULL << 40;

bool refuse(RingContents& contents, const std::string& why) {
  contents.damage = why;
  return false;
}

void add_damage(RingContents& contents, const std::string& what) {
  contents.damage += (contents.damage.empty() ? "" : "; ") + what;
}

bool read_header(std::span<const std::byte> bytes, RingContents& contents) {
  if (bytes.size() < kHeaderBytes) {
    return refuse(contents, "the file ends inside its header, after " + std::to_string(bytes.size()) + " bytes");
  }
  RingHeader& header = contents.header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    return refuse(contents, "is no ring of a trace (or of a machine with another order of bytes)");
  }
  if (header.version != ELBOW_TRACE_FORMAT) {
    return refuse(contents, "is of version " + std::to_string(header.version) + ", and this release reads " +
                                std::to_string(ELBOW_TRACE_FORMAT) + ": read it with the release that wrote it");
  }
  const bool sound = header.header_bytes == kHeaderBytes && header.slot_bytes == sizeof(elbow_trace_slot) &&
                     std::has_single_bit(header.capacity) && header.capacity <= kMostSlots &&
                     header.stored <= header.capacity && header.text_stored <= header.text_capacity &&
                     header.policy <= ELBOW_TRACE_OVERWRITE && header.text_bytes <= header.text_capacity &&
                     header.counter <= 1 && (header.counter == 0 || header.scale > 0);
  if (!sound) {
    return refuse(contents, "the header is damaged: sizes contradict each other");
  }
  header.name[kNameBytes - 1] = '\0';
  header.host[kNameBytes - 1] = '\0';
  header.ring.slots = nullptr;
  return true;
}

elbow_trace_slot slot_at(std::span<const std::byte> bytes, std::uint64_t index) {
  elbow_trace_slot slot;
  std::memcpy(&slot, bytes.data() + kHeaderBytes + index * sizeof slot, sizeof slot);
  return slot;
}

void read_events(std::span<const std::byte> bytes, RingContents& contents) {
  const RingHeader& header = contents.header;
  const std::uint64_t kept = std::min(header.ring.recorded, header.capacity);
  contents.recorded = header.ring.recorded;
  contents.lost = header.ring.recorded - kept;
  const std::uint64_t there =
      std::min<std::uint64_t>((bytes.size() - kHeaderBytes) / sizeof(elbow_trace_slot), header.stored);
  if (there < kept) {
    add_damage(contents, "the file ends after " + std::to_string(there) + " of " + std::to_string(kept) + " events");
  }
  // A flight recorder's oldest event is behind its newest.
  const bool wrapped = header.policy == ELBOW_TRACE_OVERWRITE && header.ring.recorded > header.capacity;
  const std::uint64_t first = wrapped ? header.ring.recorded & (header.capacity - 1) : 0;
  contents.events.reserve(std::min(kept, there));
  std::uint64_t back = 0;
  for (std::uint64_t i = 0; i < kept; ++i) {
    const std::uint64_t index = (first + i) & (header.capacity - 1);
    if (index >= there) {
      continue;
    }
    const elbow_trace_slot slot = slot_at(bytes, index);
    if (slot.time == 0) {
      ++contents.unfinished;
      continue;
    }
    if (slot.kind > ELBOW_TRACE_REGION) {
      add_damage(contents,
                 "event " + std::to_string(i) + " is of kind " + std::to_string(slot.kind) + ", which is none");
      break;
    }
    back += !contents.events.empty() && slot.time < contents.events.back().time ? 1 : 0;
    contents.events.push_back(slot);
  }
  if (back > 0) {
    add_damage(contents, "the clock goes back at " + std::to_string(back) + " of the events");
  }
}

void read_texts(std::span<const std::byte> bytes, RingContents& contents) {
  const RingHeader& header = contents.header;
  const std::uint64_t start = kHeaderBytes + header.stored * sizeof(elbow_trace_slot);
  const std::uint64_t wanted = std::min(header.text_bytes, header.text_stored);
  if (start > bytes.size() || bytes.size() - start < wanted) {
    add_damage(contents, "the file ends inside its descriptive records");
  }
  const std::uint64_t end = std::min<std::uint64_t>(start + wanted, bytes.size());
  for (std::uint64_t at = start; at + sizeof(TextHeader) <= end;) {
    TextHeader front;
    std::memcpy(&front, bytes.data() + at, sizeof front);
    if (front.length > end - at - sizeof front) {
      add_damage(contents,
                 "descriptive record " + std::to_string(contents.texts.size()) + " is longer than what is left");
      break;
    }
    const char* text = reinterpret_cast<const char*>(bytes.data() + at + sizeof front);
    contents.texts.push_back({front.key, front.type, {text, front.length}});
    at += padded(sizeof front + front.length);
  }
}

}  // namespace

bool read_ring(std::span<const std::byte> bytes, RingContents& contents) {
  contents = {};
  if (!read_header(bytes, contents)) {
    return false;
  }
  contents.ended = contents.header.ended == 1;
  read_events(bytes, contents);
  read_texts(bytes, contents);
  return true;
}

}  // namespace elbowroom::trace
