// Messages between rank 0 and rank 1, a ping-pong in batches, as a load beside those of the device. The main thread of
// rank 0 runs them, since it is the one that may call MPI; the thread that submits work starts and stops them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "exchange/job.hpp"
#include "exchange/pattern.hpp"
#include "loads.hpp"
#include "machine/machine.hpp"
#include "request.hpp"

namespace elbowroom::gpu_bench {

// The buffer of one rank, on the node of the core that communicates.
class MessageLane {
 public:
  // Binds the calling thread to `core` (-1: not). Throws std::runtime_error.
  MessageLane(const Job& job, std::size_t bytes, int core);
  const Lane& lane() const { return lane_; }

 private:
  Arena memory_;
  Lane lane_;
};

// Rank 0.
class Messages {
 public:
  Messages(const Job& job, const Work& work, double window_s);

  std::unique_ptr<Load> load();  // for the submitting thread

  // The main thread's part of a phase: returns after release(). Rank 1 follows meanwhile.
  void lead();
  void release();  // by the submitting thread, at the end of the phase

 private:
  class AsLoad;
  enum class State { idle, running, stopping, over };
  struct Timed {
    std::int64_t took_ns;
    std::int64_t count;
  };

  const Job& job_;
  MessageLane lane_;
  std::string unit_;
  bool latency_;
  double target_ns_;  // of a batch
  std::uint64_t seed_ = 0;
  std::int64_t iterations_ = 1;
  std::atomic<bool> calibrated_{false};
  std::atomic<bool> holds_{true};

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::idle;
  std::vector<Timed> batches_;

  void batch();
  bool announce(std::int64_t iterations);
};

// Rank 1, until rank 0's phase is over.
void follow_messages(const Job& job, const Lane& lane);

}  // namespace elbowroom::gpu_bench
