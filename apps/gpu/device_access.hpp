// A device opened for cases, and why it, or a case, cannot be measured.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "gpu/management.hpp"
#include "request.hpp"
#include "sides.hpp"
#include "warm_up.hpp"

namespace elbowroom::gpu_bench {

struct Failure {
  std::string reason;
  std::string hint;
  bool lost = false;  // so that nothing else can be measured by this process
};

// Of an exception that opening a device, or making or running loads, throws.
Failure failure_of(const std::exception_ptr& thrown);

// Clocks, link and power, which are read and never set; without NVML they are unknown.
class DeviceReader {
 public:
  explicit DeviceReader(std::string pci);
  gpu::DeviceReading now() const;
  const std::optional<gpu::ManagementFacts>& facts() const { return facts_; }

 private:
  std::string pci_;
  std::unique_ptr<gpu::Management> nvml_;
  std::optional<gpu::ManagementFacts> facts_;
};

// Driver, context and what cases share; used by one thread only.
class DeviceAccess {
 public:
  explicit DeviceAccess(const Request& request);  // does not throw for a device that is not there
  // Why nothing can be measured; empty while something can.
  const std::optional<Failure>& failure();
  // After `what` could not be measured; a device that is lost is so for all that follow.
  void fail(const Failure& failure, const std::string& what);
  Maker& maker() { return *maker_; }
  const DeviceReader& reader() const { return *reader_; }
  const Peaks& peaks() const { return peaks_; }
  WarmUp& warm_up() { return *warm_up_; }
  // Whether phases of these seconds are too short for this device.
  std::optional<Flag> too_short(double seconds) const;

 private:
  std::unique_ptr<gpu::Driver> driver_;
  std::unique_ptr<gpu::Context> context_;
  std::unique_ptr<Maker> maker_;
  std::unique_ptr<DeviceReader> reader_;
  std::unique_ptr<WarmUp> warm_up_;
  Peaks peaks_;
  std::optional<Failure> failure_;
};

}  // namespace elbowroom::gpu_bench
