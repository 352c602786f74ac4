// The C interface over a loopback network: waiting, errors, the watchdog and the thread.
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "elbowroom/broadcast.h"
#include "test_schedules.hpp"
#include "test_wire.hpp"

using namespace elbowroom::broadcast;

TEST_CASE("A wait ends with its event, and the other events stay") {
  Wire wire(3);
  Rank root(wire, 0);
  Rank leaf(wire, 1);
  Rank other(wire, 2);
  const std::string text = "elbow";
  const elbow_broadcast_recipient recipients[] = {{1, 0}, {2, 0}};
  std::string into[2] = {"     ", "     "};
  elbow_broadcast_operation sent = 0;
  elbow_broadcast_operation received[2] = {0, 0};
  CHECK(elbow_broadcast_send(root.broadcast, 0, 5, text.data(), 5, recipients, 2, nullptr, &sent) == 0);
  CHECK(elbow_broadcast_receive(leaf.broadcast, 0, 0, 5, into[0].data(), 5, &received[0]) == 0);
  CHECK(elbow_broadcast_receive(other.broadcast, 0, 0, 5, into[1].data(), 5, &received[1]) == 0);
  for (int i = 0; i < 100; ++i) {
    elbow_broadcast_progress(root.broadcast);
    elbow_broadcast_progress(leaf.broadcast);
    elbow_broadcast_progress(other.broadcast);
  }
  CHECK(elbow_broadcast_wait(leaf.broadcast, received[0], ELBOW_BROADCAST_RECEIVED) == 0);
  CHECK(elbow_broadcast_wait(leaf.broadcast, received[0], ELBOW_BROADCAST_RECEIVED) == 0);
  CHECK(into[0] == text);
  CHECK(elbow_broadcast_wait(leaf.broadcast, received[0], ELBOW_BROADCAST_RELEASED) == 0);
  auto event = sized<elbow_broadcast_event>();
  CHECK(elbow_broadcast_next(leaf.broadcast, &event) == 0);
  CHECK(elbow_broadcast_wait(other.broadcast, received[1], ELBOW_BROADCAST_RELEASED) == 0);
  CHECK(into[1] == text);
  CHECK(elbow_broadcast_next(root.broadcast, &event) == 1);
  CHECK(event.kind == ELBOW_BROADCAST_RELEASED);
  CHECK(event.operation == sent);
  CHECK(elbow_broadcast_wait(root.broadcast, sent, ELBOW_BROADCAST_RELEASED) == 0);
  CHECK(elbow_broadcast_wait(root.broadcast, sent + 1, ELBOW_BROADCAST_RELEASED) == -1);
  CHECK(errno == EINVAL);
  CHECK(error() == "operation 2: there was none of that number");
  auto counters = sized<elbow_broadcast_counters>();
  CHECK(elbow_broadcast_count(root.broadcast, &counters) == 0);
  CHECK(counters.broadcasts == 1);
}

TEST_CASE("Wrong arguments are refused with the field, the value and a hint") {
  Wire wire(3);
  Rank root(wire, 0);
  elbow_broadcast_operation operation = 0;
  const elbow_broadcast_recipient other[] = {{1, 0}};
  const auto send = [&](const elbow_broadcast_recipient* recipients, std::size_t count, const char* tree) {
    const elbow_broadcast_way way = {sizeof(elbow_broadcast_way), tree, 0};
    CHECK(elbow_broadcast_send(root.broadcast, 0, 0, "", 0, recipients, count, &way, &operation) == -1);
    CHECK(errno == EINVAL);
    return error();
  };
  const elbow_broadcast_recipient beyond[] = {{3, 0}};
  CHECK(send(beyond, 1, nullptr) == "recipient 3: is not another rank; use 0 to 2 without 0");
  CHECK(send(other, 0, nullptr) == "recipients: there is none; give at least one rank");
  CHECK(send(other, 1, "oak") ==
        "tree 'oak': is not a kind of tree: use flat, chain, binary, binomial, K-ary or K-nomial");
  CHECK(elbow_broadcast_receive(root.broadcast, 0, 0, 0, nullptr, 0, &operation) == -1);
  CHECK(error() == "root 0: is not another rank; use 0 to 2 without 0");
  CHECK(elbow_broadcast_wait(root.broadcast, 99, 7) == -1);
  CHECK(error() == "kind 7: use ELBOW_BROADCAST_RECEIVED or ELBOW_BROADCAST_RELEASED");
  auto settings = sized<elbow_broadcast_settings>();
  settings.late = 9;
  const elbow_broadcast_transport transport = wire.transport(1);
  CHECK(elbow_broadcast_new(&transport, &settings) == nullptr);
  CHECK(error().starts_with("late 9: is unknown"));
  settings.late = 0;
  settings.inline_limit = (std::size_t{1} << 30) + 1;
  CHECK(elbow_broadcast_new(&transport, &settings) == nullptr);
  CHECK(error() == "inline_limit 1073741825: is more than 1 GiB; larger data are sent in segments");
  const double speeds[] = {1, -1, 1};
  settings = sized<elbow_broadcast_settings>();
  settings.speeds = speeds;
  CHECK(elbow_broadcast_new(&transport, &settings) == nullptr);
  CHECK(error().starts_with("speeds: that of rank 1 is -1.0"));
  CHECK(elbow_broadcast_new(nullptr, nullptr) == nullptr);
  CHECK(error() == "transport: is NULL; use elbow_broadcast_transport_of_mpi");
}

TEST_CASE("A rank that made no progress for the watchdog's time is told so, and blames no other rank") {
  Wire wire(3);
  auto settings = sized<elbow_broadcast_settings>();
  settings.watchdog = 5;
  Rank leaf(wire, 1, &settings);
  elbow_broadcast_operation operation = 0;
  char into[4];
  CHECK(elbow_broadcast_receive(leaf.broadcast, 0, 2, 0, into, 4, &operation) == 0);
  wire.skip = 7;  // the program computes
  auto event = sized<elbow_broadcast_event>();
  CHECK(elbow_broadcast_next(leaf.broadcast, &event) == 1);
  wire.skip = 0;
  CHECK(event.kind == ELBOW_BROADCAST_STALLED);
  CHECK(event.operation == 0);
  CHECK(event.rank == 1);
  CHECK(std::string(event.text).starts_with("this rank made no progress for 7 s with operations open"));
  CHECK(elbow_broadcast_next(leaf.broadcast, &event) == 0);
}

TEST_CASE("A rank without operations may do without progress") {
  Wire wire(3);
  auto settings = sized<elbow_broadcast_settings>();
  settings.watchdog = 5;
  Rank leaf(wire, 1, &settings);
  wire.skip = 7;
  auto event = sized<elbow_broadcast_event>();
  CHECK(elbow_broadcast_progress(leaf.broadcast) == 0);
  CHECK(elbow_broadcast_next(leaf.broadcast, &event) == 0);
}

TEST_CASE("A program that only polls for events gets its data without the thread") {
  Wire wire(2);
  Rank root(wire, 0);
  Rank leaf(wire, 1);
  const std::string text(10000, 'e');
  std::string into(text.size(), ' ');
  const elbow_broadcast_recipient recipient[] = {{1, 0}};
  elbow_broadcast_operation operation = 0;
  CHECK(elbow_broadcast_send(root.broadcast, 0, 0, text.data(), text.size(), recipient, 1, nullptr, &operation) == 0);
  CHECK(elbow_broadcast_receive(leaf.broadcast, 0, 0, 0, into.data(), into.size(), &operation) == 0);
  auto event = sized<elbow_broadcast_event>();
  bool released = false;
  for (int i = 0; i < 1000 && !released; ++i) {
    auto ignored = sized<elbow_broadcast_event>();
    elbow_broadcast_next(root.broadcast, &ignored);
    released = elbow_broadcast_next(leaf.broadcast, &event) == 1 && event.kind == ELBOW_BROADCAST_RELEASED;
  }
  CHECK(released);
  CHECK(into == text);
}

TEST_CASE("The thread is refused where the transport is for one thread only, with the transport's reason") {
  Wire wire(2);
  elbow_broadcast_transport transport = wire.transport(0);
  transport.confined = "the network allows one thread only";
  elbow_broadcast* const broadcast = elbow_broadcast_new(&transport, nullptr);
  REQUIRE(broadcast != nullptr);
  CHECK(elbow_broadcast_start(broadcast, -1) == -1);
  CHECK(errno == ENOTSUP);
  CHECK(error() == "thread: the network allows one thread only");
  elbow_broadcast_free(broadcast);
}

TEST_CASE("A receive of another size ends its wait") {
  Wire wire(3);
  Rank root(wire, 0);
  Rank leaf(wire, 1);
  elbow_broadcast_operation operation = 0;
  const elbow_broadcast_recipient recipient[] = {{1, 0}};
  char into[4];
  CHECK(elbow_broadcast_receive(leaf.broadcast, 0, 0, 0, into, 4, &operation) == 0);
  elbow_broadcast_operation sent = 0;
  CHECK(elbow_broadcast_send(root.broadcast, 0, 0, "elbow", 5, recipient, 1, nullptr, &sent) == 0);
  CHECK(elbow_broadcast_wait(leaf.broadcast, operation, ELBOW_BROADCAST_RELEASED) == -1);
  CHECK(errno == ECOMM);
  CHECK(error() == "receives 4 bytes, but 5 were sent");
}

TEST_CASE("The thread makes progress, and a second one is refused") {
  Wire wire(3);
  Rank root(wire, 0);
  const elbow_broadcast_recipient recipient[] = {{1, 0}};
  elbow_broadcast_operation sent = 0;
  CHECK(elbow_broadcast_send(root.broadcast, 0, 0, "elbow", 5, recipient, 1, nullptr, &sent) == 0);
  Rank leaf(wire, 1);
  CHECK(elbow_broadcast_start(leaf.broadcast, -1) == 0);
  CHECK(elbow_broadcast_start(leaf.broadcast, -1) == -1);
  CHECK(error() == "thread: runs already; stop it first");
  char into[5];
  elbow_broadcast_operation operation = 0;
  CHECK(elbow_broadcast_receive(leaf.broadcast, 0, 0, 0, into, 5, &operation) == 0);
  CHECK(elbow_broadcast_wait(leaf.broadcast, operation, ELBOW_BROADCAST_RELEASED) == 0);
  CHECK(std::string(into, 5) == "elbow");
  CHECK(elbow_broadcast_stop(leaf.broadcast) == 0);
  CHECK(elbow_broadcast_start(leaf.broadcast, 1 << 20) == -1);
}

namespace {

struct Step {
  std::size_t number;
  std::vector<std::byte> buffer;
  elbow_broadcast_operation operation;
};

// Posts all of a schedule that concerns the rank.
bool post_all(const Schedule& schedule, elbow_broadcast* broadcast, int rank, std::vector<Step>& steps) {
  for (std::size_t number = 0; number < schedule.messages.size(); ++number) {
    const ScheduledMessage& message = schedule.messages[number];
    std::vector<elbow_broadcast_recipient> recipients;
    for (const Destination& to : message.destinations) recipients.push_back({to.rank, to.priority});
    const std::string tree = message.way.two_trees ? "two" : format_tree(message.way.tree);
    const elbow_broadcast_way way = {sizeof(elbow_broadcast_way), tree.c_str(), message.way.segment};
    Step step{number, std::vector<std::byte>(message.size, static_cast<std::byte>(number)), 0};
    if (message.root == rank) {
      if (elbow_broadcast_send(broadcast, message.context, message.tag, step.buffer.data(), message.size,
                               recipients.data(), recipients.size(), &way, &step.operation) != 0) {
        return false;
      }
    } else if (std::any_of(recipients.begin(), recipients.end(), [rank](const auto& to) { return to.rank == rank; })) {
      step.buffer.assign(message.size, std::byte{255});
      if (elbow_broadcast_receive(broadcast, message.context, message.root, message.tag, step.buffer.data(),
                                  message.size, &step.operation) != 0) {
        return false;
      }
    } else {
      continue;
    }
    steps.push_back(std::move(step));
  }
  return true;
}

// What a rank's program does in a schedule: it posts all, then waits for each, by RECEIVED, by RELEASED, or by one after the
// other. Whether all data were right.
bool run_rank(const Schedule& schedule, elbow_broadcast* broadcast, int rank, std::vector<Step>& steps) {
  if (!post_all(schedule, broadcast, rank, steps)) return false;
  for (const Step& step : steps) {
    const std::uint64_t kinds = (schedule.seed + step.number) % 3;
    if (kinds != 0 && elbow_broadcast_wait(broadcast, step.operation, ELBOW_BROADCAST_RECEIVED) != 0) return false;
    if (kinds != 1 && elbow_broadcast_wait(broadcast, step.operation, ELBOW_BROADCAST_RELEASED) != 0) return false;
    for (const std::byte byte : step.buffer) {
      if (byte != static_cast<std::byte>(step.number)) return false;
    }
  }
  return true;
}

bool wait_all_released(elbow_broadcast* broadcast, const std::vector<Step>& steps) {
  return std::all_of(steps.begin(), steps.end(), [broadcast](const Step& step) {
    return elbow_broadcast_wait(broadcast, step.operation, ELBOW_BROADCAST_RELEASED) == 0;
  });
}

// Runs random schedules on ranks that are threads, with the library's thread or without. Those wait for nothing but RECEIVED
// of some messages, and these make progress in their waits only.
void run_random_schedules(bool with_thread) {
  const char* const text = std::getenv("ELBOWROOM_THREADED_SCHEDULES");
  const std::uint64_t count = text != nullptr ? std::strtoull(text, nullptr, 10) : 30;
  std::uint64_t done = 0;
  for (std::uint64_t seed = 1; done < count; ++seed) {
    CAPTURE(seed);
    const Schedule schedule = random_schedule(seed);
    if (schedule.ranks > 6) continue;
    ++done;
    Wire wire(schedule.ranks, seed);
    wire.skip = 1e-6;
    auto settings = sized<elbow_broadcast_settings>();
    settings.inline_limit = 64;
    settings.window = 4000;
    settings.pool = 4000;
    std::vector<std::vector<Step>> steps(static_cast<std::size_t>(schedule.ranks));
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      ranks.push_back(std::make_unique<Rank>(wire, rank, &settings));
      if (with_thread) REQUIRE(elbow_broadcast_start(ranks.back()->broadcast, -1) == 0);
    }
    std::vector<char> right(ranks.size());
    std::vector<std::thread> programs;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      programs.emplace_back([&, rank] {
        elbow_broadcast* const broadcast = ranks[rank]->broadcast;
        const bool all = run_rank(schedule, broadcast, static_cast<int>(rank), steps[rank]);
        right[rank] = all && (with_thread || wait_all_released(broadcast, steps[rank])) ? 1 : 0;
      });
    }
    for (std::thread& program : programs) program.join();
    CHECK(right == std::vector<char>(ranks.size(), 1));
    for (const auto& rank : ranks) elbow_broadcast_stop(rank->broadcast);
  }
}

}  // namespace

TEST_CASE("With a network in the settings, the library chooses the tree, and data arrive") {
  auto network = sized<elbow_broadcast_network>();
  network.forwarding = 1;  // so that no recipient is to forward
  auto settings = sized<elbow_broadcast_settings>();
  settings.network = &network;
  settings.inline_limit = 64;
  for (const bool asked : {false, true}) {
    Wire wire(4);
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int rank = 0; rank < 4; ++rank) ranks.push_back(std::make_unique<Rank>(wire, rank, &settings));
    const std::string text(1000, 'e');
    const elbow_broadcast_recipient recipients[] = {{1, 0}, {2, 0}, {3, 0}};
    const elbow_broadcast_way way = {sizeof(elbow_broadcast_way), "auto", 0};
    std::vector<std::string> into(3, std::string(1000, ' '));
    elbow_broadcast_operation sent = 0;
    CHECK(elbow_broadcast_send(ranks[0]->broadcast, 0, 5, text.data(), text.size(), recipients, 3,
                               asked ? &way : nullptr, &sent) == 0);
    std::vector<elbow_broadcast_operation> received(3);
    for (std::size_t i = 0; i < 3; ++i) {
      elbow_broadcast_receive(ranks[i + 1]->broadcast, 0, 0, 5, into[i].data(), 1000, &received[i]);
    }
    for (int turn = 0; turn < 200; ++turn) {
      for (const auto& rank : ranks) elbow_broadcast_progress(rank->broadcast);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(into[i] == text);
      auto counters = sized<elbow_broadcast_counters>();
      elbow_broadcast_count(ranks[i + 1]->broadcast, &counters);
      CHECK(counters.forwarded == 0);
    }
  }
}

TEST_CASE("A network of negative parameters is refused") {
  Wire wire(2);
  auto network = sized<elbow_broadcast_network>();
  network.bandwidth = -1;
  auto settings = sized<elbow_broadcast_settings>();
  settings.network = &network;
  const elbow_broadcast_transport transport = wire.transport(0);
  CHECK(elbow_broadcast_new(&transport, &settings) == nullptr);
  CHECK(errno == EINVAL);
  CHECK(error() == "bandwidth: must be 0 or greater; give 0 for the default");
}

TEST_CASE("Ranks whose library has a thread get all data of random schedules, by whatever event they wait") {
  run_random_schedules(true);
}

TEST_CASE("Ranks that make progress in their waits only get all data of random schedules") {
  run_random_schedules(false);
}
