// Calls that send, receive, complete, or make what others refer to. A shim makes one before the call, hands it what is known
// before, and tells it afterwards what came of it. Arguments are C's, whoever called.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "pmpi/books.hpp"
#include "pmpi/shim.hpp"
#include "pmpi/statuses.hpp"

namespace elbowroom::pmpi {

// Whether MPI_Init was called, and MPI_Finalize not yet.
extern std::atomic<bool> initialised;
// Asks the tool, once, whether it records; later calls get the answer `listening`.
bool start_tool(const Place& place);

// MPI_Init and MPI_Init_thread: the tool is told before and after, if this is the outermost call.
class Initialising {
 public:
  explicit Initialising(int number);
  ~Initialising();
  Initialising(const Initialising&) = delete;
  Initialising& operator=(const Initialising&) = delete;
  void done(int result);

 private:
  int number_;
  bool outermost_;
  bool done_ = false;
  std::optional<Call> call_;  // where sessions are recorded already
};

class Finalising : public Call {
 public:
  explicit Finalising(int number);
  void done(int result);
};

// Sends of all modes; nonblocking ones say by which request.
class Sending : public Call {
 public:
  Sending(int number, MPI_Count count, MPI_Datatype type, int destination, int tag, MPI_Comm communicator);
  void done(int) {}
  void done(int result, const Request& request);
};

// A call with a receive that is complete when it returns. Where it leaves by an exception, nothing was received.
class WithReceive : public Call {
 public:
  ~WithReceive() { received(nullptr); }
  bool wants() const { return receive_ != nullptr; }
  template <typename Statuses>
  void done(int result, Statuses& statuses) {
    received(result == MPI_SUCCESS && wants() && books_complete() ? &statuses(0) : nullptr);
  }

 protected:
  using Call::Call;
  // Tells the message, where there is one; once.
  void received(const MPI_Status* status);
  Operations::Entry* receive_ = nullptr;
  bool is_about_receive_ = true;  // what the call is about, the message says
};

// A blocking receive.
class Receiving : public WithReceive {
 public:
  Receiving(int number, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm communicator);
};

class SendReceiving : public WithReceive {
 public:
  SendReceiving(int number, MPI_Count count, MPI_Datatype type, int destination, int tag, MPI_Count receive_count,
                MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm communicator);
  using WithReceive::done;
  void done(int result, const Request& request);
};

// A call that returns a request: its operation is in the books once the request is known.
class RequestMaking : public Call {
 public:
  ~RequestMaking() { abandon(operation_); }
  void done(int result, const Request& request);

 protected:
  using Call::Call;
  Operations::Entry* operation_ = nullptr;
};

// MPI_Grequest_start, MPI_File_iread and others: a request of no communication.
class OtherRequestMaking : public RequestMaking {
 public:
  explicit OtherRequestMaking(int number) : RequestMaking(number) {}
};

// MPI_Irecv.
class ReceivePosting : public RequestMaking {
 public:
  ReceivePosting(int number, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm communicator);
};

// MPI_Send_init and others: what each start of the request does.
class SendMaking : public RequestMaking {
 public:
  SendMaking(int number, MPI_Count count, MPI_Datatype type, int destination, int tag, MPI_Comm communicator);
};
class ReceiveMaking : public RequestMaking {
 public:
  ReceiveMaking(int number, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm communicator);
};
class PartsMaking : public RequestMaking {
 public:
  PartsMaking(int number, bool sends, int partitions, MPI_Count count, MPI_Datatype type, int peer, int tag,
              MPI_Comm communicator);
};

// MPI_Mprobe, MPI_Improbe; MPI_Mrecv, MPI_Imrecv.
class Probing : public Call {
 public:
  Probing(int number, int source, int tag, MPI_Comm communicator);
  bool wants() const { return true; }
  template <typename Statuses>
  void done(int result, MPI_Message message, Statuses& statuses) {
    done(result, 1, message, statuses);
  }
  template <typename Statuses>
  void done(int result, int flag, MPI_Message message, Statuses& statuses) {
    if (result == MPI_SUCCESS && flag != 0 && books_complete()) {
      matched(message, statuses(0));
    }
  }

 private:
  void matched(MPI_Message message, const MPI_Status& status);
  MPI_Comm communicator_;
};
class MatchedReceiving : public WithReceive {
 public:
  MatchedReceiving(int number, MPI_Message message);
  using WithReceive::done;
  void done(int result, const Request& request);
};

// MPI_Start, MPI_Startall: messages of persistent requests are posted.
class Starting : public Call {
 public:
  template <typename Handles>
  Starting(int number, int count, Handles handle) : Call(number, [&] { return waiting_for(count); }) {
    for (int i = 0; i < count; ++i) {
      start(handle(i));
    }
  }
  void done(int) {}
  static About waiting_for(int count) { return {kNobody, 0, static_cast<std::uint64_t>(count < 0 ? 0 : count)}; }

 private:
  static void start(MPI_Request request);
};

// The families of MPI_Wait and MPI_Test. Handles are remembered before the call, since MPI sets those of complete requests
// to null; what is complete is looked up after it.
class Completing : public Call {
 public:
  template <typename Handles>
  Completing(int number, int count, Handles handles)
      : Call(number, [&] { return Starting::waiting_for(count); }),
        given_(handles.handles),
        given_now_([](const void* given, int i) { return Handles{given}(i); }),
        handle_before_([](const void* before, int i) {
          return Handles::handle_of(static_cast<const typename Handles::Written*>(before)[i]);
        }) {
    copy_handles(count, sizeof(typename Handles::Written));
  }
  // By an exception, if nothing was told.
  ~Completing() {
    if (before_ != nullptr) {
      tell_gone();
    }
  }
  // Whether a receive may be among them.
  bool wants() const { return before_ != nullptr; }

  template <typename Statuses>
  void all(int result, int flag, Statuses& statuses) {
    several(
        result, flag != 0 ? count_ : 0, [](int i) { return i; }, statuses);
  }
  template <typename Statuses>
  void any(int result, int flag, int index, Statuses& statuses) {
    several(
        result, flag != 0 && index != MPI_UNDEFINED ? 1 : 0, [&](int) { return index; }, statuses);
  }
  template <typename Statuses>
  void some(int result, int count, const int* indices, int first, Statuses& statuses) {
    several(
        result, count == MPI_UNDEFINED ? 0 : count, [&](int i) { return indices[i] - first; }, statuses);
  }

 private:
  // Without initial values: a call has room for some.
  struct Complete {
    int index;                 // of the request
    int place;                 // of the status
    bool failed;               // it has none
    Operations::Entry* entry;  // NULL: the tool knows nothing of it
    bool has_message;
    Message message;
  };
  // The statuses of a call of either language; only those that are needed are read.
  struct StatusOf {
    void* statuses;
    const MPI_Status& (*get)(void* statuses, int place);
    const MPI_Status& operator()(int place) const { return get(statuses, place); }
  };
  static constexpr std::size_t kFew = 4;

  template <typename Which, typename Statuses>
  void several(int result, int count, Which which, Statuses& statuses) {
    if (before_ == nullptr || !books_complete()) {
      before_ = nullptr;
      return;
    }
    const StatusOf status_of{
        &statuses, [](void* all, int place) -> const MPI_Status& { return (*static_cast<Statuses*>(all))(place); }};
    const bool each = result != MPI_SUCCESS && error_class(result) == MPI_ERR_IN_STATUS;
    Some<Complete, kFew> room;
    // A tool that matches is told of all in the order of their posts, others of a few at a time.
    const std::size_t most = tool_matches && count > 0 ? static_cast<std::size_t>(count) : kFew;
    Complete* const complete = room.make(most);
    std::size_t there = 0;
    for (int i = 0; complete != nullptr && i < count && (result == MPI_SUCCESS || each); ++i) {
      const int index = which(i);
      const int error = each ? statuses(i).MPI_ERROR : MPI_SUCCESS;
      if (index >= 0 && index < count_ && error != MPI_ERR_PENDING) {
        Complete& one = complete[there++];
        one.index = index;
        one.place = i;
        one.failed = error != MPI_SUCCESS;
        one.entry = nullptr;
        one.has_message = false;
      }
      if (there == most) {
        tell(complete, std::exchange(there, 0), status_of);
      }
    }
    if (complete == nullptr) {
      give_up_messages();
    }
    tell(complete, there, status_of);
    if (result != MPI_SUCCESS) {
      tell_gone();
    }
    before_ = nullptr;
  }
  // None where no operation is pending.
  void copy_handles(int count, std::size_t bytes);
  // The operation that the call waited for; NULL: the tool knows nothing of it.
  Operations::Entry* find(Books& books, int index) const;
  void tell(Complete* complete, std::size_t count, const StatusOf& status_of);
  // After an error: requests that are null now, or inactive, without that anything was said of them.
  void tell_gone();
  static int error_class(int code);

  const void* given_;
  MPI_Request (*given_now_)(const void* given, int i);
  Handle (*handle_before_)(const void* before, int i);
  int count_ = 0;
  std::uint64_t moment_ = 0;
  const void* before_ = nullptr;  // the handles as they were; NULL where nothing is to be told
  Some<MPI_Request, 32> own_;
};

class Freeing : public Call {
 public:
  Freeing(int number, const Request& request);
  void done(int) {}
};

// By which number Fortran knows a request that C has made.
void name_in_fortran(MPI_Request request, MPI_Fint written);

constexpr int kNoRoot = std::numeric_limits<int>::min();  // no MPI gives MPI_PROC_NULL or MPI_ROOT that number

// Collective operations: what this process contributes, or gets where only the root contributes. Of rooted ones on
// intercommunicators the others of the root's group (MPI_PROC_NULL) have no such part.
class Collective : public Call {
 public:
  Collective(int number, MPI_Count count, MPI_Datatype type, int root, MPI_Comm communicator);
  void done(int) {}
  void posted(int result, const Request& request);
  void made(int result, const Request& request);
};
// `buffer_is_in_place`: count and type of the own part stand for nothing, and the other pair does.
inline MPI_Count chosen(bool buffer_is_in_place, MPI_Count own, MPI_Count other) {
  return buffer_is_in_place ? other : own;
}
inline MPI_Datatype chosen_type(bool buffer_is_in_place, MPI_Datatype own, MPI_Datatype other) {
  return buffer_is_in_place ? other : own;
}
inline bool in_place(const void* buffer) { return buffer == MPI_IN_PLACE; }
// How many processes this one exchanges with in a collective operation (on intercommunicators those of the other group), and
// how many there are in its own group. 0 on a foreign communicator.
int peers(MPI_Comm communicator);
int members(MPI_Comm communicator);
// Which of the places of neighbours that a process sends to have one: those beyond the edge of a grid are nobody.
std::vector<bool> places_of_neighbours(MPI_Comm communicator);
int neighbours(MPI_Comm communicator);
template <typename Count>
MPI_Count sum(const Count* counts, int size) {
  MPI_Count all = 0;
  for (int i = 0; i < size; ++i) {
    all += counts[i];
  }
  return all;
}
template <typename Count>
MPI_Count mean(const Count* counts, int size) {
  return size > 0 ? sum(counts, size) / size : 0;
}
inline MPI_Count times(MPI_Count count, int size) { return count * size; }
// In bytes, each of its own type.
template <typename Count, typename Types>
MPI_Count typed(const Count* counts, Types types, int size) {
  MPI_Count all = 0;
  for (int i = 0; i < size; ++i) {
    all += static_cast<MPI_Count>(bytes_of(counts[i], types(i)));
  }
  return all;
}
template <typename Count>
MPI_Count at_own_rank(const Count* counts, MPI_Comm communicator) {
  int rank = 0;
  return PMPI_Comm_rank(communicator, &rank) == MPI_SUCCESS ? MPI_Count{counts[rank]} : 0;
}
template <typename Count>
MPI_Count next_to(const Count* counts, MPI_Comm communicator) {
  MPI_Count all = 0;
  int place = 0;
  for (const bool there : places_of_neighbours(communicator)) {
    all += there ? MPI_Count{counts[place]} : 0;
    ++place;
  }
  return all;
}
template <typename Count, typename Types>
MPI_Count next_to_typed(const Count* counts, Types types, MPI_Comm communicator) {
  MPI_Count all = 0;
  int place = 0;
  for (const bool there : places_of_neighbours(communicator)) {
    all += there ? static_cast<MPI_Count>(bytes_of(counts[place], types(place))) : 0;
    ++place;
  }
  return all;
}

class Barrier : public Collective {
 public:
  Barrier(int number, MPI_Comm communicator);
  void done(int result);

 private:
  bool world_;
};

// Memory of others.
class Accessing : public Call {
 public:
  Accessing(int number, MPI_Count count, MPI_Datatype type, int target, MPI_Win window);
  void done(int) {}
  void done(int result, const Request& request);
};
class WindowMaking : public Call {
 public:
  WindowMaking(int number, MPI_Comm communicator) : Call(number), communicator_(communicator) {}
  void done(int result, MPI_Win window);

 private:
  MPI_Comm communicator_;
};
class WindowFreeing : public Call {
 public:
  WindowFreeing(int number, MPI_Win window);
  void done(int) {}
};

// Communicators made by all members of a parent, by a part of them, from two groups, later (MPI_Comm_idup), freed.
class CommunicatorMaking : public Call {
 public:
  CommunicatorMaking(int number, MPI_Comm parent);
  void done(int result, MPI_Comm communicator);

 private:
  std::uint32_t communicator_number_;
};
class GroupMaking : public Call {
 public:
  GroupMaking(int number, MPI_Comm parent, MPI_Group group, int tag);
  void done(int result, MPI_Comm communicator);

 private:
  std::uint32_t communicator_number_ = kForeign;
};
class InterMaking : public Call {
 public:
  InterMaking(int number, int tag) : Call(number), tag_(tag) {}
  void done(int result, MPI_Comm communicator);

 private:
  int tag_;
};
// With processes of another job: its messages have no numbers.
class ForeignMaking : public Call {
 public:
  using Call::Call;
  void done(int result, MPI_Comm communicator);
};
class DuplicateMaking : public Call {
 public:
  DuplicateMaking(int number, MPI_Comm parent);
  // `where` the new communicator will be, of C or of Fortran.
  void done(int result, MPI_Comm* where, const Request& request);
  void done(int result, void* where, const Request& request);

 private:
  void later(int result, void* where, bool fortran, const Request& request) const;
  std::uint32_t communicator_number_;
};
class CommunicatorFreeing : public Call {
 public:
  CommunicatorFreeing(int number, MPI_Comm communicator);
  void done(int) {}
};

}  // namespace elbowroom::pmpi
