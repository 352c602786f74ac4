#include "pmpi/books.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "pmpi/shim.hpp"

namespace elbowroom::pmpi {

std::atomic<bool> listening{false};

namespace {

std::atomic_flag taken = ATOMIC_FLAG_INIT;
std::atomic<bool> complete{true};
std::atomic<bool> several{false};

// Never destroyed: MPI may be called while a process ends.
Books& books() {
  static Books& all = *new Books;
  return all;
}

}  // namespace

Locked::Locked() : locked_(threaded()) {
  if (locked_) {
    while (taken.test_and_set(std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }
}

Locked::~Locked() {
  if (locked_) {
    taken.clear(std::memory_order_release);
  }
}

const Operations& pending() { return books().operations; }

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

bool threaded() { return several.load(std::memory_order_relaxed); }

// Another thread may hold the lock while the process forks; what the child calls is not its parent's.
void set_threaded(bool threads) {
  several = threads;
  pthread_atfork(nullptr, nullptr, [] {
    listening = false;
    taken.clear();
  });
}

std::uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (count <= 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0) {
    return 0;
  }
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
}

}  // namespace elbowroom::pmpi
