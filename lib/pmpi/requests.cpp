// Requests: started, complete, freed. Hooks are called without the lock.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "pmpi/messages.hpp"
#include "pmpi/special.hpp"

namespace elbowroom::pmpi {

namespace {

bool receives(const Operation& operation) {
  return operation.kind == Operation::receive || operation.kind == Operation::parts_receive;
}

void tell_end(const Operation& operation, const Message* message, Ending ending) {
  if (tool_times && operation.active && operation.kind != Operation::duplicate) {
    tool_completed(operation.interval, message, ending);
  }
}

void tell_open(const Operation& operation) { tell_end(operation, nullptr, Ending::unknown); }

// The program may start it again, or it is gone.
void release(Books& books, Operations::Entry& entry) {
  if (entry.operation.persistent) {
    entry.operation.active = false;
  } else {
    books.operations.release(entry);
  }
}

// Whether a receive that is complete got a message: in `message`. Without a status it got none.
bool got_message(Books& books, Operation& receive, const MPI_Status* status, Message& message) {
  int cancelled = 1;
  if (status != nullptr) {
    PMPI_Test_cancelled(status, &cancelled);
  }
  if (cancelled != 0) {
    withdraw(receive);
    return false;
  }
  const std::optional<Message> got = message_of(books, receive, *status);
  message = got.value_or(Message{});
  return got.has_value();
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
    Operations::Entry* const entry = books.operations.find({Language::c, key_of(request)});
    if (entry == nullptr) {
      return;
    }
    Operation& operation = entry->operation;
    operation.active = true;
    operation.interval.posted = tool_posting(operation.interval.call, operation.interval.about);
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

void Completing::copy_handles(int count, std::size_t bytes) {
  const Operations* const operations = pending();
  if (count <= 0 || !books_complete() || operations == nullptr) {
    return;
  }
  count_ = count;
  moment_ = operations->moment();
  MPI_Request* const own = own_.make(static_cast<std::size_t>(count));
  if (own == nullptr) {
    return give_up_messages();
  }
  before_ = std::memcpy(own, given_, static_cast<std::size_t>(count) * bytes);
}

Operations::Entry* Completing::find(Books& books, int index) const {
  return books.operations.find(handle_before_(before_, index), moment_);
}

// Messages are numbered by the order of their posts.
void Completing::tell(Complete* complete, std::size_t count, const StatusOf& status_of) {
  if (count == 0) {
    return;
  }
  Complete* const end = complete + count;
  in_books([&](Books& books) {
    for (Complete* one = complete; one != end; ++one) {
      one->entry = find(books, one->index);
      if (one->entry != nullptr && !one->entry->operation.persistent) {
        books.operations.unlink(*one->entry);
      }
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
      if (one->entry != nullptr && one->entry->operation.active && receives(one->entry->operation)) {
        one->has_message =
            got_message(books, one->entry->operation, one->failed ? nullptr : &status_of(one->place), one->message);
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
    tell_end(operation, one->has_message ? &one->message : nullptr,
             receives(operation) && !one->has_message ? Ending::cancelled : Ending::complete);
    if (one->has_message) {
      tool_received(one->message);
    }
  }
  in_books([&](Books& books) {
    for (const Complete* one = complete; one != end; ++one) {
      if (one->entry != nullptr) {
        release(books, *one->entry);
      }
    }
  });
}

void Completing::tell_gone() {
  for (int i = 0; i < count_; ++i) {
    bool is_gone = given_now_(given_, i) == MPI_REQUEST_NULL;
    if (!is_gone) {
      bool asks = false;
      in_books([&](Books& books) {
        const Operations::Entry* const entry = find(books, i);
        asks = entry != nullptr && entry->operation.persistent && entry->operation.active;
      });
      is_gone = asks && is_inactive(given_now_(given_, i));
    }
    if (is_gone) {
      Complete one{};
      one.index = i;
      one.failed = true;
      tell(&one, 1, {});
    }
  }
  before_ = nullptr;
}

int Completing::error_class(int code) {
  int result = code;
  PMPI_Error_class(code, &result);
  return result;
}

// A receive for one sender and tag that nobody will wait for takes its message all the same: it stays pending.
Freeing::Freeing(int number, const Request& request) : Call(number) {
  std::optional<Operation> freed;
  in_books([&](Books& books) {
    if (Operations::Entry* const entry = books.operations.find({Language::c, key_of(request.handle)})) {
      freed = books.operations.remove(*entry);
    }
  });
  if (freed) {
    tell_open(*freed);
  }
}

void abandon(Operations::Entry*& receive) {
  if (receive != nullptr) {
    in_books([&](Books& books) {
      withdraw(receive->operation);
      books.operations.release(*receive);
    });
    receive = nullptr;
  }
}

void leave_open() {
  std::vector<Operation> open;
  in_books([&](Books& books) { books.operations.for_each([&](const Operation& one) { open.push_back(one); }); });
  std::for_each(open.begin(), open.end(), tell_open);
}

void name_in_fortran(MPI_Request request, MPI_Fint written) {
  in_books([&](Books& books) {
    if (Operations::Entry* const entry = books.operations.find({Language::c, key_of(request)})) {
      books.operations.name(*entry, fortran::key_of_request(written));
    }
  });
}

}  // namespace elbowroom::pmpi

// A request of C may become one of Fortran, by which calls of Fortran complete it. A macro where both are one number.
#ifndef MPI_Request_c2f
extern "C" MPI_Fint MPI_Request_c2f(MPI_Request request) {
  using namespace elbowroom::pmpi;
  static constinit Next<MPI_Fint(MPI_Request)> next{"MPI_Request_c2f"};
  const MPI_Fint written = next()(request);
  if (fortran::kOwnHandles && listening.load(std::memory_order_relaxed)) {
    name_in_fortran(request, written);
  }
  return written;
}
#endif
