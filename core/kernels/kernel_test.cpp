#include "kernels/kernel.hpp"

#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <vector>

#include "kernels/loops.hpp"
#include "kernels/workers.hpp"

using namespace elbowroom;

namespace {

// Memory of a worker; `spare` bytes behind it hold a mark that no kernel may touch.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes), doubles_((bytes + kSpare) / sizeof(double)) {
    data_ = static_cast<double*>(std::aligned_alloc(64, (bytes + 2 * kSpare) / 64 * 64));
    if (data_ == nullptr) throw std::bad_alloc();
    for (std::size_t i = 0; i < doubles_; ++i) data_[i] = kMark;
  }
  ~Memory() { std::free(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  double* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t whole_doubles() const { return bytes_ / sizeof(double); }
  bool mark_behind_intact() const {
    for (std::size_t i = (bytes_ + sizeof(double) - 1) / sizeof(double); i < doubles_; ++i) {
      if (data_[i] != kMark) return false;
    }
    return true;
  }
  // Doubles that differ from `before`.
  std::size_t changed_since(const std::vector<double>& before) const {
    std::size_t changed = 0;
    for (std::size_t i = 0; i < whole_doubles(); ++i) changed += data_[i] != before[i];
    return changed;
  }
  std::vector<double> snapshot() const { return {data_, data_ + whole_doubles()}; }

 private:
  static constexpr std::size_t kSpare = 4096;
  static constexpr double kMark = -77.0;
  std::size_t bytes_;
  std::size_t doubles_;
  double* data_;
};

// Runs `check` once for every instruction set of this core that the loops were compiled for.
template <class Check>
void on_each_target(Check check) {
  for (const std::int64_t target :
       {std::int64_t{HWY_SCALAR}, std::int64_t{HWY_SSSE3}, std::int64_t{HWY_SSE4}, std::int64_t{HWY_AVX2},
        std::int64_t{HWY_AVX3}, std::int64_t{HWY_NEON}, std::int64_t{HWY_SVE}, std::int64_t{HWY_SVE2},
        std::int64_t{HWY_SVE_256}, std::int64_t{HWY_SVE2_128}}) {
    if ((hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    INFO("target ", vector_target());
    CHECK(vector_target() == hwy::TargetName(target));
    check();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

// Three arrays of `n` items, the third for results, each with one double behind it that must stay.
struct Arrays {
  explicit Arrays(std::size_t n)
      : memory(3 * (n + 64) * sizeof(double)), a(memory.data()), b(a + n + 64), c(b + n + 64) {
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = 1.0 + static_cast<double>(i % 1021);
      b[i] = 3.0 - static_cast<double>(i % 509);
    }
  }
  Memory memory;
  double *a, *b, *c;
};

constexpr std::size_t kSizes[] = {loops::kGranule, 3 * loops::kGranule, 37 * loops::kGranule};

std::string refusal(std::string_view kernel, void* memory, std::size_t bytes, int cursor) {
  try {
    make_worker(kernel, memory, bytes, cursor);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every memory kernel moves at least its algorithmic bytes over the bus") {
  for (const KernelInfo& info : kernels()) {
    INFO(info.name);
    const double algorithmic = info.bytes_read + info.bytes_written;
    if (info.cache_resident) {
      CHECK(info.bus_bytes == 0);
    } else {
      CHECK(info.bus_bytes == algorithmic + (info.non_temporal ? 0 : info.bytes_written));
    }
    CHECK((info.arrays > 0) == (algorithmic > 0));
    CHECK(algorithmic == 8.0 * info.arrays);
    CHECK((info.rate_unit == "MB/s") == (info.arrays > 0));
    CHECK((info.rate_unit == "MB/s" || info.rate_unit == "M/s" || info.rate_unit == "Mflop/s"));
    CHECK(((info.rate_unit == "Mflop/s") ? info.flops > 0 : true));
    CHECK_FALSE(info.description.empty());
  }
}

TEST_CASE("every kernel is found by its name and no other name is") {
  for (const KernelInfo& info : kernels()) CHECK(find_kernel(info.name) == &info);
  CHECK(find_kernel("stream") == nullptr);
  CHECK(find_kernel("") == nullptr);
}

TEST_CASE("the loops compute what a scalar loop computes, on each instruction set") {
  on_each_target([] {
    for (const std::size_t n : kSizes) {
      INFO("n = ", n);
      Arrays x(n);
      const double before = x.c[n];

      loops::memset_nt(x.c, n, 2.5);
      for (std::size_t i = 0; i < n; ++i) REQUIRE(x.c[i] == 2.5);

      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += x.a[i];
      CHECK(loops::load(x.a, n) == sum);

      for (auto* copy : {loops::copy, loops::copy_nt}) {
        loops::memset_nt(x.c, n, 0);
        copy(x.c, x.a, n);
        for (std::size_t i = 0; i < n; ++i) REQUIRE(x.c[i] == x.a[i]);
      }
      for (auto* triad : {loops::triad, loops::triad_nt}) {
        loops::memset_nt(x.c, n, 0);
        triad(x.c, x.a, x.b, n, 3.0);
        for (std::size_t i = 0; i < n; ++i) REQUIRE(x.c[i] == x.a[i] + 3.0 * x.b[i]);
      }
      CHECK(x.c[n] == before);
    }
  });
}

TEST_CASE("the cursor repeats the operation on each item, on each instruction set") {
  on_each_target([] {
    for (const int cursor : {1, 2, 7, 72}) {
      const std::size_t n = 3 * loops::kGranule;
      Arrays x(n);
      loops::triad_cursor(x.c, x.a, x.b, n, 0.5, cursor);
      for (std::size_t i = 0; i < n; ++i) {
        double wanted = x.a[i];
        for (int repetition = 0; repetition < cursor; ++repetition) wanted = x.b[i] + 0.5 * wanted;
        REQUIRE(x.c[i] == doctest::Approx(wanted).epsilon(1e-12));
      }
    }
  });
}

TEST_CASE("fma works on every double of its state and on no other, on each instruction set") {
  on_each_target([] {
    for (const loops::Width width :
         {loops::Width::widest, loops::Width::bits128, loops::Width::bits256, loops::Width::bits512}) {
      const std::size_t doubles = loops::fma_state(width);
      if (doubles == 0) continue;
      std::vector<double> state(loops::kFmaStateMax, 2.0);
      loops::fma(width, state.data(), 3, 0.5, 1.5);  // 2 -> 2.5 -> 2.75 -> 2.875
      for (std::size_t i = 0; i < state.size(); ++i) REQUIRE(state[i] == (i < doubles ? 2.875 : 2.0));
    }
    // As many chains, whatever the width.
    CHECK(loops::fma_state(loops::Width::widest) > 0);
    if (vector_bytes() >= 16) {
      CHECK(loops::fma_state(loops::Width::widest) * 16 == loops::fma_state(loops::Width::bits128) * vector_bytes());
    }
  });
}

TEST_CASE("a vector wider than the instruction set is refused with a sentence that names both") {
  on_each_target([] {
    for (const auto& [name, bytes] : {std::pair{"fma128", 16}, std::pair{"fma256", 32}, std::pair{"fma512", 64}}) {
      const std::string why = refusal(name, nullptr, 0, 1);
      CHECK(why.empty() == (vector_bytes() >= static_cast<std::size_t>(bytes)));
      if (!why.empty()) CHECK(contains(why, vector_target()));
    }
  });
}

TEST_CASE("each array kernel stays inside its memory and validates at any point of its sweeps") {
  for (const KernelInfo& info : kernels()) {
    if (info.arrays == 0) continue;
    for (const std::size_t bytes : {std::size_t{25003}, std::size_t{100003}, std::size_t{1} << 20}) {
      INFO(info.name, " on ", bytes, " B");
      const Memory memory(bytes);
      const auto worker = make_worker(info.name, memory.data(), memory.bytes(), 3);
      worker->first_touch();
      CHECK(worker->validate());
      const std::uint64_t sweep = worker->items_per_sweep();
      CHECK(sweep > 0);
      CHECK(sweep * static_cast<std::uint64_t>(8 * info.arrays) <= bytes);
      for (const std::uint64_t items : {std::uint64_t{1}, std::uint64_t{257}, sweep / 2, sweep, 3 * sweep + 5}) {
        const std::uint64_t done = worker->run(items);
        CHECK(done >= items);
        CHECK(done < items + loops::kGranule);
        CHECK(worker->validate());
      }
      CHECK(memory.mark_behind_intact());
    }
  }
}

TEST_CASE("each kernel that writes writes just the items it says it did") {
  for (const KernelInfo& info : kernels()) {
    if (info.bytes_written == 0) continue;
    INFO(info.name);
    const Memory memory(64 * 1024);
    const auto worker = make_worker(info.name, memory.data(), memory.bytes(), 1);
    worker->first_touch();
    const std::vector<double> before = memory.snapshot();
    const std::uint64_t done = worker->run(600);
    const std::size_t stamps = info.name.starts_with("copy") ? 1 : 0;
    CHECK(memory.changed_since(before) == done + stamps);
  }
}

TEST_CASE("a sweep that left its results unwritten does not validate") {
  for (const KernelInfo& info : kernels()) {
    if (info.bytes_written == 0) continue;
    INFO(info.name);
    const Memory memory(64 * 1024);
    const auto worker = make_worker(info.name, memory.data(), memory.bytes(), 1);
    worker->first_touch();
    worker->run(worker->items_per_sweep());
    const std::vector<double> old = memory.snapshot();
    worker->run(worker->items_per_sweep() / 2);
    CHECK(worker->validate());
    std::copy(old.begin(), old.end(), memory.data());
    CHECK_FALSE(worker->validate());
  }
}

TEST_CASE("one damaged source value is noticed by load, wherever it is") {
  for (const std::size_t where : {std::size_t{3}, std::size_t{4001}, std::size_t{8000}}) {
    const Memory memory(64 * 1024);
    const auto worker = make_worker("load", memory.data(), memory.bytes(), 1);
    worker->first_touch();
    memory.data()[where] += 1;
    worker->run(worker->items_per_sweep());
    memory.data()[where] -= 1;
    CHECK_FALSE(worker->validate());
  }
}

TEST_CASE("damaged arrays do not validate") {
  for (const KernelInfo& info : kernels()) {
    if (info.arrays == 0) continue;
    INFO(info.name);
    const Memory memory(64 * 1024);
    const auto worker = make_worker(info.name, memory.data(), memory.bytes(), 1);
    worker->first_touch();
    worker->run(worker->items_per_sweep() / 2);
    // One of the arrays, whole: the sample must hit it.
    const std::size_t slot = memory.whole_doubles() / static_cast<std::size_t>(info.arrays);
    for (std::size_t i = 0; i < slot; ++i) memory.data()[i] += 0.25;
    CHECK_FALSE(worker->validate());
  }
}

TEST_CASE("cursor kernels take any number of repetitions without losing their results") {
  const Memory memory(64 * 1024);
  for (const int cursor : {1, 64, 1000}) {
    const auto worker = make_worker("triad_cursor", memory.data(), memory.bytes(), cursor);
    worker->first_touch();
    worker->run(worker->items_per_sweep() + 300);
    CHECK(worker->validate());
  }
}

TEST_CASE("prime counting tests exactly as many candidates as asked and finds the right primes") {
  std::uint64_t primes = 0;
  for (std::uint32_t candidate = loops::kPrimeFirst; candidate < loops::kPrimeFirst + loops::kPrimeCandidates;
       ++candidate) {
    bool prime = true;
    for (std::uint32_t divisor = 2; divisor < candidate; ++divisor) prime = prime && candidate % divisor != 0;
    primes += prime;
  }
  CHECK(loops::count_primes(0, loops::kPrimeCandidates) == primes);
  CHECK(loops::count_primes(100, 3 * loops::kPrimeCandidates) == 3 * primes);

  const auto worker = make_worker("prime", nullptr, 0, 1);
  for (const std::uint64_t items : {1u, 700u, 3000u}) CHECK(worker->run(items) == items);
  CHECK(worker->validate());
}

TEST_CASE("register kernels validate after runs of any length and need no memory") {
  for (const KernelInfo& info : kernels()) {
    if (info.arrays > 0 || !refusal(info.name, nullptr, 0, 1).empty()) continue;
    INFO(info.name);
    const auto worker = make_worker(info.name, nullptr, 0, 1);
    worker->first_touch();
    for (const std::uint64_t items : {1u, 1000u, 123457u}) {
      // An item of a paused worker takes 5 ms.
      const std::uint64_t some = info.name == "paused" ? items % 10 : items;
      CHECK(worker->run(some) >= some);
    }
    CHECK(worker->validate());
    CHECK(worker->items_per_sweep() == 0);
  }
}

TEST_CASE("cache-resident kernels sweep no more than half of the L2 cache") {
  for (const char* name : {"load_cache", "triad_cache"}) {
    const Memory memory(4 * cache_resident_bytes());
    const auto worker = make_worker(name, memory.data(), memory.bytes(), 1);
    const auto arrays = static_cast<std::uint64_t>(find_kernel(name)->arrays);
    CHECK(worker->items_per_sweep() * 8 * arrays <= cache_resident_bytes());
    CHECK(worker->items_per_sweep() * 8 * arrays > cache_resident_bytes() * 3 / 4);
  }
}

TEST_CASE("the kernel of the last-level cache sweeps all the memory it is given") {
  const Memory memory(4 * cache_resident_bytes());
  const auto worker = make_worker("triad_llc", memory.data(), memory.bytes(), 1);
  CHECK(worker->items_per_sweep() * 24 > memory.bytes() * 3 / 4);
}

TEST_CASE("unknown kernels, small or crooked memory and a cursor below 1 are refused with a sentence") {
  const Memory memory(64 * 1024);
  CHECK(contains(refusal("stream", memory.data(), memory.bytes(), 1), "triad_cursor"));
  CHECK(contains(refusal("triad", memory.data(), 100, 1), "100 B"));
  CHECK(contains(refusal("triad", memory.data(), 24 * 1024 - 1, 1), "at least 24576 B"));
  CHECK(refusal("triad", memory.data(), 24 * 1024, 1).empty());
  CHECK(contains(refusal("triad_cursor", memory.data(), memory.bytes(), 0), "cursor 0"));
  CHECK(contains(refusal("copy", memory.data() + 1, 32 * 1024, 1), "64 B"));
  CHECK(refusal("triad", memory.data(), memory.bytes(), 1).empty());
}
