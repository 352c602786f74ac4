// Arguments of Fortran as those of C. What is handed on stays as the program gave it, whatever it points at; only what the
// program does not want to know (MPI_STATUS_IGNORE) may be asked for in its place.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "pmpi/shim.hpp"

namespace elbowroom::pmpi::fortran {

using Word = void*;  // any argument: an address, or the length of a string

// A binding may be written with one of C, whose call then comes inside.
inline bool passing() {
  const bool passes = pmpi::passing();
  inside.fortran = inside.fortran || !passes;
  return passes;
}

constexpr int kFirstIndex = 1;

template <typename Value>
Value value(Word given) {
  if constexpr (std::is_pointer_v<Value> && std::is_same_v<std::remove_cv_t<std::remove_pointer_t<Value>>, void>) {
    return given;
  } else if constexpr (std::is_same_v<Value, const int*>) {
    return static_cast<const int*>(given);
  } else {
    return *static_cast<Value*>(given);
  }
}

inline MPI_Fint handle(Word given) { return *static_cast<const MPI_Fint*>(given); }

struct Requests {
  const void* handles;
  MPI_Request operator()(int i) const { return MPI_Request_f2c(static_cast<const MPI_Fint*>(handles)[i]); }
  void copy_to(MPI_Request* place, int count) const {
    for (int i = 0; i < count; ++i) {
      place[i] = (*this)(i);
    }
  }
};

struct Datatypes {
  Word handles;
  MPI_Datatype operator()(int i) const { return MPI_Type_f2c(static_cast<const MPI_Fint*>(handles)[i]); }
};

// A text of Fortran ends with blanks.
inline std::string_view text(Word letters, Word length) {
  const std::string_view all(static_cast<const char*>(letters), reinterpret_cast<std::size_t>(length));
  return all.substr(0, all.find_last_not_of(' ') + 1);
}

inline int index_out(Word given) {
  const int number = *static_cast<const MPI_Fint*>(given);
  return number == MPI_UNDEFINED ? number : number - 1;
}

// Without an error code (optional in mpi_f08) errors end the program, or nobody wants to know.
inline int result(Word error) { return error == nullptr ? MPI_SUCCESS : *static_cast<const MPI_Fint*>(error); }

// Whether `given` is one of the addresses that stand for MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE, MPI_IN_PLACE.
bool ignores_status(const void* given);
bool in_place(const void* given);

}  // namespace elbowroom::pmpi::fortran
