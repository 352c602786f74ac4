#include "message.hpp"

#include <algorithm>
#include <cstring>

namespace elbowroom::broadcast {
namespace {

constexpr std::byte kMark{0xEB};
constexpr std::uint8_t kAnnouncement = 1;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

constexpr std::size_t kSumAt = 3;  // where the checksum of all that follows is, but for the data
constexpr std::size_t kSumSize = 4;

constexpr std::uint8_t kDelegate = 1;
constexpr std::uint8_t kTwoLevel = 2;
constexpr std::uint8_t kInlined = 4;
constexpr std::uint8_t kGroups = 8;  // recipients have groups other than the receiver's
constexpr std::uint8_t kEarly = 16;
constexpr std::uint8_t kAllFlags = 31;

// FNV-1a of 32 bits: one damaged byte is always noticed.
std::uint32_t checksum(std::span<const std::byte> bytes) {
  std::uint32_t sum = 2166136261U;
  for (const std::byte byte : bytes) sum = (sum ^ std::to_integer<std::uint32_t>(byte)) * 16777619U;
  return sum;
}

// Numbers are written in groups of seven bits, the lowest first: most are small. The bytes have at most the size that is
// expected, and are cut to what was written at the end.
class Writer {
 public:
  Writer(std::vector<std::byte>& bytes, std::uint8_t kind, std::size_t most) : bytes_(bytes) {
    bytes_.resize(most);
    next_ = bytes_.data();
    for (const std::uint8_t first : {std::to_integer<std::uint8_t>(kMark), kFormat, kind}) byte(first);
    next_ += kSumSize;
  }

  void byte(std::uint8_t value) { *next_++ = static_cast<std::byte>(value); }

  void seal() {
    bytes_.resize(static_cast<std::size_t>(next_ - bytes_.data()));
    const std::uint32_t sum = checksum(std::span(bytes_).subspan(kSumAt + kSumSize));
    for (std::size_t i = 0; i < kSumSize; ++i) bytes_[kSumAt + i] = static_cast<std::byte>(sum >> (8 * i));
  }

  void number(std::uint64_t value) {
    while (value >= 128) {
      byte(static_cast<std::uint8_t>(value) | 128U);
      value >>= 7;
    }
    byte(static_cast<std::uint8_t>(value));
  }

  void signed_number(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    number(value < 0 ? ~(bits << 1) : bits << 1);
  }

 private:
  std::vector<std::byte>& bytes_;
  std::byte* next_ = nullptr;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint8_t byte(const char* field) {
    if (rest_.empty()) throw BadMessage(std::string(field) + ": the message ends before it");
    const auto value = std::to_integer<std::uint8_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return value;
  }

  std::uint64_t number(const char* field, std::uint64_t most) {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t part = byte(field);
      if (shift == 63 && part > 1) throw BadMessage(std::string(field) + ": has more than 64 bits");
      value |= static_cast<std::uint64_t>(part & 127U) << shift;
      if (part < 128) break;
    }
    if (value > most) {
      throw BadMessage(std::string(field) + ": is " + std::to_string(value) + ", more than " + std::to_string(most));
    }
    return value;
  }

  std::int64_t signed_number(const char* field) {
    const std::uint64_t bits = number(field, UINT64_MAX);
    return static_cast<std::int64_t>((bits & 1) != 0 ? ~(bits >> 1) : bits >> 1);
  }

  // `message` up to here, without its first bytes, has the checksum that stands there.
  void check(std::span<const std::byte> message) const {
    const std::size_t end = message.size() - rest_.size();
    std::uint32_t written = 0;
    for (std::size_t i = 0; i < kSumSize; ++i) {
      written |= std::to_integer<std::uint32_t>(message[kSumAt + i]) << (8 * i);
    }
    if (checksum(message.subspan(kSumAt + kSumSize, end - kSumAt - kSumSize)) != written) {
      throw BadMessage("checksum: differs, bytes were changed on the way");
    }
  }

  std::size_t left() const { return rest_.size(); }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

void write(Writer& writer, const Recipient& recipient, bool with_group) {
  writer.number(static_cast<std::uint32_t>(recipient.priority));
  writer.number(recipient.serial);
  writer.number(recipient.previous == 0 ? 0 : recipient.serial - recipient.previous);
  if (with_group) writer.number(recipient.group);
}

void read(Reader& reader, Recipient& recipient, bool with_group) {
  recipient.priority = static_cast<std::int32_t>(reader.number("priority", INT32_MAX));
  recipient.serial = reader.number("serial", UINT64_MAX);
  if (recipient.serial == 0) throw BadMessage("serial: is 0; they count from 1");
  const std::uint64_t back = reader.number("previous", recipient.serial - 1);
  recipient.previous = back == 0 ? 0 : recipient.serial - back;
  if (with_group) recipient.group = static_cast<std::uint16_t>(reader.number("group", UINT16_MAX));
}

Tree read_tree(Reader& reader, std::uint8_t flags) {
  Tree tree;
  const std::uint64_t shape = reader.number("tree", UINT8_MAX);
  if (shape < static_cast<std::uint8_t>(Shape::kKary) || shape > static_cast<std::uint8_t>(Shape::kFlat)) {
    throw BadMessage("tree: " + std::to_string(shape) + " is not a kind of tree");
  }
  tree.shape = static_cast<Shape>(shape);
  tree.arity = static_cast<std::uint16_t>(reader.number("arity", UINT16_MAX));
  if (tree.arity < (tree.shape == Shape::kKnomial ? 2 : 1)) {
    throw BadMessage("arity: " + std::to_string(tree.arity) + " is too small");
  }
  tree.delegate = (flags & kDelegate) != 0;
  tree.two_level = (flags & kTwoLevel) != 0;
  return tree;
}

void read_subtree(Reader& reader, Announcement& announcement, bool with_groups, std::int32_t self, std::int32_t size) {
  // Each recipient takes four bytes at least, so that a wrong count cannot ask for more memory than the message justifies.
  const std::uint64_t count = reader.number("recipients", static_cast<std::uint64_t>(size) - 1);
  if (count > reader.left() / 4) throw BadMessage("recipients: the message is too short for " + std::to_string(count));
  announcement.subtree.resize(count);
  for (Recipient& recipient : announcement.subtree) {
    recipient.rank = static_cast<std::int32_t>(reader.number("rank", static_cast<std::uint64_t>(size) - 1));
    recipient.group = announcement.receiver.group;
    read(reader, recipient, with_groups);
  }
  if (count == 0) return;
  std::vector<std::int32_t> ranks{self, announcement.key.root};
  for (const Recipient& recipient : announcement.subtree) ranks.push_back(recipient.rank);
  std::sort(ranks.begin(), ranks.end());
  if (const auto twice = std::adjacent_find(ranks.begin(), ranks.end()); twice != ranks.end()) {
    throw BadMessage("recipients: rank " + std::to_string(*twice) + " appears twice");
  }
}

Announcement read_announcement(Reader& reader, std::span<const std::byte> message, std::int32_t self,
                               std::int32_t size) {
  Announcement announcement;
  const std::uint8_t flags = reader.byte("flags");
  if ((flags & ~kAllFlags) != 0) throw BadMessage("flags: has unknown ones (" + std::to_string(flags) + ")");
  announcement.inlined = (flags & kInlined) != 0;
  announcement.early = (flags & kEarly) != 0;
  if (announcement.inlined && announcement.early) throw BadMessage("flags: data are here and are to follow");
  announcement.key.context = static_cast<std::uint32_t>(reader.number("context", UINT32_MAX));
  announcement.key.root = static_cast<std::int32_t>(reader.number("root", static_cast<std::uint64_t>(size) - 1));
  if (announcement.key.root == self) throw BadMessage("root: is the receiver itself");
  announcement.key.tag = reader.signed_number("tag");
  announcement.receiver.rank = self;
  read(reader, announcement.receiver, (flags & kGroups) != 0);
  announcement.size = reader.number("size", kMostBytes);
  if (!announcement.inlined) {
    announcement.number = reader.number("number", UINT64_MAX);
    announcement.segment = reader.number("segment", kMostSegment);
    announcement.stripes = static_cast<std::uint8_t>(reader.number("stripes", 2));
    announcement.stripe = static_cast<std::uint8_t>(reader.number("stripe", 1));
    if (announcement.stripe >= announcement.stripes) throw BadMessage("stripe: is not below the number of stripes");
    if (announcement.size == 0 || announcement.segment == 0) throw BadMessage("segment: there are no data to send");
  }
  announcement.tree = read_tree(reader, flags);
  read_subtree(reader, announcement, (flags & kGroups) != 0, self, size);
  reader.check(message);
  if (announcement.inlined) {
    if (reader.left() != announcement.size) {
      throw BadMessage("size: is " + std::to_string(announcement.size) + ", but " + std::to_string(reader.left()) +
                       " bytes follow");
    }
    announcement.payload = reader.rest();
  } else if (reader.left() != 0) {
    throw BadMessage("end: " + std::to_string(reader.left()) + " more bytes follow");
  }
  return announcement;
}

Answer read_answer(Reader& reader, std::span<const std::byte> message, std::uint8_t kind) {
  Answer answer;
  answer.reply = static_cast<Reply>(kind);
  answer.number = reader.number("number", UINT64_MAX);
  answer.from = reader.number("from", UINT64_MAX);
  answer.channel = static_cast<std::uint32_t>(reader.number("channel", UINT32_MAX));
  reader.check(message);
  if (reader.left() != 0) throw BadMessage("end: " + std::to_string(reader.left()) + " more bytes follow");
  return answer;
}

}  // namespace

void encode(const Announcement& announcement, std::vector<std::byte>& into) {
  Writer writer(into, kAnnouncement, kMostHead + kMostRecipient * announcement.subtree.size());
  const std::uint16_t group = announcement.receiver.group;
  const bool groups = group != 0 || std::any_of(announcement.subtree.begin(), announcement.subtree.end(),
                                                [](const Recipient& recipient) { return recipient.group != 0; });
  writer.byte(static_cast<std::uint8_t>(
      (announcement.tree.delegate ? kDelegate : 0) | (announcement.tree.two_level ? kTwoLevel : 0) |
      (announcement.inlined ? kInlined : 0) | (groups ? kGroups : 0) | (announcement.early ? kEarly : 0)));
  writer.number(announcement.key.context);
  writer.number(static_cast<std::uint32_t>(announcement.key.root));
  writer.signed_number(announcement.key.tag);
  write(writer, announcement.receiver, groups);
  writer.number(announcement.size);
  if (!announcement.inlined) {
    writer.number(announcement.number);
    writer.number(announcement.segment);
    writer.number(announcement.stripes);
    writer.number(announcement.stripe);
  }
  writer.number(static_cast<std::uint8_t>(announcement.tree.shape));
  writer.number(announcement.tree.arity);
  writer.number(announcement.subtree.size());
  for (const Recipient& recipient : announcement.subtree) {
    writer.number(static_cast<std::uint32_t>(recipient.rank));
    write(writer, recipient, groups);
  }
  writer.seal();
  into.insert(into.end(), announcement.payload.begin(), announcement.payload.end());
}

void encode(const Answer& answer, std::vector<std::byte>& into) {
  Writer writer(into, static_cast<std::uint8_t>(answer.reply), kMostHead);
  writer.number(answer.number);
  writer.number(answer.from);
  writer.number(answer.channel);
  writer.seal();
}

Message decode(std::span<const std::byte> bytes, std::int32_t self, std::int32_t size) {
  Reader reader(bytes);
  if (reader.byte("mark") != std::to_integer<std::uint8_t>(kMark)) throw BadMessage("mark: is not that of a broadcast");
  if (const std::uint8_t format = reader.byte("version"); format != kFormat) {
    throw BadMessage("version: is " + std::to_string(format) + ", and this is " + std::to_string(kFormat) +
                     "; use one release on all ranks");
  }
  const std::uint8_t kind = reader.byte("kind");
  for (std::size_t i = 0; i < kSumSize; ++i) reader.byte("checksum");
  if (kind == kAnnouncement) return read_announcement(reader, bytes, self, size);
  if (kind < static_cast<std::uint8_t>(Reply::kReady) || kind > static_cast<std::uint8_t>(Reply::kTaken)) {
    throw BadMessage("kind: " + std::to_string(kind) + " is not one of a message");
  }
  return read_answer(reader, bytes, kind);
}

std::uint64_t segment_of(std::uint64_t size, std::uint64_t wanted) {
  return std::min({wanted == 0 ? size : wanted, size, kMostSegment});
}

std::uint64_t segments(std::uint64_t size, std::uint64_t segment) { return size == 0 ? 0 : (size - 1) / segment + 1; }

std::uint64_t segments_of(const Announcement& announcement) {
  const std::uint64_t all = segments(announcement.size, announcement.segment);
  return (all + announcement.stripes - 1 - announcement.stripe) / announcement.stripes;
}

}  // namespace elbowroom::broadcast
