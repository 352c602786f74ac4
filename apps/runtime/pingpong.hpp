// A window of a ping-pong: batches of round trips until they are steady, then as long as the window lasts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exchange/job.hpp"
#include "runtime/path.hpp"

namespace elbowroom::runtime {

struct Window {
  double seconds = 0.12;  // measured, at least
  std::size_t steady_window = 7;
  double steady_cov = 0.05;
  double limit = 1;      // s to wait for steady batches
  bool corrupt = false;  // rank 1 breaks a message on purpose, for tests
};

struct Batch {
  std::int64_t took_ns;
  std::int64_t round_trips;
};

struct Measured {
  std::vector<Batch> batches;  // of the measured part
  bool steady = false;
  bool valid = false;  // what arrived, at both ends
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  double seconds() const;
  std::int64_t round_trips() const;
  double half_round_trip() const;  // us, of all batches together
};

// Rank 0 leads and rank 1 follows; the first message of a window and the one after its last are checked byte by byte, both
// ways. Before each batch rank 0 sends a header and waits for its answer, so that rank 1 stands ready when the clock is
// read, and no times of two ranks are subtracted.
Measured lead(const Job& job, Path& path, const Window& window);
void follow(const Job& job, Path& path, const Window& window);

}  // namespace elbowroom::runtime
