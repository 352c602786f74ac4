// What is remembered from call to call, of the whole process: communicators, windows, requests and matched messages.
#pragma once

#include <atomic>
#include <new>
#include <thread>
#include <unordered_map>

#include "pmpi/communicators.hpp"
#include "pmpi/hooks.hpp"
#include "pmpi/mpi.hpp"
#include "pmpi/operations.hpp"

namespace elbowroom::pmpi {

// What becomes of a request when it is started or complete.
struct Operation {
  enum Kind { receive, send, parts_send, parts_receive, duplicate, other };
  Kind kind = receive;
  CommunicatorPointer communicator;
  int rank = kAny;  // in the communicator: destination or source
  int tag = kAny;
  std::uint64_t bytes = 0;  // at most
  bool persistent = false;
  bool active = true;
  bool half = false;  // of an exchange: MPICH 4.0 says nothing of it in the status
  Posted posted;
  std::uint32_t number = 0;    // partitioned: of the communicator that its messages are told with; a duplicate's own
  std::uint32_t sequence = 0;  // of the message, where it is known before it has come; partitioned: how often started
  void* where = nullptr;       // a duplicate's place in the program, of Fortran or of C
  bool fortran = false;
  Interval interval;
};

// A message that MPI_Mprobe found.
struct Probed {
  CommunicatorPointer communicator;
  std::uint32_t sequence;
};

using Operations = OperationTable<Operation>;

struct Books {
  Communicators communicators;
  Operations operations;                                     // by request
  std::unordered_map<std::uintptr_t, Probed, Mixed> probed;  // by message
  std::unordered_map<std::uintptr_t, CommunicatorPointer, Mixed> windows;
};

// The state behind the functions below, which every call asks.
struct BooksState {
  std::atomic<Books*> books{nullptr};  // never destroyed: MPI may be called while a process ends
  std::atomic<bool> complete{true};
  std::atomic<bool> threaded{false};
  std::atomic_flag taken = ATOMIC_FLAG_INIT;
};
extern constinit BooksState books_state;
Books& make_books();

// Whether several threads may call MPI at once: said where the tool starts, and by sessions that are opened later.
inline bool threaded() { return books_state.threaded.load(std::memory_order_relaxed); }
void set_threaded(bool threads);

// The books, for this thread alone. The lock is taken only where MPI_THREAD_MULTIPLE was granted, and held for some ten
// instructions: nobody sleeps for it.
class Locked {
 public:
  Locked() : locked_(threaded()) {
    while (locked_ && books_state.taken.test_and_set(std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }
  ~Locked() {
    if (locked_) {
      books_state.taken.clear(std::memory_order_release);
    }
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  Books& operator*() {
    Books* const books = books_state.books.load(std::memory_order_acquire);
    return books != nullptr ? *books : make_books();
  }

 private:
  bool locked_;
};

// Messages are recorded only while the books are complete: what they had no memory for changes every later number. The first
// time the process says so, and records calls only from then on.
inline bool books_complete() { return books_state.complete.load(std::memory_order_relaxed); }
void give_up_messages();

// Runs `work` while the books are complete, which they are no more where it had no memory. Never throws: the program goes on.
template <typename Work>
void with_memory(Work work) noexcept {
  if (!books_complete()) {
    return;
  }
  try {
    work();
  } catch (const std::bad_alloc&) {
    give_up_messages();
  }
}

// The same with the books and the lock.
template <typename Work>
void in_books(Work work) noexcept {
  with_memory([&] {
    Locked books;
    work(*books);
  });
}

// Reading it without the lock: operations.hpp. NULL: there are none.
inline const Operations* pending() {
  const Books* const books = books_state.books.load(std::memory_order_acquire);
  return books == nullptr || books->operations.empty() ? nullptr : &books->operations;
}

// A communicator was made; without the lock.
void add_communicator(MPI_Comm handle, std::uint32_t number);
// A receive whose call left by an exception gets nothing.
void abandon(Operations::Entry*& receive);
// Nothing more will be heard of the operations that are not complete.
void leave_open();

std::uint64_t bytes_of(MPI_Count count, MPI_Datatype type);

}  // namespace elbowroom::pmpi
