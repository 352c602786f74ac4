// Kernels that hold SMs until they are stopped: idle, or copying.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels.hpp"
#include "loads.hpp"
#include "request.hpp"

namespace elbowroom::gpu_bench {

// One block on each of k SMs; with `pairs` of the work in clusters of two, which the device puts on neighbouring SMs.
// Throws Unavailable where the device has fewer SMs or no clusters, where an SM would not take exactly one block, and
// where the stop flag would not be plain device memory. `patience`: s until a kernel that does not end is given up.
class Holder : public Load {
 public:
  Holder(const Kernels& kernels, const Work& work, double patience)
      : Holder(kernels, work, patience, idle_kernel(work)) {}
  void warm() override;  // starts and stops it
  const gpu::Context& context() const { return kernels_.context(); }
  void start() override;
  bool running() override;
  bool holds_sms() const override { return true; }
  void begin() override {}
  void end() override {}
  // Throws GpuError, after which the driver is abandoned, where the kernel does not end: nothing else can run then.
  void stop() override;
  const char* unit() const override { return ""; }
  Sample sample() const override { return {}; }
  std::vector<Flag> flags() const override;

 protected:
  struct Kernel {
    const char* name;
    int threads;
  };
  Holder(const Kernels& kernels, const Work& work, double patience, Kernel kernel);
  virtual std::vector<void*> arguments() { return {&stop_address_, &where_address_}; }
  // A copy of device memory, in order with others and with the stop of the kernel.
  void look(void* to, const gpu::DeviceMemory& from);
  bool seen_all() const { return control_->done(); }
  const Kernels& kernels_;
  int sms_;

 private:
  Kernel kernel_;
  double patience_;
  gpu::DeviceMemory stop_;
  gpu::DeviceMemory where_;
  gpu::DevicePointer stop_address_ = stop_.address();
  gpu::DevicePointer where_address_ = where_.address();
  std::optional<gpu::Stream> stream_;   // while it runs
  std::optional<gpu::Stream> control_;  // the same
  gpu::PinnedMemory host_;              // the flag's values 0 and 1, then the SMs
  bool looking_ = false;                // a copy of the SMs is on its way
  bool held_ = false;
  bool shared_ = false;  // two blocks were on one SM
  std::uint32_t* seen() const { return static_cast<std::uint32_t*>(host_.data()) + 2; }
  static Kernel idle_kernel(const Work& work) { return {work.pairs ? "elbow_hold_pairs" : "elbow_hold", 1}; }
  void wait_for(const gpu::Stream& stream);
};

std::unique_ptr<Holder> make_sm_copy(const Kernels& kernels, const Work& work, double patience);

// Throws Unavailable with a sentence if a kernel would poll this flag anywhere but in plain device memory.
void require_device_flag(const gpu::Context& context, gpu::DevicePointer flag);

}  // namespace elbowroom::gpu_bench
