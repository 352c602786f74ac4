// Kernels that hold SMs until they are stopped: idle, or copying.
#pragma once

#include <memory>

#include "kernels.hpp"
#include "loads.hpp"
#include "request.hpp"

namespace elbowroom::gpu_bench {

// One block on each of k SMs; with `pairs` of the work in clusters of two, which the device puts on neighbouring SMs.
// Throws Unavailable where the device has fewer SMs or no clusters, and where the stop flag would not be plain device
// memory.
class Holder : public Load {
 public:
  Holder(const Kernels& kernels, const Work& work);
  void warm() override;  // starts and stops it
  const gpu::Context& context() const { return kernels_.context(); }
  void start() override;
  bool running() override;
  bool holds_sms() const override { return true; }
  void begin() override {}
  void end() override {}
  void stop() override;
  const char* unit() const override { return ""; }
  Sample sample() const override { return {}; }
  std::vector<Flag> flags() const override;

 protected:
  virtual void launch(const gpu::Stream& stream);
  const Kernels& kernels_;
  int sms_;
  bool pairs_;
  double held_s_ = 0;  // of the last phase
  gpu::DeviceMemory stop_;
  gpu::DeviceMemory where_;

 private:
  gpu::Stream stream_;
  gpu::Stream control_;
  gpu::Event started_;
  gpu::Event ended_;
  gpu::PinnedMemory host_;  // the flag's values 0 and 1, then the SMs
  bool looking_ = false;    // a copy of the SMs is on its way
  bool held_ = false;
  bool shared_ = false;  // two blocks were on one SM
  std::uint32_t* seen() const { return static_cast<std::uint32_t*>(host_.data()) + 2; }
};

std::unique_ptr<Holder> make_sm_copy(const Kernels& kernels, const Work& work);

// Throws Unavailable with a sentence if a kernel would poll this flag anywhere but in plain device memory.
void require_device_flag(const gpu::Context& context, gpu::DevicePointer flag);

}  // namespace elbowroom::gpu_bench
