#include "pmpi/books.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "pmpi/shim.hpp"

namespace elbowroom::pmpi {

std::atomic<bool> listening{false};
thread_local int depth = 0;

namespace {

std::atomic_flag taken = ATOMIC_FLAG_INIT;
std::atomic<bool> complete{true};
bool several = false;

// Never destroyed: MPI may be called while a process ends.
Books& books() {
  static Books& all = *new Books;
  return all;
}

}  // namespace

void* find_next(const char* name) {
  void* symbol = dlsym(RTLD_NEXT, name);
  if (symbol == nullptr) {
    char profiling[128];  // the program's memory may be used up
    std::snprintf(profiling, sizeof profiling, "%c%s", name[0] == 'm' ? 'p' : 'P', name);
    symbol = dlsym(RTLD_NEXT, profiling);
  }
  if (symbol == nullptr) {
    std::fprintf(stderr,
                 "elbowroom: %s is missing in the libraries behind elbowroom's, which was built for another MPI\n",
                 name);
    std::abort();
  }
  return symbol;
}

Call::Call(int number) : Call(number, About{}) {}

// The tool may write files: errno stays as the program, or MPI, has set it.
Call::Call(int number, const About& about) : about_(about), number_(number) {
  const int error = errno;
  ++depth;
  tool_enter(number_, about_);
  errno = error;
}

Call::~Call() {
  const int error = errno;
  tool_leave(number_, about_);
  --depth;
  errno = error;
}

Locked::Locked() {
  if (several) {
    while (taken.test_and_set(std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }
}

Locked::~Locked() {
  if (several) {
    taken.clear(std::memory_order_release);
  }
}

Books* Locked::operator->() { return &books(); }

Books& Locked::operator*() { return books(); }

bool books_complete() { return complete.load(std::memory_order_relaxed); }

void give_up_messages() {
  if (complete.exchange(false)) {
    std::fprintf(
        stderr,
        "elbowroom: process %d: messages are not recorded from here on, calls are: there is not enough memory\n",
        static_cast<int>(getpid()));
  }
}

bool threaded() { return several; }

void set_threaded(bool threads) { several = threads; }

std::uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (count <= 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0) {
    return 0;
  }
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
}

}  // namespace elbowroom::pmpi
