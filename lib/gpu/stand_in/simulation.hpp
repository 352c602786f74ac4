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

struct Operation {
  std::string name;     // as Interference has it; empty: takes no time (a record)
  double work_s = 0;    // s at the full rate
  bool on_sms = false;  // waits while all SMs are held
  int held = 0;         // > 0: holds so many SMs until *stop is not 0
  const volatile std::uint32_t* stop = nullptr;
  bool stop_on_host = false;
  double gain = 1;              // of its rate
  bool loads = false;           // waits until no SM is held
  std::function<void()> start;  // of a holder: it has its SMs
  // At its end: the time, and the s of work that it did.
  std::function<void(double now, double done_s)> finish;
  double done_s = 0;
};

class Simulation {
 public:
  explicit Simulation(Settings settings);

  using Stream = std::list<std::deque<Operation>>::iterator;
  Stream add_stream();
  void remove_stream(Stream stream);
  void put(Stream stream, Operation operation);

  void advance();  // to now on the host's clock; nothing on the virtual one
  void query();    // the same, and time of an unsuccessful query on the virtual clock
  // Advances until `ready`. False where that never comes: only holders are left.
  bool wait(const std::function<bool()>& ready);
  bool empty() const;
  bool lost() const { return settings_.lost_after > 0 && finished_ >= settings_.lost_after; }
  double now() const { return now_; }
  const Settings& settings() const { return settings_; }

 private:
  Settings settings_;
  std::list<std::deque<Operation>> streams_;
  double now_ = 0;
  double started_ = 0;
  int finished_ = 0;

  double host_s() const;
  int held() const;
  bool runs(const Operation& operation) const;
  double rate(const Operation& operation) const;
  double next_end() const;
  void pass(double seconds);
  void finish_ended();
  void advance_to(double end);
};

}  // namespace elbowroom::stand_in
