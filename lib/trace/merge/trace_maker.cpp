// trace-maker: writes a trace of any size, as if it had been recorded, for benchmarks.
//
// Ranks compute (begin, end), count and send each other messages in turn; every clock has its own origin and rate, which the
// sync points tell. Of the messages, `--tachyons` arrive before they left.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "trace/merge/synthetic_trace.hpp"

namespace {

using namespace elbowroom::trace;

constexpr std::int64_t kStep = 100;  // ns between the events of a thread

struct Wish {
  std::string directory;
  std::uint64_t events = 1'000'000;
  int ranks = 4;
  int threads = 4;
  double messages = 0.1;  // of a rank's first thread: its events that are ends of messages
  std::uint64_t tachyons = 0;
  std::uint64_t seed = 1;
};

// The reference's time on a rank's clock: another origin, and up to 20 ppm faster.
struct Skewed {
  std::int64_t origin = 0;
  std::int64_t ppb = 0;
  std::int64_t local(std::int64_t reference) const { return reference + origin + reference / 1000000 * ppb / 1000; }
};

class Maker {
 public:
  explicit Maker(const Wish& wish) : wish_(wish), trace_(wish.directory, wish.ranks, wish.seed) {
    const int work = trace_.category("work");
    const int mpi = trace_.category("mpi");
    solve_ = trace_.type("solve", work, {"", "step", "cells"});
    memory_ = trace_.type("memory", work, {"which", "bytes", ""});
    send_ = trace_.type("send", mpi);
    receive_ = trace_.type("receive", mpi);
    for (int rank = 0; rank < wish.ranks; ++rank) {
      clocks_.push_back({rank == 0 ? 0 : 1'000'000'000LL * rank, rank == 0 ? 0 : (rank % 5 - 2) * 10'000});
      for (int thread = 0; thread < wish.threads; ++thread) {
        trace_.thread(rank, thread == 0 ? "main" : "worker " + std::to_string(thread));
      }
    }
  }

  void make() {
    const auto all = static_cast<std::uint64_t>(wish_.ranks) * static_cast<std::uint64_t>(wish_.threads);
    const std::uint64_t steps = wish_.events / all;
    const std::uint64_t every = wish_.messages > 0 ? static_cast<std::uint64_t>(1 / wish_.messages) : 0;
    const std::uint64_t messages = every == 0 || wish_.ranks < 2 ? 0 : steps / every / 2;
    odd_every_ = wish_.tachyons == 0
                     ? 0
                     : std::max<std::uint64_t>(messages * static_cast<std::uint64_t>(wish_.ranks) / wish_.tachyons, 1);
    for (std::uint64_t step = 0; step < steps; ++step) {
      const std::int64_t time = kBegin + 1000 + static_cast<std::int64_t>(step) * kStep;
      if (step % std::max<std::uint64_t>(steps / 8, 1) == 0) {
        compare(time);
      }
      const bool communicates =
          step % std::max<std::uint64_t>(every, 1) == 0 && step / std::max<std::uint64_t>(every, 1) < 2 * messages;
      for (int rank = 0; rank < wish_.ranks; ++rank) {
        for (int thread = 0; thread < wish_.threads; ++thread) {
          if (thread == 0 && communicates) {
            exchange(rank, step / every, time);
          } else {
            compute(rank, thread, step, time + 3 * thread);
          }
        }
      }
    }
    compare(kBegin + 1000 + static_cast<std::int64_t>(steps) * kStep);
    trace_.write();
    std::printf("{\"events\": %llu, \"messages\": %llu, \"tachyons\": %llu}\n",
                static_cast<unsigned long long>(events_), static_cast<unsigned long long>(received_),
                static_cast<unsigned long long>(odd_));
  }

 private:
  static constexpr std::int64_t kBegin = 1'000'000;

  std::uint64_t stamp(int rank, std::int64_t reference) const {
    return static_cast<std::uint64_t>(clocks_[static_cast<std::size_t>(rank)].local(reference));
  }

  void compare(std::int64_t reference) {
    constexpr std::int64_t kHalfWidth = 50;
    for (int rank = 0; rank < wish_.ranks; ++rank) {
      const std::int64_t local = clocks_[static_cast<std::size_t>(rank)].local(reference);
      const std::int64_t offset = reference - local;
      trace_.sync(rank, local, offset, offset - (rank == 0 ? 0 : kHalfWidth), offset + (rank == 0 ? 0 : kHalfWidth));
    }
  }

  // Each message leaves in an even round and arrives in the odd one that follows; a tachyon the other way round.
  void exchange(int rank, std::uint64_t round, std::int64_t time) {
    const int next = (rank + 1) % wish_.ranks;
    const int before = (rank + wish_.ranks - 1) % wish_.ranks;
    const std::uint64_t message = round / 2;
    const auto sequence = static_cast<std::uint32_t>(message + 1);
    const bool leaves = round % 2 == (is_odd(rank, message) ? 1 : 0);
    const bool arrives = round % 2 == (is_odd(before, message) ? 0 : 1);
    if (leaves) {
      trace_.send(rank, 0, stamp(rank, time), send_, next, 1024, 0, 0, sequence);
      odd_ += is_odd(rank, message) ? 1 : 0;
      ++events_;
    }
    if (arrives) {
      trace_.receive(rank, 0, stamp(rank, time + 20), receive_, before, 1024, 0, 0, sequence);
      ++received_;
      ++events_;
    }
  }

  bool is_odd(int source, std::uint64_t message) const {
    const std::uint64_t number = message * static_cast<std::uint64_t>(wish_.ranks) + static_cast<std::uint64_t>(source);
    return odd_every_ > 0 && number % odd_every_ == odd_every_ - 1;
  }

  void compute(int rank, int thread, std::uint64_t step, std::int64_t time) {
    const std::uint64_t at = stamp(rank, time);
    ++events_;
    switch (step % 3) {
      case 0: trace_.add(rank, thread, at, solve_, ELBOW_TRACE_BEGIN, 0, step, 100); break;
      case 1: trace_.add(rank, thread, at, solve_, ELBOW_TRACE_END, 0, step, 100); break;
      default: trace_.add(rank, thread, at, memory_, ELBOW_TRACE_COUNTER, 0, step);
    }
  }

  Wish wish_;
  SyntheticTrace trace_;
  std::vector<Skewed> clocks_;
  std::uint16_t solve_ = 0;
  std::uint16_t memory_ = 0;
  std::uint16_t send_ = 0;
  std::uint16_t receive_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t odd_every_ = 0;
  std::uint64_t odd_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes a trace of any size, as if it had been recorded");
  Wish wish;
  app.add_option("directory", wish.directory, "where to")->required();
  app.add_option("--events", wish.events, "approximate number");
  app.add_option("--ranks", wish.ranks)->check(CLI::Range(1, 100000));
  app.add_option("--threads", wish.threads, "of each rank")->check(CLI::Range(1, 100000));
  app.add_option("--messages", wish.messages, "share of each first thread's events")->check(CLI::Range(0.0, 1.0));
  app.add_option("--tachyons", wish.tachyons, "messages that arrive before they were sent");
  app.add_option("--job", wish.seed, "the job's number");
  CLI11_PARSE(app, argc, argv);
  try {
    Maker(wish).make();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
