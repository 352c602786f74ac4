// What ranks send each other besides data: announcements of a broadcast, with the list of the receiver's subtree, and
// short answers. Every message names the version of its format; every field is checked when it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "tree.hpp"

namespace elbowroom::broadcast {

constexpr std::uint8_t kFormat = 2;
constexpr std::uint64_t kMostSegment = std::uint64_t{1} << 30;  // bytes: MPI counts them by int

struct Recipient {
  std::int32_t rank = 0;
  std::int32_t priority = 0;   // from 0; higher ones are served first
  std::uint64_t serial = 0;    // counts, from 1, what the root sends to this rank
  std::uint16_t group = 0;     // the rack, for trees of two levels
  std::uint64_t previous = 0;  // serial of the data before these with the same key; 0: they arrived long ago

  bool operator==(const Recipient&) const = default;
};

// What a receive names; data of one key are received in the order of their serials.
struct Key {
  std::uint32_t context = 0;
  std::int32_t root = 0;
  std::int64_t tag = 0;

  auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): there is no pointer
};

// "There are data for you": to a child. With `inlined`, the data are in the message; else they come once the child says that
// it is ready. With `early`, the first segment follows at once, on the common channel.
struct Announcement {
  Key key;
  Recipient receiver;
  std::uint64_t number = 0;   // the sender's, for the answers
  std::uint64_t size = 0;     // bytes
  std::uint64_t segment = 0;  // bytes; the last segment may be shorter
  std::uint8_t stripe = 0;    // of `stripes` trees that share the segments: this one has those with index % stripes
  std::uint8_t stripes = 1;
  Tree tree;
  std::vector<Recipient> subtree;  // to be forwarded to, in order
  bool inlined = false;
  bool early = false;
  std::span<const std::byte> payload;  // of a decoded message: a part of its bytes
};

// Data on the common channel are received in the order of the control messages that announce them.
constexpr std::uint32_t kCommonChannel = 0;

// Short messages. The first four are answers of a child, about the number of an announcement.
enum class Reply : std::uint8_t {
  kReady = 2,    // send the segments of the stripe from number `from` on, over `channel`; the child serves its subtree
  kBypass = 3,   // not ready yet: serve my children yourself, data for me alone will do
  kRefuse = 4,   // as kBypass, and no data for me
  kDone = 5,     // I have all segments of the stripe
  kSegment = 6,  // to a child that is ready on the common channel: segment `from` follows
  kTaken = 7,    // to a root: all its data up to serial `number` arrived; `from` bytes that were inlined are received
};

struct Answer {
  Reply reply = Reply::kReady;
  std::uint64_t number = 0;
  std::uint64_t from = 0;
  std::uint32_t channel = kCommonChannel;
};

using Message = std::variant<Announcement, Answer>;

// A message that is damaged, of another version, or contradicts itself; the text names the field.
struct BadMessage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr std::size_t kMostHead = 128;      // bytes of a message without its recipients and data
constexpr std::size_t kMostRecipient = 33;  // bytes of a recipient in it

// `into` is cleared first; its memory is used again.
void encode(const Announcement& announcement, std::vector<std::byte>& into);
void encode(const Answer& answer, std::vector<std::byte>& into);

// A message that rank `self` of `size` ranks received. Throws BadMessage.
Message decode(std::span<const std::byte> bytes, std::int32_t self, std::int32_t size);

// Segments of a message, and those of one stripe.
std::uint64_t segments(std::uint64_t size, std::uint64_t segment);
// Bytes of each segment but the last one where segments of `wanted` bytes were asked for (0: one).
std::uint64_t segment_of(std::uint64_t size, std::uint64_t wanted);
std::uint64_t segments_of(const Announcement& announcement);

}  // namespace elbowroom::broadcast
