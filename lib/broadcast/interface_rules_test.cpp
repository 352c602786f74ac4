// The C interface: stalls, messages of other releases, what is remembered, NULL, and sizes of structs.
#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "events.hpp"
#include "message.hpp"
#include "test_wire.hpp"
#include "turns.hpp"

using namespace elbowroom::broadcast;

namespace {

// A message that a rank might get.
std::vector<std::byte> encoded(const Announcement& announcement) {
  std::vector<std::byte> bytes;
  encode(announcement, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("The watchdog ends a wait for data that were announced and do not come, and it may be waited again") {
  Wire wire(3);
  wire.skip = 0.1;
  auto settings = sized<elbow_broadcast_settings>();
  settings.watchdog = 5;
  Rank leaf(wire, 1, &settings);
  Announcement announcement;
  announcement.key = {0, 2, -8};
  announcement.receiver = {1, 0, 1};
  announcement.number = 1;
  announcement.size = announcement.segment = 4;
  const elbow_broadcast_transport root = wire.transport(2);
  const std::vector<std::byte> bytes = encoded(announcement);
  root.send_control(root.state, 1, bytes.data(), bytes.size());
  elbow_broadcast_operation operation = 0;
  char into[4];
  CHECK(elbow_broadcast_receive(leaf.broadcast, 0, 2, -8, into, 4, &operation) == 0);
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(elbow_broadcast_wait(leaf.broadcast, operation, ELBOW_BROADCAST_RECEIVED) == -1);
    CHECK(errno == ETIMEDOUT);
    CHECK(error().starts_with("nothing has moved for 5 s: data of rank 2 with tag -8 wait for rank 2; "));
  }
}

TEST_CASE(
    "A receive that nobody announces data for is told to have stalled once, and its wait goes on until they come") {
  Wire wire(3);
  wire.skip = 0.1;
  auto settings = sized<elbow_broadcast_settings>();
  settings.watchdog = 5;
  Rank root(wire, 2, &settings);
  Rank leaf(wire, 1, &settings);
  elbow_broadcast_operation operation = 0;
  char into[4];
  CHECK(elbow_broadcast_receive(leaf.broadcast, 0, 2, 0, into, 4, &operation) == 0);
  auto event = sized<elbow_broadcast_event>();
  int told = 0;
  for (int look = 0; look < 5000; ++look) {
    if (elbow_broadcast_next(leaf.broadcast, &event) == 1) {
      ++told;
      CHECK(event.kind == ELBOW_BROADCAST_STALLED);
      CHECK(event.operation == operation);
    }
  }
  CHECK(told == 1);
  const elbow_broadcast_recipient recipient[] = {{1, 0}};
  elbow_broadcast_operation sent = 0;
  CHECK(elbow_broadcast_send(root.broadcast, 0, 0, "elbo", 4, recipient, 1, nullptr, &sent) == 0);
  CHECK(elbow_broadcast_wait(leaf.broadcast, operation, ELBOW_BROADCAST_RELEASED) == 0);
  CHECK(std::string(into, 4) == "elbo");
}

TEST_CASE("A message of a later release ends a wait with a sentence") {
  Wire wire(3);
  Rank leaf(wire, 1);
  Announcement announcement;
  announcement.key = {0, 2, 0};
  announcement.receiver = {1, 0, 1};
  announcement.inlined = true;
  std::vector<std::byte> bytes = encoded(announcement);
  bytes[1] = std::byte{3};
  const elbow_broadcast_transport root = wire.transport(2);
  root.send_control(root.state, 1, bytes.data(), bytes.size());
  elbow_broadcast_operation operation = 0;
  CHECK(elbow_broadcast_receive(leaf.broadcast, 0, 2, 0, nullptr, 0, &operation) == 0);
  CHECK(elbow_broadcast_wait(leaf.broadcast, operation, ELBOW_BROADCAST_RECEIVED) == -1);
  CHECK(errno == ECOMM);
  CHECK(error() == "a message of rank 2 cannot be read: version: is 3, and this is 2; use one release on all ranks");
}

TEST_CASE("Operations that are only waited for leave nothing to remember, whatever event is waited for") {
  for (const int kind : {ELBOW_BROADCAST_RECEIVED, ELBOW_BROADCAST_RELEASED}) {
    Events events;
    for (std::uint64_t operation = 1; operation <= 10000; ++operation) {
      events.begin(operation, true);
      CHECK(!events.had(operation, kind));
      events.add({ELBOW_BROADCAST_RECEIVED, operation, -1, {}});
      if (kind == ELBOW_BROADCAST_RECEIVED) CHECK(events.had(operation, kind));
      events.add({ELBOW_BROADCAST_RELEASED, operation, -1, {}});
      CHECK(events.had(operation, kind));
      CHECK(events.remembered() == 0);
    }
    CHECK(!events.next());
  }
}

TEST_CASE("A text of an event stays while another thread takes one") {
  Wire wire(3);
  Rank leaf(wire, 1);
  elbow_broadcast_operation operation = 0;
  char into[4];
  auto event = sized<elbow_broadcast_event>();
  const elbow_broadcast_transport root = wire.transport(2);
  const auto damaged = [&](char byte) {
    root.send_control(root.state, 1, &byte, 1);
    for (int i = 0; i < 100; ++i) elbow_broadcast_progress(leaf.broadcast);
  };
  damaged('a');
  CHECK(elbow_broadcast_next(leaf.broadcast, &event) == 1);
  const std::string before = event.text;
  CHECK(elbow_broadcast_receive(leaf.broadcast, 0, 2, 0, into, 4, &operation) == 0);
  std::thread([&] {
    damaged(static_cast<char>(0xEB));
    auto other = sized<elbow_broadcast_event>();
    CHECK(elbow_broadcast_next(leaf.broadcast, &other) == 1);
    CHECK(other.text != before);
  }).join();
  CHECK(event.text == before);
}

TEST_CASE("NULL, and structs without a size, are refused") {
  Wire wire(2);
  Rank rank(wire, 0);
  elbow_broadcast* const broadcast = rank.broadcast;
  elbow_broadcast_operation operation = 0;
  const elbow_broadcast_recipient to[] = {{1, 0}};
  const auto refused = [](int result, const char* sentence) {
    CHECK(result == -1);
    CHECK(errno == EINVAL);
    CHECK(error() == sentence);
  };
  refused(elbow_broadcast_receive(nullptr, 0, 1, 0, nullptr, 0, &operation), "broadcast: is NULL");
  refused(elbow_broadcast_receive(broadcast, 0, 1, 0, nullptr, 8, &operation), "data: is NULL");
  refused(elbow_broadcast_receive(broadcast, 0, 1, 0, nullptr, 0, nullptr), "operation: is NULL");
  refused(elbow_broadcast_send(nullptr, 0, 0, "", 1, to, 1, nullptr, &operation), "broadcast: is NULL");
  refused(elbow_broadcast_send(broadcast, 0, 0, nullptr, 1, to, 1, nullptr, &operation), "data: is NULL");
  refused(elbow_broadcast_send(broadcast, 0, 0, "", 1, nullptr, 1, nullptr, &operation), "recipients: is NULL");
  refused(elbow_broadcast_send(broadcast, 0, 0, "", 1, to, 1, nullptr, nullptr), "operation: is NULL");
  refused(elbow_broadcast_progress(nullptr), "broadcast: is NULL");
  refused(elbow_broadcast_next(broadcast, nullptr), "event: is NULL");
  refused(elbow_broadcast_wait(nullptr, 1, ELBOW_BROADCAST_RECEIVED), "broadcast: is NULL");
  refused(elbow_broadcast_start(nullptr, -1), "broadcast: is NULL");
  refused(elbow_broadcast_stop(nullptr), "broadcast: is NULL");
  refused(elbow_broadcast_count(broadcast, nullptr), "counters: is NULL");
  const elbow_broadcast_way way{0, "flat", 0};
  refused(elbow_broadcast_send(broadcast, 0, 0, "", 1, to, 1, &way, &operation),
          "way.size 0: must be the structure's size, 24; set it to sizeof");
  elbow_broadcast_event event{};
  CHECK(elbow_broadcast_next(broadcast, &event) == -1);
  CHECK(error().starts_with("event.size 0"));
  elbow_broadcast_free(nullptr);
  CHECK(std::string(elbow_broadcast_version()) == ELBOWROOM_VERSION);
}

TEST_CASE("Settings of a later release are taken while what they add is not used") {
  struct Later {
    elbow_broadcast_settings settings{};
    std::uint64_t added = 0;
  } later;
  later.settings.size = sizeof later;
  Wire wire(2);
  const elbow_broadcast_transport transport = wire.transport(0);
  elbow_broadcast* const broadcast = elbow_broadcast_new(&transport, &later.settings);
  CHECK(broadcast != nullptr);
  elbow_broadcast_free(broadcast);
  later.added = 1;
  CHECK(elbow_broadcast_new(&transport, &later.settings) == nullptr);
  CHECK(errno == EINVAL);
  CHECK(error().starts_with("settings: sets fields that this release does not know"));
}

TEST_CASE("A rank that received its data is not blamed for the progress that it does not make") {
  Wire wire(2);
  auto settings = sized<elbow_broadcast_settings>();
  settings.watchdog = 5;
  Rank root(wire, 0, &settings);
  Rank leaf(wire, 1, &settings);
  std::vector<char> data(50000);
  std::vector<char> into(50000);
  const elbow_broadcast_recipient recipient = {1, 0};
  elbow_broadcast_operation operation = 0;
  CHECK(elbow_broadcast_receive(leaf.broadcast, 0, 0, 0, into.data(), into.size(), &operation) == 0);
  elbow_broadcast_operation sent = 0;
  CHECK(elbow_broadcast_send(root.broadcast, 0, 0, data.data(), data.size(), &recipient, 1, nullptr, &sent) == 0);
  CHECK(elbow_broadcast_wait(leaf.broadcast, operation, ELBOW_BROADCAST_RECEIVED) == 0);
  wire.skip = 100;  // it computes
  auto event = sized<elbow_broadcast_event>();
  CHECK(elbow_broadcast_next(leaf.broadcast, &event) == 0);
}

TEST_CASE("A thread for which nothing happens sleeps between two looks") {
  static std::atomic<long> looks = 0;
  Wire wire(2);
  elbow_broadcast_transport transport = wire.transport(0);
  transport.poll = [](void*, elbow_broadcast_happening*) {
    ++looks;
    return 0;
  };
  elbow_broadcast* const broadcast = elbow_broadcast_new(&transport, nullptr);
  REQUIRE(elbow_broadcast_start(broadcast, -1) == 0);
  const auto passed = [begun = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count();
  };
  while (passed() < 20000) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double from = passed();
  const long before = looks;
  while (passed() < from + 50000 || looks == before) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const long since = looks - before;  // before the clock is read, at whatever time this thread goes on
  CHECK(static_cast<double>(since) < (passed() - from) / 50 + 2);
  elbow_broadcast_free(broadcast);
}

TEST_CASE(
    "A thread that takes the mutex again at once comes after those that waited for it, which come in their order") {
  Turns turns;
  std::vector<int> order;  // under the mutex
  std::vector<std::thread> others;
  turns.lock();
  for (int number = 1; number <= 3; ++number) {
    others.emplace_back([&, number] {
      turns.lock();
      order.push_back(number);
      turns.unlock();
    });
    while (turns.callers() <= static_cast<std::uint32_t>(number)) std::this_thread::yield();
  }
  turns.unlock();
  turns.lock();
  order.push_back(0);
  turns.unlock();
  for (std::thread& other : others) other.join();
  CHECK(order == std::vector<int>{1, 2, 3, 0});
}
