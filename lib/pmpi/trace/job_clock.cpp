#include "pmpi/trace/job_clock.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// The clock's messages are nobody's business, nor other tools'.
#define MPI_Send PMPI_Send
#define MPI_Recv PMPI_Recv
#define MPI_Comm_rank PMPI_Comm_rank
#define MPI_Comm_size PMPI_Comm_size
#include "calls.hpp"
#include "elbowroom/clock_mpi.h"
#include "pmpi/communicators.hpp"

namespace elbowroom::pmpi {
namespace {

constexpr double kSeconds = 10;  // between comparisons, where nothing is said: some 0.2 us of drift (simulated clocks)
constexpr double kNever = 1e9;

void complain(const char* what) {
  std::fprintf(stderr, "elbowroom: clocks of the trace's processes are not compared: %s\n", what);
}

const char* wanted_text() {
  const char* text = std::getenv("ELBOW_TRACE_SYNC_SECONDS");
  return text == nullptr ? "" : text;
}

// One comparison, at the begin: to compare with.
bool once_wanted() { return std::strcmp(wanted_text(), "once") == 0; }

// ELBOW_TRACE_SYNC_SECONDS.
double seconds_wanted() {
  const char* text = wanted_text();
  if (*text == '\0' || once_wanted()) {
    return kSeconds;
  }
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end != '\0' || !std::isfinite(seconds) || seconds < 0) {
    std::fprintf(
        stderr,
        "elbowroom: ELBOW_TRACE_SYNC_SECONDS '%s': is not a number of seconds; 0 compares clocks at the begin, the "
        "end and regions only, as is done now\n",
        text);
    return kNever;
  }
  return seconds == 0 ? kNever : seconds;
}

// Collective over these ranks alone.
MPI_Comm communicator_of(const std::vector<int>& members) {
  constexpr int kGroupTag = 31644;
  MPI_Comm communicator = MPI_COMM_NULL;
  int size = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (static_cast<int>(members.size()) == size) {
    PMPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    return communicator;
  }
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &group);
  PMPI_Comm_create_group(MPI_COMM_WORLD, group, kGroupTag, &communicator);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return communicator;
}

// The same without MPI_COMM_WORLD.
MPI_Comm communicator_from_group([[maybe_unused]] const std::vector<int>& members) {
  MPI_Comm communicator = MPI_COMM_NULL;
#if ELBOW_SESSIONS
  MPI_Group world = world_group();
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &group);
  PMPI_Comm_create_from_group(group, "elbowroom: clocks", MPI_INFO_NULL, MPI_ERRORS_RETURN, &communicator);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
#endif
  return communicator;
}

}  // namespace

void JobClockOfTrace::begin(const std::vector<int>& members, bool by_sessions) {
  seconds_ = seconds_wanted();
  once_ = by_sessions || once_wanted();
  const int category = elbow_trace_category("clock");
  type_ = category < 0 ? nullptr : elbow_trace_type_new("clocks compared", category, nullptr, nullptr, nullptr);
  own_ = by_sessions ? communicator_from_group(members) : communicator_of(members);
  const elbow_clock_peers peers = elbow_clock_peers_of_mpi(&own_);
  clock_ = elbow_clock_new(&peers);
  if (clock_ == nullptr) {
    complain(elbow_clock_error());
    return;
  }
  compare();
  if (by_sessions) {
    end();
  }
}

void JobClockOfTrace::compare() {
  if (type_ != nullptr) {
    elbow_trace_begin(type_, 0, 0, 0);
  }
  elbow_clock_sync_point point{};
  point.size = sizeof point;
  if (elbow_clock_synchronise(clock_, &point) != 0) {
    complain(elbow_clock_error());
  } else if (elbow_trace_sync(clock_, &point) != 0) {
    complain(elbow_trace_error());
  }
  if (type_ != nullptr) {
    elbow_trace_end(type_, 0, 0, 0);
  }
}

void JobClockOfTrace::barrier() {
  if (clock_ == nullptr || once_) {
    return;
  }
  int due = 0;
  if (elbow_clock_due(clock_, wanted_ ? 0 : seconds_, &due) == 0 && due != 0) {
    wanted_ = false;
    compare();
  }
}

void JobClockOfTrace::end() {
  if (clock_ == nullptr) {
    return;
  }
  if (!once_) {
    compare();
  }
  elbow_clock_free(clock_);
  clock_ = nullptr;
  PMPI_Comm_free(&own_);
}

}  // namespace elbowroom::pmpi
