#include "nic/settings.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace elbowroom::nic;

namespace {

using Variables = std::map<std::string, std::string>;

Settings settings_of(const Variables& more) {
  Variables all = {{"ELBOW_NIC_NAME", "test"}, {"ELBOW_NIC_BANDWIDTH", "1e8"}, {"PMI_RANK", "5"}};
  for (const auto& [name, value] : more) {
    all[name] = value;
  }
  return read_settings([&all](const char* name) -> const char* {
    const auto found = all.find(name);
    return found == all.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("A process without a name or a rank is not limited") {
  CHECK(settings_of({{"ELBOW_NIC_NAME", ""}}).name.empty());
  CHECK(settings_of({{"PMI_RANK", ""}}).name.empty());
  CHECK(settings_of({{"PMI_RANK", ""}, {"SLURM_PROCID", "0"}}).name.empty());  // a batch script
}

TEST_CASE("The node follows from the rank, which each launcher names otherwise") {
  CHECK(settings_of({}).node == 5);
  CHECK(settings_of({{"ELBOW_NIC_RANKS_PER_NODE", "2"}}).node == 2);
  CHECK(settings_of({{"OMPI_COMM_WORLD_RANK", "7"}}).rank == 7);
  CHECK(settings_of({{"PMI_RANK", ""}, {"SLURM_PROCID", "3"}, {"SLURM_STEP_ID", "0"}}).rank == 3);
}

TEST_CASE("A job names the nodes that it is on") {
  CHECK(settings_of({{"ELBOW_NIC_RANKS_PER_NODE", "2"}, {"ELBOW_NIC_NODES", "4,7,3"}}).node == 3);
  CHECK(settings_of({{"PMI_RANK", "0"}, {"ELBOW_NIC_NODES", "4"}}).node == 4);
}

TEST_CASE("Values that are none are refused in a sentence that names the variable") {
  const std::map<std::string, std::vector<std::string>> wrong = {
      {"ELBOW_NIC_BANDWIDTH", {"", "0", "-1", "fast", "1e8x", "nan", "inf"}},
      {"ELBOW_NIC_RANKS_PER_NODE", {"0", "-2", "two"}},
      {"ELBOW_NIC_NODES", {"0,1", "x,1,2,3,4,5", "0,1,2,3,4,-1", "0,1,2,3,4,1.5", "0,1,2,3,4,64"}},
      {"ELBOW_NIC_BURST", {"0", "x"}},
      {"ELBOW_NIC_LATENCY", {"-1e-6", "x"}},
      {"ELBOW_NIC_NAP", {"-1", "x"}},
      {"ELBOW_NIC_NAME", {"a/b", std::string(300, 'n')}},
  };
  CHECK(settings_of({}).error.empty());
  for (const auto& [name, values] : wrong) {
    for (const std::string& value : values) {
      CAPTURE(name);
      CAPTURE(value);
      CHECK(settings_of({{name, value}}).error.find(name) == 0);
    }
  }
  CHECK(settings_of({{"PMI_RANK", "100"}}).error.find("ELBOW_NIC_RANKS_PER_NODE") == 0);
}
