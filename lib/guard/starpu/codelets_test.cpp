#include "guard/starpu/codelets.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "guard/movement.hpp"

namespace elbowroom::guard {
namespace {

void add(Codelet& codelet, double seconds, bool beside, int count = 20) {
  for (int i = 0; i < count; ++i) {
    codelet.add(seconds * (1 + 0.02 * (i % 3)), beside);
  }
}

TEST_CASE("a codelet whose tasks take longer beside messages is memory-bound") {
  Codelet codelet("gather", 1 << 20, Bound::kUnknown);
  add(codelet, 1e-3, false);
  CHECK(codelet.bound() == Bound::kUnknown);
  add(codelet, 1.5e-3, true);
  CHECK(codelet.bound() == Bound::kMemory);
}

TEST_CASE("a codelet that keeps its speed is compute-bound") {
  Codelet codelet("gemm", 1 << 20, Bound::kUnknown);
  add(codelet, 1e-3, false);
  add(codelet, 1.01e-3, true);
  CHECK(codelet.bound() == Bound::kCompute);
}

TEST_CASE("nothing is known of few tasks, nor of those whose durations say nothing") {
  Codelet few("few", 1, Bound::kUnknown);
  add(few, 1e-3, false, 5);
  add(few, 3e-3, true, 5);
  CHECK(few.bound() == Bound::kUnknown);
  Codelet wild("wild", 1, Bound::kUnknown);
  for (int i = 0; i < 12; ++i) {
    wild.add(std::exp(i % 4), false);
    wild.add(std::exp(i % 4) * 1.2, true);
  }
  CHECK(wild.bound() == Bound::kUnknown);
}

TEST_CASE("a mark decides, whatever the durations say") {
  Codelets all("gat*,copy", "gemm");
  Codelet& gather = all.find(&all, "gather", 1000);
  add(gather, 1e-3, false);
  add(gather, 1e-3, true);
  CHECK(gather.bound() == Bound::kMemory);
  CHECK(all.find(&all, "gemm", 1000).bound() == Bound::kCompute);
  CHECK(all.find(&all, "other", 1000).bound() == Bound::kUnknown);
  CHECK(all.unused_marks() == std::vector<std::string>{"copy"});
}

TEST_CASE("sizes of data are told apart by powers of two") {
  Codelets all("", "");
  const char* const name = "copy";
  CHECK(&all.find(&all, name, 1000) == &all.find(&all, name, 1020));
  CHECK(&all.find(&all, name, 1000) != &all.find(&all, name, 4000));
  CHECK(all.all().size() == 2);
}

TEST_CASE("time in which a thread does not have its core is no processor time") {
  const timespec nap{0, 20'000'000};
  const std::uint64_t begin = processor_time_now();
  nanosleep(&nap, nullptr);
  CHECK(processor_time_now() - begin < 10'000'000);
}

elbow_guard_traffic traffic(std::uint64_t flight, std::uint64_t moved) {
  elbow_guard_traffic result{};
  result.bytes[ELBOW_GUARD_IN] = flight;
  result.moved[ELBOW_GUARD_IN] = moved;
  return result;
}

TEST_CASE("a receive that was posted early does not move") {
  constexpr std::uint64_t kLarge = 64 << 20;
  constexpr std::uint64_t kMs = 1'000'000;
  Movement movement(false);
  CHECK(movement.look(traffic(kLarge, 0), 1000 * kMs));
  CHECK(movement.look(traffic(kLarge, 0), 1100 * kMs));
  CHECK(!movement.look(traffic(kLarge, 0), 1200 * kMs));
  CHECK(!movement.look(traffic(kLarge, 4096), 1201 * kMs));  // small messages are not it
  CHECK(movement.look(traffic(kLarge, kLarge), 1202 * kMs));
  CHECK(movement.look(traffic(2 * kLarge, kLarge), 1400 * kMs));
}

TEST_CASE("where all ranks are on this node, a receive moves when it is sent") {
  Movement movement(true);
  elbow_guard_traffic posted = traffic(64 << 20, 0);
  CHECK(!movement.look(posted, 1000));
  posted.bytes[ELBOW_GUARD_OUT] = 64 << 20;
  CHECK(movement.look(posted, 2000));
}

}  // namespace
}  // namespace elbowroom::guard
