#include "device_access.hpp"

#include <fmt/format.h>

namespace elbowroom::gpu_bench {
namespace {

const char* const kLostHint = "see `dmesg` and `nvidia-smi`";

std::string hint_for(const gpu::GpuError& error) {
  if (error.lost()) return kLostHint;
  if (error.code() == gpu::kOutOfMemory) return "take smaller buffers, or let no other process use the device";
  if (error.code() == gpu::kNotPermitted) return "raise the limit of locked memory (ulimit -l)";
  if (error.code() == gpu::kDeviceUnavailable) {
    return "another process has the device, which is in exclusive mode: wait for it";
  }
  return "see `nvidia-smi`";
}

}  // namespace

Failure failure_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const gpu::Unavailable& error) {
    return {error.what(), error.hint()};
  } catch (const gpu::GpuError& error) {
    return {error.what(), hint_for(error), error.lost()};
  } catch (const Stuck& error) {
    const std::string queues = gpu::connections() < gpu::kMostConnections
                                   ? fmt::format("; unset {}, which is {}", gpu::kConnections, gpu::connections())
                                   : "";
    return {error.what(), "leave SMs free, or start the other side first" + queues};
  } catch (const std::exception& error) {
    return {error.what(), ""};
  }
}

DeviceReader::DeviceReader(std::string pci) : pci_(std::move(pci)) {
  try {
    nvml_ = std::make_unique<gpu::Management>();
    facts_ = nvml_->facts(pci_, true);
  } catch (const gpu::Unavailable&) {  // the facts have the reason
  }
}

gpu::DeviceReading DeviceReader::now() const { return facts_ ? nvml_->reading(pci_) : gpu::DeviceReading{}; }

DeviceAccess::DeviceAccess(const Request& request) {
  try {
    driver_ = std::make_unique<gpu::Driver>();
    context_ = std::make_unique<gpu::Context>(*driver_, request.device);
    maker_ = std::make_unique<Maker>(*context_, request);
    reader_ = std::make_unique<DeviceReader>(context_->facts().pci);
    warm_up_ = std::make_unique<WarmUp>([this] { return reader_->now(); });
    peaks_ = peaks_of(context_->facts(), reader_->facts());
  } catch (const std::exception&) {
    failure_ = failure_of(std::current_exception());
  }
}

const std::optional<Failure>& DeviceAccess::failure() {
  if (!failure_ && driver_->abandoned()) failure_ = Failure{"a kernel that holds SMs did not end", kLostHint, true};
  return failure_;
}

void DeviceAccess::fail(const Failure& failure, const std::string& what) {
  if (failure.lost) failure_ = Failure{"the device was lost in " + what + ": " + failure.reason, kLostHint, true};
}

std::optional<Flag> DeviceAccess::too_short(double seconds) const {
  if (seconds >= kLeastPhase || context_->facts().is_stand_in()) return std::nullopt;
  return Flag{"short_phases",
              fmt::format("phases of {:g} s are shorter than the {:g} s that a device needs for figures "
                          "that repeat",
                          seconds, kLeastPhase)};
}

}  // namespace elbowroom::gpu_bench
