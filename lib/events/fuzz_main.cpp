// fuzz-... RUNS [SEED]: random inputs for a target of libFuzzer, where the compiler has none (GCC).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** words) {
  const long runs = count > 1 ? std::atol(words[1]) : 1000;
  std::mt19937 dice(count > 2 ? static_cast<std::uint32_t>(std::atol(words[2])) : 1U);
  for (long run = 0; run < runs; ++run) {
    std::vector<std::uint8_t> input(dice() % 4096);
    for (std::uint8_t& byte : input) {
      byte = static_cast<std::uint8_t>(dice());
    }
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  return 0;
}
