// The tool that records: what the shims tell becomes events of lib/trace.
#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include "calls.hpp"
#include "elbowroom/trace.h"
#include "pmpi/hooks.hpp"
#include "pmpi/trace/job_clock.hpp"

namespace elbowroom::pmpi {
namespace {

std::array<std::atomic<const elbow_trace_type*>, kCalls> types{};
const elbow_trace_type* message_type = nullptr;
int category = -1;
int polls = -1;
std::mutex making;
bool recording = false;

JobClockOfTrace& job_clock() {
  static JobClockOfTrace& one = *new JobClockOfTrace;
  return one;
}

void not_traced(const char* what) { std::fprintf(stderr, "elbowroom: this process is not traced: %s\n", what); }

const char* variable(const char* name) {
  const char* found = std::getenv(name);
  return found != nullptr && *found != '\0' ? found : nullptr;
}

bool launcher_told_rank() {
  for (const char* name : {"ELBOW_TRACE_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
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

// Types are lines in a file: those of calls that may come while a program is timed are made beforehand.
bool begin() {
  if (elbow_trace_start_from_environment() != 0) {
    not_traced(elbow_trace_error());
    return false;
  }
  elbow_trace_thread("MPI main");
  category = elbow_trace_category("mpi");
  polls = elbow_trace_category("poll");
  const int messages = elbow_trace_category("message");
  message_type = messages < 0 ? nullptr : elbow_trace_type_new("message", messages, "tag", nullptr, nullptr);
  if (category < 0 || polls < 0 || message_type == nullptr) {
    not_traced(elbow_trace_error());
    return false;
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

// Before MPI is there only the launcher knows the rank: it must be the same.
bool ranks_agree() {
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!recording) {
    setenv("ELBOW_TRACE_RANK", std::to_string(rank).c_str(), 1);
    setenv("ELBOW_TRACE_RANKS", std::to_string(size).c_str(), 1);
    recording = begin();
  }
  return recording;
}

}  // namespace

bool tool_starting() {
  if (variable("ELBOW_TRACE_DIRECTORY") != nullptr && launcher_told_rank()) {
    recording = begin();
  }
  return recording;
}

bool tool_started() {
  if (variable("ELBOW_TRACE_DIRECTORY") == nullptr || !ranks_agree()) {
    return false;
  }
  job_clock().begin();
  return true;
}

void tool_finishing() { job_clock().end(); }

void tool_enter(int call, const About& about) {
  if (const elbow_trace_type* type = type_of(call)) {
    elbow_trace_begin(type, static_cast<std::uint32_t>(about.peer), about.bytes, about.communicator);
  }
}

void tool_leave(int call, const About& about) {
  if (const elbow_trace_type* type = type_of(call)) {
    elbow_trace_end(type, static_cast<std::uint32_t>(about.peer), about.bytes, about.communicator);
  }
}

void tool_sent(const Message& message) {
  elbow_trace_send(message_type, message.peer, message.communicator, message.tag,
                   elbow_trace_numbered(message.sequence, message.bytes));
}

void tool_received(const Message& message) {
  elbow_trace_receive(message_type, message.peer, message.communicator, message.tag,
                      elbow_trace_numbered(message.sequence, message.bytes));
}

// When a transfer began and ended is in the events of its calls.
void tool_posted(std::uintptr_t, const About&) {}
void tool_completed(std::uintptr_t) {}

void tool_world_barrier() { job_clock().barrier(); }

void tool_region(int level) {
  elbow_trace_region(level > 0 ? 1 : 0);
  job_clock().wanted();
}

}  // namespace elbowroom::pmpi
