// Workers of the kernels that sweep arrays.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/kernel.hpp"
#include "kernels/loops.hpp"

namespace elbowroom {

// All throw std::invalid_argument with a sentence when the memory is too small. `nt`: non-temporal stores.
std::unique_ptr<Worker> make_memset_nt(void* memory, std::size_t bytes);
std::unique_ptr<Worker> make_load(void* memory, std::size_t bytes);
std::unique_ptr<Worker> make_copy(void* memory, std::size_t bytes, bool nt);
std::unique_ptr<Worker> make_triad(void* memory, std::size_t bytes, bool nt);
std::unique_ptr<Worker> make_triad_cursor(void* memory, std::size_t bytes, int cursor);

// Bytes that stay in the second-level cache beside what else runs on the core: half of the core's share of it. 128 KiB
// where the cache is not known.
std::size_t cache_resident_bytes();

// All polling workers of this process share one list, all paused ones another. `most_nops`: of the back-off.
std::unique_ptr<Worker> make_polling(int most_nops);
std::unique_ptr<Worker> make_paused();

std::unique_ptr<Worker> make_prime();
// Throws std::invalid_argument with a sentence where the dispatched instruction set has no such width.
std::unique_ptr<Worker> make_fma(loops::Width width);

}  // namespace elbowroom
