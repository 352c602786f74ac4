// How far the clocks of two processes are apart, from messages that go there and back.
//
// Thesis of P. Swartvagher (2022), section 3.4.2, figure 3.15; the bounds are those of SKaMPI (T. Worsch, R. Reussner,
// W. Augustin, "On Benchmarking Collective MPI Operations", 2002).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace elbowroom::clock {

// One message there and back, ns: `start` and `end` of the asker's clock, `middle` of the answerer's.
struct Exchange {
  std::int64_t start = 0;
  std::int64_t middle = 0;
  std::int64_t end = 0;
};

// asker's clock - answerer's clock, ns; `offset` lies between the bounds. `jumped`: a clock jumped while they were compared;
// the bounds then cover what the offset was before and after.
struct Offset {
  std::int64_t offset = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool jumped = false;
};

// Offsets of a chain of processes add, and their bounds with them.
Offset operator+(const Offset& first, const Offset& second);

// An offset, and when it was so, ns of the asker's clock.
struct Compared {
  std::int64_t at = 0;
  Offset offset;
};

// Narrows the offset with each exchange: the answer was written after the question was sent and before it came back.
class Envelope {
 public:
  // `drift`: how much faster than the other one clock may run at most (100e-6: 100 ppm); bounds of exchanges long ago
  // widen by it.
  explicit Envelope(double drift = 0) : drift_(drift) {}

  // False, and nothing is changed, when the exchange contradicts itself (it ended before it began), or the others: a
  // clock stepped meanwhile.
  bool add(const Exchange& exchange);

  // Median of the middles of the quicker half of all exchanges, moved into the bounds of all: the quickest alone is often
  // one whose ways there and back are uneven (docs/design/decisions.md). None before the first exchange. Bounds are
  // those at the end of the last exchange.
  std::optional<Offset> offset() const;
  // The same for the median moment of these exchanges. The bounds are wider: the exchanges are cut into pieces in the order
  // of time (four; of 32 where there are more), each piece bounds the offset by itself, and the result covers all pieces. So
  // it is right even where a clock jumped by less than a round trip, which no exchange contradicts.
  std::optional<Compared> steady() const;
  // The quickest exchange, ns.
  std::int64_t round_trip() const { return quickest_; }
  int exchanges() const { return static_cast<int>(kept_.size()); }
  // True when the last exchanges (an eighth of all, 200 at least) narrowed the bounds by less than a twentieth.
  bool settled() const;

 private:
  double drift_;
  std::vector<Exchange> kept_;
  std::int64_t last_end_ = 0;  // end of the last exchange
  std::int64_t low_ = 0;
  std::int64_t high_ = 0;
  std::int64_t quickest_ = 0;
  int narrowed_ = 0;        // the exchange that narrowed the bounds last by a twentieth
  std::int64_t width_ = 0;  // after that one
};

// Two clocks of computers differ by less: each is 100 ppm off at most.
constexpr double kDrift = 200e-6;

// Exchanges made by `once` until more of them tell nothing more; the first few, which open connections and fill caches, do
// not count. Where a clock jumps meanwhile, the offset is the one after the jump, and the bounds cover all. None where one of
// the clocks is stepped again and again.
std::optional<Compared> compared(const std::function<Exchange()>& once);

// One result of what both sides found, each as the asker: the ways of asker and answerer are not alike, and what they
// differ by cancels. In the first one's clock, for the moment between both; the bounds cover those of both. Where a clock
// jumped in between, the offset and the moment are the later one's.
Compared both(const Compared& first, const Compared& second);

}  // namespace elbowroom::clock
