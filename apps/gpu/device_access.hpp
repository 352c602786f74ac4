// A device opened for cases, and why it, or a case, cannot be measured.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "gpu/management.hpp"
#include "request.hpp"
#include "sides.hpp"

namespace elbowroom::gpu_bench {

struct Failure {
  std::string reason;
  std::string hint;
  bool lost = false;  // so that nothing else can be measured by this process
};

// Of an exception that opening a device, or making or running loads, throws.
Failure failure_of(const std::exception_ptr& thrown);

// The SM clock, which is read and never set; without NVML there is none.
class ClockReader {
 public:
  explicit ClockReader(std::string pci);
  std::optional<unsigned> mhz() const;

 private:
  std::string pci_;
  std::unique_ptr<gpu::Management> nvml_;
};

// Driver, context and what cases share; used by one thread only.
class DeviceAccess {
 public:
  explicit DeviceAccess(const Request& request);  // does not throw for a device that is not there
  // Why nothing can be measured; empty while something can.
  const std::optional<Failure>& failure() const { return failure_; }
  // After `what` could not be measured; a device that is lost is so for all that follow.
  void fail(const Failure& failure, const std::string& what);
  Maker& maker() { return *maker_; }
  const ClockReader& clock() const { return *clock_; }

 private:
  std::unique_ptr<gpu::Driver> driver_;
  std::unique_ptr<gpu::Context> context_;
  std::unique_ptr<Maker> maker_;
  std::unique_ptr<ClockReader> clock_;
  std::optional<Failure> failure_;
};

}  // namespace elbowroom::gpu_bench
