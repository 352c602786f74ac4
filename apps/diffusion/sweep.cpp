#include "diffusion/sweep.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "diffusion/sweep.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway wants it.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace elbowroom::diffusion::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::CappedTag<double, kSlice>;

// How far ahead rows and own values are asked for: long enough for the memory to answer, short enough to stay in the first
// cache. Without it the sweep is an eighth slower: the gathers fill the window in which the core finds loads by itself. Addresses
// beyond the end are named, not read.
inline constexpr std::size_t kAhead = 8;  // slices

HWY_INLINE void PrefetchSlice(const Slice* HWY_RESTRICT slices, const double* HWY_RESTRICT old, std::size_t i) {
  constexpr std::size_t kLine = 64;
  const char* rows = reinterpret_cast<const char*>(slices + i + kAhead);
  for (std::size_t offset = 0; offset < sizeof(Slice); offset += kLine) {
    hwy::Prefetch(rows + offset);
  }
  hwy::Prefetch(old + (i + kAhead) * kSlice);
}

HWY_NOINLINE void Sweep(const Slice* HWY_RESTRICT slices, const double* HWY_RESTRICT old, double* HWY_RESTRICT next,
                        std::size_t first, std::size_t last) {
  const Doubles d;
  const hn::RebindToSigned<Doubles> wide;
  const hn::Rebind<std::int32_t, Doubles> narrow;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = first; i < last; ++i) {
    PrefetchSlice(slices, old, i);
    const Slice& slice = slices[i];
    for (std::size_t lane = 0; lane < kSlice; lane += lanes) {
      const std::size_t at = i * kSlice + lane;
      const auto own = hn::Load(d, old + at);
      auto sum = own;
      for (std::size_t face = 0; face < kFaces; ++face) {
        const auto index = hn::PromoteTo(wide, hn::Load(narrow, &slice.neighbour[face][lane]));
        const auto difference = hn::Sub(hn::GatherIndex(d, old, index), own);
        sum = hn::MulAdd(hn::Load(d, &slice.weight[face][lane]), difference, sum);
      }
      hn::Store(sum, d, next + at);
    }
  }
}

}  // namespace elbowroom::diffusion::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elbowroom::diffusion {

HWY_EXPORT(Sweep);

void sweep(const Slice* slices, const double* old, double* next, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(Sweep)(slices, old, next, first, last);
}

double swept(const Slice* slices, const double* old, std::size_t cell) {
  const Slice& slice = slices[cell / kSlice];
  const std::size_t lane = cell % kSlice;
  double sum = old[cell];
  for (std::size_t face = 0; face < kFaces; ++face) {
    const auto neighbour = static_cast<std::size_t>(slice.neighbour[face][lane]);
    sum += slice.weight[face][lane] * (old[neighbour] - old[cell]);
  }
  return sum;
}

}  // namespace elbowroom::diffusion
#endif
