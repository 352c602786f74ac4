#include "sides.hpp"

#include <algorithm>
#include <sstream>

#include "engine.hpp"
#include "holders.hpp"
#include "load_kinds.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr double kProofPatience = 0.5;  // s: a copy of 1 MiB takes less than 1 ms

constexpr double kMostKept = 8e9;  // bytes of buffers, of the device and pinned

std::string key_of(const Work& work) {
  std::ostringstream key;
  key << static_cast<int>(work.kind) << ' ' << work.bytes << ' ' << work.direction << ' ' << work.engine << ' '
      << work.node << ' ' << work.sms << ' ' << work.pace_mb_s << ' ' << work.m << ' ' << work.n << ' ' << work.k << ' '
      << work.sm_target << ' ' << work.launches << ' ' << work.pairs;
  return key.str();
}

double kept_bytes(const std::map<std::string, std::shared_ptr<MadeSide>>& kept) {
  double sum = 0;
  for (const auto& [key, made] : kept) {
    const Work& work = made->work;
    const auto numbers = static_cast<double>(work.m * work.k + work.k * work.n + work.m * work.n);
    sum += work.kind == Work::Kind::gemm ? 2 * numbers : 2 * static_cast<double>(work.bytes);
  }
  return sum;
}

std::vector<Direction> directions(const Work& work) {
  if (work.direction == "both") return {Direction::h2d, Direction::d2h};
  if (work.direction == "d2d") return {Direction::d2d};
  return {work.direction == "h2d" ? Direction::h2d : Direction::d2h};
}

}  // namespace

const Kernels& Maker::kernels() {
  if (!kernels_) kernels_ = std::make_unique<Kernels>(context_, request_.libraries);
  return *kernels_;
}

const gpu::BlasLibrary& Maker::blas() {
  if (!blas_) blas_ = std::make_unique<gpu::BlasLibrary>(context_, request_.libraries);
  return *blas_;
}

std::shared_ptr<MadeSide> Maker::made(const Work& work) {
  auto result = std::make_shared<MadeSide>(MadeSide{work, {}});
  const Work& own = result->work;
  Side& side = result->side;
  switch (work.kind) {
    case Work::Kind::copy:
      for (const Direction direction : directions(own)) side.push_back(make_copy(context_, own, direction));
      break;
    case Work::Kind::cores: side.push_back(make_cores(own)); break;
    case Work::Kind::triad: side.push_back(make_triad(kernels(), own)); break;
    case Work::Kind::control: side.push_back(make_control(context_)); break;
    case Work::Kind::chain: side.push_back(make_chain(kernels(), own)); break;
    case Work::Kind::gemm: side.push_back(make_gemm(context_, blas(), own)); break;
    case Work::Kind::sm_idle: side.push_back(std::make_unique<Holder>(kernels(), own, request_.patience)); break;
    case Work::Kind::sm_copy: side.push_back(make_sm_copy(kernels(), own, request_.patience)); break;
    case Work::Kind::sm_target:
    case Work::Kind::messages: break;  // nothing of the device's
  }
  return result;
}

void Maker::drop_unused() {
  std::erase_if(kept_, [](const auto& kept) { return kept.second.use_count() == 1; });
}

std::shared_ptr<MadeSide> Maker::make(const Work& work) {
  if (work.kind == Work::Kind::cores) return made(work);
  const std::string key = key_of(work);
  const auto known = kept_.find(key);
  if (known != kept_.end()) return known->second;
  if (kept_bytes(kept_) > kMostKept) drop_unused();
  std::shared_ptr<MadeSide> side;
  try {
    side = made(work);
  } catch (const gpu::GpuError& error) {
    if (error.lost() || kept_.empty()) throw;
    drop_unused();
    side = made(work);
  }
  kept_[key] = side;
  return side;
}

std::string Maker::engine(const Work& work) {
  if (work.kind != Work::Kind::copy) return "";
  const std::string key = work.direction + (work.direction == "d2d" ? " " + work.engine : "");
  const auto known = engines_.find(key);
  if (known != engines_.end()) return known->second;
  std::string engine = "copy engine";
  try {
    for (const Direction direction : directions(work)) {
      const std::string proof = prove_engine(kernels(), work, direction, std::min(kProofPatience, request_.patience));
      if (proof != engine) engine = proof;
    }
  } catch (const gpu::Unavailable& error) {
    engine = std::string("unknown: ") + error.what();
  }
  return engines_[key] = engine;
}

}  // namespace elbowroom::gpu_bench
