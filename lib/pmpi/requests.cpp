// Requests: started, complete, freed, cancelled. Hooks are called without the lock.
#include <algorithm>

#include "pmpi/messages.hpp"
#include "pmpi/special.hpp"

namespace elbowroom::pmpi {

void Starting::start(MPI_Request request) {
  std::optional<Message> message;
  {
    Locked books;
    const auto place = books->operations.find(key_of(request));
    if (place == books->operations.end()) {
      return;
    }
    Operation& operation = place->second;
    operation.active = true;
    operation.cancelled = false;
    if (operation.kind == Operation::send) {
      message = message_to(*operation.communicator, operation.rank, operation.tag, operation.bytes);
    } else if (operation.kind == Operation::receive) {
      post(operation, key_of(request));
    } else {
      ++operation.sequence;
      if (operation.kind == Operation::parts_send) {
        message = Message{operation.communicator->peer(operation.rank), operation.number, operation.tag,
                          operation.sequence, operation.bytes};
      }
    }
  }
  tell_sent(message);
}

bool Completing::known(const MPI_Request* requests, int count) {
  Locked books;
  if (books->operations.empty()) {
    return false;
  }
  bool receives = false;
  for (int i = 0; i < count; ++i) {
    const auto found = books->operations.find(key_of(requests[i]));
    if (found != books->operations.end() && found->second.active &&
        (found->second.kind == Operation::receive || found->second.kind == Operation::parts_receive)) {
      found->second.waiting = &depth;
      receives = true;
    }
  }
  return receives;
}

void Completing::sort(const MPI_Request* requests, Complete* complete, int count) {
  {
    Locked books;
    for (int i = 0; i < count; ++i) {
      const auto found = books->operations.find(key_of(requests[complete[i].which]));
      complete[i].serial = found == books->operations.end() ? 0 : found->second.posted.serial;
    }
  }
  std::stable_sort(complete, complete + count,
                   [](const Complete& a, const Complete& b) { return a.serial < b.serial; });
}

void Completing::leave(const MPI_Request* requests, int count) {
  Locked books;
  for (int i = 0; i < count && !books->operations.empty(); ++i) {
    const auto found = books->operations.find(key_of(requests[i]));
    if (found != books->operations.end()) {
      found->second.waiting = nullptr;
    }
  }
}

namespace {

void add_duplicate(Books& books, const Operation& made) {
  const MPI_Comm handle = made.fortran ? MPI_Comm_f2c(*static_cast<const MPI_Fint*>(made.where))
                                       : *static_cast<const MPI_Comm*>(made.where);
  books.communicators.add(handle, made.number);
}

// With the lock.
std::optional<Message> completed(Books& books, Operation& operation, const MPI_Status* status) {
  if (!operation.active) {
    return std::nullopt;
  }
  if (operation.kind == Operation::duplicate) {
    add_duplicate(books, operation);
    return std::nullopt;
  }
  if (operation.kind != Operation::receive && operation.kind != Operation::parts_receive) {
    return std::nullopt;
  }
  int cancelled = status == nullptr ? 1 : 0;
  if (status != nullptr && operation.cancelled) {
    PMPI_Test_cancelled(status, &cancelled);
  }
  if (cancelled != 0) {
    operation.communicator->received.cancel(operation.posted);
    return std::nullopt;
  }
  return message_of(books, operation, *status);
}

}  // namespace

void Completing::tell(MPI_Request request, const MPI_Status* status) {
  std::optional<Message> message;
  {
    Locked books;
    const auto place = books->operations.find(key_of(request));
    if (place != books->operations.end()) {
      message = completed(*books.operator->(), place->second, status);
      place->second.active = false;
      if (!place->second.persistent) {
        books->operations.erase(place);
      }
    }
  }
  if (message) {
    tool_received(*message);
  }
  if (request != MPI_REQUEST_NULL) {
    tool_completed(key_of(request));
  }
}

// A receive for one sender and tag that nobody will wait for takes its message all the same: it stays pending.
Freeing::Freeing(int number, MPI_Request request) : Call(number) {
  Locked books;
  books->operations.erase(key_of(request));
}

Cancelling::Cancelling(int number, MPI_Request request) : Call(number) {
  Locked books;
  const auto place = books->operations.find(key_of(request));
  if (place != books->operations.end()) {
    place->second.cancelled = true;
  }
}

}  // namespace elbowroom::pmpi
