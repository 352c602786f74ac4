// How fast the computing cores move memory and multiply out of their caches, all at once: between the two, how long a
// computation waits for memory is told by its arithmetic intensity (roofline; Williams et al. 2009).
#pragma once

#include "kernels/engine.hpp"

namespace elbowroom::kernels {

// Of one rank, while all ranks do the same.
struct Roof {
  // TRIAD of STREAM in arrays as large as the matrices; bytes on the bus, the lines that a store reads included.
  double bytes_per_s = 0;
  double flops_per_s = 0;  // dgemm of blocks that caches hold
};

// Bytes of TRIAD's arrays: as many as the matrices, or four last-level caches where those are less. What is computed with
// then comes from the same caches, or from none.
double roof_bytes(double matrices);

// Throws std::runtime_error when the arrays do not fit. Collective.
Roof roof_of(Engine& engine, double matrices, int node);

// Share of the time that a computation of this intensity (flop/B) waits for memory: what is missing to the rate out of
// caches when memory allows intensity x bandwidth; 0 where memory allows more.
double stalled_modelled(double arithmetic_intensity, const Roof& roof);

}  // namespace elbowroom::kernels
