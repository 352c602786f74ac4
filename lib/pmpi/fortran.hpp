// Arguments of Fortran as those of C. What is handed on stays as the program gave it, whatever it points at; only what the
// program does not want to know (MPI_STATUS_IGNORE) may be asked for in its place.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "pmpi/shim.hpp"

namespace elbowroom::pmpi::fortran {

using Word = void*;  // any argument: an address, or the length of a string

// Whether the tool is to hear nothing of the call whose shim asks, which returns to `caller` and which `binding` does.
[[gnu::always_inline]] inline bool passing(const void* caller, const void* binding) {
  const bool passes = pmpi::passing(caller);
  if (!passes) {
    inside.binding = binding;
  }
  return passes;
}

// The time in a binding with that `code`, which returns to `caller` and hands its call to the function of C.
class InBinding {
 public:
  InBinding(const void* caller, const void* code) : before_(current_binding) { current_binding = {code, caller}; }
  ~InBinding() { current_binding = before_; }
  InBinding(const InBinding&) = delete;
  InBinding& operator=(const InBinding&) = delete;

 private:
  Binding before_;
};

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

// Handles that are numbers in C are the same in Fortran; else C's cannot be had from those of complete operations.
constexpr bool kOwnHandles = std::is_pointer_v<MPI_Request>;
inline std::uintptr_t key_of_request(MPI_Fint request) {
  return std::uintptr_t{static_cast<std::uint32_t>(request)} + 1;
}
inline Request request(Word given) {
  const MPI_Fint written = handle(given);
  return {MPI_Request_f2c(written), kOwnHandles ? key_of_request(written) : 0};
}
struct Requests {
  using Written = MPI_Fint;
  static Handle handle_of(Written request) {
    if constexpr (kOwnHandles) {
      return {Language::fortran, key_of_request(request)};
    } else {
      return {Language::c, key_of(MPI_Request_f2c(request))};
    }
  }
  MPI_Request operator()(int i) const { return MPI_Request_f2c(static_cast<const MPI_Fint*>(handles)[i]); }
  const void* handles;
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
