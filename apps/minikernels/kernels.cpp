#include "minikernels/kernels.hpp"

#include <algorithm>

namespace elbowroom::minikernels {
namespace {

constexpr int kInner = 25;             // iterations in a step of cg
constexpr std::size_t kEpValues = 10;  // counts of pairs
constexpr std::size_t kFtValues = 2;   // a complex checksum
constexpr std::size_t kWord = 8;       // bytes
constexpr int kSpPerDirection = 4;     // messages to a neighbour where bt has one

std::string any_ranks(int) { return ""; }

std::string even_ranks(int ranks) {
  return ranks == 1 || ranks % 2 == 0 ? "" : "cg exchanges between halves of the ranks: give 1 or an even number";
}

void ep(const Step& step) {
  step.computation.run(step.seconds);
  if (step.last) {
    step.exchange.sum(kEpValues);
  }
}

// The partner has the transposed part: it is in the other half.
void cg(const Step& step) {
  Exchange& exchange = step.exchange;
  const int partner = (exchange.rank() + exchange.size() / 2) % exchange.size();
  for (int i = 0; i < kInner; ++i) {
    step.computation.run(step.seconds / kInner);
    if (partner != exchange.rank()) {
      exchange.send_and_receive(partner, partner, step.size);
    }
    exchange.sum(1);
    exchange.sum(1);
  }
}

void ft(const Step& step) {
  step.computation.run(step.seconds);
  step.exchange.to_all(step.size);
  step.exchange.sum(kFtValues);
}

// Keys are not evenly spread: a half, all or one and a half of `size` for a rank.
void is(const Step& step) {
  step.computation.run(step.seconds);
  std::vector<std::size_t> bytes;
  for (int to = 0; to < step.exchange.size(); ++to) {
    const auto halves = static_cast<std::size_t>(1 + (step.exchange.rank() + to + step.number) % 3);
    bytes.push_back(step.size * halves / 2 / kWord * kWord);
  }
  step.exchange.to_all(bytes);
}

void bt(const Step& step) { faces(step, 1); }
void sp(const Step& step) { faces(step, kSpPerDirection); }

}  // namespace

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = {
      {"ep", "a sum at the end", 12, 8, 0.5, ep, any_ranks},
      {"cg", "exchanges with a partner in the other half and small sums, all the time", 20, 262144, 0.15, cg,
       even_ranks},
      {"ft", "computation, then a transposition between all", 14, 2097152, 0.3, ft, any_ranks},
      {"is", "computation, then uneven messages between all", 18, 1835008, 0.18, is, any_ranks},
      {"mg", "halos on levels, each a fourth of the one above", 14, 196608, 0.4, levels, any_ranks},
      {"lu", "small messages along wavefronts", 12, 10240, 0.45, wavefronts, any_ranks},
      {"bt", "faces in three directions, much computation between", 12, 524288, 0.5, bt, any_ranks},
      {"sp", "faces in three directions, more of them", 14, 163840, 0.4, sp, any_ranks},
  };
  return all;
}

const Kernel* find_kernel(const std::string& name) {
  const auto found =
      std::find_if(kernels().begin(), kernels().end(), [&](const Kernel& one) { return one.name == name; });
  return found == kernels().end() ? nullptr : &*found;
}

}  // namespace elbowroom::minikernels
