// The C interface in one process: order, executors, the window and errors. Several processes: tests/mpi/test_factorizations.py.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "broadcast/test_loopback.hpp"
#include "elbowroom/guard.h"
#include "elbowroom/taskflow.h"
#include "elbowroom/taskflow_starpu.h"

namespace {

// A transport without other processes.
elbow_broadcast_transport alone() {
  elbow_broadcast_transport transport{};
  transport.size = sizeof transport;
  transport.ranks = 1;
  transport.channels = 1;
  transport.send_control = [](void*, int, const void*, size_t) { return -1; };
  transport.send_data = [](void*, int, std::uint32_t, const void*, size_t, std::uint64_t) { return -1; };
  transport.receive_data = [](void*, int, std::uint32_t, void*, size_t, std::uint64_t) { return -1; };
  transport.now = [](void*) { return 0.0; };
  transport.poll = [](void*, elbow_broadcast_happening*) { return 0; };
  return transport;
}

elbow_taskflow_settings defaults() {
  elbow_taskflow_settings settings{};
  settings.size = sizeof settings;
  return settings;
}

struct Flow {
  explicit Flow(const elbow_taskflow_settings& settings = defaults()) {
    const elbow_broadcast_transport transport = alone();
    broadcast = elbow_broadcast_new(&transport, nullptr);
    flow = elbow_taskflow_new(broadcast, 0, 1, &settings);
  }
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;
  ~Flow() {
    elbow_taskflow_free(flow);
    elbow_broadcast_free(broadcast);
  }

  elbow_taskflow_data add(int& value) {
    elbow_taskflow_data data = 0;
    REQUIRE(elbow_taskflow_register(flow, &value, sizeof value, 0, &data) == 0);
    return data;
  }

  elbow_broadcast* broadcast = nullptr;
  elbow_taskflow* flow = nullptr;
};

void append(void* const* buffers, const void* argument) {
  int& digits = *static_cast<int*>(buffers[0]);
  digits = 10 * digits + *static_cast<const int*>(argument);
}

std::string refusal(int result) {
  CHECK(result == -1);
  CHECK(errno == EINVAL);
  return elbow_taskflow_error();
}

}  // namespace

TEST_CASE("Tasks that change the same data run in the order of their submission, whatever their priorities") {
  Flow flow;
  int value = 0;
  const elbow_taskflow_use uses[] = {{flow.add(value), ELBOW_TASKFLOW_READ_WRITE}};
  for (const int digit : {1, 2, 3}) {
    REQUIRE(elbow_taskflow_submit(flow.flow, append, &digit, sizeof digit, uses, 1, digit, ELBOW_TASKFLOW_ANYWHERE) ==
            0);
  }
  REQUIRE(elbow_taskflow_wait(flow.flow) == 0);
  CHECK(value == 123);
}

TEST_CASE("Of tasks that are ready, those of higher priority run first") {
  Flow flow;
  static std::vector<int> order;
  order.clear();
  int values[3] = {};
  for (const int priority : {1, 3, 2}) {
    const elbow_taskflow_use uses[] = {{flow.add(values[priority - 1]), ELBOW_TASKFLOW_WRITE}};
    const elbow_taskflow_kernel note = [](void* const*, const void* argument) {
      order.push_back(*static_cast<const int*>(argument));
    };
    REQUIRE(elbow_taskflow_submit(flow.flow, note, &priority, sizeof priority, uses, 1, priority, 0) == 0);
  }
  REQUIRE(elbow_taskflow_wait(flow.flow) == 0);
  CHECK(order == std::vector<int>{3, 2, 1});
}

extern "C" {
std::string* kernels = nullptr;
__attribute__((visibility("default"))) void flow_test_copy(void* const*, const void*) { *kernels += 'm'; }
__attribute__((visibility("default"))) void flow_test_compute(void* const*, const void*) { *kernels += 'c'; }
}

TEST_CASE("Under a guard that holds memory-bound tasks, others run first while messages move") {
  const std::string path = "/dev/shm/elbow-guard-flow-" + std::to_string(getpid());
  setenv("ELBOW_GUARD", path.c_str(), 1);
  setenv("ELBOW_GUARD_MEMORY_BOUND", "flow_test_copy", 1);
  elbow_guard* const board = elbow_guard_make(path.c_str(), 2);
  elbow_guard_rank* const rank = elbow_guard_join(board, 0, 0);
  const elbow_taskflow_executor at_once = {sizeof at_once, nullptr,
                                           [](void*, int, void (*body)(void*), void* argument) {
                                             body(argument);
                                             return 0;
                                           },
                                           nullptr};
  for (const elbow_taskflow_executor* const executor :
       {static_cast<const elbow_taskflow_executor*>(nullptr), &at_once}) {
    for (const bool moves : {false, true}) {
      elbow_taskflow_settings settings = defaults();
      settings.executor = executor;
      Flow flow(settings);
      std::string ran;
      kernels = &ran;
      int values[2] = {};
      elbow_guard_set(board, 2, 3);
      REQUIRE(elbow_taskflow_progress(flow.flow) == 0);
      if (moves) elbow_guard_begin(rank, ELBOW_GUARD_OUT, 64 << 20);
      const elbow_taskflow_use first[] = {{flow.add(values[0]), ELBOW_TASKFLOW_WRITE}};
      const elbow_taskflow_use second[] = {{flow.add(values[1]), ELBOW_TASKFLOW_WRITE}};
      REQUIRE(elbow_taskflow_submit(flow.flow, flow_test_copy, nullptr, 0, first, 1, 5, 0) == 0);
      REQUIRE(elbow_taskflow_submit(flow.flow, flow_test_compute, nullptr, 0, second, 1, 0, 0) == 0);
      REQUIRE(elbow_taskflow_wait(flow.flow) == 0);
      CHECK(ran == (moves ? "cm" : "mc"));
      if (moves) elbow_guard_end(rank, ELBOW_GUARD_OUT, 64 << 20);
    }
  }
  elbow_guard_leave(rank);
  elbow_guard_close(board);
  unlink(path.c_str());
  unsetenv("ELBOW_GUARD");
  unsetenv("ELBOW_GUARD_MEMORY_BOUND");
}

TEST_CASE("An executor's threads run the tasks, and the flow waits for them") {
  struct Threads {
    std::vector<std::thread> threads;
    ~Threads() {
      for (std::thread& thread : threads) thread.join();
    }
  } threads;
  const elbow_taskflow_executor executor = {sizeof executor, &threads,
                                            [](void* state, int, void (*body)(void*), void* argument) {
                                              static_cast<Threads*>(state)->threads.emplace_back(body, argument);
                                              return 0;
                                            },
                                            nullptr};
  elbow_taskflow_settings settings = defaults();
  settings.executor = &executor;
  Flow flow(settings);
  int value = 0;
  const elbow_taskflow_use uses[] = {{flow.add(value), ELBOW_TASKFLOW_READ_WRITE}};
  for (const int digit : {4, 5, 6, 7}) {
    REQUIRE(elbow_taskflow_submit(flow.flow, append, &digit, sizeof digit, uses, 1, 0, 0) == 0);
  }
  REQUIRE(elbow_taskflow_wait(flow.flow) == 0);
  CHECK(value == 4567);
}

TEST_CASE("No more tasks are under way than the window allows") {
  elbow_taskflow_settings settings = defaults();
  settings.window = 2;
  Flow flow(settings);
  int values[5] = {};
  static int over = 0;
  over = 0;
  for (int i = 0; i < 5; ++i) {
    const elbow_taskflow_use uses[] = {{flow.add(values[i]), ELBOW_TASKFLOW_WRITE}};
    const elbow_taskflow_kernel count = [](void* const*, const void*) { ++over; };
    REQUIRE(elbow_taskflow_submit(flow.flow, count, nullptr, 0, uses, 1, 0, 0) == 0);
    CHECK(i + 1 - over <= 2);
  }
  REQUIRE(elbow_taskflow_wait(flow.flow) == 0);
  CHECK(over == 5);
}

TEST_CASE("An executor that refuses a task ends the call with a sentence") {
  const elbow_taskflow_executor executor = {sizeof executor, nullptr,
                                            [](void*, int, void (*)(void*), void*) { return -1; }, nullptr};
  elbow_taskflow_settings settings = defaults();
  settings.executor = &executor;
  Flow flow(settings);
  int value = 0;
  const elbow_taskflow_use uses[] = {{flow.add(value), ELBOW_TASKFLOW_READ_WRITE}};
  CHECK(elbow_taskflow_submit(flow.flow, append, &value, sizeof value, uses, 1, 0, 0) == -1);
  CHECK(errno == EAGAIN);
  CHECK(std::string(elbow_taskflow_error()) == "executor: refuses a task; see what it says of itself");
}

TEST_CASE("Wrong tasks and wrong processes are refused with the field, the value and a hint") {
  Flow flow;
  int value = 0;
  const elbow_taskflow_data data = flow.add(value);
  const elbow_taskflow_use wrong[] = {{data, 7}};
  CHECK(refusal(elbow_taskflow_submit(flow.flow, append, nullptr, 0, wrong, 1, 0, 0)) ==
        "mode 7: is unknown; use ELBOW_TASKFLOW_READ, ELBOW_TASKFLOW_WRITE or ELBOW_TASKFLOW_READ_WRITE");
  const elbow_taskflow_use reads[] = {{data, ELBOW_TASKFLOW_READ}};
  CHECK(refusal(elbow_taskflow_submit(flow.flow, append, nullptr, 0, reads, 1, 0, ELBOW_TASKFLOW_ANYWHERE)) ==
        "rank: ELBOW_TASKFLOW_ANYWHERE is where the task writes, and it writes nothing; name a rank");
  CHECK(refusal(elbow_taskflow_expect(flow.flow, 9, 2)) == "data 9: are not registered; 1 are");
  CHECK(elbow_taskflow_new(nullptr, 0, 1, nullptr) == nullptr);
  CHECK(std::string(elbow_taskflow_error()) == "broadcast: is NULL; see elbow_broadcast_error()");
  CHECK(elbow_taskflow_new(flow.broadcast, 3, 2, nullptr) == nullptr);
  CHECK(std::string(elbow_taskflow_error()) == "rank 3: is none of 2");
}

namespace {

double seconds = 0;  // by the clock of the processes below

// A process of two, over a loopback network.
struct End {
  elbowroom::broadcast::LoopbackNetwork* network;
  int rank;

  static elbowroom::broadcast::Transport& of(void* state) {
    const End& end = *static_cast<End*>(state);
    return end.network->endpoint(end.rank);
  }

  elbow_broadcast_transport transport() {
    using elbowroom::broadcast::Happening;
    elbow_broadcast_transport result{};
    result.size = sizeof result;
    result.state = this;
    result.rank = rank;
    result.ranks = 2;
    result.channels = 100;
    result.now = [](void*) { return seconds; };
    result.send_control = [](void* state, int peer, const void* bytes, size_t length) {
      of(state).send_control(peer, {static_cast<const std::byte*>(bytes), length});
      return 0;
    };
    result.send_data = [](void* state, int peer, std::uint32_t channel, const void* data, size_t length,
                          std::uint64_t ticket) {
      of(state).send_data(peer, channel, {static_cast<const std::byte*>(data), length}, ticket);
      return 0;
    };
    result.receive_data = [](void* state, int peer, std::uint32_t channel, void* data, size_t length,
                             std::uint64_t ticket) {
      of(state).receive_data(peer, channel, {static_cast<std::byte*>(data), length}, ticket);
      return 0;
    };
    result.poll = [](void* state, elbow_broadcast_happening* given) {
      static_cast<End*>(state)->network->step();
      Happening now;
      if (!of(state).poll(now)) return 0;
      *given = {given->size, static_cast<int>(now.kind), now.peer, now.ticket, now.bytes.data(), now.bytes.size()};
      return 1;
    };
    return result;
  }
};

}  // namespace

TEST_CASE("A task that takes longer than the watchdog fails neither its process nor those that wait for its data") {
  elbowroom::broadcast::LoopbackNetwork network(2, 1);
  End ends[2] = {{&network, 0}, {&network, 1}};
  elbow_broadcast_settings watched{};
  watched.size = sizeof watched;
  watched.watchdog = 5;
  elbow_taskflow_settings settings = defaults();
  static int told = 0;
  told = 0;
  settings.stalled = [](void*, const char*) { ++told; };
  constexpr std::size_t kNumbers = 20000;
  std::vector<int> memory[3] = {std::vector<int>(kNumbers), std::vector<int>(kNumbers), std::vector<int>(kNumbers)};
  elbow_broadcast* broadcasts[2];
  elbow_taskflow* flows[2];
  const elbow_taskflow_kernel slow = [](void* const* buffers, const void*) {
    seconds += 1000;
    *static_cast<int*>(buffers[0]) = 7;
  };
  const elbow_taskflow_kernel copy = [](void* const* buffers, const void*) {
    *static_cast<int*>(buffers[1]) = *static_cast<int*>(buffers[0]);
  };
  for (int rank = 0; rank < 2; ++rank) {
    const elbow_broadcast_transport transport = ends[rank].transport();
    broadcasts[rank] = elbow_broadcast_new(&transport, &watched);
    flows[rank] = elbow_taskflow_new(broadcasts[rank], rank, 2, &settings);
    REQUIRE(flows[rank] != nullptr);
    elbow_taskflow_data data[3] = {0, 0, 0};
    const std::size_t bytes = kNumbers * sizeof(int);
    for (std::size_t i = 0; i < 3; ++i) {
      REQUIRE(elbow_taskflow_register(flows[rank], memory[i].data(), bytes, i == 0 ? 0 : 1, &data[i]) == 0);
    }
    // Rank 0 computes for long, rank 1 too, and then reads what rank 0 made.
    const elbow_taskflow_use makes[] = {{data[0], ELBOW_TASKFLOW_WRITE}};
    const elbow_taskflow_use other[] = {{data[1], ELBOW_TASKFLOW_WRITE}};
    const elbow_taskflow_use reads[] = {{data[0], ELBOW_TASKFLOW_READ}, {data[2], ELBOW_TASKFLOW_WRITE}};
    REQUIRE(elbow_taskflow_submit(flows[rank], slow, nullptr, 0, makes, 1, 0, 0) == 0);
    REQUIRE(elbow_taskflow_submit(flows[rank], slow, nullptr, 0, other, 1, 0, 1) == 0);
    REQUIRE(elbow_taskflow_submit(flows[rank], copy, nullptr, 0, reads, 2, 0, 1) == 0);
  }
  for (int turn = 0; turn < 2000; ++turn) {
    seconds += 0.1;
    for (elbow_taskflow* const flow : flows) REQUIRE(elbow_taskflow_progress(flow) == 0);
  }
  CHECK(told > 0);
  CHECK(memory[2][0] == 7);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(elbow_taskflow_wait(flows[rank]) == 0);
    elbow_taskflow_free(flows[rank]);
    elbow_broadcast_free(broadcasts[rank]);
  }
}

TEST_CASE("Ready data that wait for further readers leave in the next call of progress, and in no other way") {
  elbowroom::broadcast::LoopbackNetwork network(2, 1);
  End ends[2] = {{&network, 0}, {&network, 1}};
  const elbow_taskflow_executor at_once = {sizeof at_once, nullptr,
                                           [](void*, int, void (*body)(void*), void* argument) {
                                             body(argument);
                                             return 0;
                                           },
                                           nullptr};
  elbow_taskflow_settings settings = defaults();
  settings.executor = &at_once;
  const elbow_taskflow_kernel make = [](void* const* buffers, const void*) { *static_cast<int*>(buffers[0]) = 7; };
  const elbow_taskflow_kernel copy = [](void* const* buffers, const void*) {
    *static_cast<int*>(buffers[1]) = *static_cast<int*>(buffers[0]);
  };
  int made = 0;
  int copied = 0;
  elbow_broadcast* broadcasts[2];
  elbow_taskflow* flows[2];
  for (int rank = 0; rank < 2; ++rank) {
    const elbow_broadcast_transport transport = ends[rank].transport();
    broadcasts[rank] = elbow_broadcast_new(&transport, nullptr);
    flows[rank] = elbow_taskflow_new(broadcasts[rank], rank, 2, &settings);
    elbow_taskflow_data data[2] = {0, 0};
    REQUIRE(elbow_taskflow_register(flows[rank], &made, sizeof made, 0, &data[0]) == 0);
    REQUIRE(elbow_taskflow_register(flows[rank], &copied, sizeof copied, 1, &data[1]) == 0);
    const elbow_taskflow_use makes[] = {{data[0], ELBOW_TASKFLOW_WRITE}};
    const elbow_taskflow_use reads[] = {{data[0], ELBOW_TASKFLOW_READ}, {data[1], ELBOW_TASKFLOW_WRITE}};
    REQUIRE(elbow_taskflow_submit(flows[rank], make, nullptr, 0, makes, 1, 0, 0) == 0);
    REQUIRE(elbow_taskflow_submit(flows[rank], copy, nullptr, 0, reads, 2, 0, 1) == 0);
  }
  const auto reader_makes_progress = [&] {
    for (int turn = 0; turn < 200; ++turn) {
      CHECK(elbow_broadcast_progress(broadcasts[0]) == 0);
      CHECK(elbow_taskflow_progress(flows[1]) == 0);
    }
  };
  reader_makes_progress();
  CHECK(made == 7);
  CHECK(copied == 0);
  CHECK(elbow_taskflow_progress(flows[0]) == 0);
  reader_makes_progress();
  CHECK(copied == 7);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(elbow_taskflow_wait(flows[rank]) == 0);
    elbow_taskflow_free(flows[rank]);
    elbow_broadcast_free(broadcasts[rank]);
  }
}

TEST_CASE("Data that StarPU has elsewhere are fetched before each message, and given back behind it") {
  constexpr std::size_t kNumbers = 20000;
  elbowroom::broadcast::LoopbackNetwork network(3, 1);
  End ends[3] = {{&network, 0}, {&network, 1}, {&network, 2}};
  const elbow_taskflow_executor executor = elbow_taskflow_executor_of_starpu();
  elbow_taskflow_settings settings = defaults();
  settings.executor = &executor;
  // The last number grows by one in each task that writes, and what is read is added.
  const elbow_taskflow_kernel grow = [](void* const* buffers, const void*) {
    ++static_cast<int*>(buffers[0])[kNumbers - 1];
  };
  const elbow_taskflow_kernel add = [](void* const* buffers, const void*) {
    static_cast<int*>(buffers[1])[0] += static_cast<int*>(buffers[0])[kNumbers - 1];
  };
  std::vector<int> source(kNumbers, 5);
  std::vector<int> sums(3, 0);
  elbow_broadcast* broadcasts[3];
  elbow_taskflow* flows[3];
  for (int rank = 0; rank < 3; ++rank) {
    elbow_broadcast_transport transport = ends[rank].transport();
    transport.ranks = 3;
    broadcasts[rank] = elbow_broadcast_new(&transport, nullptr);
    flows[rank] = elbow_taskflow_new(broadcasts[rank], rank, 3, &settings);
    REQUIRE(flows[rank] != nullptr);
    elbow_taskflow_data data[4] = {0, 0, 0, 0};
    REQUIRE(elbow_taskflow_register(flows[rank], source.data(), kNumbers * sizeof(int), 0, &data[0]) == 0);
    for (int owner = 0; owner < 3; ++owner) {
      int* const sum = &sums[static_cast<std::size_t>(owner)];
      REQUIRE(elbow_taskflow_register(flows[rank], sum, sizeof *sum, owner, &data[owner + 1]) == 0);
    }
    for (int turn = 0; turn < 3; ++turn) {
      // Not always the owner: then the data come back to it.
      const elbow_taskflow_use grows[] = {{data[0], ELBOW_TASKFLOW_READ_WRITE}};
      REQUIRE(elbow_taskflow_submit(flows[rank], grow, nullptr, 0, grows, 1, 0, turn) == 0);
      for (int reader = 0; reader < 3; ++reader) {
        const elbow_taskflow_use adds[] = {{data[0], ELBOW_TASKFLOW_READ},
                                           {data[reader + 1], ELBOW_TASKFLOW_READ_WRITE}};
        REQUIRE(elbow_taskflow_submit(flows[rank], add, nullptr, 0, adds, 2, 0, reader) == 0);
      }
    }
  }
  for (int turn = 0; turn < 2000; ++turn) {
    for (elbow_taskflow* const flow : flows) REQUIRE(elbow_taskflow_progress(flow) == 0);
  }
  for (int rank = 0; rank < 3; ++rank) CHECK(elbow_taskflow_wait(flows[rank]) == 0);
  CHECK(source[kNumbers - 1] == 8);
  CHECK(sums == std::vector<int>(3, 6 + 7 + 8));
  for (int rank = 0; rank < 3; ++rank) {
    elbow_taskflow_free(flows[rank]);
    elbow_broadcast_free(broadcasts[rank]);
  }
  CHECK(starpu_stand_in::allocated == 0);
}

TEST_CASE("After a failure the flow's calls fail again, and do not wait for ever") {
  const elbow_taskflow_executor executor = {sizeof executor, nullptr,
                                            [](void*, int, void (*)(void*), void*) { return -1; }, nullptr};
  elbow_taskflow_settings settings = defaults();
  settings.executor = &executor;
  Flow flow(settings);
  int value = 0;
  const elbow_taskflow_use uses[] = {{flow.add(value), ELBOW_TASKFLOW_READ_WRITE}};
  CHECK(elbow_taskflow_submit(flow.flow, append, &value, sizeof value, uses, 1, 0, 0) == -1);
  CHECK(elbow_taskflow_wait(flow.flow) == -1);
  CHECK(errno == EAGAIN);
  CHECK(std::string(elbow_taskflow_error()) == "executor: refuses a task; see what it says of itself");
}

TEST_CASE("NULL, and structs without a size, are refused by a flow") {
  Flow flow;
  int value = 0;
  elbow_taskflow_data data = 0;
  CHECK(refusal(elbow_taskflow_register(nullptr, &value, 4, 0, &data)) == "flow: is NULL");
  CHECK(refusal(elbow_taskflow_register(flow.flow, &value, 4, 0, nullptr)) == "data: is NULL");
  CHECK(refusal(elbow_taskflow_submit(nullptr, append, nullptr, 0, nullptr, 0, 0, 0)) == "flow: is NULL");
  CHECK(refusal(elbow_taskflow_submit(flow.flow, nullptr, nullptr, 0, nullptr, 0, 0, 0)) ==
        "kernel: is NULL; give the function");
  CHECK(refusal(elbow_taskflow_submit(flow.flow, append, nullptr, 4, nullptr, 0, 0, 0)) == "argument: is NULL");
  CHECK(refusal(elbow_taskflow_submit(flow.flow, append, nullptr, 0, nullptr, 1, 0, 0)) == "uses: is NULL");
  CHECK(refusal(elbow_taskflow_progress(nullptr)) == "flow: is NULL");
  CHECK(refusal(elbow_taskflow_wait(nullptr)) == "flow: is NULL");
  elbow_taskflow_counters counters{};
  CHECK(refusal(elbow_taskflow_count(flow.flow, nullptr)) == "counters: is NULL");
  CHECK(refusal(elbow_taskflow_count(flow.flow, &counters)).starts_with("counters.size 0"));
  elbow_taskflow_settings settings{};
  CHECK(elbow_taskflow_new(flow.broadcast, 0, 1, &settings) == nullptr);
  elbow_taskflow_free(nullptr);
  CHECK(std::string(elbow_taskflow_version()) == ELBOWROOM_VERSION);
}
