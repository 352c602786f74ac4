#include "gpu/device.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace elbowroom::gpu {
namespace {

int attribute(const Driver& driver, DeviceNumber device, int which) {
  int value = 0;
  driver.check(driver.cuDeviceGetAttribute(&value, which, device), "reading attribute " + std::to_string(which));
  return value;
}

int attribute_or_0(const Driver& driver, DeviceNumber device, int which) {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, which, device) == kSuccess ? value : 0;
}

}  // namespace

int numa_node_of(const std::string& path) {
  std::ifstream file(path);
  int node = -1;
  return file >> node ? node : -1;
}

DeviceFacts device_facts(const Driver& driver, int number) {
  DeviceNumber device = 0;
  driver.check(driver.cuDeviceGet(&device, number), "device " + std::to_string(number));
  DeviceFacts facts;
  char text[256] = "";
  driver.check(driver.cuDeviceGetName(text, sizeof(text), device), "reading the device's name");
  facts.name = text;
  driver.check(driver.cuDeviceGetPCIBusId(text, sizeof(text), device), "reading the device's PCI address");
  facts.pci = text;
  std::transform(facts.pci.begin(), facts.pci.end(), facts.pci.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  facts.sms = attribute(driver, device, kSmCount);
  facts.capability = 10 * attribute(driver, device, kCapabilityMajor) + attribute(driver, device, kCapabilityMinor);
  facts.compute_mode = attribute(driver, device, kComputeMode);
  facts.shared_memory = static_cast<std::size_t>(attribute(driver, device, kSharedMemoryOptin));
  facts.l2 = static_cast<std::size_t>(attribute_or_0(driver, device, kL2Size));
  facts.clock_khz = attribute_or_0(driver, device, kClockRate);
  facts.memory_khz = attribute_or_0(driver, device, kMemoryClockRate);
  facts.bus_bits = attribute_or_0(driver, device, kMemoryBusWidth);
  facts.coherent = attribute_or_0(driver, device, kUsesHostPageTables) != 0;
  driver.check(driver.cuDeviceTotalMem(&facts.memory, device), "reading the device's memory");
  facts.node = numa_node_of("/sys/bus/pci/devices/" + facts.pci + "/numa_node");
  return facts;
}

Context::Context(const Driver& driver, int number) : driver_(driver), facts_(device_facts(driver, number)) {
  driver.check(driver.cuDeviceGet(&device_, number), "device " + std::to_string(number));
  ContextHandle handle = nullptr;
  driver.check(driver.cuDevicePrimaryCtxRetain(&handle, device_), "a context on device " + std::to_string(number));
  const Result current = driver.cuCtxSetCurrent(handle);
  if (current != kSuccess) driver.cuDevicePrimaryCtxRelease(device_);
  driver.check(current, "making the context current");
}

Context::~Context() {
  if (driver_.abandoned()) return;
  for (const StreamHandle stream : idle_) driver_.cuStreamDestroy(stream);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

void Context::synchronize() const { driver_.check(driver_.cuCtxSynchronize(), "waiting for the device"); }

Stream::Stream(const Context& context) : context_(context), driver_(context.driver()) {
  if (context.idle_.empty()) {
    driver_.check(driver_.cuStreamCreate(&handle_, kStreamNonBlocking), "creating a stream");
  } else {
    handle_ = context.idle_.back();
    context.idle_.pop_back();
  }
}

// One in which something still runs is not for the next.
Stream::~Stream() {
  if (driver_.abandoned()) return;
  if (driver_.cuStreamQuery(handle_) == kSuccess) {
    context_.idle_.push_back(handle_);
  } else {
    driver_.cuStreamDestroy(handle_);
  }
}

bool Stream::done() const {
  const Result result = driver_.cuStreamQuery(handle_);
  if (result == kNotReady) return false;
  driver_.check(result, "asking a stream");
  return true;
}

void Stream::synchronize() const { driver_.check(driver_.cuStreamSynchronize(handle_), "waiting for a stream"); }

std::unique_ptr<Graph> Graph::capture(const Context& context, const std::function<void(const Stream&)>& submit) {
  const Driver& driver = context.driver();
  if (!driver.has_graphs()) return nullptr;
  const Stream stream(context);
  driver.check(driver.cuStreamBeginCapture(stream.handle(), kCaptureRelaxed), "beginning a graph");
  bool captured = true;
  try {
    submit(stream);
  } catch (const GpuError& error) {
    captured = false;
  }
  GraphHandle graph = nullptr;
  captured = driver.cuStreamEndCapture(stream.handle(), &graph) == kSuccess && captured;
  GraphExecHandle handle = nullptr;
  captured = captured && driver.cuGraphInstantiate(&handle, graph, 0) == kSuccess;
  if (graph != nullptr) driver.cuGraphDestroy(graph);
  return captured ? std::unique_ptr<Graph>(new Graph(driver, handle)) : nullptr;
}

Graph::~Graph() {
  if (!driver_.abandoned()) driver_.cuGraphExecDestroy(handle_);
}

void Graph::launch(const Stream& stream) const {
  driver_.check(driver_.cuGraphLaunch(handle_, stream.handle()), "starting a graph");
}

Event::Event(const Context& context) : driver_(context.driver()) {
  driver_.check(driver_.cuEventCreate(&handle_, 0), "creating an event");
}

Event::~Event() {
  if (!driver_.abandoned()) driver_.cuEventDestroy(handle_);
}

void Event::record(const Stream& stream) {
  driver_.check(driver_.cuEventRecord(handle_, stream.handle()), "recording an event");
}

bool Event::done() const {
  const Result result = driver_.cuEventQuery(handle_);
  if (result == kNotReady) return false;
  driver_.check(result, "asking an event");
  return true;
}

double Event::seconds_since(const Event& earlier) const {
  float milliseconds = 0;
  driver_.check(driver_.cuEventElapsedTime(&milliseconds, earlier.handle_, handle_), "reading the time of an event");
  return 1e-3 * static_cast<double>(milliseconds);
}

DeviceMemory::DeviceMemory(const Context& context, std::size_t bytes) : driver_(context.driver()), size_(bytes) {
  driver_.check(driver_.cuMemAlloc(&address_, bytes), std::to_string(bytes) + " bytes of device memory");
}

DeviceMemory::~DeviceMemory() {
  if (!driver_.abandoned()) driver_.cuMemFree(address_);
}

Module::Module(const Context& context, const std::string& image) : driver_(context.driver()) {
  driver_.check(driver_.cuModuleLoadData(&handle_, image.c_str()), "loading the compiled kernels");
}

Module::~Module() {
  if (!driver_.abandoned()) driver_.cuModuleUnload(handle_);
}

FunctionHandle Module::function(const char* name) const {
  FunctionHandle function = nullptr;
  driver_.check(driver_.cuModuleGetFunction(&function, handle_, name), std::string("kernel ") + name);
  return function;
}

bool is_plain_device_memory(const Context& context, DevicePointer address) {
  const Driver& driver = context.driver();
  unsigned type = 0;
  unsigned managed = 0;
  driver.check(driver.cuPointerGetAttribute(&type, kPointerMemoryType, address), "reading the kind of a pointer");
  driver.check(driver.cuPointerGetAttribute(&managed, kPointerIsManaged, address), "reading the kind of a pointer");
  return type == kMemoryTypeDevice && managed == 0;
}

}  // namespace elbowroom::gpu
