// What every shim needs: the next library's function, whether the tool is to hear of the call, and the call itself.
#pragma once

#include <atomic>
#include <cerrno>
#include <concepts>

#include "pmpi/communicators.hpp"
#include "pmpi/hooks.hpp"
#include "pmpi/lookup.hpp"
#include "pmpi/mpi.hpp"
#include "pmpi/operations.hpp"

namespace elbowroom::pmpi {

// The function of that name behind this library (lookup.hpp), found at its first call.
template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  Function* operator()() {
    Function* function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(needed_function(name_));
      function_.store(function, std::memory_order_relaxed);
    }
    return function;
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

// Between MPI_Init and MPI_Finalize, and the tool wants to hear.
extern std::atomic<bool> listening;

class Call;

// The call that this thread is in; those that MPI and its Fortran bindings make are inside it.
struct Inside {
  const Call* call = nullptr;
  int number = 0;
  unsigned nested = 0;            // calls that came inside it, but for those that bindings make
  const void* binding = nullptr;  // of Fortran, which may be written with a call of C
  const void* caller = nullptr;   // where the call returns to whose shim was entered last: for the call that it makes
};
extern constinit thread_local Inside inside __attribute__((tls_model("initial-exec")));

// The binding of Fortran that this thread is in, where that hands its call to the function of C, and where it returns to.
struct Binding {
  const void* code = nullptr;
  const void* caller = nullptr;
};
extern constinit thread_local Binding current_binding __attribute__((tls_model("initial-exec")));

// Where a call of C, which returns to `caller`, was made by the program: in front of the binding, if it is the binding's.
const void* caller_of_binding(const void* caller);

// Whether a call, which returns to `caller`, comes inside the one that this thread is in: not where that was left by longjmp
// (of an error handler, of a signal handler), which is told then.
bool is_nested(const void* caller);

// Whether the tool is to hear nothing of the call whose shim asks, and which returns to `caller`.
[[gnu::always_inline]] inline bool passing(const void* caller = __builtin_return_address(0)) {
  const bool passes = !listening.load(std::memory_order_relaxed) || (inside.call != nullptr && is_nested(caller));
  inside.caller = current_binding.code == nullptr ? caller : caller_of_binding(caller);
  return passes;
}

// One call of the program, from its begin to the end of the scope, also by an exception. The tool may write files: errno
// stays as the program, or MPI, has set it.
class Call {
 public:
  explicit Call(int number) : Call(number, [] { return About{}; }) {}
  // `say` says what the call is about: made where it stays, as a copy made at once would wait for its parts to be written.
  template <std::invocable Say>
  Call(int number, Say say) : about_(say()), number_(number) {
    const int error = errno;
    inside.call = this;
    inside.number = number;
    tool_enter(number_, about_, inside.caller);
    errno = error;
  }
  ~Call() {
    const int error = errno;
    tool_leave(number_, about_);
    if (inside.call == this) {
      inside = {};
    }
    errno = error;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 protected:
  About about_;  // what is known of it at its end
  int number_;
};

// Arguments of C as they are.
template <typename Value>
Value value(Value given) {
  return given;
}
template <typename Value>
Value out(const Value* given) {
  return *given;
}
// A request that a call has made.
struct Request {
  MPI_Request handle;
  std::uintptr_t fortran = 0;  // its key in Fortran, where that is another number and known
};
struct Requests {
  using Written = MPI_Request;
  static Handle handle_of(Written request) { return {Language::c, key_of(request)}; }
  MPI_Request operator()(int i) const { return static_cast<const MPI_Request*>(handles)[i]; }
  const void* handles;
};
struct Datatypes {
  const MPI_Datatype* handles;
  MPI_Datatype operator()(int i) const { return handles[i]; }
};
constexpr int kFirstIndex = 0;
inline int index_out(const int* given) { return *given; }

}  // namespace elbowroom::pmpi
