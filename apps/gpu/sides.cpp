#include "sides.hpp"

#include <algorithm>

#include "computing.hpp"
#include "copies.hpp"
#include "cores.hpp"
#include "engine.hpp"
#include "holders.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr double kProofPatience = 0.5;  // s: a copy of 1 MiB takes less than 1 ms

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
  if (!blas_) blas_ = std::make_unique<gpu::BlasLibrary>(request_.libraries);
  return *blas_;
}

Side Maker::make(const Work& work) {
  Side side;
  switch (work.kind) {
    case Work::Kind::copy:
      for (const Direction direction : directions(work)) side.push_back(make_copy(context_, work, direction));
      break;
    case Work::Kind::cores: side.push_back(make_cores(work)); break;
    case Work::Kind::triad: side.push_back(make_triad(kernels(), work)); break;
    case Work::Kind::chain: side.push_back(make_chain(kernels(), work)); break;
    case Work::Kind::gemm: side.push_back(make_gemm(context_, blas(), work)); break;
    case Work::Kind::sm_idle: side.push_back(std::make_unique<Holder>(kernels(), work.sms)); break;
    case Work::Kind::sm_target:
    case Work::Kind::messages: break;  // nothing of the device's
    case Work::Kind::sm_copy: side.push_back(make_sm_copy(kernels(), work)); break;
  }
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
