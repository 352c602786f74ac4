#include "diffusion/answer.hpp"

#include <doctest/doctest.h>

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;

const StepTimes kTimes{{4e-6, 2e-6, 3e-6, 9e-6}, {1e-6, 1e-6, 1e-6, 1e-6}, {2e-6, 2e-6, 2e-6, 2e-6}, {1e-6}, 2e-5};

std::vector<std::string> sides(const json& phase) {
  std::vector<std::string> result;
  for (const char* side : {"comp", "comm", "total", "separator"}) {
    if (phase.contains(side)) {
      result.emplace_back(side);
    }
  }
  return result;
}

TEST_CASE("a variant's phases are those of what it does, and whole steps are of the first") {
  using Sides = std::vector<std::string>;
  const json overlap = phases_of(Variant::overlap, kTimes, true);
  REQUIRE(overlap.size() == 1);
  CHECK(overlap[0]["phase"] == "AB");
  CHECK(sides(overlap[0]) == Sides{"comp", "comm", "total", "separator"});
  const json apart = phases_of(Variant::apart, kTimes, true);
  REQUIRE(apart.size() == 2);
  CHECK(apart[0]["phase"] == "A");
  CHECK(sides(apart[0]) == Sides{"comp", "total", "separator"});
  CHECK(apart[1]["phase"] == "B");
  CHECK(apart[1]["index"] == 1);
  CHECK(apart[1]["measured_s"] == 0);
  CHECK(sides(apart[1]) == Sides{"comm"});
  CHECK(sides(phases_of(Variant::communication, kTimes, true)[0]) == Sides{"comm", "total"});
  CHECK(sides(phases_of(Variant::none, kTimes, true)[0]) == Sides{"comp", "total", "separator"});
}

TEST_CASE("durations are in us: the median, and each step as it came") {
  const json phase = phases_of(Variant::overlap, kTimes, true)[0];
  CHECK(phase["total"]["value"].get<double>() == doctest::Approx(3.5));
  CHECK(phase["total"]["batches"][3].get<double>() == doctest::Approx(9));
  CHECK(phase["total"]["unit"] == "us");
  CHECK(phase["comp"]["rate"].get<double>() == doctest::Approx(2));
  CHECK(phase["measured_s"].get<double>() == doctest::Approx(18e-6));
}

TEST_CASE("phases of a wrong result are void") {
  for (const json& phase : phases_of(Variant::apart, kTimes, false)) {
    CHECK(phase["status"] == "void");
    CHECK(phase["flags"] == json::array({"validation_failed"}));
  }
  CHECK(phases_of(Variant::apart, kTimes, true)[0]["flags"] == json::array());
}

}  // namespace
}  // namespace elbowroom::diffusion
