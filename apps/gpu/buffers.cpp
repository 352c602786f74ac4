#include "buffers.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace elbowroom::gpu_bench {
namespace {

constexpr std::size_t kPiece = std::size_t{8} << 20U;  // bytes
constexpr std::size_t kLooked = 4096;                  // bytes at each end
constexpr std::size_t kZerosLooked = 65536;            // bytes

// SplitMix64 of the position.
std::uint64_t hash(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

float real(std::uint32_t bits) { return static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31F; }

// The 8 bytes at position `index`, counted in 8 bytes.
std::uint64_t word(std::uint64_t index, Content content, std::uint64_t seed) {
  const std::uint64_t bits = hash(index ^ (seed << 48U));
  if (content == Content::bytes) return bits;
  if (content == Content::reals) {
    const float pair[2] = {real(static_cast<std::uint32_t>(bits)), real(static_cast<std::uint32_t>(bits >> 32U))};
    std::uint64_t both = 0;
    std::memcpy(&both, pair, sizeof(both));
    return both;
  }
  std::uint64_t four = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const float value = real(static_cast<std::uint32_t>(hash(bits + i)));
    std::uint32_t single = 0;
    std::memcpy(&single, &value, sizeof(single));
    four |= static_cast<std::uint64_t>(single >> 16U) << (16 * i);
  }
  return four;
}

// Fills `data` with what stands from byte `from` (a multiple of 8) of a buffer.
void fill_from(void* data, std::size_t bytes, std::size_t from, Content content, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t value = word((from + at) / 8, content, seed);
    std::memcpy(static_cast<char*>(data) + at, &value, std::min<std::size_t>(8, bytes - at));
  }
}

bool equals(const void* data, std::size_t bytes, std::size_t from, Content content, std::uint64_t seed) {
  std::vector<char> wanted(bytes);
  fill_from(wanted.data(), bytes, from, content, seed);
  return std::memcmp(data, wanted.data(), bytes) == 0;
}

std::size_t last_part(std::size_t bytes) { return bytes > kLooked ? (bytes - kLooked) / 8 * 8 : 0; }

const char* const kWrong = "the copied bytes are not those of the source";

}  // namespace

std::uint64_t random_bits(std::uint64_t seed) { return hash(seed); }

float real_of(std::uint16_t brain) {
  const std::uint32_t bits = static_cast<std::uint32_t>(brain) << 16U;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float brain_at(std::uint64_t index, std::uint64_t seed) {
  return real_of(static_cast<std::uint16_t>(word(index / 4, Content::brains, seed) >> (16 * (index % 4))));
}

void fill(void* data, std::size_t bytes, Content content, std::uint64_t seed) {
  fill_from(data, bytes, 0, content, seed);
}

void write_device(const gpu::Context& context, gpu::DevicePointer to, const void* from, std::size_t bytes) {
  const gpu::Stream stream(context);
  const gpu::Driver& driver = context.driver();
  driver.check(driver.cuMemcpyHtoDAsync(to, from, bytes, stream.handle()), "copying to the device");
  stream.synchronize();
}

void read_device(const gpu::Context& context, void* to, gpu::DevicePointer from, std::size_t bytes) {
  const gpu::Stream stream(context);
  const gpu::Driver& driver = context.driver();
  driver.check(driver.cuMemcpyDtoHAsync(to, from, bytes, stream.handle()), "copying from the device");
  stream.synchronize();
}

void fill_device(const gpu::Context& context, gpu::DevicePointer to, std::size_t bytes, Content content,
                 std::uint64_t seed) {
  gpu::PinnedMemory piece(context, std::min(bytes, kPiece), -1);
  for (std::size_t at = 0; at < bytes; at += piece.size()) {
    const std::size_t length = std::min(piece.size(), bytes - at);
    fill_from(piece.data(), length, at, content, seed);
    write_device(context, to + at, piece.data(), length);
  }
}

void clear_host(void* data, std::size_t bytes) {
  const std::size_t last = last_part(bytes);
  std::memset(data, 0, std::min(bytes, kLooked));
  std::memset(static_cast<char*>(data) + last, 0, bytes - last);
}

void clear_device(const gpu::Context& context, gpu::DevicePointer data, std::size_t bytes) {
  const std::vector<char> zeros(kLooked + 8);
  const std::size_t last = last_part(bytes);
  write_device(context, data, zeros.data(), std::min(bytes, kLooked));
  write_device(context, data + last, zeros.data(), bytes - last);
}

std::string check_host(const void* data, std::size_t bytes, Content content, std::uint64_t seed) {
  const std::size_t last = last_part(bytes);
  const bool same = equals(data, std::min(bytes, kLooked), 0, content, seed) &&
                    equals(static_cast<const char*>(data) + last, bytes - last, last, content, seed);
  return same ? "" : kWrong;
}

std::string check_device(const gpu::Context& context, gpu::DevicePointer data, std::size_t bytes, Content content,
                         std::uint64_t seed) {
  const std::size_t last = last_part(bytes);
  std::vector<char> first(std::min(bytes, kLooked));
  std::vector<char> rest(bytes - last);
  read_device(context, first.data(), data, first.size());
  read_device(context, rest.data(), data + last, rest.size());
  const bool same =
      equals(first.data(), first.size(), 0, content, seed) && equals(rest.data(), rest.size(), last, content, seed);
  return same ? "" : kWrong;
}

std::string check_not_zeros(const gpu::Context& context, gpu::DevicePointer data, std::size_t bytes) {
  std::vector<char> looked(std::min(bytes, kZerosLooked));
  read_device(context, looked.data(), data, looked.size());
  const auto zeros = static_cast<std::size_t>(std::count(looked.begin(), looked.end(), '\0'));
  return 2 * zeros > looked.size() ? "the data of a kernel are zeros, on which it runs faster than on others" : "";
}

}  // namespace elbowroom::gpu_bench
