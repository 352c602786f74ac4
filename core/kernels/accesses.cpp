#include "kernels/accesses.hpp"

#include <cstring>

namespace elbowroom {
namespace {

constexpr std::size_t kElement = sizeof(std::uint64_t);

// Less than an element, by copies of constant sizes: of any other size GCC calls the C library on aarch64.
void copy_part(void* to, const void* from, std::size_t bytes) {
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  if ((bytes & 4) != 0) {
    std::memcpy(out, in, 4);
    out += 4;
    in += 4;
  }
  if ((bytes & 2) != 0) {
    std::memcpy(out, in, 2);
    out += 2;
    in += 2;
  }
  if ((bytes & 1) != 0) {
    *out = *in;
  }
}

std::uint64_t part_of(const void* from, std::size_t bytes) {
  std::uint64_t part = 0;
  copy_part(&part, from, bytes);
  return part;
}

}  // namespace

// The value is not known when this is compiled, so that the loop is no pattern of memset.
void write_elements(void* array, std::size_t bytes, std::uint64_t value) {
  auto* elements = static_cast<std::uint64_t*>(array);
  const std::size_t whole = bytes / kElement;
  for (std::size_t i = 0; i < whole; ++i) {
    elements[i] = value;
  }
  copy_part(elements + whole, &value, bytes % kElement);
}

std::uint64_t read_elements(const void* array, std::size_t bytes) {
  const auto* elements = static_cast<const std::uint64_t*>(array);
  const std::size_t whole = bytes / kElement;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < whole; ++i) {
    sum += elements[i];
  }
  return sum + part_of(elements + whole, bytes % kElement);
}

std::uint64_t sum_of_elements(std::size_t bytes, std::uint64_t value) {
  return bytes / kElement * value + part_of(&value, bytes % kElement);
}

}  // namespace elbowroom
