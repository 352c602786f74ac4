#include "trace/reader.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace elbowroom::trace {
namespace {

constexpr std::uint64_t kMostSlots = 1ULL << 40;
constexpr std::uint64_t kMostTextBytes = 1ULL << 40;

bool refuse(RingLayout& layout, const std::string& why) {
  layout.damage = why;
  return false;
}

void add_damage(std::string& damage, const std::string& what) { damage += (damage.empty() ? "" : "; ") + what; }

bool sound_events(const RingHeader& header) {
  const bool grown = header.policy == ELBOW_TRACE_GROW && header.in_order == 0;
  const bool in_place =
      header.header_bytes == kHeaderBytes
          ? header.texts_at == 0 || header.texts_at == kHeaderBytes
          : header.header_bytes == kHeaderBytes + header.text_capacity && header.texts_at == kHeaderBytes;
  if (!in_place || header.policy > ELBOW_TRACE_GROW || header.capacity > kMostSlots || header.ring.shift > 63) {
    return false;
  }
  if (header.in_order != 0) {
    return header.in_order == 1 && header.stored <= kMostSlots && header.marks <= header.stored &&
           header.stored - header.marks <= header.ring.recorded;
  }
  return header.stored <= header.capacity && (grown || std::has_single_bit(header.capacity));
}

bool read_header(std::span<const std::byte> bytes, RingLayout& layout) {
  if (bytes.size() < kHeaderBytes) {
    return refuse(layout, "the file ends inside its header, after " + std::to_string(bytes.size()) + " bytes");
  }
  RingHeader& header = layout.header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    return refuse(layout, "is not a ring of a trace (or of a machine with another order of bytes)");
  }
  if (header.version != ELBOW_TRACE_FORMAT) {
    return refuse(layout, "has version " + std::to_string(header.version) + ", but this release reads " +
                              std::to_string(ELBOW_TRACE_FORMAT) + ": read it with the release that wrote it");
  }
  const bool sound = header.slot_bytes == sizeof(elbow_trace_slot) && sound_events(header) &&
                     header.text_capacity <= kMostTextBytes && header.text_stored <= header.text_capacity &&
                     header.text_bytes <= header.text_capacity && header.counter <= 1 &&
                     (header.counter == 0 || header.scale > 0);
  if (!sound) {
    return refuse(layout, "the header is damaged: sizes contradict each other");
  }
  header.name[kNameBytes - 1] = '\0';
  header.host[kNameBytes - 1] = '\0';
  header.ring.slots = nullptr;
  return true;
}

// Slots that the file has.
std::uint64_t slots_there(std::uint64_t file_bytes, const RingHeader& header) {
  const std::uint64_t front = std::min<std::uint64_t>(file_bytes, header.header_bytes);
  return std::min<std::uint64_t>((file_bytes - front) / sizeof(elbow_trace_slot), header.stored);
}

std::uint64_t place_of(std::uint64_t slot, const RingLayout& layout) {
  return layout.header.header_bytes + slot * sizeof(elbow_trace_slot);
}

// The numbers of [from, to), in the slots of a ring, of which the file has `there`.
void add_runs(std::uint64_t from, std::uint64_t to, std::uint64_t there, RingLayout& layout) {
  const std::uint64_t slots = layout.header.capacity;
  while (from < to) {
    const std::uint64_t begin = from & (slots - 1);
    const std::uint64_t count = std::min(to - from, slots - begin);
    if (begin < there) {
      layout.runs.push_back({place_of(begin, layout), std::min(count, there - begin), from});
    }
    from += count;
  }
}

// What a killed process's helper had not yet written to the file in the directory.
void find_drained(std::uint64_t there, RingLayout& layout) {
  const RingHeader& header = layout.header;
  const std::uint64_t end = std::min(header.ring.recorded, header.ring.limit);
  const std::uint64_t gap_from = std::clamp(header.lost_from, std::min(header.drained, end), end);
  const std::uint64_t gap_to = std::clamp(header.lost_to, gap_from, end);
  layout.recorded = header.ring.recorded - std::min(header.drained, header.ring.recorded);
  if (header.drained > end || end - header.drained - (gap_to - gap_from) > header.capacity) {
    add_damage(layout.damage, "the header is damaged: more events are waiting than the ring holds");
    return;
  }
  layout.kept = end - header.drained - (gap_to - gap_from);
  add_runs(header.drained, gap_from, there, layout);
  add_runs(gap_to, end, there, layout);
}

void find_events(std::uint64_t file_bytes, RingLayout& layout) {
  const RingHeader& header = layout.header;
  const std::uint64_t there = slots_there(file_bytes, header);
  const bool waiting = header.policy == ELBOW_TRACE_DRAIN && header.in_order == 0;
  layout.recorded = header.ring.recorded;
  layout.kept = header.in_order == 1 ? header.stored : std::min(header.ring.recorded, header.capacity);
  if (waiting) {
    find_drained(there, layout);
  }
  const std::uint64_t needed = waiting && layout.kept > 0 ? header.capacity : layout.kept;
  if (there < needed) {
    add_damage(layout.damage, "the file ends after " + std::to_string(there) + " of " + std::to_string(layout.kept) +
                                  " events, at byte " + std::to_string(file_bytes));
  }
  if (waiting) {
    return;
  }
  // A flight recorder's oldest event is behind its newest.
  const bool wrapped =
      header.in_order == 0 && header.policy == ELBOW_TRACE_OVERWRITE && header.ring.recorded > header.capacity;
  const std::uint64_t first = wrapped ? header.ring.recorded & (header.capacity - 1) : 0;
  const std::uint64_t oldest = wrapped ? header.ring.recorded - header.capacity : 0;
  if (first < there) {
    layout.runs.push_back({place_of(first, layout), std::min(there, first + layout.kept) - first, oldest});
  }
  if (first > 0 && there > 0) {
    layout.runs.push_back({place_of(0, layout), std::min(there, first), oldest + header.capacity - first});
  }
  layout.kept -= header.in_order == 1 ? header.marks : 0;
}

void find_texts(std::uint64_t file_bytes, RingLayout& layout) {
  const RingHeader& header = layout.header;
  const std::uint64_t start =
      header.texts_at != 0 ? header.texts_at : header.header_bytes + header.stored * sizeof(elbow_trace_slot);
  const std::uint64_t wanted = std::min(header.text_bytes, header.text_stored);
  if (start > file_bytes || file_bytes - start < wanted) {
    add_damage(layout.damage, "the file ends inside its descriptive records");
  }
  layout.text_at = std::min(start, file_bytes);
  layout.text_end = std::min(start + wanted, file_bytes);
}

void read_events(std::span<const std::byte> bytes, const RingLayout& layout, RingContents& contents) {
  std::uint64_t back = 0;
  for (const RingRun& run : layout.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      elbow_trace_slot slot;
      std::memcpy(&slot, bytes.data() + run.place + i * sizeof slot, sizeof slot);
      if (!is_whole(layout.header, slot, run.number + i)) {
        ++contents.unfinished;
        continue;
      }
      if (slot.kind > ELBOW_TRACE_LOST) {
        add_damage(contents.damage, "event " + std::to_string(run.number + i) + " is of kind " +
                                        std::to_string(slot.kind) + ", which does not exist");
        return;
      }
      back += !contents.events.empty() && slot.time < contents.events.back().time ? 1 : 0;
      contents.events.push_back(slot);
    }
  }
  if (back > 0) {
    add_damage(contents.damage, "the clock goes back at " + std::to_string(back) + " of the events");
  }
}

}  // namespace

bool is_whole(const RingHeader& header, const elbow_trace_slot& slot, std::uint64_t number) {
  const bool laps = header.in_order == 0 && header.ring.shift != 0;
  return slot.time != 0 && (!laps || slot.lap == static_cast<std::uint8_t>(number >> header.ring.shift));
}

bool read_layout(std::span<const std::byte> front, std::uint64_t file_bytes, RingLayout& layout) {
  layout = {};
  if (!read_header(front, layout)) {
    return false;
  }
  find_events(file_bytes, layout);
  find_texts(file_bytes, layout);
  return true;
}

std::vector<Text> read_texts(std::span<const std::byte> bytes, std::string& damage) {
  std::vector<Text> texts;
  for (std::size_t at = 0; bytes.size() - at >= sizeof(TextHeader);) {
    TextHeader front;
    std::memcpy(&front, bytes.data() + at, sizeof front);
    if (front.length > bytes.size() - at - sizeof front) {
      add_damage(damage, "descriptive record " + std::to_string(texts.size()) + " is longer than what is left");
      break;
    }
    const char* text = reinterpret_cast<const char*>(bytes.data() + at + sizeof front);
    texts.push_back({front.key, front.type, {text, front.length}});
    at = std::min(at + padded(sizeof front + front.length), bytes.size());
  }
  return texts;
}

bool read_ring(std::span<const std::byte> bytes, RingContents& contents) {
  contents = {};
  RingLayout layout;
  const bool read = read_layout(bytes.first(std::min(bytes.size(), kHeaderBytes)), bytes.size(), layout);
  contents.damage = layout.damage;
  if (!read) {
    return false;
  }
  contents.header = layout.header;
  contents.ended = layout.header.ended == 1;
  contents.recorded = layout.recorded;
  contents.lost = layout.recorded - layout.kept;
  contents.events.reserve(std::min(layout.kept, bytes.size() / sizeof(elbow_trace_slot)));
  read_events(bytes, layout, contents);
  contents.texts = read_texts(bytes.subspan(layout.text_at, layout.text_end - layout.text_at), contents.damage);
  return true;
}

}  // namespace elbowroom::trace
