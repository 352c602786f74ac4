// A window of a ping-pong: batches of round trips until they are steady, then as long as the window lasts.
#pragma once

#include "common/batches.hpp"
#include "exchange/job.hpp"
#include "runtime/path.hpp"

namespace elbowroom::runtime {

struct Window {
  program::BatchWindow batches;  // of round trips
  bool corrupt = false;          // rank 1 breaks a message on purpose, for tests
};

struct Measured {
  program::Batches batches;
  bool valid = false;  // what arrived, at both ends

  double half_round_trip() const;  // us, of all batches together
};

// Rank 0 leads and rank 1 follows; the first message of a window and the one after its last are checked byte by byte, both
// ways. Before each batch rank 0 sends a header and waits for its answer, so that rank 1 stands ready when the clock is
// read, and no times of two ranks are subtracted.
Measured lead(const Job& job, Path& path, const Window& window);
void follow(const Job& job, Path& path, const Window& window);

}  // namespace elbowroom::runtime
