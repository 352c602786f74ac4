// OpenBLAS in programs whose own threads compute.
#pragma once

#include <string>

namespace elbowroom::program {

// OpenBLAS computes in the thread that calls it. Call before anything else of it.
void one_thread_each();
std::string blas();  // which OpenBLAS, for which processor

// An OpenBLAS that is older than the processor takes its oldest kernels (Prescott), a tenth as fast as those that would run. It
// looks at the environment when it is loaded, so the program starts itself anew with a better name there. Call first in main.
void choose_blas_kernels(char** argv);

}  // namespace elbowroom::program
