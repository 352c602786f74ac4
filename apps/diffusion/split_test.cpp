// Cores and an accelerator on one mesh, with the stand-in of the driver: the field is that of cores alone.
#include "diffusion/split.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "machine/machine.hpp"
#include "protocol/request.hpp"

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;

const std::string kStandIn = std::string(STAND_IN_FOLDER) + "/stand_in";

json steps_of(double w, const std::string& planted = "{}") {
  const auto file = std::filesystem::temp_directory_path() / "elbow-diffusion-stand-in.json";
  std::ofstream(file) << planted;
  setenv("ELBOW_STAND_IN", file.c_str(), 1);
  setenv("ELBOWROOM_CUDA", (kStandIn + "/libcuda.so.1").c_str(), 1);
  const json record = run_split(Mesh({8, 6, 6}), {w, 7, {Machine::here().cores().front().number}, 0, {kStandIn}});
  std::filesystem::remove(file);
  return record;
}

TEST_CASE("cores and an accelerator compute the same field as either alone, for any split") {
  const json alone = steps_of(0);
  CHECK(alone.at("device_cells") == 0);
  CHECK(alone.at("valid") == true);
  for (const double w : {0.1, 0.5, 0.83, 1.0}) {
    const json split = steps_of(w);
    CHECK(split.at("valid") == true);
    CHECK(split.at("checksum") == alone.at("checksum"));
    CHECK(split.at("host_cells").get<int>() + split.at("device_cells").get<int>() == alone.at("cells"));
    CHECK(split.at("step_s").size() == 7);
    CHECK((split.at("halo_bytes").get<int>() > 0) == (w < 1));
  }
}

TEST_CASE("cells that the device's memory does not hold are refused with the largest share that it does") {
  CHECK_THROWS_WITH_AS(steps_of(0.9, R"({"memory": 40000})"), doctest::Contains("does not hold so many"), RequestError);
  try {
    steps_of(0.9, R"({"memory": 40000})");
  } catch (const RequestError& error) {
    CHECK(error.hint == "give at most 0.3436");
  }
}

TEST_CASE("shares beyond 0 to 1, no steps and no cores are refused") {
  const Mesh mesh({2, 2, 2});
  const int core = Machine::here().cores().front().number;
  CHECK_THROWS_AS(run_split(mesh, {1.5, 1, {core}, 0, {}}), RequestError);
  CHECK_THROWS_AS(run_split(mesh, {0.5, 0, {core}, 0, {}}), RequestError);
  CHECK_THROWS_AS(run_split(mesh, {0.5, 1, {}, 0, {}}), RequestError);
  CHECK_THROWS_AS(run_split(mesh, {0.5, 1, {100000}, 0, {}}), RequestError);
}

}  // namespace
}  // namespace elbowroom::diffusion
