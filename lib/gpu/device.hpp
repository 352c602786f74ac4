// A device and what lives on it: context, streams, events, memory, kernels. Owners release what they own; a release that
// fails is not reported, since the device may be lost.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/driver.hpp"

namespace elbowroom::gpu {

struct DeviceFacts {
  std::string name;
  std::string pci;  // "0000:65:00.0"
  int sms = 0;
  int capability = 0;             // 90 is compute capability 9.0
  int compute_mode = 0;           // 0 default, 2 prohibited, 3 one process only
  std::size_t memory = 0;         // bytes
  std::size_t shared_memory = 0;  // most bytes of a block
  std::size_t l2 = 0;             // bytes; this and what follows: 0 unknown
  int clock_khz = 0;              // of the SMs, at most
  int memory_khz = 0;             // of the memory
  int bus_bits = 0;               // of the memory
  bool coherent = false;          // with the host, by a link that is no PCIe
  bool is_stand_in() const { return name == "stand-in"; }
  int node = -1;  // NUMA node as the kernel says; -1 unknown
};

// Needs no context. Throws GpuError where there is no device of this number.
DeviceFacts device_facts(const Driver& driver, int number);

// The NUMA node in this file of sysfs; -1 where it is missing or says so.
int numa_node_of(const std::string& path);

// The primary context, current in the thread that made it.
class Context {
 public:
  Context(const Driver& driver, int number);  // GpuError; a device that is busy has kDeviceUnavailable
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  const Driver& driver() const { return driver_; }
  const DeviceFacts& facts() const { return facts_; }
  void synchronize() const;

 private:
  friend class Stream;
  const Driver& driver_;
  DeviceFacts facts_;
  DeviceNumber device_ = 0;
  mutable std::vector<StreamHandle> idle_;  // streams that are not in use; of the thread that uses the context
};

// A stream of the context's pool. New streams share the hardware queues in turn (driver.hpp), so that a few are used
// again and again: a load has one while it runs only.
class Stream {
 public:
  explicit Stream(const Context& context);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  StreamHandle handle() const { return handle_; }
  bool done() const;  // whether all that was put into it is finished
  void synchronize() const;

 private:
  const Context& context_;
  const Driver& driver_;
  StreamHandle handle_ = nullptr;
};

// Operations that are submitted together, by one call.
class Graph {
 public:
  // Of what `submit` puts into the stream; null where the driver has no graphs, or not of these operations.
  static std::unique_ptr<Graph> capture(const Context& context, const std::function<void(const Stream&)>& submit);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(const Stream& stream) const;  // GpuError

 private:
  Graph(const Driver& driver, GraphExecHandle handle) : driver_(driver), handle_(handle) {}
  const Driver& driver_;
  GraphExecHandle handle_;
};

class Event {
 public:
  explicit Event(const Context& context);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(const Stream& stream);
  bool done() const;
  double seconds_since(const Event& earlier) const;  // by the device's clock, steps of about 0.5 us

 private:
  const Driver& driver_;
  EventHandle handle_ = nullptr;
};

class DeviceMemory {
 public:
  DeviceMemory(const Context& context, std::size_t bytes);  // GpuError; too much has kOutOfMemory
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  DevicePointer address() const { return address_; }
  std::size_t size() const { return size_; }

 private:
  const Driver& driver_;
  DevicePointer address_ = 0;
  std::size_t size_ = 0;
};

// Host memory on a NUMA node (-1: where the kernel puts it), touched, then pinned. Throws std::runtime_error where the
// node does not take it, GpuError where the driver does not pin it.
class PinnedMemory {
 public:
  PinnedMemory(const Context& context, std::size_t bytes, int node);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  DevicePointer address() const { return address_; }  // for kernels
  // Share of its pages on `node`, as move_pages(2) says of up to 256 of them; < 0 where the kernel does not say.
  double share_on(int node) const;

 private:
  const Driver& driver_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
  DevicePointer address_ = 0;
  void unmap();
};

// Compiled kernels.
class Module {
 public:
  Module(const Context& context, const std::string& image);  // a cubin
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  FunctionHandle function(const char* name) const;

 private:
  const Driver& driver_;
  ModuleHandle handle_ = nullptr;
};

// Whether a pointer is plain device memory: not host memory that is mapped, not managed.
bool is_plain_device_memory(const Context& context, DevicePointer address);

}  // namespace elbowroom::gpu
