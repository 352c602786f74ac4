#include <hwloc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <stdexcept>
#include <string>

#include "kernels/loops.hpp"
#include "kernels/workers.hpp"

namespace elbowroom {
namespace {

using loops::kGranule;

constexpr std::size_t kPage = 4096;
// Each array starts this much further into a page than the one before: a load whose address equals that of a store in
// flight in its last 12 bits waits for it (4K aliasing).
constexpr std::size_t kStagger = 1088;
constexpr std::size_t kSamples = 256;  // items that validate() looks at
constexpr double kUntouched = -1;      // what destinations hold before the first sweep

// Sources are small whole numbers: sums and products of them are exact, in any order, with or without fused
// multiply-add. Prime periods, so that an index that is off by a power of two is seen.
constexpr std::uint64_t kPeriodA = 1021;
constexpr std::uint64_t kPeriodB = 509;
double untouched(std::uint64_t) { return kUntouched; }
double source_a(std::uint64_t i) { return 1.0 + static_cast<double>(i % kPeriodA); }
double source_b(std::uint64_t i) { return 1.0 + static_cast<double>(i % kPeriodB); }

// Sum of source_a over [0, n).
double prefix_sum_a(std::uint64_t n) {
  const std::uint64_t periods = n / kPeriodA, rest = n % kPeriodA;
  return static_cast<double>(periods * (kPeriodA * (kPeriodA + 1) / 2) + rest * (rest + 1) / 2);
}

// One working set cut into equal arrays, swept from the first item to the last and again.
template <std::size_t Arrays>
class ArrayWorker : public Worker {
 public:
  ArrayWorker(void* memory, std::size_t bytes) {
    constexpr std::size_t kLost = (Arrays - 1) * kStagger;
    constexpr std::size_t kLeast = (kLost + kGranule * sizeof(double) + kPage - 1) / kPage * kPage;
    const std::size_t slot = bytes / Arrays / kPage * kPage;
    if (slot < kLeast) {
      throw std::invalid_argument("working set of " + std::to_string(bytes) +
                                  " B is too small: this kernel needs at least " + std::to_string(Arrays * kLeast) +
                                  " B");
    }
    items_ = (slot - kLost) / sizeof(double) / kGranule * kGranule;
    for (std::size_t i = 0; i < Arrays; ++i) {
      array_[i] = reinterpret_cast<double*>(static_cast<std::byte*>(memory) + i * (slot + kStagger));
    }
  }

  void first_touch() final {
    write_initial();
    position_ = 0;
    sweep_ = 0;
  }

  std::uint64_t run(std::uint64_t items) final {
    const std::uint64_t wanted = (items + kGranule - 1) / kGranule * kGranule;
    for (std::uint64_t done = 0; done < wanted;) {
      const std::uint64_t part = std::min(wanted - done, items_ - position_);
      process(position_, part);
      done += part;
      position_ += part;
      if (position_ == items_) {
        position_ = 0;
        ++sweep_;
      }
    }
    return wanted;
  }

  bool validate() const final {
    if (!sound()) return false;
    const std::uint64_t stride = std::max<std::uint64_t>(1, items_ / kSamples);
    for (std::uint64_t i = 0; i < items_; i += stride) {
      if (!holds(i)) return false;
    }
    // The last item done and the first one not yet done.
    return holds(position_ == 0 ? items_ - 1 : position_ - 1) && holds(position_) && holds(items_ - 1);
  }

  std::uint64_t items_per_sweep() const final { return items_; }

 protected:
  virtual void write_initial() = 0;
  virtual void process(std::uint64_t begin, std::uint64_t count) = 0;
  virtual bool holds(std::uint64_t i) const = 0;  // item i of every array has the value it must have now
  virtual bool sound() const { return true; }     // what was seen while running was right

  template <class Value>
  void fill(double* values, Value value) const {
    for (std::uint64_t i = 0; i < items_; ++i) values[i] = value(i);
  }
  double* array(std::size_t which) const { return array_[which]; }
  std::uint64_t sweep() const { return sweep_; }
  bool touched(std::uint64_t i) const { return sweep_ > 0 || i < position_; }
  // The sweep that processed item i last; only for touched items.
  std::uint64_t last_sweep(std::uint64_t i) const { return i < position_ ? sweep_ : sweep_ - 1; }

 private:
  std::array<double*, Arrays> array_{};
  std::uint64_t items_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t sweep_ = 0;
};

class MemsetNt final : public ArrayWorker<1> {
 public:
  using ArrayWorker::ArrayWorker;

 private:
  // Another constant in each sweep: a sweep that wrote nothing is seen.
  static double constant(std::uint64_t sweep) { return 1.0 + static_cast<double>(sweep % 1000); }
  void write_initial() override { fill(array(0), untouched); }
  void process(std::uint64_t begin, std::uint64_t count) override {
    loops::memset_nt(array(0) + begin, count, constant(sweep()));
  }
  bool holds(std::uint64_t i) const override {
    return array(0)[i] == (touched(i) ? constant(last_sweep(i)) : kUntouched);
  }
};

class Load final : public ArrayWorker<1> {
 public:
  using ArrayWorker::ArrayWorker;

 private:
  void write_initial() override {
    fill(array(0), source_a);
    sound_ = true;
  }
  void process(std::uint64_t begin, std::uint64_t count) override {
    const double sum = loops::load(array(0) + begin, count);
    sound_ = sound_ && sum == prefix_sum_a(begin + count) - prefix_sum_a(begin);
  }
  bool holds(std::uint64_t i) const override { return array(0)[i] == source_a(i); }
  bool sound() const override { return sound_; }

  bool sound_ = true;
};

class Copy final : public ArrayWorker<2> {
 public:
  Copy(void* memory, std::size_t bytes, bool nt)
      : ArrayWorker(memory, bytes), copy_(nt ? loops::copy_nt : loops::copy) {}

 private:
  void write_initial() override {
    fill(array(0), source_a);
    fill(array(1), untouched);
    stamps_ = 0;
  }
  // A copy of the same values changes nothing: the first source item of each chunk gets a new value.
  void process(std::uint64_t begin, std::uint64_t count) override {
    stamped_ = begin;
    array(0)[begin] = kUntouched - static_cast<double>(++stamps_);
    copy_(array(1) + begin, array(0) + begin, count);
  }
  bool holds(std::uint64_t i) const override {
    const double source = array(0)[i];
    const bool source_is_ours = source == source_a(i) || source < kUntouched;
    return source_is_ours && array(1)[i] == (touched(i) ? source : kUntouched);
  }
  bool sound() const override {
    return stamps_ == 0 || array(1)[stamped_] == kUntouched - static_cast<double>(stamps_);
  }

  void (*copy_)(double*, const double*, std::size_t);
  std::uint64_t stamped_ = 0;
  std::uint64_t stamps_ = 0;
};

class Triad final : public ArrayWorker<3> {
 public:
  Triad(void* memory, std::size_t bytes, bool nt)
      : ArrayWorker(memory, bytes), triad_(nt ? loops::triad_nt : loops::triad) {}

 private:
  static double factor(std::uint64_t sweep) { return 2.0 + static_cast<double>(sweep % 3); }
  void write_initial() override {
    fill(array(0), source_a);
    fill(array(1), source_b);
    fill(array(2), untouched);
  }
  void process(std::uint64_t begin, std::uint64_t count) override {
    triad_(array(2) + begin, array(0) + begin, array(1) + begin, count, factor(sweep()));
  }
  bool holds(std::uint64_t i) const override {
    const double wanted = touched(i) ? source_a(i) + factor(last_sweep(i)) * source_b(i) : kUntouched;
    return array(0)[i] == source_a(i) && array(1)[i] == source_b(i) && array(2)[i] == wanted;
  }

  void (*triad_)(double*, const double*, const double*, std::size_t, double);
};

class TriadCursor final : public ArrayWorker<3> {
 public:
  TriadCursor(void* memory, std::size_t bytes, int cursor) : ArrayWorker(memory, bytes), cursor_(cursor) {}

 private:
  // Below 1, so that any number of repetitions stays finite (it tends to b / (1 - factor)).
  static double factor(std::uint64_t sweep) { return sweep % 2 == 0 ? 0.5 : 0.25; }
  void write_initial() override {
    fill(array(0), source_a);
    fill(array(1), source_b);
    fill(array(2), untouched);
  }
  void process(std::uint64_t begin, std::uint64_t count) override {
    loops::triad_cursor(array(2) + begin, array(0) + begin, array(1) + begin, count, factor(sweep()), cursor_);
  }
  bool holds(std::uint64_t i) const override {
    if (array(0)[i] != source_a(i) || array(1)[i] != source_b(i)) return false;
    if (!touched(i)) return array(2)[i] == kUntouched;
    double wanted = source_a(i);
    // The limit is reached, in double precision, after 53 halvings of a difference below 2^11.
    for (int repetition = 0; repetition < std::min(cursor_, 128); ++repetition) {
      wanted = source_b(i) + factor(last_sweep(i)) * wanted;
    }
    // Instruction sets without fused multiply-add round twice.
    return std::abs(array(2)[i] - wanted) <= 1e-12 * wanted;
  }

  int cursor_;
};

// The share of the L2 cache that one core has, 0 when hwloc does not know.
std::size_t l2_bytes_per_core() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return 0;
  std::size_t bytes = 0;
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_L2CACHE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(topology) == 0) {
    if (const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, HWLOC_OBJ_L2CACHE, 0)) {
      const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, cache->cpuset, HWLOC_OBJ_CORE);
      bytes = cache->attr->cache.size / static_cast<std::size_t>(std::max(1, cores));
    }
  }
  hwloc_topology_destroy(topology);
  return bytes;
}

}  // namespace

std::size_t cache_resident_bytes() {
  static const std::size_t l2 = l2_bytes_per_core();
  return (l2 > 0 ? l2 : std::size_t{256} << 10) / 2;
}

std::unique_ptr<Worker> make_memset_nt(void* memory, std::size_t bytes) {
  return std::make_unique<MemsetNt>(memory, bytes);
}
std::unique_ptr<Worker> make_load(void* memory, std::size_t bytes) { return std::make_unique<Load>(memory, bytes); }
std::unique_ptr<Worker> make_copy(void* memory, std::size_t bytes, bool nt) {
  return std::make_unique<Copy>(memory, bytes, nt);
}
std::unique_ptr<Worker> make_triad(void* memory, std::size_t bytes, bool nt) {
  return std::make_unique<Triad>(memory, bytes, nt);
}
std::unique_ptr<Worker> make_triad_cursor(void* memory, std::size_t bytes, int cursor) {
  return std::make_unique<TriadCursor>(memory, bytes, cursor);
}

}  // namespace elbowroom
