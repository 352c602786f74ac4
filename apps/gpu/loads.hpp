// What a side of a case runs. All loads of the device are submitted by one thread, which polls them in turn.
#pragma once

#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/device.hpp"

namespace elbowroom::gpu_bench {

struct Sample {
  double rate = -1;       // in the load's unit; < 0 none, as for SMs that are held idle
  std::size_t units = 0;  // finished between begin() and end()
  double p50_us = -1;     // of the steps of a unit; < 0 none
  double p99_us = -1;
};

// Something noted of a load: `name` in results, and a sentence.
struct Flag {
  std::string name;
  std::string text;
};

class Load {
 public:
  virtual ~Load() = default;
  virtual const char* unit() const = 0;
  // Clears what check() looks at, where buffers were used before.
  virtual void clear() {}
  // Runs it briefly with nothing beside it: CUDA loads a kernel at its first launch, and may wait for all SMs then.
  virtual void warm() {}
  virtual void start() = 0;
  virtual void poll() {}  // sees what is finished, and submits more
  // Until it is past its start again: what was counted so far does not count.
  virtual void settle() {}
  virtual bool running() = 0;  // whether it is past its start, so that measuring may begin
  virtual void begin() = 0;    // of what is counted
  virtual void end() = 0;
  // Seconds and units counted since begin(), which tell whether it has measured enough.
  virtual double measured_s() const { return std::numeric_limits<double>::infinity(); }
  virtual void stop() = 0;                          // returns when nothing of it runs any more
  virtual bool holds_sms() const { return false; }  // until it is stopped
  virtual Sample sample() const = 0;                // after stop()
  virtual std::string check() { return ""; }        // "" or why its results are wrong
  virtual std::vector<Flag> flags() const { return {}; }
};

// Operations that a load submits together.
struct Round {
  double work = 0;       // in millions of what the unit of the rate counts
  int calls = 1;         // of the driver
  int steps = 0;         // of which p50_us and p99_us are; 0: none
  bool in_graph = true;  // whether graphs can have them
};

// A load of units in a stream, a few of them in flight, timed by the device's events from end to end. A unit is as many
// rounds as last 200 us, submitted by one call: else a thread that submits several loads would limit their rates.
class UnitLoad : public Load {
 public:
  UnitLoad(const gpu::Context& context, Round round);
  void start() override;
  void poll() override;
  void settle() override { settled_from_ = ends_.size(); }
  bool running() override { return ends_.size() >= settled_from_ + kWarm; }
  void begin() override { begun_ = ends_.size(); }
  void end() override { ended_ = ends_.size(); }
  double measured_s() const override;
  void stop() override;
  Sample sample() const override;
  std::vector<Flag> flags() const override;
  void warm() override;                                // and finds the rounds of a unit
  virtual void submit(const gpu::Stream& stream) = 0;  // one round
  void submit_unit(const gpu::Stream& stream);

 protected:
  const gpu::Context& context_;

 private:
  static constexpr std::size_t kInFlight = 4;
  static constexpr std::size_t kWarm = 2;
  static constexpr std::size_t kLeast = 3;  // units of a sample
  static constexpr int kFewCalls = 8;       // take much less than a unit

  Round round_;
  int rounds_ = 0;  // of a unit
  std::unique_ptr<gpu::Graph> graph_;
  std::optional<gpu::Stream> stream_;  // while it runs
  gpu::Event started_;
  std::deque<std::unique_ptr<gpu::Event>> flying_;
  std::vector<std::unique_ptr<gpu::Event>> spare_;
  std::vector<double> ends_;  // s since started_
  std::size_t settled_from_ = 0;
  std::size_t begun_ = 0;
  std::size_t ended_ = 0;
  int calls() const { return rounds_ * round_.calls; }
  void submit_all(const gpu::Stream& stream);
  void submit_one();
};

}  // namespace elbowroom::gpu_bench
