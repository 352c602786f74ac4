#include "protocol/payload.hpp"

#include <cstring>

namespace elbowroom {
namespace {

constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;  // 2^64 / golden ratio: neighbours differ in every byte
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
constexpr std::size_t kMostPlaces = 16;

std::uint64_t word(std::uint64_t seed, std::size_t index) { return (seed + index) * kOdd; }

// Calls visit(offset, bytes, value) for each sampled place; stops when it returns false.
template <typename Visit>
bool each_place(std::size_t size, std::uint64_t seed, Visit visit) {
  const std::size_t words = size / kWordBytes;
  const std::size_t places = words < kMostPlaces ? words : kMostPlaces;
  for (std::size_t k = 0; k < places; ++k) {
    const std::size_t index = places == 1 ? 0 : k * (words - 1) / (places - 1);
    if (!visit(index * kWordBytes, kWordBytes, word(seed, index))) {
      return false;
    }
  }
  const std::size_t rest = size % kWordBytes;
  return rest == 0 || visit(words * kWordBytes, rest, word(seed, words));
}

}  // namespace

void fill_message(void* message, std::size_t size, std::uint64_t seed) {
  auto* bytes = static_cast<unsigned char*>(message);
  const std::size_t words = size / kWordBytes;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t value = word(seed, i);
    std::memcpy(bytes + i * kWordBytes, &value, kWordBytes);
  }
  const std::uint64_t last = word(seed, words);
  std::memcpy(bytes + words * kWordBytes, &last, size % kWordBytes);
}

bool message_holds(const void* message, std::size_t size, std::uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(message);
  const std::size_t words = size / kWordBytes;
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes + i * kWordBytes, kWordBytes);
    difference |= value ^ word(seed, i);
  }
  const std::uint64_t last = word(seed, words);
  return difference == 0 && std::memcmp(bytes + words * kWordBytes, &last, size % kWordBytes) == 0;
}

void stamp_message(void* message, std::size_t size, std::uint64_t seed) {
  auto* bytes = static_cast<unsigned char*>(message);
  each_place(size, seed, [&](std::size_t offset, std::size_t count, std::uint64_t value) {
    std::memcpy(bytes + offset, &value, count);
    return true;
  });
}

bool stamp_holds(const void* message, std::size_t size, std::uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(message);
  return each_place(size, seed, [&](std::size_t offset, std::size_t count, std::uint64_t value) {
    return std::memcmp(bytes + offset, &value, count) == 0;
  });
}

}  // namespace elbowroom
