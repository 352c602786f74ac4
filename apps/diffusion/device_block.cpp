#include "diffusion/device_block.hpp"

#include <algorithm>
#include <cstddef>

#include "gpu/compiler.hpp"

namespace elbowroom::diffusion {
namespace {

// Slices as in sweep.hpp: the neighbours of eight cells by face, then their weights. lib/gpu/stand_in knows the kernel by
// its name and the order of its arguments.
static_assert(kFaces == 4 && kSlice == 8 && sizeof(Slice) == 384 && offsetof(Slice, weight) == 128);
const char* const kSource = R"(
extern "C" __global__ void elbow_sweep(const char* slices, const double* old, double* next, unsigned long long first,
                                       unsigned long long last) {
  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long cell = 8 * first + (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; cell < 8 * last;
       cell += step) {
    const char* slice = slices + cell / 8 * 384;
    const int* neighbour = (const int*)slice + cell % 8;
    const double* weight = (const double*)(slice + 128) + cell % 8;
    const double own = old[cell];
    double sum = own;
    for (int face = 0; face < 4; ++face) sum = fma(weight[8 * face], old[neighbour[8 * face]] - own, sum);
    next[cell] = sum;
  }
}
)";

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostBlocks = 1 << 16;

std::size_t at_least_one(std::size_t doubles) { return std::max<std::size_t>(doubles, 1) * sizeof(double); }

}  // namespace

DeviceBlock::DeviceBlock(const gpu::Context& context, const std::vector<std::string>& libraries, const Block& block)
    : context_(context),
      module_(context, gpu::Compiler(libraries).compile(kSource, context.facts().capability)),
      function_(module_.function("elbow_sweep")),
      separator_(static_cast<std::size_t>(block.part().separator) / kSlice),
      slices_(block.slice_count()),
      own_(static_cast<std::size_t>(block.part().own())),
      ghosts_(block.part().ghosts.size()),
      rows_(context, slices_ * sizeof(Slice)),
      fields_(context, 2 * (own_ + ghosts_) * sizeof(double)),
      sent_(context, at_least_one(separator_ * kSlice), context.facts().node),
      received_(context, at_least_one(ghosts_), context.facts().node),
      halo_(context),
      interior_(context) {
  const gpu::Driver& driver = context.driver();
  driver.check(driver.cuMemcpyHtoDAsync(rows_.address(), block.slices(), rows_.size(), halo_.handle()), "copying rows");
  for (const std::int64_t copy : {0, 1}) {
    driver.check(driver.cuMemcpyHtoDAsync(field(copy), block.field(copy), fields_.size() / 2, halo_.handle()),
                 "copying values");
  }
  halo_.synchronize();
}

gpu::DevicePointer DeviceBlock::field(std::int64_t step) const {
  return fields_.address() + (step % 2 == 0 ? 0 : fields_.size() / 2);
}

void DeviceBlock::sweep(const gpu::Stream& stream, std::int64_t step, std::size_t first, std::size_t last) const {
  if (first == last) {
    return;
  }
  gpu::DevicePointer slices = rows_.address();
  gpu::DevicePointer old = field(step - 1);
  gpu::DevicePointer next = field(step);
  unsigned long long begin = first;
  unsigned long long end = last;
  void* arguments[] = {&slices, &old, &next, &begin, &end};
  const auto blocks = static_cast<unsigned>(std::min(((last - first) * kSlice + kThreads - 1) / kThreads, kMostBlocks));
  const gpu::Driver& driver = context_.driver();
  driver.check(driver.cuLaunchKernel(function_, blocks, 1, 1, kThreads, 1, 1, 0, stream.handle(), arguments, nullptr),
               "starting kernel elbow_sweep");
}

void DeviceBlock::start(std::int64_t step) {
  sweep(halo_, step, 0, separator_);
  if (separator_ > 0) {
    const gpu::Driver& driver = context_.driver();
    driver.check(
        driver.cuMemcpyDtoHAsync(sent_.data(), field(step), separator_ * kSlice * sizeof(double), halo_.handle()),
        "copying the separator");
  }
  sweep(interior_, step, separator_, slices_);
}

void DeviceBlock::send_ghosts(std::int64_t step) {
  if (ghosts_ > 0) {
    const gpu::Driver& driver = context_.driver();
    driver.check(driver.cuMemcpyHtoDAsync(field(step) + own_ * sizeof(double), received_.data(),
                                          ghosts_ * sizeof(double), halo_.handle()),
                 "copying ghosts");
  }
}

void DeviceBlock::finish() const {
  halo_.synchronize();
  interior_.synchronize();
}

void DeviceBlock::fetch(std::int64_t step, const Block& block) const {
  const gpu::Driver& driver = context_.driver();
  for (const std::int64_t copy : {step - 1, step}) {
    driver.check(
        driver.cuMemcpyDtoHAsync(block.field(copy), field(copy), (own_ + ghosts_) * sizeof(double), halo_.handle()),
        "copying values back");
  }
  halo_.synchronize();
}

}  // namespace elbowroom::diffusion
