// The C interface in one process: order, executors, the window and errors. Several processes: tests/mpi/test_factorizations.py.
#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "elbowroom/taskflow.h"

namespace {

// A transport without other processes.
elbow_transport alone() {
  elbow_transport transport{};
  transport.size = 1;
  transport.channels = 1;
  transport.now = [](void*) { return 0.0; };
  transport.poll = [](void*, elbow_happening*) { return 0; };
  return transport;
}

struct Flow {
  explicit Flow(const elbow_taskflow_settings& settings = {}) {
    const elbow_transport transport = alone();
    broadcast = elbow_broadcast_new(&transport, nullptr);
    flow = elbow_taskflow_new(broadcast, 0, 1, &settings);
  }
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;
  ~Flow() {
    elbow_taskflow_free(flow);
    elbow_broadcast_free(broadcast);
  }

  elbow_data add(int& value) {
    elbow_data data = 0;
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
  const elbow_use uses[] = {{flow.add(value), ELBOW_READ_WRITE}};
  for (const int digit : {1, 2, 3}) {
    REQUIRE(elbow_taskflow_submit(flow.flow, append, &digit, sizeof digit, uses, 1, digit, ELBOW_ANYWHERE) == 0);
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
    const elbow_use uses[] = {{flow.add(values[priority - 1]), ELBOW_WRITE}};
    const elbow_kernel note = [](void* const*, const void* argument) {
      order.push_back(*static_cast<const int*>(argument));
    };
    REQUIRE(elbow_taskflow_submit(flow.flow, note, &priority, sizeof priority, uses, 1, priority, 0) == 0);
  }
  REQUIRE(elbow_taskflow_wait(flow.flow) == 0);
  CHECK(order == std::vector<int>{3, 2, 1});
}

TEST_CASE("An executor's threads run the tasks, and the flow waits for them") {
  struct Threads {
    std::vector<std::thread> threads;
    ~Threads() {
      for (std::thread& thread : threads) thread.join();
    }
  } threads;
  const elbow_executor executor = {&threads, [](void* state, int, void (*body)(void*), void* argument) {
                                     static_cast<Threads*>(state)->threads.emplace_back(body, argument);
                                     return 0;
                                   }};
  elbow_taskflow_settings settings{};
  settings.executor = &executor;
  Flow flow(settings);
  int value = 0;
  const elbow_use uses[] = {{flow.add(value), ELBOW_READ_WRITE}};
  for (const int digit : {4, 5, 6, 7}) {
    REQUIRE(elbow_taskflow_submit(flow.flow, append, &digit, sizeof digit, uses, 1, 0, 0) == 0);
  }
  REQUIRE(elbow_taskflow_wait(flow.flow) == 0);
  CHECK(value == 4567);
}

TEST_CASE("No more tasks are under way than the window allows") {
  elbow_taskflow_settings settings{};
  settings.window = 2;
  Flow flow(settings);
  int values[5] = {};
  static int over = 0;
  over = 0;
  for (int i = 0; i < 5; ++i) {
    const elbow_use uses[] = {{flow.add(values[i]), ELBOW_WRITE}};
    const elbow_kernel count = [](void* const*, const void*) { ++over; };
    REQUIRE(elbow_taskflow_submit(flow.flow, count, nullptr, 0, uses, 1, 0, 0) == 0);
    CHECK(i + 1 - over <= 2);
  }
  REQUIRE(elbow_taskflow_wait(flow.flow) == 0);
  CHECK(over == 5);
}

TEST_CASE("An executor that refuses a task ends the call with a sentence") {
  const elbow_executor executor = {nullptr, [](void*, int, void (*)(void*), void*) { return -1; }};
  elbow_taskflow_settings settings{};
  settings.executor = &executor;
  Flow flow(settings);
  int value = 0;
  const elbow_use uses[] = {{flow.add(value), ELBOW_READ_WRITE}};
  CHECK(elbow_taskflow_submit(flow.flow, append, &value, sizeof value, uses, 1, 0, 0) == -1);
  CHECK(errno == EAGAIN);
  CHECK(std::string(elbow_taskflow_error()) == "executor: refuses a task; see what it says of itself");
}

TEST_CASE("Wrong tasks and wrong processes are refused with the field, the value and a hint") {
  Flow flow;
  int value = 0;
  const elbow_data data = flow.add(value);
  const elbow_use wrong[] = {{data, 7}};
  CHECK(refusal(elbow_taskflow_submit(flow.flow, append, nullptr, 0, wrong, 1, 0, 0)) ==
        "mode 7: is unknown; use ELBOW_READ, ELBOW_WRITE or ELBOW_READ_WRITE");
  const elbow_use reads[] = {{data, ELBOW_READ}};
  CHECK(refusal(elbow_taskflow_submit(flow.flow, append, nullptr, 0, reads, 1, 0, ELBOW_ANYWHERE)) ==
        "rank: ELBOW_ANYWHERE is where the task writes, and it writes nothing; name a rank");
  CHECK(refusal(elbow_taskflow_expect(flow.flow, 9, 2)) == "data 9: are not registered; 1 are");
  CHECK(elbow_taskflow_new(nullptr, 0, 1, nullptr) == nullptr);
  CHECK(std::string(elbow_taskflow_error()) == "broadcast: is NULL; see elbow_broadcast_error()");
  CHECK(elbow_taskflow_new(flow.broadcast, 3, 2, nullptr) == nullptr);
  CHECK(std::string(elbow_taskflow_error()) == "rank 3: is none of 2");
}
