#include "kernels/accesses.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace elbowroom;

namespace {

constexpr std::uint64_t kWhatWasThere = 0x0101010101010101U;
constexpr std::uint64_t kWhatIsWritten = 0x1122334455667788U;

}  // namespace

TEST_CASE("what was written is read, element by element and the bytes after the last whole one") {
  for (const std::size_t bytes : {0U, 1U, 7U, 8U, 400U, 403U, 4096U}) {
    std::vector<std::uint64_t> array(600, kWhatWasThere);
    write_elements(array.data(), bytes, kWhatIsWritten);
    CHECK(read_elements(array.data(), bytes) == sum_of_elements(bytes, kWhatIsWritten));
  }
}

TEST_CASE("nothing behind the bytes asked for is touched") {
  for (const std::size_t bytes : {0U, 3U, 8U, 397U, 400U}) {
    std::vector<std::uint64_t> array(60, kWhatWasThere);
    write_elements(array.data(), bytes, kWhatIsWritten);
    const auto* raw = reinterpret_cast<const unsigned char*>(array.data());
    CHECK(std::all_of(raw + bytes, raw + array.size() * sizeof(std::uint64_t), [](unsigned char c) { return c == 1; }));
  }
}

TEST_CASE("a byte that was not written makes another sum") {
  std::vector<std::uint64_t> array(50, kWhatWasThere);
  write_elements(array.data(), 399, kWhatIsWritten);
  CHECK(read_elements(array.data(), 400) != sum_of_elements(400, kWhatIsWritten));
}
