// What broadcast-bench measures on all ranks together (docs/reference/broadcast.md): broadcasts by the library beside MPI's
// own, and messages of two ranks. Times are of one clock for all ranks (lib/clock).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "elbowroom/broadcast.h"
#include "elbowroom/clock.h"

namespace elbowroom::broadcast::bench {

struct Case {
  std::size_t size = 0;  // bytes
  int recipients = 1;    // ranks 1 to this
  std::string tree = "binomial";
  std::size_t segment = 0;  // bytes; 0: whole messages
  std::size_t window = 0;   // bytes; 0: the library's default
  int repeat = 5;
  bool rising = false;         // priorities rise with the rank, as in Figs 4.5 and 4.6 of the thesis
  std::vector<double> speeds;  // of each rank's link; empty: all alike
};

// s after the root sent, one row a repetition: of each recipient in the order of ranks, and of the root before them.
struct Times {
  std::vector<std::vector<double>> received;
  std::vector<std::vector<double>> released;
};

// The same data sent by what MPI offers: seconds until the last recipient has them, by repetition.
struct Baseline {
  std::size_t size = 0;
  int recipients = 1;
  std::vector<double> bcast;
  std::vector<double> ibcast;
  std::vector<double> sends;  // MPI_Isend to each recipient, then MPI_Waitall
};

struct Measured {
  std::vector<Times> cases;
  std::vector<Baseline> baselines;  // one for each size and number of recipients
};

// One clock for the ranks of a communicator.
class Clock {
 public:
  explicit Clock(MPI_Comm communicator);
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock();

  void compare();      // with the other ranks' again, where that was a second ago
  double now() const;  // s
  double error() const;

 private:
  MPI_Comm communicator_;
  elbow_clock* clock_;
};

// All cases and baselines take turns, repetition by repetition, so that what changes with time concerns all alike. Rank 0
// has the result, the others have an empty one. Aborts the job where data arrive damaged.
Measured measure_broadcasts(const std::vector<Case>& cases, bool with_baselines, Clock& clock);

// Half the time of a message there and back between ranks 0 and 1, s: the median of each block. Blocks of MPI_Send and
// MPI_Recv take turns with blocks of the library.
struct Latency {
  std::vector<double> mpi;
  std::vector<double> library;
};
Latency measure_latency(std::size_t size, int exchanges, int blocks);

// What is not to depend on what else is open, s; of rank 0, those of waits of rank 1.
struct Open {
  std::vector<double> send;    // a further send, by tenths of those that are open
  std::vector<double> wait;    // a message that is waited for until it is received, by tenths
  std::vector<double> memory;  // MiB then
  std::vector<double> alone;   // a message to rank 2, by repetition
  std::vector<double> beside;  // the same while rank 1 computes and has not received all of another one
};
Open measure_open(int sends, int messages, int repeat, double computing);

// Ends the job with the library's sentence where the call failed.
void check(bool succeeded);

}  // namespace elbowroom::broadcast::bench
