// Finds the two ends of each message, and those that arrive before they left.
//
// Thesis of P. Swartvagher (2022), section 3.5.1: clocks are checked by comparing durations of messages with what is possible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/merge/open_messages.hpp"
#include "trace/merge/opened.hpp"

namespace elbowroom::trace {

// Messages from one rank to another.
struct MessagePair {
  int from = 0;
  int to = 0;
  std::uint64_t messages = 0;
  std::uint64_t tachyons = 0;
  std::uint64_t suspect = 0;
  std::uint64_t mismatched = 0;
  std::optional<std::int64_t> floor;  // the shortest of those that are neither, ns
};

struct MessageTotals {
  std::uint64_t messages = 0;  // both ends are known
  std::uint64_t tachyons = 0;
  std::uint64_t suspect = 0;
  std::uint64_t mismatched = 0;  // the sizes of both ends differ
  std::uint64_t unmatched = 0;   // ends whose other end is not
};

class Messages {
 public:
  explicit Messages(const OpenedTrace& trace);

  // Of an event of a message: sets its number, sequence, bytes and flags, and returns the message when it is the second end.
  const MergedMessage* see(MergedEvent& event);
  // From here on events of this rank are missing: where its messages are not numbered, the others cannot be told apart.
  void lose(std::uint32_t rank) { loses_[rank] = true; }
  // No event follows: ends that are left are unmatched.
  void finish();
  // The numbers of messages with one end only, rising, for the same events once more; after `finish`. A few million at
  // most: ends that were given up are left out, as their other ends may be in the trace.
  std::vector<std::uint64_t> one_ended() const;
  // Ends of these are marked when they are seen, and have no number.
  void mark(std::vector<std::uint64_t> one_ended) { one_ended_ = std::move(one_ended); }

  const MessageTotals& totals() const { return totals_; }
  std::vector<MessagePair> pairs() const;
  // Sentences on what could not be matched; after `finish`.
  std::vector<std::string> warnings() const;

 private:
  struct Channel {  // of messages that are not numbered: how many were seen
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  struct KeyHash {
    std::size_t operator()(const MessageKey& key) const;
  };
  struct PairState {
    MessagePair summary;
    std::uint64_t small_messages = 0;
    std::int64_t small_floor = 0;
    std::uint32_t reverse = 0;  // the pair the other way, + 1; 0: there is none yet
  };

  std::optional<MessageKey> key_of(MergedEvent& event, std::uint32_t rank);
  std::uint64_t number_in_order(const MessageKey& key, bool sent);
  const MergedMessage* open(MergedEvent& event, const MessageKey& key, bool sent);
  const MergedMessage* join(MergedEvent& event, OpenEnd& other, bool sent);
  bool guessed(const MessageKey& key, bool sent);
  const MergedMessage* unmatched(MergedEvent& event);
  std::uint32_t pair_of(std::uint64_t ends);
  std::uint8_t judge(PairState& pair, const MergedMessage& message, std::int64_t error);
  bool too_fast(const PairState& pair, std::int64_t duration, std::int64_t error) const;

  const MergedJob& job_;
  std::vector<bool> loses_;
  OpenMessages open_;
  std::unordered_map<MessageKey, Channel, KeyHash> channels_;
  std::unordered_map<std::uint64_t, std::uint32_t> pair_numbers_;
  std::vector<PairState> pairs_;
  MessageTotals totals_;
  MergedMessage message_;
  std::uint64_t next_ = 1;
  std::uint64_t not_guessed_ = 0;
  std::uint64_t nowhere_ = 0;  // to or from ranks that the job does not have
  std::uint64_t repeated_ = 0;
  std::vector<std::uint64_t> repeats_;    // the first ones' numbers
  std::vector<std::uint64_t> one_ended_;  // to be marked
  std::size_t marked_ = 0;                // how many of these were seen
};

}  // namespace elbowroom::trace
