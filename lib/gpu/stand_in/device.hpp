// The one device of the stand-in: its memory, what its handles stand for, and how work gets into its streams.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gpu/stand_in/kernels.hpp"
#include "gpu/stand_in/simulation.hpp"

namespace elbowroom::stand_in {

struct Device {
  std::recursive_mutex mutex;
  std::unique_ptr<Simulation> simulation = std::make_unique<Simulation>(settings_from_environment());
  std::map<gpu::DevicePointer, std::size_t> memory;
  std::map<gpu::DevicePointer, std::size_t> pinned;
  std::map<gpu::DevicePointer, Product> products;  // by D
  std::size_t used = 0;
  int contexts = 0;
  std::set<std::string> loaded;  // kernels that were launched before
};
Device& device();

inline constexpr int kSharedMemory = 232448;  // bytes of a block at most, as of compute capability 9.0

struct GraphOf {
  std::vector<Operation> operations;
};
struct StreamOf {
  Simulation::Stream stream;
  std::unique_ptr<GraphOf> capturing;  // null: work is done
};
struct EventOf {
  double at = -1;   // s; < 0 not yet
  int pending = 0;  // records that have not ended
};
struct FunctionOf {
  std::string name;
  int carveout = -1;  // preferred, in percent; -1 none
};
struct ModuleOf {
  std::string image;
  std::map<std::string, FunctionOf> functions;
};

template <class To, class From>
To* cast(From* handle) {
  return reinterpret_cast<To*>(handle);
}

bool inside(const std::map<gpu::DevicePointer, std::size_t>& blocks, gpu::DevicePointer address, std::size_t bytes);
gpu::Result lost_or(gpu::Result otherwise);

// Until `ready`. Ends the process with a message where a device would never return from `call`.
gpu::Result wait(const char* call, const std::function<bool()>& ready);

// Into a stream, or into the graph that it captures.
void submit(gpu::StreamHandle stream, Operation operation);

struct Copy {
  const char* name;
  void* to;
  const void* from;
  std::size_t bytes;
};
// kInvalidValue where an end that is meant to be on the device is not.
gpu::Result put_copies(const std::vector<Copy>& copies, gpu::StreamHandle stream);

// The kernels that hold SMs.
bool holds_sms(const std::string& name);

}  // namespace elbowroom::stand_in
