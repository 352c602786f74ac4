#include "kernels/accesses.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace elbowroom;

namespace {

constexpr std::uint64_t before = 0x0101010101010101U;
constexpr std::uint64_t value = 0x1122334455667788U;

}  // namespace

TEST_CASE("what was written is read, element by element and the bytes after the last whole one") {
  for (const std::size_t bytes : {0U, 1U, 7U, 8U, 400U, 403U, 4096U}) {
    std::vector<std::uint64_t> array(600, before);
    write_elements(array.data(), bytes, value);
    CHECK(read_elements(array.data(), bytes) == sum_of_elements(bytes, value));
  }
}

TEST_CASE("nothing behind the bytes asked for is touched") {
  for (const std::size_t bytes : {0U, 3U, 8U, 397U, 400U}) {
    std::vector<std::uint64_t> array(60, before);
    write_elements(array.data(), bytes, value);
    const auto* raw = reinterpret_cast<const unsigned char*>(array.data());
    for (std::size_t i = bytes; i < array.size() * sizeof(std::uint64_t); ++i) {
      REQUIRE(raw[i] == 1);
    }
  }
}

TEST_CASE("a byte that was not written makes another sum") {
  std::vector<std::uint64_t> array(50, before);
  write_elements(array.data(), 399, value);
  CHECK(read_elements(array.data(), 400) != sum_of_elements(400, value));
}
