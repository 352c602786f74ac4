#include "kernels/roof.hpp"

#include <algorithm>

#include "kernels/dense.hpp"
#include "machine/machine.hpp"

namespace elbowroom::kernels {
namespace {

constexpr double kCaches = 4;                          // docs/design/method.md, rule 8: larger arrays are as slow
constexpr std::size_t kLeast = std::size_t{1} << 14U;  // doubles of an array: what the clock can tell
constexpr std::size_t kArrays = 3;
constexpr double kBusBytes = 32;        // of an item: two loads, a store and the line that it reads
constexpr std::size_t kResident = 192;  // three blocks of 288 KiB: in the second cache of most cores
constexpr int kRounds = 3;              // the first of which is not timed
constexpr int kProducts = 50;

void triad(double* c, const double* a, const double* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    c[i] = a[i] + 3 * b[i];
  }
}

// Runs `body(thread)` once for each thread, at once; the seconds that one needs on average.
double seconds(Engine& engine, const std::function<void(std::size_t)>& body) {
  double sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    engine.meter().take();
    engine.align();
    for (std::size_t thread = 0; thread < engine.threads(); ++thread) {
      engine.task(Kind::product, {}, [&body, thread] { body(thread); });
    }
    engine.wait();
    sum += round == 0 ? 0 : engine.meter().take().product_s;
  }
  return sum / (kRounds - 1) / static_cast<double>(engine.threads());
}

}  // namespace

double roof_bytes(double matrices) {
  const auto cache = static_cast<double>(Machine::here().last_level_cache());
  return cache > 0 ? std::min(matrices, kCaches * cache) : matrices;
}

Roof roof_of(Engine& engine, double matrices, int node) {
  const std::size_t threads = engine.threads();
  const std::size_t each =
      std::max(kLeast, static_cast<std::size_t>(roof_bytes(matrices) / sizeof(double)) / threads / kArrays);
  const std::size_t longest = std::max(each, kResident * kResident);
  const Arena memory(threads * longest * kArrays * sizeof(double), node);
  const auto array = [&](std::size_t thread, std::size_t which, std::size_t size) {
    return static_cast<double*>(memory.data()) + thread * kArrays * longest + which * size;
  };
  Roof roof;
  engine.run(Mode::computing, [&] {
    seconds(engine, [&](std::size_t thread) { std::fill_n(array(thread, 0, longest), kArrays * longest, 1.0); });
    const double moving = seconds(engine, [&](std::size_t thread) {
      triad(array(thread, 0, each), array(thread, 1, each), array(thread, 2, each), each);
    });
    roof.bytes_per_s = static_cast<double>(threads * each) * kBusBytes / moving;
    constexpr std::size_t kSize = kResident * kResident;
    const double multiplying = seconds(engine, [&](std::size_t thread) {
      for (int i = 0; i < kProducts; ++i) {
        multiply_blocks(kResident, array(thread, 1, kSize), array(thread, 2, kSize), array(thread, 0, kSize), i == 0);
      }
    });
    const double flops = 2.0 * kResident * kResident * kResident * kProducts;
    roof.flops_per_s = static_cast<double>(threads) * flops / multiplying;
  });
  return roof;
}

double stalled_modelled(double arithmetic_intensity, const Roof& roof) {
  return std::max(0.0, 1 - arithmetic_intensity * roof.bytes_per_s / roof.flops_per_s);
}

}  // namespace elbowroom::kernels
