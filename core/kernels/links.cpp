#include "kernels/links.hpp"

#include <random>
#include <utility>

namespace elbowroom {
namespace {

constexpr std::size_t kWords = kLinkBytes / sizeof(std::uint64_t);

}  // namespace

void link_lines(void* memory, std::size_t lines, std::uint64_t seed) {
  auto* const words = static_cast<std::uint64_t*>(memory);
  for (std::size_t line = 0; line < lines; ++line) {
    words[line * kWords] = line;
  }
  std::mt19937_64 random(seed);
  for (std::size_t line = lines; line > 1; --line) {
    std::swap(words[(line - 1) * kWords], words[random() % (line - 1) * kWords]);
  }
}

std::uint64_t follow_links(const void* memory, std::uint64_t line, std::size_t count) {
  const auto* const words = static_cast<const std::uint64_t*>(memory);
  for (std::size_t i = 0; i < count; ++i) {
    line = words[line * kWords];
  }
  return line;
}

}  // namespace elbowroom
