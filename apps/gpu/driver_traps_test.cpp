// Traps of a driver and its device, which the stand-in has always or plants, and which no case falls into.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "test_run.hpp"

using namespace elbowroom::gpu_bench;
using nlohmann::json;

namespace {

const char* const kTriad = R"({"kind": "triad", "bytes": 98304})";
const char* const kChain = R"({"kind": "chain", "launches": 50})";
const char* const kSmallCopy = R"({"kind": "copy", "bytes": 4096})";
const char* const kControl = R"({"kind": "control"})";

std::string beside(const std::string& a, const std::string& b) { return R"({"a": )" + a + R"(, "b": )" + b + "}"; }

std::string idle(int sms) { return R"({"kind": "sm_idle", "sms": )" + std::to_string(sms) + "}"; }

json only_result(const std::string& one, const std::string& options = "") {
  return results(run_cases(one, options)).at(0);
}

double kept(const json& result, const char* side) { return result[side]["kept"].get<double>(); }

bool flagged(const json& result, const std::string& text) {
  for (const auto& flag : result["flags"]) {
    if (flag.get<std::string>().find(text) != std::string::npos) return true;
  }
  return false;
}

std::string reason(const json& result) { return result["reason"].get<std::string>(); }

}  // namespace

TEST_CASE("trap: no kernel waits in the hardware queue of one that holds SMs, however many cases there were") {
  const Planted planted;
  std::string cases;
  for (int sms = 1; sms < 8; ++sms) cases += (sms > 1 ? ", " : "") + beside(kTriad, idle(sms));
  for (const json& result : results(run_cases(cases))) {
    CAPTURE(result.dump());
    CHECK(result["status"] == "ok");
  }
}

TEST_CASE("trap: a number of hardware queues that the user has set is named where a load does not get on") {
  const Planted planted(R"({"sms": 4})");
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
  const json result = only_result(R"({"a": {"kind": "triad", "bytes": 98304}, "b": )" + idle(4) + R"(, "first": "b"})");
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  CHECK(result["hint"].get<std::string>().find("unset CUDA_DEVICE_MAX_CONNECTIONS, which is 4") != std::string::npos);
}

TEST_CASE("trap: small operations keep their rates beside each other, although submitting one takes longer than it") {
  const Planted planted(R"({"submit_s": 5e-6, "rates": {"h2d": 4e9}})");
  const json result = only_result(beside(kChain, kSmallCopy));
  CHECK(kept(result, "a") == doctest::Approx(1).epsilon(0.01));
  CHECK(kept(result, "b") == doctest::Approx(1).epsilon(0.01));
  CHECK(result["a"]["alone"].get<double>() == doctest::Approx(1 / 3e-6).epsilon(0.01));
  CHECK(result["b"]["alone"].get<double>() == doctest::Approx(4e3).epsilon(0.01));
}

TEST_CASE("trap: without graphs small operations are measured, and flagged") {
  const Planted planted("{}", "stand_in_old");
  const json result = only_result(std::string(R"({"a": )") + kChain + "}");
  CHECK(result["status"] == "ok");
  CHECK(flagged(result, "makes no graph"));
}

TEST_CASE("trap: beside a control, which only asks an event, every load keeps its rate") {
  const Planted planted;
  for (const char* const load : {kTriad, kChain, kSmallCopy}) {
    const json result = only_result(beside(load, kControl));
    CHECK(kept(result, "a") == doctest::Approx(1).epsilon(0.005));
    CHECK_FALSE(flagged(result, "queries"));
  }
}

TEST_CASE("trap: a control that costs the other side something is flagged") {
  const Planted planted(R"({"query_s": 2.5e-4})");
  CHECK(flagged(only_result(beside(kTriad, kControl)), "beside queries of events alone, side a keeps 0."));
}

TEST_CASE("trap: SMs that copy later than they are held have the rate of what is counted") {
  const Planted planted(R"({"copy_lag_s": 1e-3, "rates": {"elbow_copy_per_sm": 2e9},
                            "interference": [{"victim": "elbow_copy", "mover": "elbow_triad", "kept": 0.5}]})");
  const json result = only_result(beside(R"({"kind": "sm_copy", "sms": 3, "bytes": 1000000})", kTriad));
  CHECK(result["a"]["alone"].get<double>() == doctest::Approx(6e3).epsilon(0.005));
  CHECK(kept(result, "a") == doctest::Approx(0.5).epsilon(0.01));
}

TEST_CASE("trap: a kernel that does not end when it is stopped loses the device, with its name, and the rest is n/a") {
  const Planted planted(R"({"stop_ignored": true})");
  const auto all =
      results(run_cases(beside(kTriad, idle(4)) + R"(, {"a": {"kind": "copy"}})", R"(, "patience": 0.05)"));
  REQUIRE(all.size() == 2);
  CHECK(reason(all[0]).find("kernel elbow_hold was stopped, and still holds 4 SMs after 0.05 s") == 0);
  CHECK(reason(all[1]).find("the device was lost in case 0") == 0);
}

TEST_CASE("trap: SMs that never give all their shared memory, or take other than one block, cannot be held") {
  struct Trap {
    const char* settings;
    const char* reason;
  };
  for (const Trap& trap : {Trap{R"({"carveout_ignored": true})", "the driver does not prefer shared memory to cache"},
                           Trap{R"({"blocks_per_sm": 2})", "2 blocks of kernel elbow_hold fit on an SM"},
                           Trap{R"({"blocks_per_sm": 0})", "0 blocks of kernel elbow_hold fit on an SM"}}) {
    const Planted planted(trap.settings);
    const json result = only_result(beside(kTriad, idle(4)));
    CHECK(result["status"] == "n/a");
    CHECK(reason(result).find(trap.reason) == 0);
  }
}

TEST_CASE("trap: SMs are held beside kernels that never leave one idle") {
  const Planted planted;
  CHECK(only_result(beside(kTriad, idle(4)))["status"] == "ok");
  CHECK(only_result(beside(kTriad, R"({"kind": "sm_copy", "sms": 4, "bytes": 1048576})"))["status"] == "ok");
}

TEST_CASE("trap: this process is none of the others on the device, although NVML has another id of it") {
  const Planted planted(R"({"host_pids": true, "processes": [4711]})");
  const json gpu = run_cases(std::string(R"({"a": )") + kTriad + "}").at(0)["gpu"];
  CHECK(gpu["management"]["processes"] == json({4711}));
}

TEST_CASE("trap: a product with wrong values voids its case, also after one that was right") {
  const char* const gemm = R"({"a": {"kind": "gemm", "m": 64, "n": 64, "k": 64}})";
  {
    const Planted planted;
    CHECK(only_result(gemm)["status"] == "ok");
  }
  const Planted planted(R"({"gemm_wrong": true})");
  const json result = only_result(gemm);
  CHECK(result["status"] == "void");
  CHECK(flagged(result, "void: a product has a wrong value"));
}

TEST_CASE("trap: a rate above what the device can do voids its case, with both numbers") {
  const Planted planted(R"({"memory_khz": 1000000, "bus_bits": 64, "kernels": {"elbow_triad": 5e-6}})");
  const json result = only_result(std::string(R"({"a": )") + kTriad + "}");
  CHECK(result["status"] == "void");
  CHECK(flagged(result, "void: 19660.8 MB/s were measured, and the device's peak is 16000 MB/s"));
}
