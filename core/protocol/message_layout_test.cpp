#include "protocol/message_layout.hpp"

#include <doctest/doctest.h>

using namespace elbowroom;

namespace {
constexpr std::int64_t kMib = std::int64_t{1} << 20;
Request sized(std::int64_t size, Reuse reuse, Pattern pattern = Pattern::pingpong) {
  Request request;
  request.size = size;
  request.reuse = reuse;
  request.pattern = pattern;
  return request;
}
}  // namespace

TEST_CASE("one buffer is reused, two when two receptions are in flight") {
  CHECK(message_layout(sized(100, Reuse::same), 32 * kMib, 1024 * kMib).bytes() == 128);
  CHECK(message_layout(sized(100, Reuse::same, Pattern::receive), 32 * kMib, 1024 * kMib).count == 2);
  CHECK(message_layout(sized(100, Reuse::same, Pattern::bidirectional), 32 * kMib, 1024 * kMib).bytes() == 256);
}

TEST_CASE("rotation uses 16 buffers unless they are larger than four caches") {
  CHECK(message_layout(sized(1 * kMib, Reuse::rotate), 32 * kMib, 1024 * kMib).count == 16);
  CHECK(message_layout(sized(64 * kMib, Reuse::rotate), 32 * kMib, 1024 * kMib).count == 2);
}

TEST_CASE("off-cache messages cycle through at least four last-level caches") {
  for (const std::int64_t size : {std::int64_t{4}, 5000 * std::int64_t{1}, 3 * kMib, 64 * kMib, 300 * kMib}) {
    const MessageLayout layout = message_layout(sized(size, Reuse::off_cache), 32 * kMib, 4096 * kMib);
    CHECK(layout.bytes() >= 128 * kMib);
    CHECK_FALSE(layout.capped);
  }
}

TEST_CASE("lack of memory caps the cycle and says so") {
  const MessageLayout layout = message_layout(sized(1 * kMib, Reuse::off_cache), 32 * kMib, 10 * kMib);
  CHECK(layout.capped);
  CHECK(layout.bytes() <= 10 * kMib);
  CHECK(message_layout(sized(64 * kMib, Reuse::off_cache), 32 * kMib, 10 * kMib).count == 1);
}
