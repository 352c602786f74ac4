#include "diffusion/work.hpp"

#include <algorithm>

#include "kernels/loops.hpp"

namespace elbowroom::diffusion {
namespace {

constexpr int kArrays = 3;
constexpr double kTriadBytes = kArrays * sizeof(double);
constexpr double kA = 1;
constexpr double kB = 2;
constexpr double kFactor = 3;

std::size_t granules(double bytes, std::size_t threads) {
  const double items = bytes / kTriadBytes / static_cast<double>(threads);
  return std::max<std::size_t>(static_cast<std::size_t>(items / loops::kGranule), 1) * loops::kGranule;
}

}  // namespace

Share share(std::size_t count, std::size_t thread, std::size_t threads) {
  return {count * thread / threads, count * (thread + 1) / threads};
}

Share Diffusion::separator_share(std::size_t thread) const { return share(separator_slices(), thread, threads_); }

Share Diffusion::interior_share(std::size_t thread) const {
  const std::size_t first = separator_slices();
  const Share own = share(block_.slice_count() - first, thread, threads_);
  return {first + own.first, first + own.last};
}

void Diffusion::fill(std::size_t thread, const std::vector<std::int32_t>& place, double dt) {
  for (const Share& own : {separator_share(thread), interior_share(thread)}) {
    block_.fill(place, dt, own.first, own.last);
  }
}

void Diffusion::begin(std::size_t thread) {
  for (const Share& own : {separator_share(thread), interior_share(thread)}) {
    block_.begin(own.first * kSlice, own.last * kSlice);
  }
  if (thread == 0) {
    block_.begin(static_cast<std::size_t>(block_.part().own()), static_cast<std::size_t>(block_.part().all()));
  }
}

void Diffusion::separator(std::size_t thread, std::int64_t step) {
  const Share own = separator_share(thread);
  sweep(block_.slices(), block_.field(step - 1), block_.field(step), own.first, own.last);
}

void Diffusion::interior(std::size_t thread, std::int64_t step) {
  const Share own = interior_share(thread);
  sweep(block_.slices(), block_.field(step - 1), block_.field(step), own.first, own.last);
}

Triad::Triad(double bytes, std::size_t threads, int node)
    : length_(granules(bytes, threads)),
      threads_(threads),
      memory_(kArrays * length_ * threads * sizeof(double), node) {}

double* Triad::array(std::size_t thread, int which) const {
  return static_cast<double*>(memory_.data()) + (thread * kArrays + static_cast<std::size_t>(which)) * length_;
}

void Triad::fill(std::size_t thread) {
  std::fill_n(array(thread, 0), length_, kA);
  std::fill_n(array(thread, 1), length_, kB);
  std::fill_n(array(thread, 2), length_, 0);
}

void Triad::interior(std::size_t thread, std::int64_t) {
  loops::triad(array(thread, 2), array(thread, 0), array(thread, 1), length_, kFactor);
}

double Triad::bytes() const { return kTriadBytes * static_cast<double>(length_ * threads_); }

bool Triad::valid() const {
  for (std::size_t thread = 0; thread < threads_; ++thread) {
    const double* result = array(thread, 2);
    if (!std::all_of(result, result + length_, [](double value) { return value == kA + kFactor * kB; })) {
      return false;
    }
  }
  return true;
}

}  // namespace elbowroom::diffusion
