#include "pmpi/books.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>

#include "pmpi/shim.hpp"

namespace elbowroom::pmpi {

std::atomic<bool> listening{false};

constinit BooksState books_state;

// Several threads may be the first; without the lock while they are told to be several.
Books& make_books() {
  static Books& all = *new Books;
  books_state.books.store(&all, std::memory_order_release);
  return all;
}

void give_up_messages() {
  if (books_state.complete.exchange(false)) {
    std::fprintf(
        stderr,
        "elbowroom: process %d: messages are not recorded from here on, calls are: there is not enough memory\n",
        static_cast<int>(getpid()));
  }
}

// Another thread may hold the lock while the process forks; what the child calls is not its parent's.
void set_threaded(bool threads) {
  books_state.threaded = threads;
  pthread_atfork(nullptr, nullptr, [] {
    listening = false;
    books_state.taken.clear();
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
