// Runs requests against the stand-in, for tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace elbowroom::gpu_bench {

// The stand-in with these settings for what is loaded while this lives. `folder`: stand_in, or stand_in_old.
class Planted {
 public:
  explicit Planted(const std::string& settings = "{}", const std::string& folder = "stand_in");
  ~Planted();
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;

 private:
  std::string file_;
};

std::string stand_in_folder();

// The lines of a measurement of these cases (JSON without the brackets); options are further keys, with a comma in front.
std::vector<nlohmann::json> run_cases(const std::string& cases, const std::string& options = "");
// The last line of each case, in order.
std::vector<nlohmann::json> results(const std::vector<nlohmann::json>& lines);

}  // namespace elbowroom::gpu_bench
