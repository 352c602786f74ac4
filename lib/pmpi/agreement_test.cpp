// Processes are threads here: they share nothing but the folder.
#include "pmpi/agreement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "pmpi/nodes.hpp"

namespace elbowroom::pmpi {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "agreement-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
};

template <typename Action>
void at_once(std::size_t count, const Action& action) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back(action, i);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

struct Job {
  Folder folder;
  int ranks;
  // A decision is awaited for as long as a busy machine may take, except where none comes.
  Agreement::Limits limits{milliseconds(100), milliseconds(60'000)};

  explicit Job(int ranks_) : ranks(ranks_) {}
  Agreement process(int rank) const {
    return {(folder.path / "agreement").string(), rank, ranks, {"recorded", "record"}, limits};
  }
  // What processes decide that announce at once, and decide at once when all have: none is too late for the others.
  std::vector<Decision> decide(const std::vector<int>& which) const {
    std::vector<Agreement> processes;
    for (const int rank : which) {
      processes.push_back(process(rank));
    }
    std::vector<char> announced(which.size());
    std::vector<Decision> decisions(which.size());
    at_once(which.size(), [&](std::size_t i) { announced[i] = processes[i].announce(Sign::ready, "") ? 1 : 0; });
    at_once(which.size(), [&](std::size_t i) {
      if (announced[i] != 0) {
        decisions[i] = processes[i].decide();
      }
    });
    return decisions;
  }
};

std::vector<int> up_to(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST_CASE("processes that all sign record, on one node") {
  const Job job(40);
  for (const Decision& decision : job.decide(up_to(40))) {
    CHECK(decision.records);
    CHECK(decision.members == up_to(40));
    CHECK(decision.nodes == std::vector<std::int32_t>(40, 0));
  }
}

TEST_CASE("ranks without a sign are missing, and on a node of their own") {
  const Job job(4);
  for (const Decision& decision : job.decide({0, 2})) {
    CHECK(decision.records);
    CHECK(decision.members == std::vector<int>{0, 2});
    CHECK(decision.nodes == std::vector<std::int32_t>{0, 1, 0, 1});
  }
}

TEST_CASE("a rank that comes after the decision knows the same one") {
  const Job job(2);
  job.decide({0});
  Agreement late = job.process(1);
  REQUIRE(late.announce(Sign::ready, ""));
  const Decision decision = late.decide();
  CHECK(decision.records);
  CHECK(decision.members == std::vector<int>{0});
  CHECK(decision.nodes == std::vector<std::int32_t>{0, 1});
}

TEST_CASE("where one refuses, none records; where one is absent, the others do") {
  for (const Sign sign : {Sign::refused, Sign::absent}) {
    const Job job(2);
    Agreement other = job.process(1);
    REQUIRE(other.announce(sign, "it cannot"));
    std::thread leads([&] { other.lead_if_first(); });
    const Decision decision = job.decide({0})[0];
    leads.join();
    CHECK(decision.records == (sign == Sign::absent));
    CHECK(decision.members == std::vector<int>{0});
  }
}

TEST_CASE("a leader that never decides is left out by all others alike") {
  Job job(3);
  job.limits.patience = milliseconds(400);
  Agreement leader = job.process(1);
  REQUIRE(leader.announce(Sign::ready, ""));
  for (const Decision& decision : job.decide({0, 2})) {
    CHECK(decision.records);
    CHECK(decision.members == std::vector<int>{0, 2});
  }
  CHECK(leader.decide().members == std::vector<int>{0, 2});
}

TEST_CASE("without a folder there is no agreement") {
  Agreement own("/proc/nowhere/agreement", 0, 2, {"recorded", "record"});
  CHECK(!own.announce(Sign::ready, ""));
}

TEST_CASE("nodes are numbered by their lowest ranks") {
  CHECK(nodes_of_names({"b", "a", "b", "c"}) == std::vector<std::int32_t>{0, 1, 0, 2});
  CHECK(nodes_of_names({"b", "", "a", ""}) == std::vector<std::int32_t>{0, 2, 1, 2});
}

TEST_CASE("where the launcher says that all ranks are here, those without a name are") {
  setenv("MPI_LOCALNRANKS", "3", 1);
  CHECK(nodes_of_names({node_name(), "", node_name()}) == std::vector<std::int32_t>{0, 0, 0});
  unsetenv("MPI_LOCALNRANKS");
}

}  // namespace
}  // namespace elbowroom::pmpi
