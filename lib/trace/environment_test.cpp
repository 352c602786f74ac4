#include "trace/environment.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <map>
#include <string>

#include "trace/refusal.hpp"

using namespace elbowroom::trace;

namespace {

struct Variables {
  std::map<std::string, std::string> values;
  const char* operator()(const char* name) const {
    const auto entry = values.find(name);
    return entry == values.end() ? nullptr : entry->second.c_str();
  }
};

// The sentence that refuses these variables, besides a directory.
std::string refusal_of(std::map<std::string, std::string> values) {
  values.emplace("ELBOW_TRACE_DIRECTORY", "there");
  try {
    const Environment read{Variables{values}};
  } catch (const Refusal& refusal) {
    CHECK(refusal.code == EINVAL);
    return refusal.what();
  }
  return "nothing is refused";
}

void check_place(std::map<std::string, std::string> values, int rank, int ranks) {
  values.emplace("ELBOW_TRACE_DIRECTORY", "there");
  const Environment read{Variables{values}};
  CHECK(read.settings().rank == rank);
  CHECK(read.settings().ranks == ranks);
}

}  // namespace

TEST_CASE("All settings are read from the environment") {
  const Environment read{Variables{{{"ELBOW_TRACE_DIRECTORY", "there"},
                                    {"ELBOW_TRACE_MEMORY", "/dev/shm"},
                                    {"ELBOW_TRACE_CATEGORIES", "task,mpi"},
                                    {"ELBOW_TRACE_WITHOUT", "submit,ready"},
                                    {"ELBOW_TRACE_BYTES", "65536"},
                                    {"ELBOW_TRACE_TEXT_BYTES", "4096"},
                                    {"ELBOW_TRACE_POLICY", "grow"},
                                    {"ELBOW_TRACE_CORE", "3"},
                                    {"ELBOW_TRACE_JOB", "18446744073709551615"}}}};
  const elbow_trace_settings& settings = read.settings();
  CHECK(std::string(settings.directory) == "there");
  CHECK(std::string(settings.memory) == "/dev/shm");
  CHECK(std::string(settings.categories) == "task,mpi");
  CHECK(std::string(settings.without) == "submit,ready");
  CHECK(std::string(settings.core) == "3");
  CHECK(settings.bytes == 65536);
  CHECK(settings.text_bytes == 4096);
  CHECK(settings.policy == ELBOW_TRACE_GROW);
  CHECK(settings.job == ~0ULL);
}

TEST_CASE("What the environment does not say is the default, also where it is set to nothing") {
  const Environment read{Variables{{{"ELBOW_TRACE_DIRECTORY", "there"}, {"ELBOW_TRACE_POLICY", ""}}}};
  CHECK(read.settings().memory == nullptr);
  CHECK(read.settings().core == nullptr);
  CHECK(read.settings().categories == nullptr);
  CHECK(read.settings().without == nullptr);
  CHECK(read.settings().bytes == 0);
  CHECK(read.settings().policy == ELBOW_TRACE_STOP);
  CHECK(read.settings().rank == 0);
  CHECK(read.settings().ranks == 1);
}

TEST_CASE("Each launcher says which process this is; what the user says comes first, a job script's variables last") {
  check_place({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, 2, 4);
  check_place({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}, 1, 3);
  check_place({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}}, 5, 6);
  check_place({{"PMIX_RANK", "5"}, {"SLURM_NTASKS", "6"}}, 5, 6);
  check_place({{"PMIX_RANK", "5"}, {"ELBOW_TRACE_RANKS", "8"}}, 5, 8);
  check_place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, 1, 2);
  check_place({{"ELBOW_TRACE_RANK", "7"}, {"ELBOW_TRACE_RANKS", "9"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, 7, 9);
}

TEST_CASE("A value that is wrong is named, with what would be right") {
  CHECK(refusal_of({{"ELBOW_TRACE_DIRECTORY", ""}}).find("ELBOW_TRACE_DIRECTORY: is not set") == 0);
  CHECK(
      refusal_of({{"ELBOW_TRACE_POLICY", "drop"}}).find("ELBOW_TRACE_POLICY 'drop': there is no such policy; stop,") ==
      0);
  CHECK(refusal_of({{"ELBOW_TRACE_BYTES", "4M"}}).find("ELBOW_TRACE_BYTES '4M': is not a number of bytes") == 0);
  CHECK(refusal_of({{"ELBOW_TRACE_CORE", "-1"}}).find("ELBOW_TRACE_CORE '-1': is not a core") == 0);
  CHECK(refusal_of({{"ELBOW_TRACE_JOB", "1 "}}).find("ELBOW_TRACE_JOB '1 '") == 0);
  CHECK(refusal_of({{"PMI_RANK", "x"}, {"PMI_SIZE", "2"}}).find("PMI_RANK 'x': is not a rank") == 0);
  CHECK(refusal_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}).find("PMI_RANK 2 of 2 ranks: there is no such rank") == 0);
  CHECK(refusal_of({{"PMIX_RANK", "2"}}).find("PMIX_RANK 2: the number of ranks is unknown") == 0);
  CHECK(refusal_of({{"ELBOW_TRACE_RANKS", "4"}}).find("ELBOW_TRACE_RANKS 4: the rank of this process is unknown") == 0);
}
