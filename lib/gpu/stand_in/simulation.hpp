// A device on a clock: streams of operations that take planted times and slow each other down as planted. Time passes by
// the host's clock or, in tests, only by what is waited for, so that every figure is exact however loaded the host is.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <string>

#include "gpu/stand_in/settings.hpp"

namespace elbowroom::stand_in {

// How a kernel wants the memory of an SM split: cache, or as much shared memory as there is.
enum class Carveout { any, cache, shared };

struct Operation {
  std::string name;     // as Interference has it; empty: takes no time (a record)
  double work_s = 0;    // s at the full rate
  bool on_sms = false;  // waits while all SMs are held
  int held = 0;         // > 0: holds so many SMs until *stop is not 0
  const volatile std::uint32_t* stop = nullptr;
  bool stop_on_host = false;
  double gain = 1;     // of its rate
  bool loads = false;  // waits until no SM is held
  Carveout carveout = Carveout::any;
  std::function<void()> start;                                // of a holder: it has its SMs
  std::function<void(double now, double done_s)> progresses;  // whenever time has passed
  // At its end: the time, and the s of work that it did.
  std::function<void(double now, double done_s)> finish;
  double done_s = 0;
  bool started = false;
  std::uint64_t order = 0;  // in which operations were put
};

class Simulation {
 public:
  explicit Simulation(Settings settings);

  // Operations of one stream. Streams share the hardware queues in turn: in a queue an operation starts only after
  // those that were put there before it, of whatever stream.
  struct Queued : std::deque<Operation> {
    int queue = 0;
  };
  using Stream = std::list<Queued>::iterator;
  Stream add_stream();
  void remove_stream(Stream stream);
  void put(Stream stream, Operation operation);

  void advance();              // to now on the host's clock; nothing on the virtual one
  void spend(double seconds);  // the same, and so much time on the virtual clock
  // Advances until `ready`. False where that never comes: only holders are left.
  bool wait(const std::function<bool()>& ready);
  bool empty() const;
  bool lost() const { return settings_.lost_after > 0 && finished_ >= settings_.lost_after; }
  double now() const { return now_; }
  double pace() const;  // of clocks and link, up to 1
  const Settings& settings() const { return settings_; }

 private:
  Settings settings_;
  std::list<Queued> streams_;
  double now_ = 0;
  double started_ = 0;
  double busy_s_ = 0;
  int finished_ = 0;
  int made_ = 0;  // streams
  std::uint64_t put_ = 0;
  bool shared_ = false;  // the SMs have as much shared memory as they can

  double host_s() const;
  int held() const;
  bool waits_in_queue(const Queued& stream) const;
  bool sms_work_beside(const Queued& stream) const;
  bool can_start(const Queued& stream) const;
  void start(Queued& stream);
  bool runs(const Queued& stream) const;
  double rate(const Operation& operation) const;
  double next_end() const;
  void pass(double seconds);
  void finish_ended();
  void advance_to(double end);
};

}  // namespace elbowroom::stand_in
