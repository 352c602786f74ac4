// What a message contains, so that its recipient can tell it from every other one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace elbowroom::minikernels {

enum class Check { ends, all };  // which words of a message are written and compared

// A value that depends on both ranks and on how many messages of the one to the other came before.
constexpr std::uint64_t key_of(int source, int destination, std::uint64_t number) {
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;  // of the golden ratio
  const std::uint64_t ranks = (static_cast<std::uint64_t>(source) << 32) + static_cast<std::uint64_t>(destination);
  return (ranks * kSpread ^ number) * kSpread;
}

void fill(std::span<std::uint64_t> words, std::uint64_t key, Check check);
bool holds(std::span<const std::uint64_t> words, std::uint64_t key, Check check);

}  // namespace elbowroom::minikernels
