#include "kernels/task_pool.hpp"

#include <doctest/doctest.h>
#include <time.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "kernels/kernel.hpp"

using namespace elbowroom;

namespace {

std::vector<std::shared_ptr<Task>> make_tasks(std::size_t count) {
  std::vector<std::shared_ptr<Task>> tasks(count);
  std::generate(tasks.begin(), tasks.end(), [] { return std::make_shared<Task>(); });
  return tasks;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

TEST_CASE("the back-off doubles from one nop to its maximum, stays there, and starts again when a task is found") {
  const auto first_waits = [](std::uint32_t most, int count) {
    Backoff backoff(most);
    std::vector<std::uint32_t> waits;
    for (int i = 0; i < count; ++i) {
      waits.push_back(backoff.next());
      backoff.wait();
    }
    backoff.reset();
    CHECK(backoff.next() == 1);
    return waits;
  };
  CHECK(first_waits(1, 3) == std::vector<std::uint32_t>{1, 1, 1});
  CHECK(first_waits(2, 4) == std::vector<std::uint32_t>{1, 2, 2, 2});
  CHECK(first_waits(32, 8) == std::vector<std::uint32_t>{1, 2, 4, 8, 16, 32, 32, 32});
  const std::vector<std::uint32_t> rare = first_waits(10000, 16);
  CHECK(rare[12] == 4096);
  CHECK(rare[13] == 8192);
  CHECK(rare[14] == 10000);
  CHECK(rare[15] == 10000);
  CHECK(first_waits(4294967295u, 2).back() == 2);
}

TEST_CASE("no task is lost and none is executed twice, whoever pushes and whoever polls") {
  TaskPool pool;
  constexpr int kThreads = 4;
  constexpr std::size_t kEach = 500;
  std::vector<std::vector<std::shared_ptr<Task>>> tasks;
  for (int i = 0; i < kThreads; ++i) tasks.push_back(make_tasks(kEach));
  std::vector<TaskPool::Seat> seats(kThreads);
  std::atomic<std::size_t> executed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Backoff backoff(32);
      std::size_t pushed = 0;
      while (executed.load() < kThreads * kEach) {
        if (pushed < kEach) pool.push(tasks[i][pushed++]);
        if (const std::shared_ptr<Task> task = pool.poll(seats[i])) {
          task->execute();
          executed.fetch_add(1);
          backoff.reset();
        } else {
          backoff.wait();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t polls = 0;
  for (int i = 0; i < kThreads; ++i) {
    CHECK(std::all_of(tasks[i].begin(), tasks[i].end(), [](const auto& task) { return task->runs() == 1; }));
    CHECK(seats[i].polls >= kEach);
    CHECK(seats[i].waits == 0);
    polls += seats[i].polls;
  }
  CHECK(polls >= kThreads * kEach);
  CHECK(pool.take() == nullptr);
}

TEST_CASE("tasks are found in the order in which they were pushed") {
  TaskPool pool;
  TaskPool::Seat seat;
  CHECK(pool.poll(seat) == nullptr);
  const auto tasks = make_tasks(3);
  for (const auto& task : tasks) pool.push(task);
  for (const auto& task : tasks) CHECK(pool.poll(seat) == task);
  CHECK(pool.poll(seat) == nullptr);
  CHECK(seat.polls == 5);
}

TEST_CASE("workers of a paused pool look at no task until it is resumed, and use no CPU meanwhile") {
  TaskPool pool;
  pool.pause();
  const auto tasks = make_tasks(2);
  for (const auto& task : tasks) pool.push(task);
  std::vector<TaskPool::Seat> seats(2);
  std::atomic<int> result{0};
  std::atomic<int> blocked{0};
  double cpu[2] = {0, 0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      const double before = cpu_seconds();
      for (int wait = 0; wait < 8; ++wait) CHECK(pool.poll(seats[i]) == nullptr);
      cpu[i] = cpu_seconds() - before;
      blocked.fetch_add(1);
      while (result.load() < 2) {
        if (const std::shared_ptr<Task> task = pool.poll(seats[i])) {
          task->execute();
          result.fetch_add(1);
        }
      }
    });
  }
  while (blocked.load() < 2) std::this_thread::yield();
  for (int i = 0; i < 2; ++i) {
    CHECK(tasks[i]->runs() == 0);
    CHECK(cpu[i] < 0.2 * 8 * std::chrono::duration<double>(TaskPool::kPausedWait).count());
  }
  CHECK(result.load() == 0);
  pool.resume();
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 2; ++i) {
    CHECK(tasks[i]->runs() == 1);
    CHECK(seats[i].waits >= 8);
  }
}

TEST_CASE("polling workers of one process find every task of each other, at once") {
  const auto one = make_worker("polling", nullptr, 0, 2), other = make_worker("polling", nullptr, 0, 1000);
  for (const auto* worker : {&one, &other}) (*worker)->first_touch();
  std::vector<std::thread> threads;
  for (const auto* worker : {&one, &other}) {
    threads.emplace_back([worker] {
      for (int chunk = 0; chunk < 200; ++chunk) CHECK((*worker)->run(50) == 50);
      CHECK((*worker)->validate());
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(one->validate());
}

TEST_CASE("a worker with more nops between its polls polls less often") {
  const auto polls_in_20_ms = [](int cursor) {
    const auto worker = make_worker("polling", nullptr, 0, cursor);
    worker->first_touch();
    const double until = cpu_seconds() + 0.02;
    std::uint64_t polls = 0;
    while (cpu_seconds() < until) polls += worker->run(32);
    CHECK(worker->validate());
    return polls;
  };
  // Some hundred times; a sanitizer makes a poll itself take as long as many nops.
  CHECK(polls_in_20_ms(2) > 3 * polls_in_20_ms(10000));
}
