// libFuzzer: any bytes as a ring file.
#include <cstddef>
#include <cstdint>

#include "trace/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elbowroom::trace::RingContents contents;
  elbowroom::trace::read_ring(std::as_bytes(std::span(data, size)), contents);
  return 0;
}
