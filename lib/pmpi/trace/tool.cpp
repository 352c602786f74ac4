// The tool that records: what the shims tell becomes events of lib/trace.

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "elbowroom/trace.h"
#include "pmpi/agreement.hpp"
#include "pmpi/hooks.hpp"
#include "pmpi/mpi.hpp"
#include "pmpi/trace/job_clock.hpp"
#include "trace/job.h"

namespace elbowroom::pmpi {
namespace {

std::array<std::atomic<const elbow_trace_type*>, kCalls> types{};
const elbow_trace_type* message_type = nullptr;
int category = -1;
int polls = -1;
int message_category = -1;
std::mutex making;
bool recording = false;
bool given_up = false;               // there was no memory to start
std::string refusal;                 // why not
std::optional<Agreement> agreement;  // with the other ranks, once the job's folder is known

JobClockOfTrace& job_clock() {
  static JobClockOfTrace one;
  return one;
}

void not_traced(const char* what) { std::fprintf(stderr, "elbowroom: this process is not traced: %s\n", what); }

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// The launcher's word for each of its ranks. Slurm's variables are set for a job script as well, so that they say nothing.
bool launcher_names_rank() {
  for (const char* name : {"ELBOW_TRACE_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (variable(name) != nullptr) {
      return true;
    }
  }
  return false;
}

// Calls that ask whether something is there: programs that poll make millions of them, most for nothing.
bool asks(const char* name) {
  for (const char* asking : {"Test", "Testall", "Testany", "Testsome", "Iprobe", "Improbe", "Request_get_status"}) {
    if (std::string_view(name).substr(4) == asking) {
      return true;
    }
  }
  return false;
}

const elbow_trace_type* make_type(int call) {
  const std::lock_guard lock(making);
  const char* const name = calls[call].name;
  const int own = asks(name) ? polls : category;
  const elbow_trace_type* type = types[static_cast<std::size_t>(call)];
  if (type != nullptr) {
    return type;
  }
  switch (calls[call].kind) {
    case Kind::message: type = elbow_trace_type_new(name, own, "peer", "bytes", "communicator"); break;
    case Kind::requests: type = elbow_trace_type_new(name, own, nullptr, "requests", nullptr); break;
    case Kind::nothing: type = elbow_trace_type_new(name, own, nullptr, nullptr, nullptr); break;
  }
  types[static_cast<std::size_t>(call)] = type;
  return type;
}

const elbow_trace_type* type_of(int call) {
  const elbow_trace_type* type = types[static_cast<std::size_t>(call)].load(std::memory_order_acquire);
  return type != nullptr ? type : make_type(call);
}

bool refuse() {
  refusal = elbow_trace_error();
  elbow_trace_discard();
  return false;
}

// Types are lines in a file: those of calls that may come while a program is timed are made beforehand.
bool record(int rank, int ranks) {
  if (elbow_trace_start_as(rank, ranks) != 0 || (elbow_trace_thread("MPI main") != 0 && errno != EEXIST)) {
    return refuse();
  }
  category = elbow_trace_category("mpi");
  polls = elbow_trace_category("poll");
  message_category = elbow_trace_category("message");
  message_type =
      message_category < 0 ? nullptr : elbow_trace_type_new("message", message_category, "tag", nullptr, nullptr);
  if (category < 0 || polls < 0 || message_type == nullptr) {
    return refuse();
  }
  // They would fill the rings of everything else: recorded only where they are asked for.
  if (variable("ELBOW_TRACE_CATEGORIES") == nullptr) {
    elbow_trace_set_mask(elbow_trace_mask() & ~(std::uint64_t{1} << polls));
  }
  for (int call = 0; call < kCalls; ++call) {
    if (calls[call].kind != Kind::nothing) {
      make_type(call);
    }
  }
  return true;
}

// From now on the process may end without its exit handlers (_exit, exec), and its trace is whole.
void finalised() {
  const int own[] = {category, polls, message_category, elbow_trace_category("clock")};
  if (recording && elbow_trace_finalised(own, static_cast<int>(std::size(own))) != 0) {
    std::fprintf(stderr, "elbowroom: the trace of this process is not written: %s\n", elbow_trace_error());
  }
}

bool stop_recording() {
  if (recording) {
    elbow_trace_discard();
  }
  return recording = false;
}

// At `place`; its rank is -1: as the launcher says.
void begin(const Place& place) {
  recording = record(place.rank, place.ranks);
  int rank = place.rank;
  int ranks = place.ranks;
  if (const char* const folder = elbow_trace_folder(&rank, &ranks)) {
    agreement.emplace(std::string(folder) + "/agreement" + suffix_of(place), rank, ranks,
                      Agreement::Words{"traced", "trace"});
  }
  if (agreement && agreement->announce(refusal.empty() ? Sign::ready : Sign::refused, refusal)) {
    return;
  }
  agreement.reset();
  refusal = recording ? "the folder of its job cannot be written to" : refusal;
  not_traced(refusal.c_str());
  stop_recording();
}

// What the launcher said before MPI was there must be what MPI says now.
bool place_is(const Place& given) {
  const auto [rank, ranks] = std::pair(given.rank, given.ranks);
  int launched_rank = 0;
  int launched_ranks = 0;
  if (elbow_trace_folder(&launched_rank, &launched_ranks) == nullptr ||
      (launched_rank == rank && launched_ranks == ranks)) {
    return true;
  }
  const auto place = [](int one, int all) { return "rank " + std::to_string(one) + " of " + std::to_string(all); };
  not_traced(("the launcher's variables say " + place(launched_rank, launched_ranks) + ", MPI says " +
              place(rank, ranks) + "; unset those of another launcher (OMPI_*, PMI_*, PMIX_*)")
                 .c_str());
  return false;
}

bool start(const Place& place) {
  if (!recording && refusal.empty()) {
    begin(place);  // no launcher gave this process a rank
  }
  if (!agreement || !place_is(place)) {
    return stop_recording();
  }
  if (!recording) {
    agreement->lead_if_first();
    return false;
  }
  const Decision decision = agreement->decide();
  if (!decision.records || !std::binary_search(decision.members.begin(), decision.members.end(), place.rank)) {
    return stop_recording();
  }
  job_clock().begin(decision.members, place.by_sessions);
  return true;
}

// False where `work` failed: this
// process is then not traced. Allocates nothing of its own.
template <typename Work>
bool survives(Work work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    not_traced("there is not enough memory for the trace");
  } catch (const std::exception& error) {
    not_traced(error.what());
  }
  given_up = true;
  agreement.reset();
  return stop_recording();
}

}  // namespace

const bool tool_matches = true;
const bool tool_times = false;

bool tool_starting() {
  if (variable("ELBOW_TRACE_DIRECTORY") == nullptr || !launcher_names_rank()) {
    return false;
  }
  return survives([] {
    begin({.rank = -1});
    return recording;
  });
}

bool tool_started(const Place& place) {
  return variable("ELBOW_TRACE_DIRECTORY") != nullptr && !given_up && survives([&] { return start(place); });
}

void tool_finishing() { job_clock().end(); }

// Marked, and not stopped: more may come.
void tool_paused() {
  static std::atomic<bool> marked{false};
  if (recording && !marked.exchange(true) && elbow_trace_finalised(nullptr, 0) != 0) {
    std::fprintf(stderr, "elbowroom: the end of MPI in this process is not marked: %s\n", elbow_trace_error());
  }
}

namespace {

std::uint32_t peer_of(const About& about) { return static_cast<std::uint32_t>(std::max(about.peer, kNobody)); }

}  // namespace

void tool_enter(int call, const About& about, const void*) {
  if (const elbow_trace_type* type = type_of(call)) {
    elbow_trace_begin(type, peer_of(about), about.bytes, about.communicator);
  }
}

void tool_leave(int call, const About& about) {
  if (const elbow_trace_type* type = type_of(call)) {
    elbow_trace_end(type, peer_of(about), about.bytes, about.communicator);
  }
  if (call == call::Finalize) {
    finalised();
  }
}

void tool_left(int call) { tool_leave(call, {}); }

void tool_sent(const Message& message) {
  elbow_trace_send(message_type, message.peer, message.communicator, message.tag,
                   elbow_trace_numbered(message.sequence, message.bytes));
}

void tool_received(const Message& message) {
  elbow_trace_receive(message_type, message.peer, message.communicator, message.tag,
                      elbow_trace_numbered(message.sequence, message.bytes));
}

// When a transfer began and ended is in the events of its calls.
Posting tool_posting(int, const About&) { return {}; }
void tool_completed(const Interval&, const Message*, Ending) {}
int tool_communicator(const std::vector<int>&, int) { return 0; }

void tool_world_barrier() { job_clock().barrier(); }

void tool_region(int level) {
  elbow_trace_region(level > 0 ? 1 : 0);
  job_clock().wanted();
}

}  // namespace elbowroom::pmpi
