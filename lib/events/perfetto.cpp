// Numbers of messages and fields: Perfetto's protos/perfetto/trace (trace_packet, track_event, interned_data,
// track_descriptor, clock_snapshot).
#include "events/perfetto.hpp"

#include <isa-l/igzip_lib.h>

#include <protozero/exception.hpp>
#include <utility>

// A field of another type than Perfetto's is damage, as any other.
#define protozero_assert(condition) ((condition) ? void() : throw protozero::unknown_pbf_wire_type_exception{})
#include <protozero/pbf_reader.hpp>

#include "events/json_text.hpp"

namespace elbowroom::events {

namespace {

using protozero::pbf_reader;

constexpr std::size_t kLargestPacket = std::size_t{1} << 28;           // bytes
constexpr std::size_t kLargestInflated = std::size_t{1} << 30;         // bytes of one packet's packets
constexpr std::uint32_t kCleared = 1;                                  // the sequence forgets what it has interned
constexpr std::uint32_t kFirstOwnClock = 64, kFirstCustomClock = 128;  // clocks of one sequence alone
constexpr int kDeepest = 64;                                           // parents of a track
constexpr double kUs = 1000.0;

std::string_view text_of(pbf_reader& reader) {
  const auto view = reader.get_view();
  return {view.data(), view.size()};
}

pbf_reader message(std::string_view data) { return pbf_reader{data.data(), data.size()}; }

// Of a varint that begins the text: its value and size; size 0: it is cut, or too long.
std::pair<std::uint64_t, std::size_t> varint(std::string_view text) {
  std::uint64_t value = 0;
  for (std::size_t at = 0; at < text.size() && at < 10; ++at) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[at]) & 0x7f) << (7 * at);
    if ((text[at] & 0x80) == 0) {
      return {value, at + 1};
    }
  }
  return {0, 0};
}

// What a slice says of itself.
struct Slice {
  std::uint64_t type = 0, name_number = 0;
  std::optional<std::uint64_t> track;
  std::string_view name, category;
  std::uint64_t category_number = 0;
  char phase = 0;
  std::int64_t duration_us = -1;
};

void take_legacy(std::string_view data, Slice& slice) {
  for (pbf_reader reader = message(data); reader.next();) {
    switch (reader.tag()) {
      case 1: slice.name_number = reader.get_uint64(); break;
      case 2: slice.phase = static_cast<char>(reader.get_int32()); break;
      case 3: slice.duration_us = reader.get_int64(); break;
      default: reader.skip();
    }
  }
}

Slice slice_of(std::string_view data) {
  Slice slice;
  for (pbf_reader reader = message(data); reader.next();) {
    switch (reader.tag()) {
      case 3:
        if (reader.wire_type() == protozero::pbf_wire_type::length_delimited) {
          for (const std::uint64_t number : reader.get_packed_uint64()) {
            slice.category_number = slice.category_number != 0 ? slice.category_number : number;
          }
        } else if (const std::uint64_t number = reader.get_uint64(); slice.category_number == 0) {
          slice.category_number = number;
        }
        break;
      case 6: take_legacy(text_of(reader), slice); break;
      case 9: slice.type = reader.get_uint64(); break;
      case 10: slice.name_number = reader.get_uint64(); break;
      case 11: slice.track = reader.get_uint64(); break;
      case 22:
        if (const std::string_view text = text_of(reader); slice.category.empty()) {
          slice.category = text;
        }
        break;
      case 23: slice.name = text_of(reader); break;
      default: reader.skip();
    }
  }
  constexpr std::uint64_t kBegin = 1, kEnd = 2;
  if (slice.type == kBegin || slice.type == kEnd) {
    slice.phase = slice.type == kBegin ? 'B' : 'E';
  } else if (slice.type != 0) {
    slice.phase = 0;
  }
  return slice;
}

std::string_view interned(const std::unordered_map<std::uint64_t, std::string>& texts, std::uint64_t number) {
  const auto at = texts.find(number);
  return at == texts.end() ? std::string_view{} : std::string_view{at->second};
}

}  // namespace

void PerfettoReader::run() {
  std::string buffer;
  std::string_view doubt;
  try {
    bool more = source_.append_to(buffer);
    std::size_t at = 0;
    while (at < buffer.size() || more) {
      const std::string_view rest = std::string_view(buffer).substr(at);
      const auto [tag, tag_length] = varint(rest);
      const auto [size, length] = varint(rest.substr(std::min(tag_length, rest.size())));
      const std::size_t head = tag_length + length;
      if (tag_length != 0 && length != 0 && (tag & 7) != 2) {
        throw protozero::unknown_pbf_wire_type_exception{};
      }
      if (tag_length == 0 || length == 0 || rest.size() - head < size) {
        if (!more || (length != 0 && size > kLargestPacket)) {
          throw protozero::end_of_buffer_exception{};
        }
        buffer.erase(0, at);
        at = 0;
        more = source_.append_to(buffer);
        continue;
      }
      if (tag >> 3 == 1) {
        packet(rest.substr(head, size));
      }
      at += head + size;
    }
  } catch (const protozero::exception&) {
    doubt = "ends early, or is damaged";
  }
  close(source_.doubt().empty() ? doubt : source_.doubt());
}

void PerfettoReader::packet(std::string_view data) {
  Packet packet;
  for (pbf_reader reader = message(data); reader.next();) {
    switch (reader.tag()) {
      case 6: packet.clocks = text_of(reader); break;
      case 8: packet.time = reader.get_uint64(); break;
      case 10: packet.sequence = reader.get_uint32(); break;
      case 11: packet.event = text_of(reader); break;
      case 12: packet.interned = text_of(reader); break;
      case 13: packet.flags = reader.get_uint32(); break;
      case 50: packet.compressed = text_of(reader); break;
      case 58: packet.clock = reader.get_uint32(); break;
      case 59: packet.defaults = text_of(reader); break;
      case 60: packet.track = text_of(reader); break;
      default: reader.skip();
    }
  }
  Sequence& sequence = sequences_[packet.sequence];
  if ((packet.flags & kCleared) != 0) {
    sequence.names.clear();
    sequence.categories.clear();
  }
  take_clocks(packet.clocks, sequence);
  take_interned(packet.interned, sequence);
  take_defaults(packet.defaults, sequence);
  take_track(packet.track);
  if (!packet.event.empty()) {
    take_event(packet, sequence);
  }
  if (!packet.compressed.empty()) {
    take_compressed(packet.compressed);
  }
}

void PerfettoReader::take_interned(std::string_view data, Sequence& sequence) {
  for (pbf_reader reader = message(data); reader.next();) {
    if (reader.tag() != 1 && reader.tag() != 2) {
      reader.skip();
      continue;
    }
    auto& texts = reader.tag() == 1 ? sequence.categories : sequence.names;
    std::uint64_t number = 0;
    std::string_view text;
    for (pbf_reader entry = reader.get_message(); entry.next();) {
      switch (entry.tag()) {
        case 1: number = entry.get_uint64(); break;
        case 2: text = text_of(entry); break;
        default: entry.skip();
      }
    }
    texts[number] = text;
  }
}

void PerfettoReader::take_defaults(std::string_view data, Sequence& sequence) {
  for (pbf_reader reader = message(data); reader.next();) {
    if (reader.tag() == 58) {
      sequence.clock = reader.get_uint32();
    } else if (reader.tag() == 11) {
      for (pbf_reader event = reader.get_message(); event.next();) {
        event.tag() == 11 ? void(sequence.track = event.get_uint64()) : event.skip();
      }
    } else {
      reader.skip();
    }
  }
}

// Only clocks of one sequence count: times of all others are taken as they are.
void PerfettoReader::take_clocks(std::string_view data, Sequence& sequence) {
  for (pbf_reader reader = message(data); reader.next();) {
    if (reader.tag() != 1) {
      reader.skip();
      continue;
    }
    std::uint32_t number = 0;
    Clock clock;
    for (pbf_reader entry = reader.get_message(); entry.next();) {
      switch (entry.tag()) {
        case 1: number = entry.get_uint32(); break;
        case 2: clock.last = entry.get_uint64(); break;
        case 3: clock.incremental = entry.get_bool(); break;
        case 4: clock.unit = entry.get_uint64(); break;
        default: entry.skip();
      }
    }
    if (number >= kFirstOwnClock && number < kFirstCustomClock) {
      clock.unit = clock.unit == 0 ? 1 : clock.unit;
      sequence.clocks[number] = clock;
    }
  }
}

void PerfettoReader::take_track(std::string_view data) {
  if (data.empty()) {
    return;
  }
  std::uint64_t number = 0;
  Track track;
  for (pbf_reader reader = message(data); reader.next();) {
    switch (reader.tag()) {
      case 1: number = reader.get_uint64(); break;
      case 2:
      case 10: track.name = text_of(reader); break;
      case 3:
        for (pbf_reader process = reader.get_message(); process.next();) {
          switch (process.tag()) {
            case 1: track.process = process.get_int32(); break;
            case 6: track.process_name = text_of(process); break;
            default: process.skip();
          }
        }
        break;
      case 4:
        for (pbf_reader thread = reader.get_message(); thread.next();) {
          switch (thread.tag()) {
            case 1: track.process = thread.get_int32(); break;
            case 2: track.thread = thread.get_int64(); break;
            case 5:
              if (const std::string_view text = text_of(thread); track.name.empty()) {
                track.name = text;
              }
              break;
            default: thread.skip();
          }
        }
        break;
      case 5: track.parent = reader.get_uint64(); break;
      default: reader.skip();
    }
  }
  Track& known = tracks_[number];
  track.lane = known.lane;
  track.process_text = known.process_text;
  if (track.process && !track.process_name.empty()) {
    metadata_.push_back("[" + std::to_string(*track.process) + ",0,\"process_name\"," + in_quotes(track.process_name) +
                        ",null,null]");
  }
  known = std::move(track);
}

std::uint64_t PerfettoReader::time_of(const Packet& packet, Sequence& sequence) {
  const std::uint32_t number = packet.clock != 0 ? packet.clock : sequence.clock;
  const auto at = sequence.clocks.find(number);
  if (number < kFirstOwnClock || number >= kFirstCustomClock || at == sequence.clocks.end()) {
    return packet.time;
  }
  Clock& clock = at->second;
  if (!clock.incremental) {
    return packet.time * clock.unit;
  }
  clock.last += packet.time;
  return clock.last * clock.unit;
}

// The lane of a track: its process, or the outermost track's name, and its thread or name.
PerfettoReader::Track& PerfettoReader::track_of(std::uint64_t number) {
  Track& track = tracks_[number];
  if (track.lane >= 0) {
    return track;
  }
  std::optional<std::int64_t> process = track.process;
  std::string_view outermost = track.name;
  std::uint64_t parent = track.parent;
  for (int depth = 0; depth < kDeepest && parent != 0 && !process; ++depth) {
    const auto at = tracks_.find(parent);
    if (at == tracks_.end()) {
      break;
    }
    process = at->second.process;
    outermost = at->second.name.empty() ? outermost : std::string_view{at->second.name};
    parent = at->second.parent;
  }
  track.process_text = process ? std::to_string(*process) : in_quotes(outermost);
  std::string thread = track.thread          ? std::to_string(*track.thread)
                       : !track.name.empty() ? track.name
                                             : "track " + std::to_string(number);
  const auto lane_text = [&] {
    return "[" + track.process_text + "," + (track.thread ? thread : in_quotes(thread)) + ",null]";
  };
  const auto before = static_cast<std::int32_t>(lanes_.texts().size());
  track.lane = lanes_[lane_text()];
  if (track.lane != before && !track.thread) {  // another track has this name
    thread += " (" + std::to_string(number) + ")";
    track.lane = lanes_[lane_text()];
  }
  return track;
}

void PerfettoReader::take_event(const Packet& packet, Sequence& sequence) {
  const Slice slice = slice_of(packet.event);
  const std::uint64_t time = time_of(packet, sequence);
  if (slice.phase != 'B' && slice.phase != 'E' && slice.phase != 'X') {
    return;
  }
  const Track& track = track_of(slice.track.value_or(sequence.track));
  origin_ = origin_.value_or(time);
  RawEvent event;
  event.lane = event.thread = track.lane;
  event.has_start = true;
  event.start = static_cast<double>(static_cast<std::int64_t>(time - *origin_)) / kUs;
  if (slice.phase == 'E') {
    RawEvent whole;
    if (open_.end(event, whole)) {
      add(whole);
    }
    return;
  }
  const std::string_view name = slice.name.empty() ? interned(sequence.names, slice.name_number) : slice.name;
  const std::string_view category =
      slice.category.empty() ? interned(sequence.categories, slice.category_number) : slice.category;
  event.kind = classes_["[" + in_quotes(name) + "," + in_quotes(category) + ",false,false," + track.process_text +
                        ",\"\",\"\"]"];
  if (slice.phase == 'B') {
    open_.begin(event);
  } else if (slice.duration_us >= 0) {
    event.duration = static_cast<double>(slice.duration_us);
    add(event);
  }
}

void PerfettoReader::take_compressed(std::string_view data) {
  std::string inflated;
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_ZLIB;
  state.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(data.data()));
  state.avail_in = static_cast<std::uint32_t>(data.size());
  do {
    const std::size_t had = inflated.size();
    inflated.resize(had + (std::size_t{1} << 20));
    state.next_out = reinterpret_cast<std::uint8_t*>(inflated.data() + had);
    state.avail_out = std::uint32_t{1} << 20;
    if (isal_inflate(&state) != ISAL_DECOMP_OK || inflated.size() > kLargestInflated) {
      throw protozero::end_of_buffer_exception{};
    }
    inflated.resize(inflated.size() - state.avail_out);
  } while (state.block_state != ISAL_BLOCK_FINISH && (state.avail_in > 0 || state.avail_out == 0));
  for (pbf_reader reader = message(inflated); reader.next();) {
    reader.tag() == 1 ? packet(text_of(reader)) : reader.skip();
  }
}

void PerfettoReader::add(const RawEvent& event) {
  columns_.add(event);
  if (columns_.size() == Columns::kBlock) {
    columns_.write(out_);
  }
}

void PerfettoReader::close(std::string_view doubt) {
  if (columns_.size() > 0) {
    columns_.write(out_);
  }
  columns_.write(out_);
  const std::string text = "{\"classes\":" + list(classes_.texts()) + ",\"lanes\":" + list(lanes_.texts()) +
                           ",\"pairs\":" + columns_.pairs() + ",\"metadata\":" + list(metadata_) +
                           ",\"timeless\":0,\"waiting\":" + std::to_string(open_.waiting()) +
                           ",\"head\":\"\",\"tail\":\"\",\"doubt\":" + in_quotes(doubt) + "}";
  write_all(out_, text.data(), text.size());
}

}  // namespace elbowroom::events
