#include "gpu/stand_in/device.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace elbowroom::stand_in {
namespace {

using gpu::DevicePointer;
using gpu::kInvalidValue;
using gpu::kSuccess;
using gpu::Result;

template <class Value>
Value argument(void** arguments, int which) {
  return *static_cast<Value*>(arguments[which]);
}

DevicePointer address_of(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

// Kernels that hold SMs; the names of those in clusters of two end in _pairs.
bool holds_idle(const std::string& name) { return name == "elbow_hold" || name == "elbow_hold_pairs"; }

// elbow_hold(stop, where) and elbow_copy(stop, where, moved, to, from, bytes, bytes/s): see apps/gpu/kernels.cpp.
Operation persistent(const Kernel& kernel, void** arguments) {
  Device& here = device();
  const Settings& settings = here.simulation->settings();
  const int blocks = kernel.blocks;
  Operation operation;
  operation.held = blocks;
  operation.stop = reinterpret_cast<std::uint32_t*>(argument<DevicePointer>(arguments, 0));
  operation.stop_on_host = !inside(here.memory, argument<DevicePointer>(arguments, 0), sizeof(std::uint32_t));
  auto* const where = reinterpret_cast<std::uint32_t*>(argument<DevicePointer>(arguments, 1));
  const bool share = settings.holders_share;
  operation.start = [=] {
    for (int i = 0; i < blocks; ++i) where[i] = share ? 0U : static_cast<std::uint32_t>(i);
  };
  if (holds_idle(kernel.name)) return operation;
  auto* const moved = reinterpret_cast<std::uint64_t*>(argument<DevicePointer>(arguments, 2));
  const double paced = argument<double>(arguments, 6);  // bytes/s of a block; 0 unpaced
  const double most = settings.rates.at("elbow_copy_per_sm");
  const double rate = paced > 0 ? std::min(paced, most) : most;
  operation.progresses = [=, lag = settings.copy_lag_s](double now, double done_s) {
    for (int i = 0; i < blocks; ++i) {
      moved[2 * i] = static_cast<std::uint64_t>(std::max(0.0, done_s - lag) * rate);
      moved[2 * i + 1] = static_cast<std::uint64_t>(1e9 * now);
    }
  };
  return operation;
}

// elbow_triad(c, a, b, vectors of four floats, scale): computed, since its result is checked. Arguments are read at the
// launch, as by a device.
std::function<void(double, double)> triad(void** arguments) {
  auto* const c = reinterpret_cast<float*>(argument<DevicePointer>(arguments, 0));
  const auto* const a = reinterpret_cast<const float*>(argument<DevicePointer>(arguments, 1));
  const auto* const b = reinterpret_cast<const float*>(argument<DevicePointer>(arguments, 2));
  const auto count = 4 * argument<unsigned long long>(arguments, 3);
  const auto scale = argument<float>(arguments, 4);
  return [=](double, double) {
    for (unsigned long long i = 0; i < count; ++i) c[i] = a[i] + scale * b[i];
  };
}

// elbow_sweep(slices, old, next, first slice, last slice): see apps/diffusion/device_block.cpp.
std::function<void(double, double)> sweep(void** arguments) {
  const auto* const slices = reinterpret_cast<const char*>(argument<DevicePointer>(arguments, 0));
  const auto* const old = reinterpret_cast<const double*>(argument<DevicePointer>(arguments, 1));
  auto* const next = reinterpret_cast<double*>(argument<DevicePointer>(arguments, 2));
  const auto first = argument<unsigned long long>(arguments, 3);
  const auto last = argument<unsigned long long>(arguments, 4);
  constexpr std::size_t kSlice = 8, kBytes = 384, kWeights = 128, kFaces = 4;
  return [=](double, double) {
    for (std::size_t cell = kSlice * first; cell < kSlice * last; ++cell) {
      const char* const slice = slices + cell / kSlice * kBytes;
      const auto* const neighbour = reinterpret_cast<const std::int32_t*>(slice) + cell % kSlice;
      const auto* const weight = reinterpret_cast<const double*>(slice + kWeights) + cell % kSlice;
      double sum = old[cell];
      for (std::size_t face = 0; face < kFaces; ++face) {
        sum = std::fma(weight[kSlice * face], old[neighbour[kSlice * face]] - old[cell], sum);
      }
      next[cell] = sum;
    }
  };
}

float real_of(std::uint16_t brain) {
  const std::uint32_t bits = static_cast<std::uint32_t>(brain) << 16U;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// To the nearest.
std::uint16_t brain_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

// Computes the elements of products in this part of the device's memory.
void compute_products(DevicePointer from, std::size_t bytes) {
  const Device& here = device();
  for (const auto& [d, product] : here.products) {
    const std::uint64_t computed = here.simulation->settings().gemm_wrong ? product.n / 2 : product.n;
    const auto* const a = reinterpret_cast<const std::uint16_t*>(product.a);
    const auto* const b = reinterpret_cast<const std::uint16_t*>(product.b);
    auto* const element = reinterpret_cast<std::uint16_t*>(d);
    const std::uint64_t first = from > d ? (from - d) / 2 : 0;
    const std::uint64_t end = from + bytes > d ? std::min(product.m * computed, (from + bytes - d + 1) / 2) : 0;
    for (std::uint64_t at = first; at < end; ++at) {
      double sum = 0;
      for (std::uint64_t i = 0; i < product.k; ++i) {
        sum += static_cast<double>(real_of(a[at % product.m + i * product.m])) *
               static_cast<double>(real_of(b[at / product.m * product.k + i]));
      }
      element[at] = brain_of(static_cast<float>(sum));
    }
  }
}

void copy(const Copy& copy) {
  std::erase_if(device().products, [&](const auto& one) {
    const auto& [d, product] = one;
    return address_of(copy.to) < d + 2 * product.m * product.n && d < address_of(copy.to) + copy.bytes;
  });
  compute_products(address_of(copy.from), copy.bytes);
  std::memcpy(copy.to, copy.from, copy.bytes);
}

}  // namespace

bool holds_sms(const std::string& name) {
  return holds_idle(name) || name == "elbow_copy" || name == "elbow_copy_pairs";
}

Device& device() {
  static Device instance;
  return instance;
}

bool inside(const std::map<DevicePointer, std::size_t>& blocks, DevicePointer address, std::size_t bytes) {
  auto block = blocks.upper_bound(address);
  if (block == blocks.begin()) return false;
  --block;
  return address + bytes <= block->first + block->second;
}

Result lost_or(Result otherwise) { return device().simulation->lost() ? gpu::kUnknown : otherwise; }

Result wait(const char* call, const std::function<bool()>& ready) {
  if (device().simulation->wait(ready)) return lost_or(kSuccess);
  std::fprintf(stderr, "the stand-in: a device would never return from %s\n", call);
  std::abort();
}

void submit(gpu::StreamHandle stream, Operation operation) {
  StreamOf& target = *cast<StreamOf>(stream);
  if (target.capturing) {
    target.capturing->operations.push_back(std::move(operation));
  } else {
    device().simulation->put(target.stream, std::move(operation));
  }
}

Result put_copies(const std::vector<Copy>& copies, gpu::StreamHandle stream) {
  Device& here = device();
  const std::lock_guard lock(here.mutex);
  if (!cast<StreamOf>(stream)->capturing) here.simulation->spend(settings().submit_s);
  for (const Copy& one : copies) {
    const bool to_device = inside(here.memory, address_of(one.to), one.bytes);
    const bool from_device = inside(here.memory, address_of(one.from), one.bytes);
    const std::string name = one.name;
    if ((name != "d2h" && !to_device) || (name != "h2d" && !from_device)) return kInvalidValue;
    Operation operation;
    operation.name = name;
    operation.on_sms = name == "sm_d2d";
    operation.work_s = static_cast<double>(one.bytes) / settings().rates.at(name);
    operation.finish = [one](double, double) { copy(one); };
    submit(stream, std::move(operation));
  }
  return lost_or(kSuccess);
}

Result put_kernel(Kernel kernel, void** arguments, gpu::StreamHandle stream) {
  Device& here = device();
  const std::lock_guard lock(here.mutex);
  if (!cast<StreamOf>(stream)->capturing) here.simulation->spend(settings().submit_s);
  Operation operation;
  if (holds_sms(kernel.name)) {
    operation = persistent(kernel, arguments);
  } else {
    const auto duration = settings().kernels.find(kernel.name);
    if (duration == settings().kernels.end()) return kInvalidValue;
    operation.work_s = duration->second;
    operation.gain = kernel.gain;
    operation.finish = kernel.name == "elbow_triad"   ? triad(arguments)
                       : kernel.name == "elbow_sweep" ? sweep(arguments)
                                                      : kernel.finish;
  }
  operation.name = kernel.name;
  operation.on_sms = true;
  operation.carveout = kernel.prefers_shared ? Carveout::shared : Carveout::cache;
  operation.loads = here.loaded.insert(kernel.name).second && settings().lazy_loading;
  submit(stream, std::move(operation));
  return lost_or(kSuccess);
}

void finish_product(const Product& product) { device().products.insert_or_assign(product.d, product); }

const Settings& settings() { return device().simulation->settings(); }

void refresh() {
  Device& here = device();
  const std::lock_guard lock(here.mutex);
  Settings planted = settings_from_environment();
  if (here.contexts > 0 && planted == settings()) return;
  here.simulation = std::make_unique<Simulation>(std::move(planted));
  here.memory.clear();
  here.pinned.clear();
  here.products.clear();
  here.loaded.clear();
  here.used = 0;
  here.contexts = 0;
}

bool has_context() { return device().contexts > 0; }

double pace() { return device().simulation->pace(); }

}  // namespace elbowroom::stand_in
