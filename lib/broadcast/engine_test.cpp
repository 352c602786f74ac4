#include "engine.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "test_ranks.hpp"
#include "test_schedules.hpp"

using namespace elbowroom::broadcast;

TEST_CASE("Random schedules deliver every byte to every recipient once, in the order of each key, and leave nothing") {
  const char* const text = std::getenv("ELBOWROOM_SCHEDULES");
  const std::uint64_t count = text != nullptr ? std::strtoull(text, nullptr, 10) : 1000;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const Schedule schedule = random_schedule(seed);
    if (const auto fault = run(schedule)) {
      const Schedule smallest = shrunk(schedule);
      FAIL(*fault << "\n" << describe(smallest) << run(smallest).value_or(""));
    }
  }
}

namespace {

std::string refusal(auto call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("A rank with a slow link forwards nothing in any tree, and is served among the last of its priority") {
  constexpr int kSlow = 2;
  for (const char* tree : {"flat", "chain", "binary", "3-ary", "binomial", "4-nomial", "delegate-binary", "two"}) {
    CAPTURE(tree);
    Settings settings;
    settings.speeds = {1, 1, 0.1, 0.9, 1, 0.8, 1, 1};
    Ranks ranks(8, settings);
    for (int rank = 1; rank < 8; ++rank) ranks.receive(rank, 0, 20000);
    ranks.buffers.emplace_back(20000);
    Way way;
    way.two_trees = std::string_view(tree) == "two";
    if (!way.two_trees) way.tree = parse_tree(tree);
    way.segment = 1000;
    ranks.engines[0]->send(0, 0, ranks.buffers.back(), all_but(0, 8), way);
    ranks.run();
    for (int rank = 1; rank < 8; ++rank) CHECK(ranks.count(rank, Event::Kind::kReleased) == 1);
    CHECK(ranks.engines[kSlow]->counters().forwarded == 0);
  }
}

TEST_CASE("Speeds of links that are none are refused") {
  const auto with = [](std::vector<double> speeds) {
    Settings settings;
    settings.speeds = std::move(speeds);
    return refusal([&] { Ranks ranks(3, settings); });
  };
  CHECK(with({1, 1}) == "speeds: has 2 entries; give one for each of the 3 ranks");
  CHECK(with({1, 0, 1}).starts_with("speeds: that of rank 1 is 0.0"));
  CHECK(with({1, 1, std::nan("")}).starts_with("speeds: that of rank 2 is "));
  CHECK(with({1, 1, 1}).empty());
}

TEST_CASE("What cannot be sent or received is refused with the rank and a hint") {
  Ranks ranks(4);
  Engine& engine = *ranks.engines[1];
  const auto send = [&](std::vector<Destination> destinations) {
    return refusal([&] { engine.send(0, 0, {}, destinations, {}); });
  };
  CHECK(send({}) == "recipients: there is none; give at least one rank");
  CHECK(send({{4, 0}}) == "recipient 4: is not another rank; use 0 to 3 without 1");
  CHECK(send({{-1, 0}}) == "recipient -1: is not another rank; use 0 to 3 without 1");
  CHECK(send({{1, 0}}) == "recipient 1: is not another rank; use 0 to 3 without 1");
  CHECK(send({{2, 0}, {3, 5}, {2, 1}}) == "recipient 2: is named twice; name it once");
  CHECK(send({{2, -1}}) == "priority -1 of rank 2: is negative; use 0 or more");
  CHECK(refusal([&] { engine.receive({0, 1, 0}, {}); }) == "root 1: is not another rank; use 0 to 3 without 1");
  CHECK(refusal([&] { engine.receive({0, 9, 0}, {}); }) == "root 9: is not another rank; use 0 to 3 without 1");
  CHECK(engine.idle());
}

TEST_CASE("A receive of another size fails, and those below it in the tree get the data") {
  for (const std::size_t size : {100U, 100000U}) {
    for (const bool posted_first : {true, false}) {
      Ranks ranks(8);
      const auto post = [&] {
        for (int rank = 1; rank < 8; ++rank) ranks.receive(rank, 0, rank == 1 ? size + 1 : size);
      };
      if (posted_first) post();
      ranks.send(0, size, all_but(0, 8));
      ranks.run();
      if (!posted_first) post();
      ranks.run();
      CHECK(ranks.count(1, Event::Kind::kFailed) == 1);
      CHECK(ranks.events[1][0].text ==
            "receives " + std::to_string(size + 1) + " bytes, but " + std::to_string(size) + " were sent");
      for (int rank = 2; rank < 8; ++rank) CHECK(ranks.count(rank, Event::Kind::kReceived) == 1);
      for (const auto& engine : ranks.engines) CHECK(engine->idle());
    }
  }
}

TEST_CASE(
    "When a rank that forwards is lost, its parent serves those below while it has the data; else they are named") {
  int whole = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Ranks ranks(12, {}, seed);
    for (int rank = 1; rank < 12; ++rank) ranks.receive(rank, 0, 50000);
    ranks.send(0, 50000, all_but(0, 12), seed % 2 == 0 ? "binary" : "chain", 4000);
    for (std::uint64_t step = 0; step < seed; ++step) {
      if (const int rank = ranks.network.step(); rank >= 0) ranks.engines[static_cast<std::size_t>(rank)]->progress();
    }
    ranks.collect();
    const bool released = ranks.count(0, Event::Kind::kReleased) != 0;
    ranks.network.lose(1);
    ranks.run();
    int served = 0;
    for (int rank = 2; rank < 12; ++rank) {
      Engine& engine = *ranks.engines[static_cast<std::size_t>(rank)];
      const bool received = ranks.count(rank, Event::Kind::kReceived) == 1;
      served += received ? 1 : 0;
      CHECK((received ? engine.idle() : !engine.stalls(0).empty()));
      if (received) CHECK(ranks.count(rank, Event::Kind::kReleased) == 1);
    }
    whole += served == 10 ? 1 : 0;
    if (!released && ranks.count(0, Event::Kind::kLost) == 1) CHECK(served == 10);
    CHECK(ranks.count(0, Event::Kind::kReleased) == 1);
  }
  CHECK(whole > 200);
}

TEST_CASE("What waits is named with the ranks that it waits for") {
  Settings settings;
  settings.late = Late::kBypass;
  Ranks ranks(4, settings);
  ranks.send(0, 50000, {{1, 0}, {2, 0}, {3, 0}}, "flat");
  ranks.receive(1, 0, 50000);
  ranks.receive(3, 0, 50000);
  const Operation never = ranks.receive(3, 2, 10);
  ranks.run();
  CHECK(ranks.engines[0]->stalls(1e9).empty());
  const std::vector<Stall> stalls = ranks.engines[0]->stalls(0);
  REQUIRE(stalls.size() == 1);
  CHECK(stalls[0].ranks == std::vector<int>{2});
  const std::vector<Stall> waits = ranks.engines[3]->stalls(0);
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].operation == never);
  CHECK(waits[0].ranks == std::vector<int>{2});
}

TEST_CASE("A damaged message is an event on the rank that got it, never a crash") {
  int faults = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Ranks ranks(6, {}, seed);
    ranks.network.damage(0.2);
    for (int rank = 1; rank < 6; ++rank) ranks.receive(rank, 0, 20000);
    ranks.send(0, 20000, all_but(0, 6), "binomial", 3000);
    ranks.run();
    for (int rank = 0; rank < 6; ++rank) faults += ranks.count(rank, Event::Kind::kFailed);
  }
  CHECK(faults > 50);
}

TEST_CASE("Higher priorities have the data first where ranks serve one child after another") {
  for (const char* tree : {"flat", "chain"}) {
    Ranks ranks(9, {}, 1, false);
    std::vector<Destination> destinations;
    for (int rank = 1; rank < 9; ++rank) {
      ranks.receive(rank, 0, 200000);
      destinations.push_back({rank, rank});
    }
    ranks.send(0, 200000, destinations, tree);
    ranks.run();
    std::vector<int> order;
    for (const auto& time : ranks.times) {
      if (time.kind == Event::Kind::kReceived) order.push_back(time.rank);
    }
    CHECK(order == std::vector<int>{8, 7, 6, 5, 4, 3, 2, 1});
  }
}

TEST_CASE("A rank without a buffer delays nobody but itself") {
  for (const Late late : {Late::kBypass, Late::kStoreForward}) {
    Settings settings;
    settings.late = late;
    Ranks ranks(8, settings);
    for (int rank = 2; rank < 8; ++rank) ranks.receive(rank, 0, 50000);
    ranks.send(0, 50000, all_but(0, 8), "chain");
    ranks.run();
    for (int rank = 2; rank < 8; ++rank) CHECK(ranks.count(rank, Event::Kind::kReceived) == 1);
    CHECK(ranks.engines[0]->counters().bypassed == (late == Late::kBypass ? 1 : 0));
    CHECK(ranks.engines[1]->counters().stored == (late == Late::kBypass ? 0 : 1));
    ranks.receive(1, 0, 50000);
    ranks.run();
    CHECK(ranks.count(1, Event::Kind::kReleased) == 1);
    CHECK(ranks.count(0, Event::Kind::kReleased) == 1);
  }
}

TEST_CASE("Postponed data wait for their receive with all that are below") {
  Settings settings;
  settings.late = Late::kPostpone;
  Ranks ranks(4, settings);
  for (int rank = 2; rank < 4; ++rank) ranks.receive(rank, 0, 50000);
  ranks.send(0, 50000, all_but(0, 4), "chain");
  ranks.run();
  CHECK(ranks.count(2, Event::Kind::kReceived) == 0);
  ranks.receive(1, 0, 50000);
  ranks.run();
  for (int rank = 1; rank < 4; ++rank) CHECK(ranks.count(rank, Event::Kind::kReceived) == 1);
}
