#include "pmpi/sessions.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace elbowroom::pmpi {

#if ELBOW_SESSIONS
namespace {

std::mutex agreeing;  // held while the processes agree
std::mutex changing;  // of the open sessions, which are not closed while it is held

// Never destroyed: a program may close sessions while it ends.
std::vector<MPI_Session>& open_sessions() {
  static auto& all = *new std::vector<MPI_Session>;
  return all;
}

// Whether it was open, and no other one is.
bool forget(MPI_Session session) {
  const std::lock_guard lock(changing);
  return std::erase(open_sessions(), session) > 0 && open_sessions().empty();
}

// Without a session there is nothing to make: MPI says so.
void start_by_sessions() {
  const std::lock_guard lock(agreeing);
  MPI_Group all = listening || initialised ? MPI_GROUP_NULL : world_group();
  if (all == MPI_GROUP_NULL) {
    return;
  }
  // Each session has its own level of threads.
  Place place{.threads = true, .by_sessions = true};
  PMPI_Group_rank(all, &place.rank);
  PMPI_Group_size(all, &place.ranks);
  PMPI_Group_free(&all);
  listening = start_tool(place);
}

// FNV-1a of 32 bits, alike on every process.
int number_of(std::string_view tag) {
  std::uint32_t hash = 0x811C9DC5U;
  for (const char letter : tag) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x01000193U;
  }
  return static_cast<int>(hash);
}

}  // namespace

SessionOpening::SessionOpening(int number) {
  if (!passing(inside.caller)) {
    call_.emplace(number);
  }
}

void SessionOpening::done(int result, MPI_Session session) {
  if (result != MPI_SUCCESS) {
    return;
  }
  if (listening && !threaded()) {
    set_threaded(true);
  }
  const std::lock_guard lock(changing);
  // A binding of Fortran may call that of C.
  std::vector<MPI_Session>& all = open_sessions();
  if (std::find(all.begin(), all.end(), session) == all.end()) {
    all.push_back(session);
  }
}

SessionClosing::SessionClosing(int number, MPI_Session session) {
  if (!passing(inside.caller)) {
    call_.emplace(number);
  }
  last_ = forget(session) && call_ && !initialised;
  if (last_) {
    leave_open();
  }
}

SessionClosing::~SessionClosing() {
  call_.reset();
  if (last_) {
    tool_paused();
  }
}

FromGroupMaking::FromGroupMaking(int number, MPI_Group group, std::string_view tag) {
  start_by_sessions();
  if (passing(inside.caller)) {
    return;
  }
  call_.emplace(number);
  with_memory([&] {
    const std::vector<int> ranks = world_ranks(group);
    in_books(
        [&](Books& books) { communicator_number_ = books.communicators.number_for_group(0, ranks, number_of(tag)); });
  });
}

void FromGroupMaking::done(int result, MPI_Comm communicator) {
  if (call_ && result == MPI_SUCCESS) {
    add_communicator(communicator, communicator_number_);
  }
}

FromGroupsMaking::FromGroupsMaking(int number, std::string_view tag) {
  start_by_sessions();
  if (!passing(inside.caller)) {
    call_.emplace(number, number_of(tag));
  }
}

void FromGroupsMaking::done(int result, MPI_Comm communicator) {
  if (call_) {
    call_->done(result, communicator);
  }
}

#endif

MPI_Group world_group() {
  MPI_Group all = MPI_GROUP_NULL;
#if ELBOW_SESSIONS
  if (!initialised) {
    const std::lock_guard lock(changing);
    if (!open_sessions().empty()) {
      PMPI_Group_from_session_pset(open_sessions().front(), "mpi://WORLD", &all);
    }
    return all;
  }
#endif
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  return all;
}

}  // namespace elbowroom::pmpi
