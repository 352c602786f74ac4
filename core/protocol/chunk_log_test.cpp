#include "protocol/chunk_log.hpp"

#include <doctest/doctest.h>

using namespace elbowroom;

namespace {
std::vector<Chunk> contiguous(std::int64_t start, std::int64_t length, int count, std::uint64_t items = 10) {
  std::vector<Chunk> chunks;
  for (int i = 0; i < count; ++i) {
    chunks.push_back({start + i * length, start + (i + 1) * length, items});
  }
  return chunks;
}
}  // namespace

TEST_CASE("only chunks wholly inside the window count, at their own duration") {
  const auto chunks = contiguous(0, 100, 20);
  const Throughput sum = inside(chunks, {450, 1050});
  CHECK(sum.items == 50);  // 500-600 … 900-1000
  CHECK(sum.seconds == doctest::Approx(500e-9));
  CHECK(sum.rate() == doctest::Approx(0.1e9));
}

TEST_CASE("cold chunks and the last chunk never count, even inside the window") {
  const Throughput sum = inside(contiguous(0, 100, 6), {0, 600});
  CHECK(sum.items == 30);
}

TEST_CASE("a window without a whole chunk has no rate") {
  CHECK(inside(contiguous(0, 100, 10), {310, 390}).rate() == 0);
}

TEST_CASE("a thread covers a window when it began before it and ended after it") {
  const auto chunks = contiguous(0, 100, 10);
  CHECK(covers(chunks, {200, 1000}));
  CHECK_FALSE(covers(chunks, {150, 900}));   // still cold
  CHECK_FALSE(covers(chunks, {300, 1001}));  // stopped too early
  CHECK_FALSE(covers({}, {0, 1}));
}

TEST_CASE("the common window is the one in which all threads were warm and running") {
  const auto early = contiguous(0, 100, 10);
  const auto late = contiguous(350, 100, 10);
  const auto window = common_window({&early, &late});
  REQUIRE(window.has_value());
  CHECK(window->start == 550);
  CHECK(window->end == 900);
  const auto other = contiguous(5000, 100, 10);
  CHECK_FALSE(common_window({&early, &other}).has_value());
}

TEST_CASE("a full log merges neighbours and loses neither items nor time") {
  ChunkLog log(8);
  for (const Chunk& chunk : contiguous(0, 100, 100)) {
    log.push(chunk);
  }
  CHECK(log.chunks().size() <= 8);
  CHECK(log.merges() > 0);
  std::uint64_t items = 0;
  for (std::size_t i = 0; i < log.chunks().size(); ++i) {
    items += log.chunks()[i].items;
    if (i > 0) {
      CHECK(log.chunks()[i].start == log.chunks()[i - 1].end);
    }
  }
  CHECK(items == 1000);
  CHECK(log.chunks().front().start == 0);
  CHECK(log.chunks().back().end == 10000);
}

TEST_CASE("rates over time add the threads and leave out slices that a thread missed") {
  const auto one = contiguous(0, 100, 20);
  const auto two = contiguous(0, 100, 20, 30);
  const auto rates = rates_over_time({&one, &two}, {500, 1500}, 5);
  REQUIRE(rates.size() == 5);
  for (const double rate : rates) {
    CHECK(rate == doctest::Approx(0.4e9));
  }
  const auto short_one = contiguous(0, 100, 12);
  CHECK(rates_over_time({&one, &short_one}, {500, 1500}, 5).size() == 3);
}
