#include "trace/merge/messages.hpp"

#include <algorithm>

namespace elbowroom::trace {
namespace {

constexpr std::uint64_t kUnnumbered = 1ULL << 63;  // in a key's number, so that both kinds keep apart
// A pair's floor is known when so many small messages went both ways; see too_fast.
constexpr std::uint64_t kKnownAfter = 1000;
constexpr std::uint64_t kSmall = 4096;  // bytes
constexpr std::size_t kMostRepeats = 1U << 21;

}  // namespace

Messages::Messages(const OpenedTrace& trace) : job_(trace.job), loses_(trace.job.ranks.size(), false) {}

std::size_t Messages::KeyHash::operator()(const MessageKey& key) const {
  return static_cast<std::size_t>(hash_of(key));
}

// Which message it is; none where the other end is no rank of the job, or one without files.
std::optional<MessageKey> Messages::key_of(MergedEvent& event, std::uint32_t rank) {
  const auto peer = static_cast<std::uint32_t>(event.first);
  const MessageKey key = message_key(event.kind == ELBOW_TRACE_SEND, rank, event.first, event.small, event.second);
  if (key.number != 0) {
    event.sequence = static_cast<std::uint32_t>(key.number);
    event.second &= (1ULL << kNumberedBits) - 1;
  }
  if (peer >= job_.ranks.size()) {
    nowhere_ += peer >= job_.size ? 1 : 0;
    return {};
  }
  return key;
}

// True where the number of a message that has none would be a guess.
bool Messages::guessed(const MessageKey& key, bool sent) {
  const auto source = static_cast<std::uint32_t>(key.ends >> 32);
  const auto destination = static_cast<std::uint32_t>(key.ends);
  const auto entry = channels_.find(key);
  const Channel channel = entry == channels_.end() ? Channel{} : entry->second;
  // Of a side that lost events, those before are complete: they still have their other ends.
  const bool own_loss = loses_[sent ? source : destination];
  const bool other_loss = loses_[sent ? destination : source];
  const bool other_known = sent ? channel.sent < channel.received : channel.received < channel.sent;
  return own_loss || (other_loss && !other_known);
}

// Gives a message that is not numbered its number: the order of both sides is the same.
std::uint64_t Messages::number_in_order(const MessageKey& key, bool sent) {
  const auto channel = channels_.try_emplace(key).first;
  std::uint64_t& counted = sent ? channel->second.sent : channel->second.received;
  const std::uint64_t number = counted++;
  if (channel->second.sent == channel->second.received) {
    channels_.erase(channel);
  }
  return number | kUnnumbered;
}

const MergedMessage* Messages::unmatched(MergedEvent& event) {
  event.flags |= kUnmatched;
  ++totals_.unmatched;
  return nullptr;
}

const MergedMessage* Messages::see(MergedEvent& event) {
  const bool sent = event.kind == ELBOW_TRACE_SEND;
  std::optional<MessageKey> key = key_of(event, job_.threads[event.thread].rank);
  if (!key) {
    return unmatched(event);
  }
  if (key->number == 0) {
    if (guessed(*key, sent)) {
      ++not_guessed_;
      return unmatched(event);
    }
    key->number = number_in_order(*key, sent);
  }
  OpenEnd* other = open_.find(*key);
  if (other != nullptr && other->sent == sent) {
    // A number that comes twice on one side: the first one's other end is not in the trace.
    ++repeated_;
    ++totals_.unmatched;
    if (repeats_.size() < kMostRepeats) {
      repeats_.push_back(other->message);
    }
    open_.remove(other);
    other = nullptr;
  }
  return other == nullptr ? open(event, *key, sent) : join(event, *other, sent);
}

// The first end.
const MergedMessage* Messages::open(MergedEvent& event, const MessageKey& key, bool sent) {
  const std::uint64_t number = next_++;
  open_.add({key, event.time, event.error, number, event.second, event.thread, sent});
  event.second = event.second == kUnknownBytes ? 0 : event.second;
  while (marked_ < one_ended_.size() && one_ended_[marked_] < number) {
    ++marked_;
  }
  if (marked_ < one_ended_.size() && one_ended_[marked_] == number) {
    event.flags |= kUnmatched;  // counted at the end
  } else {
    event.message = number;
  }
  return nullptr;
}

// The second end.
const MergedMessage* Messages::join(MergedEvent& event, OpenEnd& other, bool sent) {
  if (event.second == kUnknownBytes || other.bytes == kUnknownBytes) {
    event.second = other.bytes = std::min(event.second, other.bytes);
  }
  event.message = other.message;
  message_ = {};
  message_.message = other.message;
  message_.sent = sent ? event.time : other.time;
  message_.received = sent ? other.time : event.time;
  message_.bytes = sent ? event.second : other.bytes;
  message_.from = sent ? event.thread : other.thread;
  message_.to = sent ? other.thread : event.thread;
  message_.communicator = static_cast<std::uint32_t>(event.first >> 32);
  message_.tag = static_cast<std::int32_t>(event.small);
  const bool same_clock = job_.threads[message_.from].rank == job_.threads[message_.to].rank;
  const bool known = event.error >= 0 && other.error >= 0;
  const std::int64_t error = same_clock ? 0 : known ? event.error + other.error : -1;
  PairState& pair = pairs_[pair_of(other.key.ends)];
  if (event.second != other.bytes) {
    message_.flags |= kMismatched;
    ++totals_.mismatched;
    ++pair.summary.mismatched;
  }
  open_.remove(&other);
  message_.flags |= judge(pair, message_, error);
  event.flags |= message_.flags;
  return &message_;
}

std::uint32_t Messages::pair_of(std::uint64_t ends) {
  const auto [entry, fresh] = pair_numbers_.try_emplace(ends, static_cast<std::uint32_t>(pairs_.size()));
  if (fresh) {
    PairState pair;
    pair.summary.from = static_cast<int>(ends >> 32);
    pair.summary.to = static_cast<int>(ends & 0xFFFFFFFFU);
    const auto reverse = pair_numbers_.find(ends << 32 | ends >> 32);
    if (reverse != pair_numbers_.end() && reverse->second != entry->second) {
      pair.reverse = reverse->second + 1;
      pairs_[reverse->second].reverse = entry->second + 1;
    }
    pairs_.push_back(pair);
  }
  return entry->second;
}

// Less than half of what the shortest of many messages took, either way: what made all others of both ways twice as
// long would have to be gone for this one.
bool Messages::too_fast(const PairState& pair, std::int64_t duration, std::int64_t error) const {
  if (pair.reverse == 0 || pair.small_messages < kKnownAfter) {
    return false;
  }
  const PairState& back = pairs_[pair.reverse - 1];
  return back.small_messages >= kKnownAfter && duration + error < std::min(pair.small_floor, back.small_floor) / 2;
}

std::uint8_t Messages::judge(PairState& pair, const MergedMessage& message, std::int64_t error) {
  const std::int64_t duration = message.received - message.sent;
  ++totals_.messages;
  ++pair.summary.messages;
  if (error >= 0 && duration < -error) {
    ++totals_.tachyons;
    ++pair.summary.tachyons;
    return kTachyon;
  }
  if (duration < 0 || (error >= 0 && too_fast(pair, duration, error))) {
    ++totals_.suspect;
    ++pair.summary.suspect;
    return kSuspect;
  }
  if ((message.flags & kMismatched) != 0) {
    return 0;  // how long it took is not known
  }
  pair.summary.floor = std::min(pair.summary.floor.value_or(duration), duration);
  if (message.bytes <= kSmall) {
    pair.small_floor = pair.small_messages == 0 ? duration : std::min(pair.small_floor, duration);
    ++pair.small_messages;
  }
  return 0;
}

void Messages::finish() { totals_.unmatched += open_.size() + open_.given_up(); }

std::vector<std::uint64_t> Messages::one_ended() const {
  std::vector<std::uint64_t> result = open_.messages();
  result.insert(result.end(), repeats_.begin(), repeats_.end());
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<MessagePair> Messages::pairs() const {
  std::vector<MessagePair> summary;
  for (const PairState& pair : pairs_) {
    summary.push_back(pair.summary);
  }
  std::sort(summary.begin(), summary.end(), [](const MessagePair& a, const MessagePair& b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
  return summary;
}

std::vector<std::string> Messages::warnings() const {
  std::vector<std::string> summary;
  const auto warn = [&](std::uint64_t count, const std::string& what) {
    if (count > 0) {
      summary.push_back(std::to_string(count) + what);
    }
  };
  warn(totals_.mismatched,
       " messages are received with another size than they were sent with: their ends belong to different messages, "
       "and so may "
       "those of all others of these ranks; threads that share requests (MPI_THREAD_MULTIPLE) are the likely cause, or "
       "a "
       "receive that was truncated, not the clocks");
  warn(totals_.tachyons,
       totals_.mismatched > 0
           ? " messages arrive before they were sent: with ends that were joined wrongly, this does not concern the "
             "clocks"
           : " messages arrive before they were sent, beyond the clocks' errors: do not trust times between ranks");
  warn(not_guessed_,
       " messages of ranks that lost events are not numbered, and were not matched: a guess could join the wrong ends");
  warn(nowhere_, " messages go to or come from ranks that this job does not have");
  warn(repeated_, " messages have the same number as an earlier one of the same kind");
  warn(open_.given_up(), " messages were not matched, as more than a million were in flight at once");
  warn(open_.size(), " messages have only one end in this trace");
  return summary;
}

}  // namespace elbowroom::trace
