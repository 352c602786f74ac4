// Extraneous memory accesses: elements of an array, one after the other (Tan and Jarvis 2012, section 2).
#pragma once

#include <cstddef>
#include <cstdint>

namespace elbowroom {

// Elements are 8 bytes; what `bytes` leaves after the last whole one is touched as part of one. `array` is 8-byte aligned.

// array[i] = value by plain stores, as wide as the build allows; never handed to the C library, whose memset takes
// non-temporal stores for large sizes.
void write_elements(void* array, std::size_t bytes, std::uint64_t value);
// Sum of array[i], modulo 2^64.
std::uint64_t read_elements(const void* array, std::size_t bytes);
// What read_elements() gives after write_elements() of the same bytes.
std::uint64_t sum_of_elements(std::size_t bytes, std::uint64_t value);

}  // namespace elbowroom
