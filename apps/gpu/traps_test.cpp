// Each trap is planted in the stand-in, and seen by the check that was written for it.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "buffers.hpp"
#include "engine.hpp"
#include "holders.hpp"
#include "kernels.hpp"
#include "load_kinds.hpp"
#include "test_run.hpp"

using namespace elbowroom;
using namespace elbowroom::gpu_bench;
using nlohmann::json;

namespace {

struct Opened {
  gpu::Driver driver;
  gpu::Context context{driver, 0};
  Kernels kernels{context, {stand_in_folder() + "/stand_in"}};
};

Work d2d(const char* engine) {
  Work work;
  work.direction = "d2d";
  work.engine = engine;
  return work;
}

json only_result(const std::string& one) { return results(run_cases(one)).at(0); }

}  // namespace

TEST_CASE("trap: a plain copy inside the device is made by SMs, a batch copy by a copy engine") {
  const Planted planted;
  const Opened opened;
  CHECK(prove_engine(opened.kernels, d2d("plain"), Direction::d2d, 0.05) == "SMs");
  CHECK(prove_engine(opened.kernels, d2d("batch"), Direction::d2d, 10) == "copy engine");
  CHECK(prove_engine(opened.kernels, Work{}, Direction::h2d, 10) == "copy engine");
}

TEST_CASE("trap: a batch copy that SMs make after all voids its case") {
  const Planted planted(R"({"batch_on_sms": true})");
  const json result = only_result(R"({"a": {"kind": "triad", "bytes": 98304},
                                      "b": {"kind": "copy", "direction": "d2d", "bytes": 1048576}})");
  CHECK(result["status"] == "void");
  CHECK(result["b"]["engine"] == "SMs");
  CHECK_FALSE(result["a"].contains("kept"));
  CHECK(result["flags"][0] == "void: the copy was meant for a copy engine, and SMs made it");
}

TEST_CASE("trap: a plain copy that is asked for as such is no error, and is named") {
  const Planted planted;
  const json result =
      only_result(R"({"a": {"kind": "copy", "direction": "d2d", "engine": "plain", "bytes": 1048576}})");
  CHECK(result["status"] == "ok");
  CHECK(result["a"]["engine"] == "SMs");
}

TEST_CASE("trap: a driver without batch copies has no copies inside the device by a copy engine") {
  const Planted planted("{}", "stand_in_old");
  const json result = only_result(R"({"a": {"kind": "copy", "direction": "d2d", "bytes": 1048576}})");
  CHECK(result["status"] == "n/a");
  CHECK(result["reason"].get<std::string>().find("has no cuMemcpyBatchAsync") != std::string::npos);
}

TEST_CASE("trap: a stop flag in host memory is refused") {
  const Planted planted;
  const Opened opened;
  const gpu::PinnedMemory host(opened.context, 4096, -1);
  const gpu::DeviceMemory device(opened.context, 4096);
  CHECK_THROWS_AS(require_device_flag(opened.context, host.address()), gpu::Unavailable);
  CHECK_NOTHROW(require_device_flag(opened.context, device.address()));
}

TEST_CASE("trap: holders that share an SM are flagged") {
  const Planted planted(R"({"holders_share": true})");
  const json result = only_result(R"({"a": {"kind": "sm_idle", "sms": 4}})");
  REQUIRE(result["flags"].size() == 1);
  CHECK(result["flags"][0] == "blocks that were to hold 4 SMs shared some");
}

TEST_CASE("trap: kernels are loaded before anything holds SMs") {
  const Planted planted;
  const json result = only_result(R"({"a": {"kind": "triad", "bytes": 98304}, "b": {"kind": "sm_idle", "sms": 4},
                                      "first": "b"})");
  CHECK(result["status"] == "ok");
}

TEST_CASE("trap: a side that starts after all SMs are held does not get on, which is one sentence") {
  const Planted planted(R"({"sms": 4})");
  const auto all = results(run_cases(R"({"a": {"kind": "triad", "bytes": 98304}, "b": {"kind": "sm_idle", "sms": 4},
                                         "first": "b"},
                                        {"a": {"kind": "triad", "bytes": 98304}})"));
  REQUIRE(all.size() == 2);
  CHECK(all[0]["reason"] == "a load did not start: the other side holds what it needs");
  CHECK(all[1]["status"] == "ok");
}

TEST_CASE("trap: data that are zeros are seen") {
  const Planted planted;
  const Opened opened;
  const gpu::DeviceMemory memory(opened.context, 65536);
  for (const Content content : {Content::bytes, Content::reals, Content::brains}) {
    fill_device(opened.context, memory.address(), memory.size(), content, 1);
    CHECK(check_not_zeros(opened.context, memory.address(), memory.size()) == "");
  }
  std::memset(reinterpret_cast<void*>(memory.address()), 0, memory.size());
  CHECK(check_not_zeros(opened.context, memory.address(), memory.size()).find("zeros") != std::string::npos);
}

TEST_CASE("trap: a copy that did not move its bytes is seen") {
  const Planted planted;
  const Opened opened;
  const gpu::DeviceMemory memory(opened.context, 100000);
  fill_device(opened.context, memory.address(), memory.size(), Content::bytes, 1);
  CHECK(check_device(opened.context, memory.address(), memory.size(), Content::bytes, 1) == "");
  reinterpret_cast<char*>(memory.address())[memory.size() - 1] ^= 1;
  CHECK(check_device(opened.context, memory.address(), memory.size(), Content::bytes, 1) != "");
}
