#include "kernels/loops.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/loops.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway wants it.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

// Keeps the compiler from recognising a loop as memcpy or memset and calling the C library, which chooses non-temporal
// stores by itself for large sizes. It costs no instruction.
#define ELBOWROOM_KEEP_LOOP() asm volatile("" ::: "memory")

// Unrolling by hand: vectors of SVE have no size the compiler knows, so that they fit in no array.
#define ELBOWROOM_4(OP) OP(0) OP(1) OP(2) OP(3)
#define ELBOWROOM_8(OP) ELBOWROOM_4(OP) OP(4) OP(5) OP(6) OP(7)
#define ELBOWROOM_12(OP) ELBOWROOM_8(OP) OP(8) OP(9) OP(10) OP(11)
#define ELBOWROOM_20(OP) ELBOWROOM_12(OP) OP(12) OP(13) OP(14) OP(15) OP(16) OP(17) OP(18) OP(19)

HWY_BEFORE_NAMESPACE();
namespace elbowroom::HWY_NAMESPACE {

using loops::Width;
namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::ScalableTag<double>;

// Two vectors, non-temporal. Highway's Stream is a plain store on NEON and without vectors, so the store of a pair
// "without allocation" and that of a register are asked for by name.
template <class V>
HWY_INLINE void StreamPair(V low, V high, double* HWY_RESTRICT to) {
#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
  asm volatile("stnp %q0, %q1, [%2]" : : "w"(low.raw), "w"(high.raw), "r"(to) : "memory");
#elif HWY_TARGET == HWY_SCALAR && HWY_ARCH_X86_64
  asm volatile("movnti %1, %0" : "=m"(to[0]) : "r"(low.raw));
  asm volatile("movnti %1, %0" : "=m"(to[1]) : "r"(high.raw));
#else
  const Doubles d;
  hn::Stream(low, d, to);
  hn::Stream(high, d, to + hn::Lanes(d));
#endif
}

// The loops are never inlined and keep their names: a disassembly shows which stores each of them uses.

#define ELBOWROOM_LOAD(K) const auto v##K = hn::Load(d, a + i + K * lanes);
#define ELBOWROOM_MULADD(K) \
  const auto v##K = hn::MulAdd(vs, hn::Load(d, b + i + K * lanes), hn::Load(d, a + i + K * lanes));
#define ELBOWROOM_STORE(K) hn::Store(v##K, d, c + i + K * lanes);

HWY_NOINLINE void MemsetNt(double* HWY_RESTRICT a, std::size_t n, double value) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  const auto v = hn::Set(d, value);
  for (std::size_t i = 0; i < n; i += 4 * lanes) {
    StreamPair(v, v, a + i);
    StreamPair(v, v, a + i + 2 * lanes);
    ELBOWROOM_KEEP_LOOP();
  }
  hwy::FlushStream();
}

HWY_NOINLINE double Load(const double* HWY_RESTRICT a, std::size_t n) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  auto sum = hn::Zero(d);
#define ELBOWROOM_ZERO(K) auto s##K = hn::Zero(d);
#define ELBOWROOM_ADD(K) s##K = hn::Add(s##K, hn::Load(d, a + i + K * lanes));
#define ELBOWROOM_GATHER(K) sum = hn::Add(sum, s##K);
  ELBOWROOM_8(ELBOWROOM_ZERO)
  for (std::size_t i = 0; i < n; i += 8 * lanes) {
    ELBOWROOM_8(ELBOWROOM_ADD)
  }
  ELBOWROOM_8(ELBOWROOM_GATHER)
#undef ELBOWROOM_ZERO
#undef ELBOWROOM_ADD
#undef ELBOWROOM_GATHER
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

HWY_NOINLINE void Copy(double* HWY_RESTRICT c, const double* HWY_RESTRICT a, std::size_t n) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < n; i += 4 * lanes) {
    ELBOWROOM_4(ELBOWROOM_LOAD)
    ELBOWROOM_4(ELBOWROOM_STORE)
    ELBOWROOM_KEEP_LOOP();
  }
}

HWY_NOINLINE void CopyNt(double* HWY_RESTRICT c, const double* HWY_RESTRICT a, std::size_t n) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < n; i += 4 * lanes) {
    ELBOWROOM_4(ELBOWROOM_LOAD)
    StreamPair(v0, v1, c + i);
    StreamPair(v2, v3, c + i + 2 * lanes);
    ELBOWROOM_KEEP_LOOP();
  }
  hwy::FlushStream();
}

HWY_NOINLINE void Triad(double* HWY_RESTRICT c, const double* HWY_RESTRICT a, const double* HWY_RESTRICT b,
                        std::size_t n, double s) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  const auto vs = hn::Set(d, s);
  for (std::size_t i = 0; i < n; i += 4 * lanes) {
    ELBOWROOM_4(ELBOWROOM_MULADD)
    ELBOWROOM_4(ELBOWROOM_STORE)
    ELBOWROOM_KEEP_LOOP();
  }
}

HWY_NOINLINE void TriadNt(double* HWY_RESTRICT c, const double* HWY_RESTRICT a, const double* HWY_RESTRICT b,
                          std::size_t n, double s) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  const auto vs = hn::Set(d, s);
  for (std::size_t i = 0; i < n; i += 4 * lanes) {
    ELBOWROOM_4(ELBOWROOM_MULADD)
    StreamPair(v0, v1, c + i);
    StreamPair(v2, v3, c + i + 2 * lanes);
    ELBOWROOM_KEEP_LOOP();
  }
  hwy::FlushStream();
}

// Eight vectors at a time: a repetition waits for the one before it (4 cycles), and two units want work meanwhile.
HWY_NOINLINE void TriadCursor(double* HWY_RESTRICT c, const double* HWY_RESTRICT a, const double* HWY_RESTRICT b,
                              std::size_t n, double s, int cursor) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  const auto vs = hn::Set(d, s);
#define ELBOWROOM_START(K) auto v##K = hn::Load(d, a + i + K * lanes);
#define ELBOWROOM_TERM(K) const auto b##K = hn::Load(d, b + i + K * lanes);
#define ELBOWROOM_REPEAT(K) v##K = hn::MulAdd(vs, v##K, b##K);
  for (std::size_t i = 0; i < n; i += 8 * lanes) {
    ELBOWROOM_8(ELBOWROOM_START)
    ELBOWROOM_8(ELBOWROOM_TERM)
    for (int repetition = 0; repetition < cursor; ++repetition) {
      ELBOWROOM_8(ELBOWROOM_REPEAT)
    }
    ELBOWROOM_8(ELBOWROOM_STORE)
    ELBOWROOM_KEEP_LOOP();
  }
#undef ELBOWROOM_START
#undef ELBOWROOM_TERM
#undef ELBOWROOM_REPEAT
}

#undef ELBOWROOM_LOAD
#undef ELBOWROOM_MULADD
#undef ELBOWROOM_STORE

// Chains that hide the latency of every known core: 2 units x 5 cycles with 16 registers (AVX2), 2 x 9 (A64FX) or 4 x 4
// (Neoverse V, Apple) with 32.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
#define ELBOWROOM_CHAINS ELBOWROOM_12
inline constexpr std::size_t kChains = 12;
#else
#define ELBOWROOM_CHAINS ELBOWROOM_20
inline constexpr std::size_t kChains = 20;
#endif

template <class D>
HWY_NOINLINE void FmaChains(D d, double* HWY_RESTRICT state, std::size_t iterations, double factor, double addend) {
  const std::size_t lanes = hn::Lanes(d);
  const auto f = hn::Set(d, factor);
  const auto t = hn::Set(d, addend);
#define ELBOWROOM_START(K) auto x##K = hn::LoadU(d, state + K * lanes);
#define ELBOWROOM_STEP(K) x##K = hn::MulAdd(x##K, f, t);
#define ELBOWROOM_END(K) hn::StoreU(x##K, d, state + K * lanes);
  ELBOWROOM_CHAINS(ELBOWROOM_START)
  for (std::size_t i = 0; i < iterations; ++i) {
    ELBOWROOM_CHAINS(ELBOWROOM_STEP)
  }
  ELBOWROOM_CHAINS(ELBOWROOM_END)
#undef ELBOWROOM_START
#undef ELBOWROOM_STEP
#undef ELBOWROOM_END
}
#undef ELBOWROOM_CHAINS

inline std::size_t LanesOf(Width width) {
  switch (width) {
    case Width::bits128: return hn::Lanes(hn::CappedTag<double, 2>());
    case Width::bits256: return hn::Lanes(hn::CappedTag<double, 4>());
    case Width::bits512: return hn::Lanes(hn::CappedTag<double, 8>());
    case Width::widest: break;
  }
  return hn::Lanes(Doubles());
}

std::size_t FmaState(Width width) {
  const std::size_t lanes = LanesOf(width);
  const bool offered = width == Width::widest || lanes * 64 == static_cast<std::size_t>(width);
  return offered ? kChains * lanes : 0;
}

void Fma(Width width, double* state, std::size_t iterations, double factor, double addend) {
  switch (width) {
    case Width::bits128: return FmaChains(hn::CappedTag<double, 2>(), state, iterations, factor, addend);
    case Width::bits256: return FmaChains(hn::CappedTag<double, 4>(), state, iterations, factor, addend);
    case Width::bits512: return FmaChains(hn::CappedTag<double, 8>(), state, iterations, factor, addend);
    case Width::widest: break;
  }
  return FmaChains(Doubles(), state, iterations, factor, addend);
}

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }
std::size_t VectorBytes() { return hn::Lanes(Doubles()) * sizeof(double); }

}  // namespace elbowroom::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elbowroom {

HWY_EXPORT(MemsetNt);
HWY_EXPORT(Load);
HWY_EXPORT(Copy);
HWY_EXPORT(CopyNt);
HWY_EXPORT(Triad);
HWY_EXPORT(TriadNt);
HWY_EXPORT(TriadCursor);
HWY_EXPORT(FmaState);
HWY_EXPORT(Fma);
HWY_EXPORT(TargetName);
HWY_EXPORT(VectorBytes);

namespace loops {

void memset_nt(double* a, std::size_t n, double value) { HWY_DYNAMIC_DISPATCH(MemsetNt)(a, n, value); }
double load(const double* a, std::size_t n) { return HWY_DYNAMIC_DISPATCH(Load)(a, n); }
void copy(double* c, const double* a, std::size_t n) { HWY_DYNAMIC_DISPATCH(Copy)(c, a, n); }
void copy_nt(double* c, const double* a, std::size_t n) { HWY_DYNAMIC_DISPATCH(CopyNt)(c, a, n); }
void triad(double* c, const double* a, const double* b, std::size_t n, double s) {
  HWY_DYNAMIC_DISPATCH(Triad)(c, a, b, n, s);
}
void triad_nt(double* c, const double* a, const double* b, std::size_t n, double s) {
  HWY_DYNAMIC_DISPATCH(TriadNt)(c, a, b, n, s);
}
void triad_cursor(double* c, const double* a, const double* b, std::size_t n, double s, int cursor) {
  HWY_DYNAMIC_DISPATCH(TriadCursor)(c, a, b, n, s, cursor);
}
std::size_t fma_state(Width width) { return HWY_DYNAMIC_DISPATCH(FmaState)(width); }
void fma(Width width, double* state, std::size_t iterations, double factor, double addend) {
  HWY_DYNAMIC_DISPATCH(Fma)(width, state, iterations, factor, addend);
}
const char* target_name() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }
std::size_t vector_bytes() { return HWY_DYNAMIC_DISPATCH(VectorBytes)(); }

}  // namespace loops
}  // namespace elbowroom
#endif
