// How tasks run and messages travel. The only thing that the two builds do not share: openmp_engine.cpp, starpu_engine.cpp.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/phase.hpp"
#include "common/sharing.hpp"
#include "exchange/job.hpp"
#include "kernels/graph.hpp"
#include "kernels/meter.hpp"

namespace elbowroom::kernels {

using program::communicates;
using program::computes;
using program::Mode;

struct Memory {
  double* first;
  std::size_t count;
};

// Tasks and messages are asked for in sequence and happen as soon as what they use allows (graph.hpp), tasks on the
// computing threads, one bound to each computing core, messages on the communication thread. Whoever asks is the thread
// that made the engine, on the communication core; it is the only one that may call MPI, and only outside of open() to close().
class Engine {
 public:
  // What the build is called in plans: openmp or starpu.
  static const char* const kName;
  // The level of threads that MPI must be started with.
  static const char* const kThreadLevel;

  // Threads for the computing cores of this rank. Throws RequestError.
  Engine(const Job& job, const program::Seat& seat, const program::Sharing& sharing);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::size_t threads() const { return threads_; }
  Meter& meter() { return meter_; }

  // Memory that tasks and messages will name. The same memory is named once. Not while open.
  Datum datum(const Memory& memory);

  // Runs `work` between an open and a close: only in there may be asked for anything. Collective.
  void run(Mode mode, const std::function<void()>& work);
  Mode mode() const { return mode_; }

  // Asks for a task; nothing where only messages travel.
  void task(Kind kind, const std::vector<Use>& uses, std::function<void()> body);
  // Asks for a message with the contents of `datum`; nothing where there is only computing. Both ranks give it one tag.
  // `counted`: whether it is one whose bandwidth is told.
  void send(Datum datum, int rank, std::size_t tag, bool counted);
  void receive(Datum datum, int rank, std::size_t tag);
  // Returns when all that was asked for is done.
  void wait();
  // Returns when all ranks have come. Nothing may be left to do.
  void align();

 private:
  struct Impl;
  std::size_t threads_;
  Meter meter_;
  Mode mode_ = Mode::all;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elbowroom::kernels
