// Requests: started, complete, freed. Hooks are called without the lock.
#include <algorithm>

#include "pmpi/messages.hpp"
#include "pmpi/special.hpp"

namespace elbowroom::pmpi {

namespace {

bool receives(const Operation& operation) {
  return operation.kind == Operation::receive || operation.kind == Operation::parts_receive;
}

void tell_end(const Operation& operation, const std::optional<Message>& message, Ending ending) {
  if (tool_times && operation.kind != Operation::duplicate) {
    tool_completed(operation.interval, message ? &*message : nullptr, ending);
  }
}

}  // namespace

void Starting::start(MPI_Request request) {
  std::optional<Message> message;
  in_books([&](Books& books) {
    const auto place = books.operations.find(key_of(request));
    if (place == books.operations.end()) {
      return;
    }
    Operation& operation = place->second;
    operation.active = true;
    operation.interval.posted = tool_posting();
    if (operation.kind == Operation::send) {
      message = message_to(*operation.communicator, operation.rank, operation.tag, operation.bytes);
    } else if (operation.kind == Operation::receive) {
      post(operation, key_of(request));
    } else if (operation.kind != Operation::other) {
      ++operation.sequence;
      if (operation.kind == Operation::parts_send && tool_matches) {
        message = Message{operation.communicator->peer(operation.rank), operation.number, operation.tag,
                          operation.sequence, operation.bytes};
      }
    }
  });
  tell_sent(message);
}

bool Completing::take() {
  bool found = false;
  in_books([&](Books& books) {
    if (books.operations.empty()) {
      return;
    }
    taken_ = room_.make(static_cast<std::size_t>(count_));
    if (taken_ == nullptr) {
      throw std::bad_alloc();
    }
    for (int i = 0; i < count_; ++i) {
      taken_[i] = books.operations.extract(key_of(requests_[i]));
      if (taken_[i]) {
        const Operation& operation = taken_[i].mapped();
        found = found || (operation.active && receives(operation));
      }
    }
  });
  return found;
}

void Completing::put_back() {
  if (taken_ != nullptr) {
    in_books([&](Books& books) {
      for (int i = 0; i < count_; ++i) {
        books.operations.insert(std::move(taken_[i]));
      }
    });
  }
}

void Completing::sort(Complete* complete, int count) {
  if (taken_ == nullptr) {
    return;
  }
  for (Complete* one = complete; one != complete + count; ++one) {
    one->operation = std::move(taken_[one->which]);
    one->serial = one->operation ? one->operation.mapped().posted.serial : 0;
  }
  put_back();
  if (count > 1) {
    std::sort(complete, complete + count, [](const Complete& a, const Complete& b) {
      return std::pair(a.serial, a.place) < std::pair(b.serial, b.place);
    });
  }
}

namespace {

void add_duplicate(Books& books, const Operation& operation) {
  const MPI_Comm handle = operation.fortran ? MPI_Comm_f2c(*static_cast<const MPI_Fint*>(operation.where))
                                            : *static_cast<const MPI_Comm*>(operation.where);
  books.communicators.add(handle, operation.number);
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
  if (!receives(operation)) {
    return std::nullopt;
  }
  int cancelled = status == nullptr ? 1 : 0;
  if (status != nullptr) {
    PMPI_Test_cancelled(status, &cancelled);
  }
  if (cancelled != 0) {
    withdraw(operation);
    return std::nullopt;
  }
  return message_of(books, operation, *status);
}

}  // namespace

void Completing::tell(Complete& complete, const MPI_Status* status) {
  if (!complete.operation) {
    return;
  }
  std::optional<Message> message;
  in_books([&](Books& books) {
    Operation& operation = complete.operation.mapped();
    message = completed(books, operation, status);
    if (operation.active) {
      const bool nothing = receives(operation) && !message;
      tell_end(operation, message, nothing ? Ending::cancelled : Ending::complete);
    }
    operation.active = false;
    if (operation.persistent) {
      books.operations.insert(std::move(complete.operation));
    }
  });
  if (message) {
    tool_received(*message);
  }
}

// A receive for one sender and tag that nobody will wait for takes its message all the same: it stays pending.
Freeing::Freeing(int number, MPI_Request request) : Call(number) {
  in_books([&](Books& books) {
    const auto place = books.operations.find(key_of(request));
    if (place != books.operations.end()) {
      if (place->second.active) {
        tell_end(place->second, std::nullopt, Ending::unknown);
      }
      books.operations.erase(place);
    }
  });
}

void leave_open() {
  in_books([](Books& books) {
    for (const auto& [request, operation] : books.operations) {
      if (operation.active) {
        tell_end(operation, std::nullopt, Ending::unknown);
      }
    }
  });
}

}  // namespace elbowroom::pmpi
