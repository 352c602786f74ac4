// The tool that guards: what the shims tell is published on the board of this node (lib/guard).
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "calls.hpp"
#include "elbowroom/guard.h"
#include "guard/publishing.hpp"
#include "pmpi/books.hpp"
#include "pmpi/guard/progress.hpp"
#include "pmpi/guard/steps.hpp"
#include "pmpi/hooks.hpp"

namespace elbowroom::pmpi {
namespace {

elbow_guard* board = nullptr;
elbow_guard_rank* rank_here = nullptr;  // NULL: this process is not guarded
constexpr int kNothing = -1;

// The direction of what a call or an operation moves; kNothing where it moves nothing.
int direction_of(int call, const About& about) {
  const CallInfo& info = calls[call];
  if (info.kind != Kind::message) {
    return kNothing;
  }
  switch (info.role) {
    case Role::receive: return about.peer == kNobody ? kNothing : ELBOW_GUARD_IN;
    case Role::send:
    case Role::exchange:
    case Role::access: return about.peer == kNobody ? kNothing : ELBOW_GUARD_OUT;
    case Role::collective: return ELBOW_GUARD_OUT;
    case Role::barrier:
    case Role::completion:
    case Role::other: break;
  }
  return kNothing;
}

bool waits(int call) {
  const Role role = calls[call].role;
  return calls[call].blocking && (role == Role::completion || role == Role::receive || role == Role::barrier);
}

// Whether the call separates two phases of a step. Calls that only ask are as many as there is time for, and make no pattern.
bool ends_phase(int call) {
  switch (calls[call].role) {
    case Role::receive:
    case Role::send:
    case Role::exchange:
    case Role::access:
    case Role::collective:
    case Role::barrier: return true;
    case Role::completion: return std::string_view(calls[call].name).substr(0, 8) != "MPI_Test";
    case Role::other: break;
  }
  return false;
}

// What the call that this thread is in has published.
struct Published {
  int direction = kNothing;
  std::uint64_t bytes = 0;
  bool waits = false;
};
constinit thread_local Published published __attribute__((tls_model("initial-exec")));

void withdraw_published() {
  const Published before = std::exchange(published, {});
  if (before.direction != kNothing) {
    guard::end(*rank_here, before.direction, before.bytes, threaded());
  }
  if (before.waits) {
    rank_here->place->waiting.fetch_sub(1, std::memory_order_relaxed);
  }
}

void not_guarded() { std::fprintf(stderr, "elbowroom: this process is not guarded: %s\n", elbow_guard_error()); }

void forget_in_child() {
  rank_here = nullptr;
  stop_steps();
}

void leave_board() {
  if (rank_here != nullptr) {
    const elbow_guard_rank& rank = *std::exchange(rank_here, nullptr);  // stays: other threads may be in calls
    guard::free_place(*rank.place, *rank.amount);
  }
}

}  // namespace

const bool tool_matches = false;
const bool tool_times = true;

bool tool_starting() {
  note_own_threads();
  return false;
}

bool tool_started(const Place& place) {
  const char* const path = std::getenv("ELBOW_GUARD");
  if (path == nullptr || *path == '\0') {
    return false;
  }
  board = elbow_guard_make(path, 0);
  elbow_guard_rank* const joined = board == nullptr ? nullptr : elbow_guard_join(board, place.rank, place.threads);
  if (joined == nullptr) {
    not_guarded();
    return false;
  }
  rank_here = joined;
  const char* const steered = std::getenv("ELBOW_GUARD_STEPS");
  std::string why;
  if (steered != nullptr && *steered == '1' &&
      !start_steps(std::string(path) + ".steps-" + std::to_string(getpid()), place.rank, board, why)) {
    std::fprintf(stderr, "elbowroom: the steps of this process are not guarded: %s\n", why.c_str());
  }
  find_progress();
  pthread_atfork(nullptr, nullptr, forget_in_child);
  return true;
}

void tool_finishing() {}

void tool_paused() {}

void tool_enter(int call, const About& about, const void* caller) {
  if (rank_here == nullptr) {
    return;
  }
  if (ends_phase(call)) {
    enter_call(call, caller);
  }
  const int direction = calls[call].blocking ? direction_of(call, about) : kNothing;
  published = {direction, about.bytes, waits(call)};
  if (direction != kNothing) {
    guard::begin(*rank_here, direction, about.bytes, threaded());
  }
  if (published.waits) {
    rank_here->place->waiting.fetch_add(1, std::memory_order_relaxed);
  }
}

void tool_leave(int call, const About&) {
  if (rank_here != nullptr) {
    withdraw_published();
    if (ends_phase(call)) {
      leave_call(call);
    }
    if (call == call::Finalize) {
      leave_board();
      stop_steps();
    }
  }
}

void tool_left(int) {
  if (rank_here != nullptr) {
    withdraw_published();
  }
}

void tool_sent(const Message&) {}
void tool_received(const Message&) {}

Posting tool_posting(int call, const About& about) {
  const int direction = direction_of(call, about);
  if (rank_here != nullptr && direction != kNothing) {
    guard::begin(*rank_here, direction, about.bytes, threaded());
  }
  return {};
}

void tool_completed(const Interval& interval, const Message*, Ending) {
  const int direction = direction_of(interval.call, interval.about);
  if (rank_here != nullptr && direction != kNothing) {
    guard::end(*rank_here, direction, interval.about.bytes, threaded());
  }
}

int tool_communicator(const std::vector<int>&, int) { return 0; }

void tool_world_barrier() {}

void tool_region(int level) {
  if (rank_here != nullptr && level > 0) {
    guard::step(*rank_here->place, elbow_guard_now());
    mark_step();
  }
}

}  // namespace elbowroom::pmpi
