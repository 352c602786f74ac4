// Products of matrices as a kernel that computes in chunks: one thread's, by OpenBLAS.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/kernel.hpp"

namespace elbowroom::forwarding {

// C = A B in blocks, again and again; an item is the product of two blocks.
extern const KernelInfo kProducts;

// As make_worker: throws std::invalid_argument when the memory holds no three blocks.
std::unique_ptr<Worker> make_products(void* memory, std::size_t bytes);

}  // namespace elbowroom::forwarding
