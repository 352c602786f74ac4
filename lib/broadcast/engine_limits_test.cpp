// What the engine's costs and memory do not depend on: other open messages, ranks that compute, late receives, missing memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "test_ranks.hpp"

using namespace elbowroom::broadcast;

namespace {

thread_local long allocations_left = -1;  // until there is no memory; below 0: never

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace {

// Counts how often the engine reads the clock, which stands still.
class CountingTransport : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 3; }
  double now() override {
    ++looks;
    return 0;
  }
  std::uint32_t channels() const override { return 1000; }
  void send_control(int, std::span<const std::byte>) override { ++messages; }
  void send_data(int, std::uint32_t, std::span<const std::byte>, Ticket) override {}
  void receive_data(int, std::uint32_t, std::span<std::byte>, Ticket) override {}
  void cancel(Ticket) override {}
  void wake(double) override {}
  bool poll(Happening&) override { return false; }

  long looks = 0;
  long messages = 0;
};

}  // namespace

TEST_CASE("A send looks at the clock as often where thousands of sends are open as where none is") {
  CountingTransport transport;
  Settings settings;
  settings.late = Late::kBypass;
  Engine engine(transport, settings);
  const std::vector<std::byte> data(100000);
  const std::vector<Destination> to{{1, 0}, {2, 0}};
  const auto looks_of_one = [&] {
    const long before = transport.looks;
    engine.send(0, 0, data, to, {});
    engine.progress();
    return transport.looks - before;
  };
  const long first = looks_of_one();
  for (int i = 0; i < 3000; ++i) engine.send(0, 0, data, to, {});
  CHECK(looks_of_one() == first);
}

TEST_CASE("A child that stops taking data keeps back neither other messages nor other children") {
  Settings settings;
  settings.late = Late::kBypass;
  Ranks ranks(4, settings, 1, false);
  constexpr std::size_t kSize = 40 * 65536;
  for (int rank = 1; rank < 4; ++rank) ranks.receive(rank, 0, kSize);
  ranks.send(0, kSize, {{1, 0}, {2, 0}}, "flat", 65536);
  ranks.send(0, kSize, {{3, 0}}, "flat", 65536);
  // Rank 1 answers, posts its first receives, and computes from then on.
  int steps_of_1 = 0;
  for (int rank = ranks.network.step(); rank >= 0; rank = ranks.network.step()) {
    if (rank == 1 && ++steps_of_1 > 1) continue;
    ranks.engines[static_cast<std::size_t>(rank)]->progress();
  }
  ranks.collect();
  CHECK(ranks.count(1, Event::Kind::kReceived) == 0);
  CHECK(ranks.count(2, Event::Kind::kReceived) == 1);
  CHECK(ranks.count(3, Event::Kind::kReceived) == 1);
  ranks.engines[1]->progress();
  ranks.run();
  CHECK(ranks.count(1, Event::Kind::kReceived) == 1);
}

TEST_CASE("With few channels, receives may be posted in the opposite order, each when the one before is over") {
  for (const std::uint32_t channels : {1U, 2U, 3U}) {
    LoopbackNetwork network(2, 1, true, channels);
    Settings settings;
    settings.late = Late::kBypass;
    Engine root(network.endpoint(0), settings);
    Engine leaf(network.endpoint(1), settings);
    constexpr int kMessages = 20;
    std::vector<std::byte> data(20000, std::byte{5});
    std::vector<std::byte> into(20000);
    for (int tag = 0; tag < kMessages; ++tag) root.send(0, tag, data, std::vector<Destination>{{1, 0}}, {{}, 3000});
    for (int tag = kMessages - 1; tag >= 0; --tag) {
      std::fill(into.begin(), into.end(), std::byte{0});
      leaf.receive({0, 0, tag}, into);
      for (int rank = network.step(); rank >= 0; rank = network.step()) (rank == 0 ? root : leaf).progress();
      CHECK(into == data);
    }
    CHECK(root.idle());
    CHECK(leaf.idle());
  }
}

TEST_CASE("A tag for each message leaves nothing to remember") {
  Ranks ranks(2);
  std::vector<std::byte> data(8, std::byte{1});
  std::vector<std::byte> into(8);
  std::size_t most = 0;
  for (int tag = 0; tag < 5000; ++tag) {
    ranks.engines[1]->receive({0, 0, tag}, into);
    ranks.engines[0]->send(0, tag, data, std::vector<Destination>{{1, 0}}, {});
    ranks.run();
    most = std::max({most, ranks.engines[0]->remembered(), ranks.engines[1]->remembered()});
    ranks.times.clear();
    for (auto& events : ranks.events) events.clear();
  }
  CHECK(most < 600);
}

TEST_CASE("What is sent before its receive takes no more memory than the root's share of the pool") {
  Settings settings;
  settings.pool = 100000;
  Ranks ranks(2, settings);
  std::vector<std::byte> data(1000, std::byte{1});
  for (int i = 0; i < 500; ++i) ranks.engines[0]->send(0, 0, data, std::vector<Destination>{{1, 0}}, {});
  ranks.run();
  CHECK(ranks.count(0, Event::Kind::kReleased) <= 50);
  std::deque<std::vector<std::byte>> into;
  for (int i = 0; i < 500; ++i) {
    into.emplace_back(1000);
    ranks.engines[1]->receive({0, 0, 0}, into.back());
    ranks.run();
  }
  CHECK(ranks.count(0, Event::Kind::kReleased) == 500);
  CHECK(ranks.count(1, Event::Kind::kReceived) == 500);
  CHECK(ranks.engines[0]->idle());
}

namespace {

// Has memory always.
class RichTransport : public Transport {
 public:
  explicit RichTransport(Transport& under) : under_(under) {}
  int rank() const override { return under_.rank(); }
  int size() const override { return under_.size(); }
  double now() override { return under_.now(); }
  std::uint32_t channels() const override { return under_.channels(); }
  void send_control(int peer, std::span<const std::byte> bytes) override {
    with_memory([&] { under_.send_control(peer, bytes); });
  }
  void send_data(int peer, std::uint32_t channel, std::span<const std::byte> data, Ticket ticket) override {
    with_memory([&] { under_.send_data(peer, channel, data, ticket); });
  }
  void receive_data(int peer, std::uint32_t channel, std::span<std::byte> data, Ticket ticket) override {
    under_.receive_data(peer, channel, data, ticket);
  }
  void cancel(Ticket ticket) override { under_.cancel(ticket); }
  void wake(double at) override { under_.wake(at); }
  bool poll(Happening& happening) override { return under_.poll(happening); }

 private:
  template <typename Call>
  static void with_memory(const Call& call) {
    const long left = std::exchange(allocations_left, -1);
    call();
    allocations_left = left;
  }

  Transport& under_;
};

}  // namespace

TEST_CASE("A send for which memory is missing leaves the order of later ones as it was") {
  for (const std::size_t size : {100U, 50000U}) {
    bool enough = false;
    for (long allowed = 0; !enough; ++allowed) {
      CAPTURE(allowed);
      Ranks ranks(5);
      RichTransport transport(ranks.network.endpoint(0));
      ranks.engines[0] = std::make_unique<Engine>(transport, Settings{});
      for (int rank = 1; rank < 5; ++rank) {
        ranks.receive(rank, 0, size);
        ranks.receive(rank, 0, size);
      }
      std::vector<std::byte> first(size, std::byte{1});
      std::vector<std::byte> second(size, std::byte{2});
      const std::vector<Destination> to = all_but(0, 5);
      bool sent = true;
      allocations_left = allowed;
      try {
        ranks.engines[0]->send(0, 0, first, to, {});
      } catch (const std::bad_alloc&) {
        sent = false;
      }
      enough = allocations_left > 0;
      allocations_left = -1;
      if (!sent) ranks.engines[0]->send(0, 0, first, to, {});
      ranks.engines[0]->send(0, 0, second, to, {});
      ranks.engines[0]->progress();
      ranks.run();
      ranks.engines[0] = nullptr;
      for (std::size_t i = 0; i < 8; ++i) CHECK(ranks.buffers[i] == (i % 2 == 0 ? first : second));
    }
  }
}

TEST_CASE("Receives whose root is gone get an event, those that are posted later, too") {
  Ranks ranks(3);
  ranks.receive(1, 0, 100);
  ranks.network.lose(0);
  ranks.run();
  CHECK(ranks.count(1, Event::Kind::kLost) == 1);
  ranks.receive(1, 0, 100);
  ranks.run();
  CHECK(ranks.count(1, Event::Kind::kLost) == 2);
}

TEST_CASE("A stall is told again where it has begun, and once where the others have not begun") {
  Settings settings;
  settings.late = Late::kBypass;
  Ranks ranks(3, settings);
  ranks.send(0, 50000, {{1, 0}}, "flat");
  ranks.receive(2, 1, 100);
  ranks.run();
  CHECK(ranks.engines[0]->stalls(0).size() == 1);
  CHECK(ranks.engines[0]->stalls(0).empty());
  CHECK(ranks.engines[2]->stalls(0).size() == 1);
  CHECK(ranks.engines[2]->stalls(0).empty());
  ranks.receive(1, 0, 50000);
  for (int turn = 0; turn < 2; ++turn) {
    const std::vector<Stall> stalls = ranks.engines[1]->stalls(0);
    REQUIRE(stalls.size() == 1);
    CHECK(stalls[0].begun);
  }
}

TEST_CASE("A leaf may read its data before its parent learns that they are here") {
  Ranks ranks(2);
  constexpr std::size_t kSize = 50000;
  ranks.receive(1, 0, kSize);
  ranks.send(0, kSize, {{1, 0}}, "flat");
  Engine& leaf = *ranks.engines[1];
  std::optional<Event> received;
  for (int rank = ranks.network.step(); !received; rank = ranks.network.step()) {
    REQUIRE(rank >= 0);
    ranks.engines[static_cast<std::size_t>(rank)]->step();
    received = leaf.next_event();
  }
  CHECK(received->kind == Event::Kind::kReceived);
  CHECK(!leaf.next_event());
  CHECK(leaf.idle());
  CHECK(leaf.step());
  const std::optional<Event> released = leaf.next_event();
  REQUIRE(released);
  CHECK(released->kind == Event::Kind::kReleased);
  ranks.run();
  CHECK(ranks.engines[0]->idle());
}

TEST_CASE(
    "A root that did nothing since its last send knows of answers that are here, and sends without asking again") {
  Settings settings;
  settings.pool = 400000;  // room for one first segment of 100000 bytes
  Ranks ranks(2, settings, 1, false);
  constexpr std::size_t kSize = 100000;
  for (int turn = 0; turn < 3; ++turn) {
    CAPTURE(turn);
    ranks.receive(1, 0, kSize);
    ranks.send(0, kSize, {{1, 0}}, "flat");
    for (int rank = ranks.network.step(); rank >= 0; rank = ranks.network.step()) {
      if (rank == 1) ranks.engines[1]->progress();
    }
    ranks.collect();
    CHECK(ranks.count(1, Event::Kind::kReleased) == turn + 1);
  }
}
