// Products of blocks by a library of linear algebra, in the thread that calls it.
#pragma once

#include <cstddef>
#include <string>

namespace elbowroom::program {

// Call before anything else of it: it has no threads of its own then.
void one_thread_each();
// Which library, with its version, and for which processor, as far as it says; "unknown" where it does not.
std::string blas();
// An OpenBLAS that is older than the processor takes its oldest kernels (Prescott), a tenth as fast as those that would run. It
// looks at the environment when it is loaded, so this program starts itself anew with a better name there.
void choose_blas_kernels(char** argv);
// q += A p, or q = A p when `first`, for one block.
void multiply(std::size_t block, const double* a, const double* p, double* q, bool first);
// C += A B, or C = A B when `first`, for one block.
void multiply_blocks(std::size_t block, const double* a, const double* b, double* c, bool first);

}  // namespace elbowroom::program
