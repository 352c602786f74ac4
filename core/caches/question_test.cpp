#include "caches/question.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace elbowroom;

TEST_CASE("an answer has misses after each size and without accesses, with what the model assumes") {
  const int core = Machine::here().cores().front().number;
  if (Machine::here().caches(core).empty()) {
    MESSAGE("skipped: hwloc knows no caches here");
    return;
  }
  MissQuestion question;
  question.sender = question.receiver = core;
  question.touching.sender = true;
  question.sizes = {0, 4096, 50};
  const auto answer = modelled_misses(question);
  CHECK(answer.after["sender"]["L1"].size() == 50);
  CHECK(answer.without["sender"]["L1"].size() == 50);
  CHECK(answer.after["sender"]["L1"][0] == answer.without["sender"]["L1"][0]);
  CHECK(answer.after["model"]["footprint_bytes"]["sender"] == Footprint{}.sender);
  CHECK(answer.after["model"]["assumptions"].size() >= 3);
}

TEST_CASE("a core that is unknown here has no misses, and the reason") {
  MissQuestion question;
  question.bystanders = {99999};
  CHECK(modelled_misses(question).after == nlohmann::json{{"unknown", "core 99999 does not exist"}});
}

TEST_CASE("caches of this machine's cores are read, shared ones once") {
  std::vector<int> cores;
  for (const auto& core : Machine::here().cores()) {
    cores.push_back(core.number);
  }
  if (Machine::here().caches(cores.front()).empty()) {
    MESSAGE("skipped: hwloc knows no caches here");
    return;
  }
  const auto shape = shape_of_cores(cores);
  CHECK(shape.paths.size() == cores.size());
  CHECK(shape.caches[shape.paths[0].back()].bytes <= Machine::here().last_level_cache());
  for (const auto& cache : shape.caches) {
    CHECK(cache.sets * cache.ways * shape.line <= cache.bytes);
  }
  CHECK(hierarchy_record(shape, cores)["caches"].size() == shape.caches.size());
}

TEST_CASE("a window has a number for each size, level and side") {
  const auto shape =
      shape_of({{{1, 0, 49152, 12, 64}, {2, 0, 2097152, 16, 64}}, {{1, 1, 49152, 12, 64}, {2, 1, 2097152, 16, 64}}});
  Touching touching;
  touching.sender = true;
  const auto record =
      modelled_misses(shape, exchange_pattern(synthetic_memory(2, 400, 1 << 20, {}), touching), {0, 400, 100});
  CHECK(record["source"] == "modelled");
  for (const char* side : {"sender", "receiver"}) {
    for (const char* level : {"L1", "L2"}) {
      CHECK(record[side][level].size() == 100);
    }
  }
}

TEST_CASE("messages that libraries cut into pieces have no misses, and the reason") {
  MissQuestion question;
  question.message = 65537;
  CHECK(modelled_misses(question).after.contains("unknown"));
}
