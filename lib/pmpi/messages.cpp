// Messages: posted, received, by which request. Hooks are called without the lock.
#include "pmpi/messages.hpp"

#include "pmpi/special.hpp"

namespace elbowroom::pmpi {
namespace {

About about(const Communicator& communicator, int rank, std::uint64_t bytes) {
  return {communicator.peer(rank), communicator.number, bytes};
}

std::uint64_t received_bytes(const MPI_Status& status) {
  MPI_Count count = 0;
  PMPI_Get_elements_x(&status, MPI_BYTE, &count);
  return count > 0 ? static_cast<std::uint64_t>(count) : 0;
}

// Whether the status of MPI_Isendrecv is that of its receive, as MPI 4.0 says; MPICH 4.0 leaves it empty.
bool exchanges_have_a_status() {
#if MPI_VERSION >= 4
  static const bool have = [] {
    constexpr int kTag = 1;
    char out = 0;
    char in = 0;
    int running = 0;
    int count = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    PMPI_Initialized(&running);
    if (running == 0 ||
        PMPI_Isendrecv(&out, 1, MPI_CHAR, 0, kTag, &in, 1, MPI_CHAR, 0, kTag, MPI_COMM_SELF, &request) != MPI_SUCCESS) {
      return false;
    }
    PMPI_Wait(&request, &status);
    PMPI_Get_count(&status, MPI_CHAR, &count);
    return status.MPI_TAG == kTag && count == 1;
  }();
  return have;
#else
  return true;
#endif
}

int matching_tag(int tag) { return tag == MPI_ANY_TAG ? kAny : tag; }

// What a pending receive got. It is in the books, so that no other thread waits for it, nor begins to: this one has the lock.
std::optional<std::pair<int, int>> got_so_far(MPI_Request request) {
  int flag = 0;
  int cancelled = 0;
  MPI_Status status;
  if (PMPI_Request_get_status(request, &flag, &status) != MPI_SUCCESS || flag == 0 ||
      PMPI_Test_cancelled(&status, &cancelled) != MPI_SUCCESS || cancelled != 0) {
    return std::nullopt;
  }
  return std::pair(status.MPI_SOURCE, status.MPI_TAG);
}

// Short sends that are complete at once share one handle.
bool is_complete(MPI_Request request) {
  int flag = 0;
  MPI_Status status;
  return PMPI_Request_get_status(request, &flag, &status) == MPI_SUCCESS && flag != 0;
}

template <typename Handle>
Handle handle_of(std::uintptr_t key) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<Handle>(key);
  } else {
    return static_cast<Handle>(key);
  }
}

}  // namespace

std::optional<Message> message_of(Books& books, Operation& operation, const MPI_Status& status) {
  Communicator& communicator = *operation.communicator;
  std::uint64_t bytes = received_bytes(status);
  if (operation.kind == Operation::parts_receive) {
    return Message{communicator.peer(operation.rank), operation.number, operation.tag, operation.sequence, bytes};
  }
  int source = status.MPI_SOURCE;
  int tag = status.MPI_TAG;
  if (operation.half && !exchanges_have_a_status()) {
    if (operation.rank == kAny || operation.tag == kAny) {
      withdraw(operation);
      return std::nullopt;
    }
    source = operation.rank;
    tag = operation.tag;
    bytes = tool_matches ? kUnknownBytes : operation.bytes;
  }
  const int peer = communicator.peer(source);
  std::uint32_t sequence = operation.sequence;
  if (sequence == 0 && tool_matches) {
    sequence = communicator.received.complete(
        operation.posted, source, tag,
        [&](const Posted& receive, std::uintptr_t key) -> std::optional<std::pair<int, int>> {
          const Operations::Entry* const other = books.operations.find({Language::c, key});
          // The handle may be another operation's by now, while a thread is about to tell the end of this one.
          const bool same = other != nullptr && other->operation.communicator == operation.communicator &&
                            other->operation.posted.serial == receive.serial;
          return same ? got_so_far(handle_of<MPI_Request>(key)) : std::nullopt;
        });
  }
  if (peer == kNobody || (peer == kElsewhere && tool_matches)) {
    return std::nullopt;
  }
  return Message{peer, communicator.number, tag, sequence, bytes};
}

void post(Operation& operation, std::uintptr_t request) {
  if (!tool_matches) {
    return;
  }
  operation.posted = operation.communicator->received.post(operation.rank, operation.tag);
  if (operation.posted.wild() && request != 0) {
    operation.communicator->received.name(operation.posted, request);
  }
}

std::optional<Message> message_to(Communicator& communicator, int destination, int tag, std::uint64_t bytes) {
  const int peer = communicator.peer(destination);
  if (!tool_matches || communicator.foreign() || peer < 0) {
    return std::nullopt;
  }
  return Message{peer, communicator.number, tag, communicator.sent.next(destination, tag), bytes};
}

void tell_sent(const std::optional<Message>& message) {
  if (message) {
    tool_sent(*message);
  }
}

void withdraw(const Operation& operation) {
  if (operation.posted.serial != 0) {
    operation.communicator->received.cancel(operation.posted);
  }
}

namespace {

// A request that is not followed (of no communication, to nobody, over a communicator that is not told) may have the handle of
// an operation whose end another thread is about to tell. The call that completes the request must not find that operation.
void cover(const Request& request, bool persistent) {
  if (!threaded()) {
    return;
  }
  in_books([&](Books& books) {
    if (books.operations.find({Language::c, key_of(request.handle)}) != nullptr) {
      Operations::Entry& entry = books.operations.make();
      entry.operation.kind = Operation::other;
      entry.operation.persistent = persistent;
      entry.operation.active = false;  // nothing is told of it
      books.operations.add(entry, key_of(request.handle), request.fortran);
    }
  });
}

}  // namespace

void follow(int result, const Request& request, int call, const About& known, bool persistent) {
  if (result != MPI_SUCCESS || request.handle == MPI_REQUEST_NULL) {
    return;
  }
  if (!tool_times) {
    return cover(request, persistent);
  }
  bool at_once = false;
  std::optional<Interval> before;
  in_books([&](Books& books) {
    Operations::Entry* const other = books.operations.find({Language::c, key_of(request.handle)});
    if (other != nullptr && other->operation.kind == Operation::other && other->operation.active &&
        (!threaded() || is_complete(request.handle))) {
      at_once = true;
      if (threaded()) {
        // Another thread may be about to look it up; if it was complete at once, too, this is its end all the same.
        before = books.operations.remove(*other).interval;
      }
      return;
    }
    Operations::Entry& entry = books.operations.make();
    entry.operation.kind = Operation::other;
    entry.operation.persistent = persistent;
    entry.operation.active = !persistent;
    entry.operation.interval = {persistent ? Posting{} : tool_posting(call, known), call, known};
    books.operations.add(entry, key_of(request.handle), request.fortran);
  });
  if (before) {
    tool_completed(*before, nullptr, Ending::complete);
  }
  if (at_once) {
    tool_completed({tool_posting(call, known), call, known}, nullptr, Ending::complete);
  }
}

namespace {

// A receive from `source`, to be posted; NULL if it is from nobody or over a communicator that is not told. With the lock.
Operations::Entry* receive_from(Books& books, MPI_Comm handle, int source, int tag, std::uint64_t bytes) {
  const CommunicatorPointer& communicator = books.communicators.find(handle);
  if (source == MPI_PROC_NULL || (tool_matches && communicator->foreign())) {
    return nullptr;
  }
  Operations::Entry& entry = books.operations.make();
  Operation& operation = entry.operation;
  operation.communicator = communicator;
  operation.rank = source == MPI_ANY_SOURCE ? kAny : source;
  operation.tag = matching_tag(tag);
  operation.bytes = bytes;
  return &entry;
}

// What each start of a persistent request does, if it has a partner and a communicator that is recorded. With the lock.
Operations::Entry* persistent(Books& books, Operation::Kind kind, MPI_Comm handle, int peer, int tag,
                              std::uint64_t bytes) {
  const CommunicatorPointer& communicator = books.communicators.find(handle);
  if (peer == MPI_PROC_NULL || (tool_matches && communicator->foreign())) {
    return nullptr;
  }
  Operations::Entry& entry = books.operations.make();
  Operation& operation = entry.operation;
  operation.kind = kind;
  operation.communicator = communicator;
  operation.rank = peer;
  operation.tag = tag;
  operation.bytes = bytes;
  operation.persistent = true;
  operation.active = false;
  return &entry;
}

// Nothing of this thread overtakes a blocking receive; other threads' may.
void post_blocking(Operation& operation) {
  if (!tool_matches) {
    return;
  }
  Matching& matching = operation.communicator->received;
  operation.posted =
      threaded() ? matching.post(operation.rank, operation.tag) : matching.place(operation.rank, operation.tag);
}

About about_of(MPI_Comm handle, int rank, std::uint64_t bytes) {
  About known{kNobody, kForeign, bytes};
  in_books([&](Books& books) { known = about(*books.communicators.find(handle), rank, bytes); });
  return known;
}

void send(MPI_Comm handle, int destination, int tag, std::uint64_t bytes) {
  if (!tool_matches) {
    return;
  }
  std::optional<Message> message;
  in_books([&](Books& books) { message = message_to(*books.communicators.find(handle), destination, tag, bytes); });
  tell_sent(message);
}

Operations::Entry* blocking_receive(MPI_Comm handle, int source, int tag, std::uint64_t bytes) {
  Operations::Entry* receive = nullptr;
  in_books([&](Books& books) {
    receive = receive_from(books, handle, source, tag, bytes);
    if (receive != nullptr) {
      post_blocking(receive->operation);
    }
  });
  return receive;
}

// A receive without a request is complete; what it was about is known now.
void complete_blocking(Operations::Entry& receive, const MPI_Status* status, About& known) {
  std::optional<Message> message;
  in_books([&](Books& books) {
    if (status == nullptr) {
      withdraw(receive.operation);
    } else {
      message = message_of(books, receive.operation, *status);
    }
    books.operations.release(receive);
  });
  if (message) {
    known.peer = message->peer;
    known.bytes = message->bytes;
    tool_received(*message);
  }
}

void remember(Operations::Entry*& entry, int result, const Request& request, int call, const About& known) {
  if (entry == nullptr) {
    return result == MPI_SUCCESS ? cover(request, false) : void();
  }
  if (result != MPI_SUCCESS) {
    return abandon(entry);
  }
  in_books([&](Books& books) {
    const std::uintptr_t key = key_of(request.handle);
    Operation& operation = entry->operation;
    if (operation.posted.wild() && operation.posted.serial != 0) {
      operation.communicator->received.name(operation.posted, key);
    }
    operation.interval = {operation.persistent ? Posting{} : tool_posting(call, known), call, known};
    books.operations.add(*entry, key, request.fortran);
  });
  entry = nullptr;
}

}  // namespace

Sending::Sending(int number, MPI_Count count, MPI_Datatype type, int destination, int tag, MPI_Comm communicator)
    : Call(number, [&] { return about_of(communicator, destination, bytes_of(count, type)); }) {
  send(communicator, destination, tag, about_.bytes);
}

void Sending::done(int result, const Request& request) {
  if (about_.peer != kNobody) {
    follow(result, request, number_, about_);
  } else if (result == MPI_SUCCESS) {
    cover(request, false);
  }
}

Receiving::Receiving(int number, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm communicator)
    : WithReceive(number, [&] { return about_of(communicator, source, bytes_of(count, type)); }) {
  receive_ = blocking_receive(communicator, source, tag, about_.bytes);
}

void WithReceive::received(const MPI_Status* status) {
  if (receive_ != nullptr) {
    About other;
    complete_blocking(*receive_, status, is_about_receive_ ? about_ : other);
    receive_ = nullptr;
  }
}

SendReceiving::SendReceiving(int number, MPI_Count count, MPI_Datatype type, int destination, int tag,
                             MPI_Count receive_count, MPI_Datatype receive_type, int source, int receive_tag,
                             MPI_Comm communicator)
    : WithReceive(number, [&] { return about_of(communicator, destination, bytes_of(count, type)); }) {
  send(communicator, destination, tag, about_.bytes);
  receive_ = blocking_receive(communicator, source, receive_tag, bytes_of(receive_count, receive_type));
  is_about_receive_ = false;
}

void SendReceiving::done(int result, const Request& request) {
  if (receive_ != nullptr) {
    receive_->operation.half = true;
  }
  if (receive_ != nullptr && !threaded()) {
    in_books([&](Books&) { post(receive_->operation, 0); });
  }
  if (receive_ != nullptr || about_.peer == kNobody) {
    remember(receive_, result, request, number_, about_);
  } else {
    follow(result, request, number_, about_);
  }
}

void RequestMaking::done(int result, const Request& request) { remember(operation_, result, request, number_, about_); }

ReceivePosting::ReceivePosting(int number, MPI_Count count, MPI_Datatype type, int source, int tag,
                               MPI_Comm communicator)
    : RequestMaking(number, [&] { return about_of(communicator, source, bytes_of(count, type)); }) {
  in_books([&](Books& books) {
    operation_ = receive_from(books, communicator, source, tag, about_.bytes);
    if (operation_ != nullptr) {
      post(operation_->operation, 0);
    }
  });
}

SendMaking::SendMaking(int number, MPI_Count count, MPI_Datatype type, int destination, int tag, MPI_Comm communicator)
    : RequestMaking(number, [&] { return about_of(communicator, destination, bytes_of(count, type)); }) {
  in_books([&](Books& books) {
    operation_ = persistent(books, Operation::send, communicator, destination, tag, about_.bytes);
  });
}

ReceiveMaking::ReceiveMaking(int number, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm communicator)
    : RequestMaking(number, [&] { return about_of(communicator, source, bytes_of(count, type)); }) {
  in_books([&](Books& books) {
    operation_ = receive_from(books, communicator, source, tag, about_.bytes);
    if (operation_ != nullptr) {
      operation_->operation.persistent = true;
      operation_->operation.active = false;
    }
  });
}

// A channel of its own, made by the k-th operation of a peer and tag on both sides: its communicator's number is changed
// alike there.
PartsMaking::PartsMaking(int number, bool sends, int partitions, MPI_Count count, MPI_Datatype type, int peer, int tag,
                         MPI_Comm communicator)
    : RequestMaking(number, [&] {
        return about_of(communicator, peer, bytes_of(count, type) * static_cast<std::uint64_t>(partitions));
      }) {
  in_books([&](Books& books) {
    const auto kind = sends ? Operation::parts_send : Operation::parts_receive;
    operation_ = persistent(books, kind, communicator, peer, tag, about_.bytes);
    if (operation_ != nullptr) {
      Communicator& known = *operation_->operation.communicator;
      const std::uint32_t channel = (sends ? known.partitions_sent : known.partitions_received).next(peer, tag);
      operation_->operation.number = (known.number ^ 0x50415254U) + channel * 0x9E3779B1U;
    }
  });
}

Probing::Probing(int number, int source, int, MPI_Comm communicator)
    : Call(number, [&] { return about_of(communicator, source, 0); }), communicator_(communicator) {}

// A message is matched when it is probed, and then nobody else gets it.
void Probing::matched(MPI_Message message, const MPI_Status& status) {
  in_books([&](Books& books) {
    Operations::Entry* const entry = receive_from(books, communicator_, status.MPI_SOURCE, status.MPI_TAG, 0);
    if (entry == nullptr) {
      return;
    }
    Operation& operation = entry->operation;
    if (!tool_matches) {
      books.probed[key_of(message)] = {operation.communicator, 0};
    } else {
      operation.posted = operation.communicator->received.place(status.MPI_SOURCE, status.MPI_TAG);
      if (const std::optional<Message> result = message_of(books, operation, status)) {
        books.probed[key_of(message)] = {operation.communicator, result->sequence};
      }
    }
    books.operations.release(*entry);
  });
}

MatchedReceiving::MatchedReceiving(int number, MPI_Message message) : WithReceive(number) {
  in_books([&](Books& books) {
    const auto entry = books.probed.find(key_of(message));
    if (entry != books.probed.end()) {
      receive_ = &books.operations.make();
      receive_->operation.communicator = entry->second.communicator;
      receive_->operation.sequence = entry->second.sequence;
      about_.communicator = entry->second.communicator->number;
      books.probed.erase(entry);
    }
  });
}

void MatchedReceiving::done(int result, const Request& request) {
  remember(receive_, result, request, number_, about_);
}

}  // namespace elbowroom::pmpi
