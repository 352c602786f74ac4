// What every shim needs: the next library's function, whether the tool is to hear of the call, and the call itself.
#pragma once

#include <mpi.h>

#include <atomic>
#include <type_traits>

#include "pmpi/hooks.hpp"

namespace elbowroom::pmpi {

// `name` in the libraries behind this one, another tool's or MPI's, else its PMPI name; ends the process where there is none.
void* find_next(const char* name);

template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  Function* operator()() {
    Function* function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(find_next(name_));
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
// Calls that this thread is in: those of the library itself and of its Fortran bindings are inside another one.
extern thread_local int depth __attribute__((tls_model("initial-exec")));

inline bool passing() { return depth != 0 || !listening.load(std::memory_order_relaxed); }

// One call of the program, from its begin to the end of the scope.
class Call {
 public:
  explicit Call(int number);
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
  const MPI_Request* handles;
  MPI_Request operator()(int i) const { return handles[i]; }
};
struct Datatypes {
  const MPI_Datatype* handles;
  MPI_Datatype operator()(int i) const { return handles[i]; }
};
constexpr int kFirstIndex = 0;
inline int index_out(const int* given) { return *given; }

}  // namespace elbowroom::pmpi
