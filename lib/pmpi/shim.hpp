// What every shim needs: the next library's function, whether the tool is to hear of the call, and the call itself.
#pragma once

#include <atomic>
#include <cstring>
#include <type_traits>

#include "pmpi/hooks.hpp"
#include "pmpi/lookup.hpp"
#include "pmpi/mpi.hpp"

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
  unsigned nested = 0;   // calls that came inside it
  bool fortran = false;  // by a binding that may be written with one of C
};
extern constinit thread_local Inside inside __attribute__((tls_model("initial-exec")));

// Whether a call comes inside the one that this thread is in: not where that was left by longjmp (of an error handler, of a
// signal handler), which is told then.
bool is_nested();

// Whether the tool is to hear nothing of a call.
inline bool passing() { return !listening.load(std::memory_order_relaxed) || (inside.call != nullptr && is_nested()); }

// One call of the program, from its begin to the end of the scope, also by an exception.
class Call {
 public:
  explicit Call(int number) : Call(number, About{}) {}
  Call(int number, const About& about);
  ~Call();
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
struct Requests {
  const void* handles;
  MPI_Request operator()(int i) const { return static_cast<const MPI_Request*>(handles)[i]; }
  void copy_to(MPI_Request* place, int count) const {
    std::memcpy(place, handles, static_cast<std::size_t>(count) * sizeof(MPI_Request));
  }
};
struct Datatypes {
  const MPI_Datatype* handles;
  MPI_Datatype operator()(int i) const { return handles[i]; }
};
constexpr int kFirstIndex = 0;
inline int index_out(const int* given) { return *given; }

}  // namespace elbowroom::pmpi
