#include "minikernels/pattern.hpp"

#include <algorithm>

namespace elbowroom::minikernels {
namespace {

constexpr std::uint64_t word_of(std::uint64_t key, std::size_t index) { return key + index * 0x2545f4914f6cdd1d; }

// From one word that is looked at to the next one.
std::size_t step_of(std::size_t words, Check check) {
  return check == Check::all ? 1 : std::max<std::size_t>(words - 1, 1);
}

}  // namespace

void fill(std::span<std::uint64_t> words, std::uint64_t key, Check check) {
  for (std::size_t i = 0; i < words.size(); i += step_of(words.size(), check)) {
    words[i] = word_of(key, i);
  }
}

bool holds(std::span<const std::uint64_t> words, std::uint64_t key, Check check) {
  for (std::size_t i = 0; i < words.size(); i += step_of(words.size(), check)) {
    if (words[i] != word_of(key, i)) {
      return false;
    }
  }
  return true;
}

}  // namespace elbowroom::minikernels
