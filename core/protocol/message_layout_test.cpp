#include "protocol/message_layout.hpp"

#include <doctest/doctest.h>

using namespace elbowroom;

namespace {
constexpr std::int64_t mib = std::int64_t{1} << 20;
Request sized(std::int64_t size, Reuse reuse, Pattern pattern = Pattern::pingpong) {
  Request request;
  request.size = size;
  request.reuse = reuse;
  request.pattern = pattern;
  return request;
}
}  // namespace

TEST_CASE("one buffer is reused, two when two receptions are in flight") {
  CHECK(message_layout(sized(100, Reuse::same), 32 * mib, 1024 * mib).bytes() == 128);
  CHECK(message_layout(sized(100, Reuse::same, Pattern::receive), 32 * mib, 1024 * mib).count == 2);
  CHECK(message_layout(sized(100, Reuse::same, Pattern::bidirectional), 32 * mib, 1024 * mib).bytes() == 256);
}

TEST_CASE("rotation uses 16 buffers unless they are larger than four caches") {
  CHECK(message_layout(sized(1 * mib, Reuse::rotate), 32 * mib, 1024 * mib).count == 16);
  CHECK(message_layout(sized(64 * mib, Reuse::rotate), 32 * mib, 1024 * mib).count == 2);
}

TEST_CASE("off-cache messages cycle through at least four last-level caches") {
  for (const std::int64_t size : {std::int64_t{4}, 5000 * std::int64_t{1}, 3 * mib, 64 * mib, 300 * mib}) {
    const MessageLayout layout = message_layout(sized(size, Reuse::off_cache), 32 * mib, 4096 * mib);
    CHECK(layout.bytes() >= 128 * mib);
    CHECK_FALSE(layout.capped);
  }
}

TEST_CASE("lack of memory caps the cycle and says so") {
  const MessageLayout layout = message_layout(sized(1 * mib, Reuse::off_cache), 32 * mib, 10 * mib);
  CHECK(layout.capped);
  CHECK(layout.bytes() <= 10 * mib);
  CHECK(message_layout(sized(64 * mib, Reuse::off_cache), 32 * mib, 10 * mib).count == 1);
}
