#include "device_access.hpp"

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
    return {error.what(), "leave SMs free, or start the other side first"};
  } catch (const std::exception& error) {
    return {error.what(), ""};
  }
}

ClockReader::ClockReader(std::string pci) : pci_(std::move(pci)) {
  try {
    nvml_ = std::make_unique<gpu::Management>();
  } catch (const gpu::Unavailable&) {  // the facts have the reason
  }
}

std::optional<unsigned> ClockReader::mhz() const { return nvml_ ? nvml_->sm_mhz(pci_) : std::nullopt; }

DeviceAccess::DeviceAccess(const Request& request) {
  try {
    driver_ = std::make_unique<gpu::Driver>();
    context_ = std::make_unique<gpu::Context>(*driver_, request.device);
    maker_ = std::make_unique<Maker>(*context_, request);
    clock_ = std::make_unique<ClockReader>(context_->facts().pci);
  } catch (const std::exception&) {
    failure_ = failure_of(std::current_exception());
  }
}

void DeviceAccess::fail(const Failure& failure, const std::string& what) {
  if (failure.lost) failure_ = Failure{"the device was lost in " + what + ": " + failure.reason, kLostHint, true};
}

}  // namespace elbowroom::gpu_bench
