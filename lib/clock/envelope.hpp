// How far the clocks of two processes are apart, from messages that go there and back.
//
// Thesis of P. Swartvagher (2022), section 3.4.2, figure 3.15; the bounds are those of SKaMPI (T. Worsch, R. Reussner,
// W. Augustin, "On Benchmarking Collective MPI Operations", 2002).
#pragma once

#include <cstdint>
#include <optional>

namespace elbowroom::clock {

// One message there and back, ns: `start` and `end` of the asker's clock, `middle` of the answerer's.
struct Exchange {
  std::int64_t start = 0;
  std::int64_t middle = 0;
  std::int64_t end = 0;
};

// asker's clock - answerer's clock, ns. Bounds are guaranteed as long as both clocks run alike during the exchanges;
// `offset` lies between them.
struct Offset {
  std::int64_t offset = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Offsets of a chain of processes add, and their bounds with them.
Offset operator+(const Offset& first, const Offset& second);

// Narrows the offset with each exchange: the answer was written after the question was sent and before it came back.
class Envelope {
 public:
  // `drift`: how much faster than the other one clock may run at most (100e-6: 100 ppm); bounds of exchanges long ago
  // widen by it.
  explicit Envelope(double drift = 0) : drift_(drift) {}

  // False, and nothing is changed, when the exchange contradicts itself (it ended before it began), or the others: a
  // clock stepped meanwhile.
  bool add(const Exchange& exchange);

  // Middle of the quickest exchange, moved into the bounds of all; none before the first exchange.
  std::optional<Offset> offset() const;
  // The quickest exchange, ns.
  std::int64_t round_trip() const { return quickest_; }
  int exchanges() const { return exchanges_; }
  // True when the last exchanges (an eighth of all, 100 at least) narrowed the bounds by less than a twentieth.
  bool settled() const;

 private:
  void widen(std::int64_t now);

  double drift_;
  int exchanges_ = 0;
  std::int64_t seen_ = 0;  // end of the last exchange
  std::int64_t low_ = 0;
  std::int64_t high_ = 0;
  std::int64_t middle_ = 0;  // of the quickest exchange
  std::int64_t quickest_ = 0;
  int narrowed_ = 0;        // the exchange that narrowed the bounds last by a twentieth
  std::int64_t width_ = 0;  // after that one
};

}  // namespace elbowroom::clock
