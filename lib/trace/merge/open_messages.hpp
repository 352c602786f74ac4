// Ends of messages whose other end was not seen yet: a table without an allocation for each.
#pragma once

#include <cstdint>
#include <vector>

namespace elbowroom::trace {

// Which message it is.
struct MessageKey {
  std::uint64_t route = 0;  // communicator and tag
  std::uint64_t ends = 0;   // source and destination
  std::uint64_t number = 0;
  bool operator==(const MessageKey&) const = default;
};

// The top bits of `second` are a message's number (elbow_trace_numbered), the others its bytes.
constexpr int kNumberedBits = 40;
// Bytes of a numbered end whose process could not know them.
constexpr std::uint64_t kUnknownBytes = (1ULL << kNumberedBits) - 1;

// The key of an end that `rank` recorded with these fields; its number is 0 where it has none.
MessageKey message_key(bool sent, std::uint32_t rank, std::uint64_t first, std::uint32_t small, std::uint64_t second);
std::uint64_t hash_of(const MessageKey& key);

struct OpenEnd {
  MessageKey key;
  std::int64_t time = 0;
  std::int64_t error = -1;
  std::uint64_t message = 0;  // from 1; 0: the place is free
  std::uint64_t bytes = 0;
  std::uint32_t thread = 0;
  bool sent = false;  // it is the sender's end
};

class OpenMessages {
 public:
  // More are not kept at a time: the older half is given up, which `given_up` counts.
  explicit OpenMessages(std::size_t most = 1U << 20);

  OpenEnd* find(const MessageKey& key);
  void add(const OpenEnd& end);
  void remove(OpenEnd* end);

  // The numbers of the messages that have one end, rising.
  std::vector<std::uint64_t> messages() const;
  std::size_t size() const { return size_; }
  std::uint64_t given_up() const { return given_up_; }

 private:
  std::size_t home(const MessageKey& key) const;
  void place(const OpenEnd& end);
  void rebuild(std::size_t places, std::uint64_t oldest);
  void give_up_older_half();

  std::vector<OpenEnd> places_;
  std::size_t size_ = 0;
  std::size_t most_;
  std::uint64_t given_up_ = 0;
};

}  // namespace elbowroom::trace
