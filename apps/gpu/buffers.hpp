// Random contents of buffers, and their check: values of a hash of their position, so that nothing has to be kept.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/device.hpp"

namespace elbowroom::gpu_bench {

enum class Content {
  bytes,   // any bits
  reals,   // float in [-1, 1)
  brains,  // BF16 in [-1, 1)
};

std::uint64_t random_bits(std::uint64_t seed);
float real_of(std::uint16_t brain);
// Number `index` of a buffer with `brains`.
float brain_at(std::uint64_t index, std::uint64_t seed);

void fill(void* data, std::size_t bytes, Content content, std::uint64_t seed);
// By a pinned buffer, piece by piece.
void fill_device(const gpu::Context& context, gpu::DevicePointer to, std::size_t bytes, Content content,
                 std::uint64_t seed);

void read_device(const gpu::Context& context, void* to, gpu::DevicePointer from, std::size_t bytes);
void write_device(const gpu::Context& context, gpu::DevicePointer to, const void* from, std::size_t bytes);

// Zeros in the places that check_device() and check_host() look at: buffers that several cases use hold the right contents
// from the case before.
void clear_device(const gpu::Context& context, gpu::DevicePointer data, std::size_t bytes);
void clear_host(void* data, std::size_t bytes);

// "" or a sentence, if the first and last 4 KiB are not those of fill() for `bytes` bytes.
std::string check_device(const gpu::Context& context, gpu::DevicePointer data, std::size_t bytes, Content content,
                         std::uint64_t seed);
std::string check_host(const void* data, std::size_t bytes, Content content, std::uint64_t seed);

// "" or a sentence, if most of the first 64 KiB are zeros: kernels run faster on them than on data.
std::string check_not_zeros(const gpu::Context& context, gpu::DevicePointer data, std::size_t bytes);

}  // namespace elbowroom::gpu_bench
