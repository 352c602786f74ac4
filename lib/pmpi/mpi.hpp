// mpi.h for libraries that are preloaded: they are not linked with an MPI, so that programs without MPI, which inherit
// LD_PRELOAD from a rank, do not load one. Functions that the library calls itself are looked up at their first call
// (calls_of_mpi.cpp, generated), and so are Open MPI's predefined handles, which are addresses of its variables.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "pmpi/lookup.hpp"

namespace elbowroom::pmpi {

template <std::size_t size>
struct SymbolName {
  constexpr SymbolName(const char (&text)[size]) { std::copy_n(text, size, letters); }
  char letters[size];
};

template <SymbolName name>
void* predefined() {
  static constinit std::atomic<void*> known{nullptr};
  void* address = known.load(std::memory_order_relaxed);
  if (address == nullptr) [[unlikely]] {
    address = needed_data(name.letters);
    known.store(address, std::memory_order_relaxed);
  }
  return address;
}

}  // namespace elbowroom::pmpi

#ifdef OMPI_PREDEFINED_GLOBAL
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) (static_cast<type>(elbowroom::pmpi::predefined<#global>()))
#endif
