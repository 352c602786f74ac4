#include "broadcast/stream.hpp"

#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"
#include "elbowroom/broadcast_mpi.h"
#include "protocol/payload.hpp"

namespace elbowroom::forwarding {
namespace {

enum Context : std::uint32_t { kHeaders, kData, kAnswers };

constexpr std::int64_t kTag = 0;
constexpr std::int64_t kDepth = 2;   // broadcasts that rank 0 sends at once
constexpr std::int64_t kPosted = 8;  // receives: a rank that still forwards is not to store what comes next
constexpr std::uint64_t kFirstSeed = 1000;
constexpr std::uint64_t kCorruption = 100;  // what a broken transfer would leave

void check(bool done) {
  if (!done) {
    throw std::runtime_error(std::string("libelbow_broadcast: ") + elbow_broadcast_error());
  }
}

elbow_broadcast_way flat() { return {sizeof(elbow_broadcast_way), "flat", 0}; }

elbow_broadcast_counters difference(const elbow_broadcast_counters& after, const elbow_broadcast_counters& before) {
  return {sizeof after,
          after.broadcasts - before.broadcasts,
          after.sends - before.sends,
          after.receives - before.receives,
          after.forwarded - before.forwarded,
          after.bypassed - before.bypassed,
          after.stored - before.stored};
}

}  // namespace

// What follows: so many broadcasts, checked at a few places, or one that is checked byte by byte; nothing at the end.
struct Stream::Header {
  std::int64_t count;
  std::uint64_t seed;
  std::int64_t whole;
};

Stream::Stream(const Job& job, std::string tree, std::size_t segment, int node)
    : job_(job),
      tree_(std::move(tree)),
      segment_(segment),
      broadcast_(nullptr, elbow_broadcast_free),
      node_(node),
      answers_(static_cast<std::size_t>(job.size())) {
  const elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(job_.messages());
  broadcast_.reset(elbow_broadcast_new(&transport, nullptr));
  check(broadcast_ != nullptr);
  for (int rank = 1; rank < job_.size(); ++rank) {
    others_.push_back({rank, rank == kInner ? 1 : 0});
  }
}

void Stream::use(std::size_t size) {
  if (size == size_) {
    return;
  }
  memory_ = Arena();
  memory_ = Arena(size * kPosted, node_);
  std::memset(memory_.data(), 1, memory_.size());
  size_ = size;
}

char* Stream::buffer(std::int64_t index) const {
  return static_cast<char*>(memory_.data()) + static_cast<std::size_t>(index % kPosted) * size_;
}

elbow_broadcast_counters Stream::counters() const {
  elbow_broadcast_counters now{};
  now.size = sizeof now;
  check(elbow_broadcast_count(broadcast_.get(), &now) == 0);
  return now;
}

elbow_broadcast_operation Stream::send(std::uint32_t context, const void* data, std::size_t size,
                                       const std::vector<elbow_broadcast_recipient>& recipients,
                                       const elbow_broadcast_way& way) {
  elbow_broadcast_operation operation = 0;
  check(elbow_broadcast_send(broadcast_.get(), context, kTag, data, size, recipients.data(), recipients.size(), &way,
                             &operation) == 0);
  return operation;
}

elbow_broadcast_operation Stream::receive(std::uint32_t context, int root, void* data, std::size_t size) {
  elbow_broadcast_operation operation = 0;
  check(elbow_broadcast_receive(broadcast_.get(), context, root, kTag, data, size, &operation) == 0);
  return operation;
}

void Stream::wait(elbow_broadcast_operation operation, int kind) {
  check(elbow_broadcast_wait(broadcast_.get(), operation, kind) == 0);
}

std::vector<elbow_broadcast_operation> Stream::receive_answers() {
  std::vector<elbow_broadcast_operation> operations;
  for (const elbow_broadcast_recipient& other : others_) {
    std::int64_t& answer = answers_[static_cast<std::size_t>(other.rank)];
    operations.push_back(receive(kAnswers, other.rank, &answer, sizeof answer));
  }
  return operations;
}

void Stream::take_answers(const std::vector<elbow_broadcast_operation>& operations) {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    wait(operations[i], ELBOW_BROADCAST_RELEASED);
    valid_ = valid_ && answers_[static_cast<std::size_t>(others_[i].rank)] == 1;
  }
}

// Returns when all others have posted their receives.
void Stream::announce(const Header& header) {
  const std::vector<elbow_broadcast_operation> ready = receive_answers();
  const elbow_broadcast_operation operation = send(kHeaders, &header, sizeof header, others_, flat());
  wait(operation, ELBOW_BROADCAST_RELEASED);
  take_answers(ready);
}

// Nanoseconds from the first byte until the last recipient has said that it has the last one.
std::int64_t Stream::send_batch(const Header& header, bool corrupt) {
  announce(header);
  const elbow_broadcast_way way{sizeof way, tree_.c_str(), segment_};
  const std::vector<elbow_broadcast_operation> all_here = receive_answers();
  std::deque<elbow_broadcast_operation> under_way;
  const std::int64_t begun = now_ns();
  for (std::int64_t i = 0; i < header.count; ++i) {
    if (i >= kDepth) {
      wait(under_way.front(), ELBOW_BROADCAST_RELEASED);
      under_way.pop_front();
    }
    const std::uint64_t seed = header.seed + static_cast<std::uint64_t>(i) + (corrupt ? kCorruption : 0);
    (header.whole == 1 ? fill_message : stamp_message)(buffer(i), size_, seed);
    under_way.push_back(send(kData, buffer(i), size_, others_, way));
  }
  for (const elbow_broadcast_operation operation : under_way) {
    wait(operation, ELBOW_BROADCAST_RELEASED);
  }
  take_answers(all_here);
  return now_ns() - begun;
}

StreamReport Stream::lead(const StreamWindow& window) {
  StreamReport report;
  const elbow_broadcast_counters before = counters();
  std::uint64_t seed = kFirstSeed;
  valid_ = true;
  send_batch({1, seed++, 1}, window.corrupt);
  report.batches = program::measure_batches(window.batches, [&](std::int64_t count) {
    const Header header{count, seed, 0};
    seed += static_cast<std::uint64_t>(count);
    return send_batch(header, false);
  });
  send_batch({1, seed++, 1}, false);
  announce({0, 0, 0});
  report.valid = valid_;
  report.counters = difference(counters(), before);
  report.broadcasts = static_cast<std::int64_t>(seed - kFirstSeed);
  return report;
}

void Stream::answer() {
  const std::int64_t holds = valid_ ? 1 : 0;
  wait(send(kAnswers, &holds, sizeof holds, {{0, 0}}, flat()), ELBOW_BROADCAST_RELEASED);
}

// The receives are posted before rank 0 begins, so that no broadcast is bypassed for want of a buffer.
void Stream::receive_batch(const Header& header) {
  std::deque<elbow_broadcast_operation> posted;
  std::int64_t next = 0;
  const auto post = [&] {
    if (next < header.count) {
      posted.push_back(receive(kData, 0, buffer(next++), size_));
    }
  };
  for (std::int64_t i = 0; i < kPosted; ++i) {
    post();
  }
  answer();
  for (std::int64_t i = 0; i < header.count; ++i) {
    const elbow_broadcast_operation operation = posted.front();
    posted.pop_front();
    wait(operation, ELBOW_BROADCAST_RECEIVED);
    const std::uint64_t seed = header.seed + static_cast<std::uint64_t>(i);
    valid_ = (header.whole == 1 ? message_holds : stamp_holds)(buffer(i), size_, seed) && valid_;
    wait(operation, ELBOW_BROADCAST_RELEASED);
    post();
  }
  answer();
}

StreamReport Stream::follow() {
  StreamReport report;
  const elbow_broadcast_counters before = counters();
  valid_ = true;
  for (;;) {
    Header header{};
    wait(receive(kHeaders, 0, &header, sizeof header), ELBOW_BROADCAST_RELEASED);
    report.announcements.push_back(now_ns());
    if (header.count == 0) {
      answer();
      break;
    }
    receive_batch(header);
    report.broadcasts += header.count;
  }
  report.valid = valid_;
  report.counters = difference(counters(), before);
  return report;
}

}  // namespace elbowroom::forwarding
