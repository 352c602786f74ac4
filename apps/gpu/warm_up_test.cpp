#include "warm_up.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test_run.hpp"

using namespace elbowroom;
using namespace elbowroom::gpu_bench;
using nlohmann::json;

namespace {

const char* const kTriad = R"({"a": {"kind": "triad", "bytes": 98304}})";

// Phases that WarmUp takes for a triad, with these clocks read one after the other (the last one again and again).
class Warmed {
 public:
  std::size_t phases(const std::vector<unsigned>& clocks) {
    clocks_ = clocks;
    read_ = 0;
    CaseLoads loads(maker_, request_.cases[0], peaks_);
    warm_up_.run(loads, {0.0005, 1, {}});
    noted_ = !loads.flags().empty();
    return read_;
  }
  bool noted() const { return noted_; }

 private:
  Request request_ =
      parse_request(R"({"libraries": [")" + stand_in_folder() + R"(/stand_in"], "cases": [)" + kTriad + "]}");
  gpu::Driver driver_;
  gpu::Context context_{driver_, 0};
  Maker maker_{context_, request_};
  Peaks peaks_;
  std::vector<unsigned> clocks_;
  std::size_t read_ = 0;
  bool noted_ = false;
  WarmUp warm_up_{[this] {
    gpu::DeviceReading reading;
    reading.sm_mhz = clocks_[std::min(read_++, clocks_.size() - 1)];
    return reading;
  }};
};

}  // namespace

TEST_CASE("trap: rates are measured after clocks and link have risen") {
  const Planted planted(R"({"rise_s": 0.02, "kernels": {"elbow_triad": 1e-4}})");
  const auto lines = run_cases(kTriad);
  for (const json& line : lines) {
    if (!line.contains("phase")) continue;
    CHECK(line["a"]["rate"].get<double>() == doctest::Approx(98304 / 1e-4 * 1e-6).epsilon(0.005));
    CHECK(line["sm_mhz"] == 1700);
    CHECK(line["link"]["generation"] == 5);
  }
}

TEST_CASE("the loads run until the clock stays, and once only where it is as it was") {
  const Planted planted;
  Warmed warmed;
  CHECK(warmed.phases({300, 900, 1500, 1700}) == 7);
  CHECK(warmed.phases({1705}) == 1);
  CHECK(warmed.phases({1500}) == 4);
  CHECK_FALSE(warmed.noted());
}

TEST_CASE("a clock that never stays is noted") {
  const Planted planted;
  std::vector<unsigned> clocks;
  for (unsigned i = 0; i < 30; ++i) clocks.push_back(1000 + 100 * (i % 2));
  Warmed warmed;
  CHECK(warmed.phases(clocks) == WarmUp::kMostPhases);
  CHECK(warmed.noted());
}

TEST_CASE("every phase has power, and the reasons why clocks are low") {
  const Planted planted(R"({"power_w": 699, "throttle": 4})");
  const json line = run_cases(kTriad).at(1);
  CHECK(line["power_w"] == 699);
  CHECK(line["throttle"] == json({"power_cap"}));
}

TEST_CASE("phases that are too short for a device are flagged, and those of a stand-in are not") {
  {
    const Planted planted;
    CHECK(results(run_cases(kTriad)).at(0)["flags"].empty());
  }
  const Planted planted(R"({"name": "NVIDIA H100"})");
  const json flags = results(run_cases(kTriad)).at(0)["flags"];
  REQUIRE(flags.size() == 1);
  CHECK(flags[0] == "phases of 0.002 s are shorter than the 0.5 s that a device needs for figures that repeat");
}
