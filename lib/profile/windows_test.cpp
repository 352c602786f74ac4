#include "profile/windows.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <random>
#include <vector>

namespace elbowroom::profile {
namespace {

constexpr std::uint64_t kStart = 1'000'000'000'000;

struct Histogram {
  Header header{};
  std::vector<elbow_profile_window> cells;
  Windows windows;

  explicit Histogram(std::uint32_t count, std::uint64_t width = 1000) : cells(count) {
    header.start_ns = kStart;
    header.window_ns = width;
    header.windows = count;
    windows = Windows(&header, cells.data());
  }
  std::uint64_t sum(std::uint64_t elbow_profile_window::*field) const {
    return std::accumulate(cells.begin(), cells.end(), std::uint64_t{0},
                           [&](std::uint64_t all, const elbow_profile_window& one) { return all + one.*field; });
  }
};

elbow_profile_record call(std::uint64_t begin, std::uint64_t end, std::uint8_t kind = ELBOW_PROFILE_OTHER,
                          std::uint64_t bytes = 0) {
  return {kStart + begin, kStart + end, bytes, 1, 0, kind, ELBOW_PROFILE_INSIDE};
}

TEST_CASE("time of a call is divided among the windows that it spans") {
  Histogram all(8);
  all.windows.add(call(500, 2500));
  CHECK(all.cells[0].mpi_ns == 500);
  CHECK(all.cells[1].mpi_ns == 1000);
  CHECK(all.cells[2].mpi_ns == 500);
  CHECK(all.cells[2].calls == 1);
  CHECK(all.header.window_count == 3);
}

TEST_CASE("windows become twice as wide where time goes on beyond the last one") {
  Histogram all(4);
  all.windows.add(call(0, 100));
  all.windows.add(call(3000, 3100));
  all.windows.add(call(4000, 4100));
  CHECK(all.header.window_ns == 2000);
  CHECK(all.header.window_count == 3);
  CHECK(all.cells[0].mpi_ns == 100);
  CHECK(all.cells[1].mpi_ns == 100);
  CHECK(all.cells[2].mpi_ns == 100);
  CHECK(all.header.merging == 0);
}

TEST_CASE("bytes of sends count where they begin, of receives where they end") {
  Histogram all(8);
  all.windows.add(call(500, 1500, ELBOW_PROFILE_SEND, 10));
  all.windows.add(call(500, 1500, ELBOW_PROFILE_RECEIVE, 20));
  CHECK(all.cells[0].sent_inside == 10);
  CHECK(all.cells[0].messages == 1);
  CHECK(all.cells[1].received_inside == 20);
  CHECK(all.sum(&elbow_profile_window::wait_ns) == 1000);
}

TEST_CASE("whatever is added, merging loses nothing and every window has its own time") {
  std::mt19937_64 random(14);
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t count = 2 * (1 + random() % 16);
    const std::uint64_t width = 1 + random() % 1000;
    Histogram all(count, width);
    std::vector<elbow_profile_record> added;
    std::uint64_t time = 0;
    std::uint64_t spread = 1 + random() % 5000;
    for (int i = 0; i < 200; ++i) {
      time += random() % spread;
      const std::uint64_t begin = time - random() % (time + 1) * (random() % 4 == 0);  // now and then long ago
      const auto kind = static_cast<std::uint8_t>(random() % 12);
      elbow_profile_record record = call(begin, time, kind, random() % 1000);
      record.flags = static_cast<std::uint8_t>(random() % 4);
      all.windows.add(record);
      added.push_back(record);
    }
    std::uint64_t inside = 0;
    std::uint64_t calls = 0;
    std::vector<std::uint64_t> expected(count);
    for (const auto& record : added) {
      if ((record.flags & ELBOW_PROFILE_INSIDE) == 0) {
        continue;
      }
      inside += record.end_ns - record.begin_ns;
      ++calls;
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t from = std::max(record.begin_ns, kStart + i * all.header.window_ns);
        const std::uint64_t to = std::min(record.end_ns, kStart + (i + 1) * all.header.window_ns);
        expected[i] += to > from ? to - from : 0;
      }
    }
    REQUIRE(all.sum(&elbow_profile_window::mpi_ns) == inside);
    REQUIRE(all.sum(&elbow_profile_window::calls) == calls);
    for (std::uint32_t i = 0; i < count; ++i) {
      REQUIRE(all.cells[i].mpi_ns == expected[i]);
    }
    REQUIRE(all.header.window_count == (time / all.header.window_ns) + 1);
  }
}

}  // namespace
}  // namespace elbowroom::profile
