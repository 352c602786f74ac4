// Preloaded into a program over StarPU, or loaded by StarPU 1.4 itself (STARPU_SCHED_LIB): its scheduling policy is guarded.
#include <starpu.h>
#include <starpu_scheduler.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "guard/starpu/policy.hpp"

namespace {

using elbowroom::guard::end_policy;
using elbowroom::guard::guard_policy;

std::atomic<int> running = 0;      // calls of starpu_init without their starpu_shutdown
thread_local bool inside = false;  // StarPU's own starpu_init calls starpu_initialize

void not_guarded(const std::string& why) {
  std::fprintf(stderr, "elbowroom: StarPU's tasks are not guarded: %s\n", why.c_str());
}

// NULL where this process is not guarded; what cannot be done is said.
elbow_guard* open_board() {
  const char* const path = std::getenv("ELBOW_GUARD");
  if (path == nullptr || *path == '\0') {
    return nullptr;
  }
  elbow_guard* const board = elbow_guard_make(path, 0);
  if (board == nullptr) {
    not_guarded(elbow_guard_error());
  }
  return board;
}

// StarPU's own policy of that name; NULL where it has none.
const starpu_sched_policy* known_policy(const char* name) {
  starpu_sched_policy** const all = ELBOW_STARPU(starpu_sched_get_predefined_policies)();
  for (starpu_sched_policy** one = all; one != nullptr && *one != nullptr; ++one) {
    if (std::strcmp((*one)->policy_name, name) == 0) {
      return *one;
    }
  }
  return nullptr;
}

// Why the policy that was chosen is left alone; "": it is not.
std::string reason_against(const starpu_conf* conf, const starpu_sched_policy& chosen) {
  const char* const environment = std::getenv("STARPU_SCHED");
  const char* const asked = environment != nullptr && *environment != '\0' ? environment
                            : conf != nullptr                              ? conf->sched_policy_name
                                                                           : nullptr;
  const starpu_sched_policy* const known = chosen.policy_name == nullptr ? nullptr : known_policy(chosen.policy_name);
  if (known == nullptr || known->push_task != chosen.push_task) {
    return "the program has a scheduling policy of its own";
  }
  if (asked != nullptr && std::strcmp(asked, chosen.policy_name) != 0 && known_policy(asked) == nullptr) {
    return "StarPU does not know the scheduling policy " + std::string(asked) + ", and uses " + chosen.policy_name +
           "; name one of `STARPU_SCHED=help`";
  }
  return "";
}

bool must_match_headers() {
  int major = 0;
  int minor = 0;
  int release = 0;
  ELBOW_STARPU(starpu_get_version)(&major, &minor, &release);
  if (major == STARPU_MAJOR_VERSION && minor == STARPU_MINOR_VERSION) {
    return true;
  }
  not_guarded("it is StarPU " + std::to_string(major) + "." + std::to_string(minor) +
              ", and the library was built for " + std::to_string(STARPU_MAJOR_VERSION) + "." +
              std::to_string(STARPU_MINOR_VERSION));
  return false;
}

// No task is there yet.
void started(int result, const starpu_conf* conf) {
  if (result != 0) {
    return;
  }
  const bool again = running++ > 0;
  elbow_guard* const board = open_board();
  if (board == nullptr || !must_match_headers()) {
    return;
  }
  if (again) {
    not_guarded("the program starts StarPU again while it runs; the policy of the first start stays as it is");
    return;
  }
  starpu_sched_policy* const policy = ELBOW_STARPU(starpu_sched_ctx_get_sched_policy)(0);
  if (policy == nullptr) {
    not_guarded("it has no scheduling policy");
    return;
  }
  std::string why = reason_against(conf, *policy);
  why = why.empty() ? guard_policy(*policy, board) : why;
  if (!why.empty()) {
    not_guarded(why);
  }
}

}  // namespace

extern "C" {

#define ELBOW_PRELOADED __attribute__((visibility("default")))

ELBOW_PRELOADED int starpu_init(struct starpu_conf* conf) {
  const bool outer = !std::exchange(inside, true);
  const int result = ELBOW_STARPU(starpu_init)(conf);
  if (outer) {
    inside = false;
    started(result, conf);
  }
  return result;
}

ELBOW_PRELOADED int starpu_initialize(struct starpu_conf* conf, int* argc, char*** argv) {
  const bool outer = !std::exchange(inside, true);
  const int result = ELBOW_STARPU(starpu_initialize)(conf, argc, argv);
  if (outer) {
    inside = false;
    started(result, conf);
  }
  return result;
}

ELBOW_PRELOADED void starpu_shutdown(void) {
  ELBOW_STARPU(starpu_shutdown)();
  if (--running == 0) {
    end_policy();
  }
}

// StarPU 1.4 asks a library that STARPU_SCHED_LIB names for policies: "guarded-lws" wraps "lws".
ELBOW_PRELOADED struct starpu_sched_policy* starpu_get_sched_lib_policy(const char* name) {
  static starpu_sched_policy guarded;
  static const std::string prefix = "guarded-";
  if (name == nullptr || std::strncmp(name, prefix.c_str(), prefix.size()) != 0) {
    return nullptr;
  }
  const starpu_sched_policy* const site = known_policy(name + prefix.size());
  elbow_guard* const board = site == nullptr ? nullptr : open_board();
  if (board == nullptr) {
    return nullptr;
  }
  guarded = *site;
  const std::string why = guard_policy(guarded, board);
  if (!why.empty()) {
    not_guarded(why);
    return nullptr;
  }
  return &guarded;
}

ELBOW_PRELOADED struct starpu_sched_policy** starpu_get_sched_lib_policies(void) {
  static starpu_sched_policy* none = nullptr;
  return &none;
}

}  // extern "C"
