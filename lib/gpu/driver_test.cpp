// The libraries that are loaded at run time, against the stand-in.
#include "gpu/driver.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "gpu/compiler.hpp"
#include "gpu/device.hpp"
#include "gpu/gemm.hpp"
#include "gpu/management.hpp"

using namespace elbowroom::gpu;

namespace {

const std::string kFolder = STAND_IN_FOLDER;
const std::string kStandIn = kFolder + "/stand_in";

// The stand-in with these settings, for the driver that is loaded next.
class Planted {
 public:
  explicit Planted(const std::string& settings = "{}", const std::string& folder = kStandIn)
      : file_(kFolder + "/settings-" + std::to_string(getpid()) + ".json") {
    std::ofstream(file_) << settings;
    setenv("ELBOW_STAND_IN", file_.c_str(), 1);
    setenv("ELBOWROOM_CUDA", (folder + "/libcuda.so.1").c_str(), 1);
    setenv("ELBOWROOM_NVML", (kStandIn + "/libnvidia-ml.so.1").c_str(), 1);
  }
  ~Planted() { unlink(file_.c_str()); }

 private:
  std::string file_;
};

// The reason that `action` gives, and its hint.
template <class Action>
std::pair<std::string, std::string> refusal(const Action& action) {
  try {
    action();
  } catch (const Unavailable& error) {
    return {error.what(), error.hint()};
  }
  return {};
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

const char* const kSource = "extern \"C\" __global__ void elbow_small(unsigned* where) {}";

}  // namespace

TEST_CASE("without a driver the reason is the linker's, with a hint") {
  setenv("ELBOWROOM_CUDA", "/nowhere/libcuda.so.1", 1);
  const auto [reason, hint] = refusal([] { Driver driver; });
  CHECK(has(reason, "/nowhere/libcuda.so.1"));
  CHECK(has(hint, "ELBOWROOM_CUDA"));
}

TEST_CASE("a library that is not a driver lacks its calls") {
  setenv("ELBOWROOM_CUDA", "libc.so.6", 1);
  CHECK(refusal([] { Driver driver; }).first == "libc.so.6 has no cuInit: it is too old");
}

TEST_CASE("a driver stays loaded, since threads that called it end later in its code") {
  const Planted planted;
  std::thread([] { const Driver driver; }).join();
  void* const loaded = dlopen((kStandIn + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_NOLOAD);
  CHECK(loaded != nullptr);
}

TEST_CASE("the driver is asked for all hardware queues, unless the user has set a number") {
  unsetenv(kConnections);
  {
    const Planted planted;
    const Driver driver;
    CHECK(std::string(std::getenv(kConnections)) == "32");
  }
  setenv(kConnections, "4", 1);
  const Planted planted;
  const Driver driver;
  CHECK(connections() == 4);
  unsetenv(kConnections);
}

TEST_CASE("streams that follow each other are one, and one that is busy is left alone") {
  const Planted planted;
  const Driver driver;
  const Context context(driver, 0);
  StreamHandle first = nullptr;
  {
    const Stream stream(context);
    first = stream.handle();
  }
  const DeviceMemory to(context, 1 << 20);
  const PinnedMemory from(context, to.size(), -1);
  {
    const Stream again(context);
    CHECK(again.handle() == first);
    driver.check(driver.cuMemcpyHtoDAsync(to.address(), from.data(), to.size(), again.handle()), "copy");
  }
  const Stream stream(context);
  CHECK(stream.done());
}

TEST_CASE("no stream waits in the hardware queue of a kernel that holds SMs, unless there are few queues") {
  const char* const source = R"(__global__ void elbow_hold(volatile unsigned* stop, unsigned* where) {}
                                __global__ void elbow_small(unsigned* count) {})";
  // Whether a kernel in each of 20 streams ends while the first stream holds an SM and has an event behind that.
  const auto all_end = [&] {
    const Planted planted;
    const Driver driver;
    const Context context(driver, 0);
    const Module module(context, Compiler({kStandIn}).compile(source, 90));
    const auto shared = static_cast<unsigned>(context.facts().shared_memory);
    const DeviceMemory memory(context, 8);
    auto* const stop = reinterpret_cast<std::uint32_t*>(memory.address());
    *stop = 0;
    DevicePointer stop_address = memory.address(), where = memory.address() + 4;
    void* arguments[] = {&stop_address, &where};
    const auto launch = [&](const char* name, unsigned bytes, const Stream& stream) {
      driver.check(
          driver.cuLaunchKernel(module.function(name), 1, 1, 1, 1, 1, 1, bytes, stream.handle(), arguments, nullptr),
          name);
    };
    std::deque<Stream> streams;
    launch("elbow_small", 0, streams.emplace_back(context));
    streams.front().synchronize();
    launch("elbow_hold", shared, streams.front());
    Event behind(context);
    behind.record(streams.front());
    bool all = true;
    for (int i = 0; i < 20; ++i) {
      launch("elbow_small", 0, streams.emplace_back(context));
      for (int asked = 0; asked < 100 && !streams.back().done(); ++asked) continue;
      all = all && streams.back().done();
    }
    *stop = 1;
    for (const Stream& stream : streams) stream.synchronize();
    return all;
  };
  unsetenv(kConnections);
  CHECK(all_end());
  setenv(kConnections, "8", 1);
  CHECK_FALSE(all_end());
  unsetenv(kConnections);
}

TEST_CASE("operations of a graph are submitted by one call, and a driver without graphs makes none") {
  const Planted planted(R"({"submit_s": 1e-3, "query_s": 0, "rates": {"h2d": 1e12}})");
  const Driver driver;
  const Context context(driver, 0);
  const DeviceMemory to(context, 4096);
  const PinnedMemory from(context, to.size(), -1);
  const auto copies = [&](const Stream& stream) {
    for (int i = 0; i < 10; ++i) {
      driver.check(driver.cuMemcpyHtoDAsync(to.address(), from.data(), to.size(), stream.handle()), "copy");
    }
  };
  const auto graph = Graph::capture(context, copies);
  REQUIRE(graph != nullptr);
  const Stream stream(context);
  Event begin(context), end(context);
  const auto seconds = [&](const auto& submit) {
    begin.record(stream);
    submit();
    end.record(stream);
    stream.synchronize();
    return end.seconds_since(begin);
  };
  CHECK(seconds([&] { copies(stream); }) == doctest::Approx(10e-3).epsilon(0.01));
  CHECK(seconds([&] { graph->launch(stream); }) == doctest::Approx(1e-3).epsilon(0.01));
  const Planted old("{}", kFolder + "/stand_in_old");
  const Driver without;
  const Context there(without, 0);
  CHECK(Graph::capture(there, [](const Stream&) {}) == nullptr);
}

TEST_CASE("a driver that is too old is refused with both versions") {
  const Planted planted(R"({"driver_version": 10020})");
  CHECK(refusal([] { Driver driver; }).first == "the driver supports CUDA 10.2, and 11.0 or newer is needed");
}

TEST_CASE("a driver without a device is refused") {
  const Planted planted(R"({"devices": 0})");
  CHECK(refusal([] { Driver driver; }).first == "the driver finds no device");
}

TEST_CASE("an old driver works without batch copies and graphs") {
  const Planted planted("{}", kFolder + "/stand_in_old");
  const Driver driver;
  const bool batch_copies = driver.cuMemcpyBatchAsync != nullptr;
  CHECK_FALSE(batch_copies);
  CHECK(device_facts(driver, 0).name == "stand-in");
}

TEST_CASE("the facts of a device") {
  const Planted planted(R"({"sms": 132, "memory": 1000000})");
  const Driver driver;
  const DeviceFacts facts = device_facts(driver, 0);
  CHECK(facts.name == "stand-in");
  CHECK(facts.pci == "ffff:ff:00.0");
  CHECK(facts.sms == 132);
  CHECK(facts.capability == 90);
  CHECK(facts.memory == 1000000);
  CHECK(facts.node == -1);
  CHECK_THROWS_WITH_AS(device_facts(driver, 1),
                       "device 1: CUDA_ERROR_INVALID_DEVICE (planted in the stand-in, or a wrong call)", GpuError);
}

TEST_CASE("a busy device is one sentence with CUDA's name") {
  const Planted planted(R"({"busy": true})");
  const Driver driver;
  try {
    const Context context(driver, 0);
    FAIL("the device is busy");
  } catch (const GpuError& error) {
    CHECK(error.code() == kDeviceUnavailable);
    CHECK(has(error.what(), "a context on device 0: CUDA_ERROR_DEVICE_UNAVAILABLE"));
    CHECK_FALSE(error.lost());
  }
}

TEST_CASE("too much device memory is an error, and what was taken is given back") {
  const Planted planted(R"({"memory": 1000})");
  const Driver driver;
  const Context context(driver, 0);
  CHECK_THROWS_AS(DeviceMemory(context, 1001), GpuError);
  { const DeviceMemory memory(context, 1000); }
  const DeviceMemory again(context, 1000);
  CHECK(is_plain_device_memory(context, again.address()));
}

TEST_CASE("pinned memory is on its node, and no device memory") {
  const Planted planted;
  const Driver driver;
  const Context context(driver, 0);
  const PinnedMemory memory(context, 1 << 20, 0);
  const double share = memory.share_on(0);
  CHECK((share == 1 || share < 0));
  CHECK_FALSE(is_plain_device_memory(context, memory.address()));
  CHECK_THROWS(PinnedMemory(context, 4096, 1023));
}

TEST_CASE("pinned memory that is refused is an error") {
  const Planted planted(R"({"pinned_refused": true})");
  const Driver driver;
  const Context context(driver, 0);
  CHECK_THROWS_AS(PinnedMemory(context, 4096, -1), GpuError);
}

TEST_CASE("a copy takes its planted time and moves its bytes") {
  const Planted planted(R"({"submit_s": 0, "rates": {"h2d": 1e9}})");
  const Driver driver;
  const Context context(driver, 0);
  const Stream stream(context);
  PinnedMemory from(context, 1 << 20, -1);
  const DeviceMemory to(context, 1 << 20);
  Event begin(context), end(context);
  std::memset(from.data(), 7, from.size());
  begin.record(stream);
  driver.check(driver.cuMemcpyHtoDAsync(to.address(), from.data(), to.size(), stream.handle()), "copy");
  end.record(stream);
  CHECK_FALSE(end.done());
  stream.synchronize();
  CHECK(end.done());
  CHECK(end.seconds_since(begin) == doctest::Approx(1.048576e-3).epsilon(1e-6));
  CHECK(*reinterpret_cast<char*>(to.address()) == 7);
}

TEST_CASE("a device that is lost says so in every call") {
  const Planted planted(R"({"lost_after": 1})");
  const Driver driver;
  const Context context(driver, 0);
  const Stream stream(context);
  Event event(context);
  try {
    event.record(stream);
    stream.synchronize();
    FAIL("the device is lost");
  } catch (const GpuError& error) {
    CHECK(error.lost());
  }
}

TEST_CASE("kernels are compiled and found by name") {
  const Planted planted;
  const Driver driver;
  const Context context(driver, 0);
  const Compiler compiler({kStandIn});
  CHECK(compiler.version() == "12.8");
  const Module module(context, compiler.compile(kSource, 90));
  CHECK(module.function("elbow_small") != nullptr);
  CHECK_THROWS_AS(module.function("elbow_large"), GpuError);
}

TEST_CASE("the compiler's first message is the reason") {
  const Planted planted;
  const Compiler compiler({kStandIn});
  CHECK(refusal([&] { compiler.compile("int x;", 90); }).first ==
        "NVRTC 12.8 cannot compile for compute capability 9.0: elbowroom.cu(1): error: no kernel");
  const Planted unknown(R"({"no_compiler": true})");
  CHECK(has(refusal([&] { compiler.compile(kSource, 120); }).first, "compute capability 12.0: nvrtc: error: invalid"));
}

TEST_CASE("absent libraries have their hint, and folders are searched first") {
  CHECK(refusal([] { Library({"/nowhere/libnvrtc.so"}, "install it"); }).second == "install it");
  CHECK(BlasLibrary::find({kStandIn}) == kStandIn + "/libcublasLt.so.12");
}

TEST_CASE("a product takes its planted time, less on fewer SMs, and zeros are faster") {
  const Planted planted(R"({"sms": 8, "kernels": {"gemm": 1e-3, "gemm_target": 1e-3}})");
  const Driver driver;
  const Context context(driver, 0);
  const BlasLibrary blas(context, {kStandIn});
  const Stream stream(context);
  const DeviceMemory memory(context, 3 * 2 * 64 * 64);
  std::memset(reinterpret_cast<void*>(memory.address()), 1, memory.size());
  const auto seconds = [&](int target) {
    const Gemm gemm(context, blas, {64, 64, 64, target}, memory.address(), memory.address(), memory.address());
    Event begin(context), end(context);
    begin.record(stream);
    gemm.launch(stream);
    end.record(stream);
    stream.synchronize();
    return end.seconds_since(begin);
  };
  CHECK(seconds(0) == doctest::Approx(1e-3));
  CHECK(seconds(4) == doctest::Approx(2e-3));
  std::memset(reinterpret_cast<void*>(memory.address()), 0, memory.size());
  CHECK(seconds(0) == doctest::Approx(1e-3 / 1.13));
}

TEST_CASE("a shape that cuBLASLt does not take is refused with a hint") {
  const Planted planted;
  const Driver driver;
  const Context context(driver, 0);
  const BlasLibrary blas(context, {kStandIn});
  CHECK(has(refusal([&] { Gemm(context, blas, {7, 8, 8, 0}, 0, 0, 0); }).second, "multiples of 8"));
}

TEST_CASE("NVML tells link, clocks and the other processes") {
  const Planted planted(R"({"processes": [4711], "link_width": 8})");
  const Management management;
  const ManagementFacts facts = management.facts("ffff:ff:00.0", false);
  CHECK(facts.driver == "0.0 (stand-in)");
  CHECK(facts.now.link_width == std::optional<unsigned>(8));
  CHECK(facts.link_width_max == std::optional<unsigned>(16));
  CHECK(facts.now.sm_mhz == std::optional<unsigned>(1700));
  REQUIRE(facts.processes.has_value());
  CHECK(*facts.processes == std::vector<unsigned>{4711});
  CHECK_THROWS_AS(management.facts("0000:00:00.0", false), Unavailable);
}

TEST_CASE("NVML tells power and why clocks are low") {
  const Planted planted(R"({"power_w": 612.5, "throttle": 5})");
  const DeviceReading reading = Management().reading("ffff:ff:00.0");
  CHECK(reading.power_w == std::optional(612.5));
  CHECK(reading.throttle == std::optional(std::vector<std::string>{"power_cap"}));
}

TEST_CASE(
    "other processes are all until this one has a context, then those of other ids, which a container does not know") {
  using Ids = std::vector<unsigned>;
  CHECK(others_of({{7, 8}, 7, true, true}) == std::optional(Ids{8}));
  CHECK(others_of({{7, 8}, 7, true, false}) == std::optional(Ids{7, 8}));
  CHECK(others_of({{4007, 8}, 7, false, false}) == std::optional(Ids{4007, 8}));
  CHECK_FALSE(others_of({{4007, 8}, 7, false, true}).has_value());
}
