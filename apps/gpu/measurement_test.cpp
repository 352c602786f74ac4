// Rates and shares that the stand-in plants are recovered, and what cannot be measured is n/a while the rest goes on.
#include "measurement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "load_kinds.hpp"
#include "machine/machine.hpp"
#include "test_run.hpp"

using namespace elbowroom;
using namespace elbowroom::gpu_bench;
using nlohmann::json;

namespace {

constexpr double kTwoPoints = 0.02;

const char* const kTriad = R"({"kind": "triad", "bytes": 98304})";
const char* const kGemm = R"({"kind": "gemm", "m": 64, "n": 64, "k": 64})";
const char* const kChain = R"({"kind": "chain", "launches": 5})";

std::string copy(const std::string& direction) {
  return R"({"kind": "copy", "bytes": 1048576, "direction": ")" + direction + "\"}";
}

std::string held(const char* kind, int sms) {
  const std::string bytes = std::string(kind) == "sm_copy" ? R"(, "bytes": 1048576)" : "";
  return std::string(R"({"kind": ")") + kind + R"(", "sms": )" + std::to_string(sms) + bytes + "}";
}

std::string beside(const std::string& a, const std::string& b, const std::string& more = "") {
  return R"({"a": )" + a + R"(, "b": )" + b + more + "}";
}

std::string plant(const std::string& victim, const std::string& mover, double kept) {
  return R"({"interference": [{"victim": ")" + victim + R"(", "mover": ")" + mover + R"(", "kept": )" +
         std::to_string(kept) + "}]}";
}

std::string allowed_core() {
  for (const elbowroom::CoreInfo& core : elbowroom::Machine::here().cores()) {
    if (core.allowed) return std::to_string(core.number);
  }
  return "0";
}

json result_of(const std::string& one) {
  const std::vector<json> all = results(run_cases(one));
  REQUIRE(all.size() == 1);
  return all[0];
}

}  // namespace

TEST_CASE("copies alone have their planted rates") {
  const Planted planted(R"({"rates": {"h2d": 20e9, "d2h": 10e9, "d2d": 40e9}})");
  const auto all = results(run_cases(R"({"a": )" + copy("h2d") + R"(}, {"a": )" + copy("d2h") + R"(}, {"a": )" +
                                     copy("both") + R"(}, {"a": )" + copy("d2d") + "}"));
  REQUIRE(all.size() == 4);
  const double rates[] = {20e3, 10e3, 30e3, 40e3};
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(all[i].dump());
    CHECK(all[i]["status"] == "ok");
    CHECK(all[i]["a"]["engine"] == "copy engine");
    CHECK(all[i]["a"]["alone"].get<double>() == doctest::Approx(rates[i]).epsilon(0.005));
  }
}

TEST_CASE("small copies are timed several at once") {
  const Planted planted(R"({"rates": {"h2d": 1e9}})");
  const json result = result_of(R"({"a": {"kind": "copy", "bytes": 4096}})");
  CHECK(result["a"]["alone"].get<double>() == doctest::Approx(1e3).epsilon(0.005));
}

TEST_CASE("the planted share is recovered within 2 points for each victim and mover") {
  struct Pair {
    const char* victim_name;
    std::string victim;
    const char* mover_name;
    std::string mover;
  };
  const std::vector<Pair> pairs = {
      {"elbow_triad", kTriad, "h2d", copy("h2d")},
      {"elbow_triad", kTriad, "d2h", copy("d2h")},
      {"elbow_triad", kTriad, "d2d", copy("d2d")},
      {"elbow_triad", kTriad, "elbow_hold", held("sm_idle", 4)},
      {"elbow_triad", kTriad, "elbow_copy", held("sm_copy", 4)},
      {"gemm", kGemm, "d2h", copy("d2h")},
      {"gemm", kGemm, "elbow_hold", held("sm_idle", 2)},
      {"gemm", kGemm, "elbow_copy", held("sm_copy", 2)},
      {"elbow_small", kChain, "h2d", copy("h2d")},
      {"h2d", copy("h2d"), "d2h", copy("d2h")},
  };
  for (const Pair& pair : pairs) {
    const Planted planted(plant(pair.victim_name, pair.mover_name, 0.62));
    const json result = result_of(beside(pair.victim, pair.mover));
    CAPTURE(result.dump());
    CHECK(result["status"] == "ok");
    CHECK(std::abs(result["a"]["kept"].get<double>() - 0.62) < kTwoPoints);
  }
}

TEST_CASE("what is not planted keeps all, on both sides") {
  const Planted planted;
  const json result = result_of(beside(kTriad, copy("both")));
  CHECK(std::abs(result["a"]["kept"].get<double>() - 1) < kTwoPoints);
  CHECK(std::abs(result["b"]["kept"].get<double>() - 1) < kTwoPoints);
}

TEST_CASE("a mover that copies by SMs has its planted rate, or the pace that it is given") {
  const Planted planted(R"({"rates": {"elbow_copy_per_sm": 2e9}})");
  const auto all = results(run_cases(R"({"a": {"kind": "sm_copy", "sms": 3, "bytes": 1000000}},
                                        {"a": {"kind": "sm_copy", "sms": 3, "bytes": 1000000, "pace_mb_s": 1500}},
                                        {"a": {"kind": "sm_copy", "sms": 2, "bytes": 1000000, "direction": "host", "node": 0}})"));
  REQUIRE(all.size() == 3);
  CHECK(all[0]["a"]["alone"].get<double>() == doctest::Approx(6e3).epsilon(0.02));
  CHECK(all[1]["a"]["alone"].get<double>() == doctest::Approx(1.5e3).epsilon(0.02));
  CHECK(all[2]["a"]["alone"].get<double>() == doctest::Approx(4e3).epsilon(0.02));
}

TEST_CASE("a product that is planned for half of the SMs takes twice the time") {
  const Planted planted(R"({"sms": 8})");
  const auto all = results(run_cases(std::string(R"({"a": )") + kGemm +
                                     R"(}, {"a": {"kind": "gemm", "m": 64, "n": 64, "k": 64, "sm_target": 4}})"));
  REQUIRE(all.size() == 2);
  CHECK(all[1]["a"]["alone"].get<double>() == doctest::Approx(all[0]["a"]["alone"].get<double>() / 2).epsilon(0.005));
}

TEST_CASE("a product beside SMs that it is planned without keeps the planned share, alone and together") {
  const Planted planted(R"({"sms": 8})");
  const json result = result_of(beside(kGemm, R"({"kind": "sm_target", "sms": 4})"));
  CHECK(result["status"] == "ok");
  CHECK(std::abs(result["a"]["kept"].get<double>() - 0.5) < kTwoPoints);
  CHECK(result_of(beside(kGemm, R"({"kind": "sm_target", "sms": 8})"))["status"] == "n/a");
}

TEST_CASE("a product beside held SMs is planned for the others where that is asked for, and for all SMs alone") {
  const Planted planted(R"({"sms": 8})");
  for (const char* const kind : {"sm_idle", "sm_copy"}) {
    const std::string mover = held(kind, 4);
    const json for_all = result_of(beside(kGemm, mover));
    const json for_others = result_of(beside(kGemm, mover.substr(0, mover.size() - 1) + R"(, "plan_others": true})"));
    CHECK(std::abs(for_all["a"]["kept"].get<double>() - 1) < kTwoPoints);
    CHECK(std::abs(for_others["a"]["kept"].get<double>() - 0.5) < kTwoPoints);
    CHECK(for_others["a"]["alone"].get<double>() ==
          doctest::Approx(for_all["a"]["alone"].get<double>()).epsilon(0.005));
  }
}

TEST_CASE("SMs are held in pairs by kernels with clusters of two") {
  const char* const kernels[][2] = {{"sm_idle", "elbow_hold_pairs"}, {"sm_copy", "elbow_copy_pairs"}};
  for (const auto& [kind, kernel] : kernels) {
    const Planted planted(plant("elbow_triad", kernel, 0.62));
    const std::string mover = held(kind, 4);
    const json in_pairs = result_of(beside(kTriad, mover.substr(0, mover.size() - 1) + R"(, "pairs": true})"));
    CHECK(in_pairs["status"] == "ok");
    CHECK(std::abs(in_pairs["a"]["kept"].get<double>() - 0.62) < kTwoPoints);
    CHECK(std::abs(result_of(beside(kTriad, mover))["a"]["kept"].get<double>() - 1) < kTwoPoints);
  }
}

TEST_CASE("a device without clusters holds SMs one by one only") {
  const Planted planted(R"({"capability": 89})");
  const auto all = results(run_cases(R"({"a": {"kind": "sm_idle", "sms": 4, "pairs": true}},
                                        {"a": {"kind": "sm_idle", "sms": 4}})"));
  CHECK(all[0]["status"] == "n/a");
  CHECK(all[0]["reason"].get<std::string>().find("which need compute capability 9.0") != std::string::npos);
  CHECK(all[1]["status"] == "ok");
}

TEST_CASE("buffers that cases share are cleared before each, so that their check is of this case") {
  const Planted planted;
  const auto all = results(run_cases(R"({"a": )" + copy("h2d") + R"(}, {"a": )" + copy("h2d") + R"(}, {"a": )" +
                                     copy("d2h") + R"(}, {"a": )" + copy("d2h") + "}"));
  for (const json& result : all) CHECK(result["status"] == "ok");
  const gpu::Driver driver;
  const gpu::Context context(driver, 0);
  Work work;
  work.bytes = 65536;
  const auto load = make_copy(context, work, Direction::h2d);
  load->warm();
  CHECK(load->check() == "");
  load->clear();
  CHECK(load->check() != "");
}

TEST_CASE("a chain reports the median and the 99th percentile of a launch") {
  const Planted planted(R"({"kernels": {"elbow_small": 4e-6}})");
  const auto lines = run_cases(std::string(R"({"a": )") + kChain + "}");
  CHECK(lines[1]["a"]["p50_us"].get<double>() == doctest::Approx(4).epsilon(0.01));
  CHECK(lines[1]["a"]["p99_us"].get<double>() == doctest::Approx(4).epsilon(0.01));
}

TEST_CASE("phases are interleaved within each repetition, and every sample is printed with the clock") {
  const Planted planted;
  const auto lines = run_cases(beside(kTriad, copy("h2d"), R"(, "first": "b")"));
  std::vector<std::string> phases;
  for (const json& line : lines) {
    if (!line.contains("phase")) continue;
    phases.push_back(line["phase"]);
    CHECK(line["sm_mhz"] == 1700);
  }
  const std::vector<std::string> one = {"a", "b", "together", "together", "b", "a"};
  std::vector<std::string> two = one;
  two.insert(two.end(), one.begin(), one.end());
  CHECK(phases == two);
  CHECK(lines[0]["gpu"]["stand_in"] == true);
}

TEST_CASE("copies run beside the probe's kernels on computing cores") {
  const Planted planted(R"({"virtual_clock": false, "rates": {"h2d": 1e9}})");
  for (const char* const kernel : {"prime", "triad", "memset_nt", "polling"}) {
    const json result = result_of(
        beside(copy("h2d"), std::string(R"({"kind": "cores", "bytes": 3145728, "cores": [)" + allowed_core() + R"(],
      "kernel": ")") + kernel + "\"}"));
    CAPTURE(result.dump());
    CHECK(result["status"] == "ok");
    CHECK(result["b"]["alone"].get<double>() > 0);
    CHECK(result["b"]["kept"].get<double>() > 0);
    CHECK(result["b"]["unit"] == (std::string(kernel) == "prime" || std::string(kernel) == "polling" ? "M/s" : "MB/s"));
  }
}

TEST_CASE("a case that is not possible is n/a with the reason, and the next one is measured") {
  const Planted planted(R"({"sms": 8, "memory": 4194304})");
  const auto all = results(run_cases(held("sm_idle", 9).insert(0, R"({"a": )") + "}, " +
                                     R"({"a": {"kind": "copy", "bytes": 8388608}},
                                        {"a": {"kind": "cores", "cores": [4095]}},
                                        {"a": {"kind": "copy", "node": 1000}},
                                        {"a": )" +
                                     copy("h2d") + "}"));
  REQUIRE(all.size() == 5);
  CHECK(all[0]["reason"] == "9 SMs would be held, but the device has 8");
  CHECK(all[1]["reason"].get<std::string>().find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos);
  CHECK(all[2]["reason"] == "core 4095 does not exist or may not be used");
  CHECK(all[3]["reason"].get<std::string>().find("NUMA node 1000") != std::string::npos);
  CHECK(all[4]["status"] == "ok");
}

TEST_CASE("pinned memory that is refused is n/a with a hint") {
  const Planted planted(R"({"pinned_refused": true})");
  const json result = result_of(R"({"a": )" + copy("h2d") + "}");
  CHECK(result["status"] == "n/a");
  CHECK(result["reason"].get<std::string>().find("CUDA_ERROR_NOT_PERMITTED") != std::string::npos);
  CHECK(result["hint"].get<std::string>().find("ulimit") != std::string::npos);
}

TEST_CASE("without compiler or cuBLASLt, kernels are n/a and copies go on") {
  const Planted planted(R"({"no_compiler": true})");
  const auto all = results(run_cases(std::string(R"({"a": )") + kTriad + R"(}, {"a": )" + copy("h2d") + "}"));
  REQUIRE(all.size() == 2);
  CHECK(all[0]["status"] == "n/a");
  CHECK(all[0]["hint"].get<std::string>().find("elbowroom[cuda]") != std::string::npos);
  CHECK(all[1]["status"] == "ok");
  CHECK(all[1]["a"]["engine"].get<std::string>().find("unknown: NVRTC") == 0);
}

TEST_CASE("a device that is lost in a case is n/a for it and for all that follow") {
  const Planted planted(R"({"lost_after": 60})");
  const auto all = results(run_cases(R"({"a": )" + copy("h2d") + R"(}, {"a": )" + copy("h2d") + "}"));
  REQUIRE(all.size() == 2);
  CHECK(all[0]["status"] == "n/a");
  CHECK(all[1]["reason"].get<std::string>().find("the device was lost in case 0") == 0);
}

TEST_CASE("a device that is busy, or no driver, makes every case n/a") {
  const Planted planted(R"({"busy": true})");
  const json busy = result_of(R"({"a": )" + copy("h2d") + "}");
  CHECK(busy["reason"].get<std::string>().find("CUDA_ERROR_DEVICE_UNAVAILABLE") != std::string::npos);
  CHECK(busy["hint"].get<std::string>().find("exclusive mode") != std::string::npos);
  setenv("ELBOWROOM_CUDA", "/nowhere/libcuda.so.1", 1);
  const auto lines = run_cases(R"({"a": )" + copy("h2d") + "}");
  CHECK(lines[0]["gpu"].contains("unknown"));
  CHECK(results(lines)[0]["status"] == "n/a");
}
