#include "test_run.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "measurement.hpp"
#include "request.hpp"

namespace elbowroom::gpu_bench {

using nlohmann::json;

std::string stand_in_folder() { return STAND_IN_FOLDER; }

Planted::Planted(const std::string& settings, const std::string& folder)
    : file_(std::filesystem::temp_directory_path() / ("elbow-stand-in-" + std::to_string(getpid()) + ".json")) {
  std::ofstream(file_) << settings;
  setenv("ELBOW_STAND_IN", file_.c_str(), 1);
  setenv("ELBOWROOM_CUDA", (stand_in_folder() + "/" + folder + "/libcuda.so.1").c_str(), 1);
  setenv("ELBOWROOM_NVML", (stand_in_folder() + "/stand_in/libnvidia-ml.so.1").c_str(), 1);
}

Planted::~Planted() { unlink(file_.c_str()); }

std::vector<json> run_cases(const std::string& cases, const std::string& options) {
  std::vector<json> lines;
  const std::string text = R"({"repeat": 2, "seconds": 0.002, "patience": 1, "libraries": [")" + stand_in_folder() +
                           R"(/stand_in"], "cases": [)" + cases + "]" + options + "}";
  measure(parse_request(text), [&](const json& line) { lines.push_back(line); });
  return lines;
}

std::vector<json> results(const std::vector<json>& lines) {
  std::vector<json> results;
  for (const json& line : lines) {
    if (line.contains("status")) results.push_back(line);
  }
  return results;
}

}  // namespace elbowroom::gpu_bench
