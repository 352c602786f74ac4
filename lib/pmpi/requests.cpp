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
  if (tool_times && operation.active && operation.kind != Operation::duplicate) {
    tool_completed(operation.interval, message ? &*message : nullptr, ending);
  }
}

void tell_open(const Operation& operation) { tell_end(operation, std::nullopt, Ending::unknown); }

// The operation that a call waited for which began at `moment`: it is complete, and no other call waits for it.
Operations::Entry* take(Books& books, MPI_Request request, std::uint64_t moment) {
  Operations::Entry* const entry = books.operations.find(key_of(request), moment);
  if (entry != nullptr && !entry->operation.persistent) {
    books.operations.unlink(entry);
  }
  return entry;
}

// The program may start it again, or it is gone.
void release(Books& books, Operations::Entry* entry) {
  if (entry->operation.persistent) {
    entry->operation.active = false;
  } else {
    books.operations.release(entry);
  }
}

// The message of an operation that is complete.
std::optional<Message> message_at_end(Books& books, Operation& operation, const MPI_Status* status) {
  if (!operation.active || !receives(operation)) {
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

void add_duplicate(const Operation& operation) {
  const MPI_Comm handle = operation.fortran ? MPI_Comm_f2c(*static_cast<const MPI_Fint*>(operation.where))
                                            : *static_cast<const MPI_Comm*>(operation.where);
  add_communicator(handle, operation.number);
}

// A persistent request after an error: whether it waits for nothing.
bool is_inactive(MPI_Request request) {
  int flag = 0;
  MPI_Status status;
  return PMPI_Request_get_status(request, &flag, &status) == MPI_SUCCESS && flag != 0 &&
         status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG;
}

}  // namespace

void Starting::start(MPI_Request request) {
  std::optional<Message> message;
  in_books([&](Books& books) {
    Operations::Entry* const entry = books.operations.find(key_of(request));
    if (entry == nullptr) {
      return;
    }
    Operation& operation = entry->operation;
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

MPI_Request* Completing::begin(int count) {
  if (count <= 0 || !books_complete() || pending().empty()) {
    return nullptr;
  }
  count_ = count;
  moment_ = pending().moment();
  requests_ = own_.make(static_cast<std::size_t>(count));
  if (requests_ == nullptr) {
    give_up_messages();
  }
  return requests_;
}

// Messages are numbered by the order of their posts.
void Completing::tell(Complete* complete, std::size_t count) {
  if (count == 0) {
    return;
  }
  Complete* const end = complete + count;
  in_books([&](Books& books) {
    for (Complete* one = complete; one != end; ++one) {
      one->entry = take(books, one->request, moment_);
    }
    if (tool_matches && count > 1) {
      std::sort(complete, end, [](const Complete& a, const Complete& b) {
        const auto serial = [](const Complete& one) {
          return one.entry != nullptr ? one.entry->operation.posted.serial : 0;
        };
        return std::pair(serial(a), a.place) < std::pair(serial(b), b.place);
      });
    }
    for (Complete* one = complete; one != end; ++one) {
      one->message.reset();
      if (one->entry != nullptr) {
        one->message = message_at_end(books, one->entry->operation, one->failed ? nullptr : &one->status);
      }
    }
  });
  for (const Complete* one = complete; one != end; ++one) {
    if (one->entry == nullptr || !one->entry->operation.active) {
      continue;
    }
    const Operation& operation = one->entry->operation;
    if (operation.kind == Operation::duplicate && !one->failed) {
      add_duplicate(operation);
    }
    tell_end(operation, one->message, receives(operation) && !one->message ? Ending::cancelled : Ending::complete);
    if (one->message) {
      tool_received(*one->message);
    }
  }
  in_books([&](Books& books) {
    for (const Complete* one = complete; one != end; ++one) {
      if (one->entry != nullptr) {
        release(books, one->entry);
      }
    }
  });
}

void Completing::tell_gone() {
  for (int i = 0; i < count_; ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) {
      continue;
    }
    bool is_gone = given_now_(given_, i) == MPI_REQUEST_NULL;
    if (!is_gone) {
      bool asks = false;
      in_books([&](Books& books) {
        const Operations::Entry* const entry = books.operations.find(key_of(requests_[i]), moment_);
        asks = entry != nullptr && entry->operation.persistent && entry->operation.active;
      });
      is_gone = asks && is_inactive(requests_[i]);
    }
    if (is_gone) {
      Complete one;
      one.request = requests_[i];
      tell(&one, 1);
    }
  }
  requests_ = nullptr;
}

int Completing::error_class(int code) {
  int result = code;
  PMPI_Error_class(code, &result);
  return result;
}

// A receive for one sender and tag that nobody will wait for takes its message all the same: it stays pending.
Freeing::Freeing(int number, MPI_Request request) : Call(number) {
  std::optional<Operation> freed;
  in_books([&](Books& books) {
    if (Operations::Entry* const entry = books.operations.find(key_of(request))) {
      freed = books.operations.remove(entry);
    }
  });
  if (freed) {
    tell_open(*freed);
  }
}

void abandon(std::optional<Operation>& receive) {
  if (receive) {
    in_books([&](Books&) { withdraw(*receive); });
    receive.reset();
  }
}

void leave_open() {
  std::vector<Operation> open;
  in_books([&](Books& books) { books.operations.for_each([&](const Operation& one) { open.push_back(one); }); });
  std::for_each(open.begin(), open.end(), tell_open);
}

}  // namespace elbowroom::pmpi
