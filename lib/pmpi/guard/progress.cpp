#include "pmpi/guard/progress.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "guard/board.hpp"
#include "guard/movement.hpp"
#include "pmpi/mpi.hpp"

namespace elbowroom::pmpi {
namespace {

constexpr std::uint32_t kLever = 3;
enum Setting : std::uint64_t { kAsItIs = 0, kPlacebo = 1, kAway = 2, kIdle = 3, kYield = 4 };
// Above the setting's number, where this process cannot have it.
enum Refusal : std::uint64_t { kNone = 0, kNoThread = 1, kNoCore = 2, kNoVariable = 3, kNotAllowed = 4 };
constexpr std::uint64_t kRefusal = 256;

// A thread that used less of a core since MPI began only waits for rare events.
constexpr double kWorks = 0.02;

// After so many polls without a message the core is given up; a number that the MPI lets one write while it runs.
constexpr const char* kPolls[] = {"MPIR_CVAR_POLLS_BEFORE_YIELD", "mpi_yield_when_idle"};

struct LibraryThread {
  pid_t id;
  cpu_set_t cores;
  int policy;
};

// MPI_T by the names of the program's MPI; NULL where it has none.
template <typename Function>
Function* find_in_mpi(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

class Polls {
 public:
  bool find_variable() {
    int provided = 0;
    int index = 0;
    int count = 0;
    auto* const init = find_in_mpi<decltype(MPI_T_init_thread)>("MPI_T_init_thread");
    auto* const index_of = find_in_mpi<decltype(MPI_T_cvar_get_index)>("MPI_T_cvar_get_index");
    auto* const alloc = find_in_mpi<decltype(MPI_T_cvar_handle_alloc)>("MPI_T_cvar_handle_alloc");
    read_ = find_in_mpi<decltype(MPI_T_cvar_read)>("MPI_T_cvar_read");
    write_ = find_in_mpi<decltype(MPI_T_cvar_write)>("MPI_T_cvar_write");
    if (!init || !index_of || !alloc || !read_ || !write_ || init(MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
      return false;
    }
    for (const char* const name : kPolls) {
      if (index_of(name, &index) == MPI_SUCCESS && is_number(index) &&
          alloc(index, nullptr, &handle_, &count) == MPI_SUCCESS && count == 1 &&
          read_(handle_, &before_) == MPI_SUCCESS) {
        there_ = true;
        return true;
      }
    }
    return false;
  }
  bool there() const { return there_; }
  bool set(bool yields) const {
    const int wanted = yields ? 1 : before_;
    int got = 0;
    return write_(handle_, &wanted) == MPI_SUCCESS && read_(handle_, &got) == MPI_SUCCESS && got == wanted;
  }

 private:
  static bool is_number(int index) {
    auto* const info = find_in_mpi<decltype(MPI_T_cvar_get_info)>("MPI_T_cvar_get_info");
    int name = 0;
    int text = 0;
    int level = 0;
    int bound = 0;
    int scope = 0;
    MPI_Datatype type{};
    MPI_T_enum values{};
    return info != nullptr &&
           info(index, nullptr, &name, &level, &type, &values, nullptr, &text, &bound, &scope) == MPI_SUCCESS &&
           type == MPI_INT && scope != MPI_T_SCOPE_CONSTANT && scope != MPI_T_SCOPE_READONLY;
  }

  decltype(MPI_T_cvar_read)* read_ = nullptr;
  decltype(MPI_T_cvar_write)* write_ = nullptr;
  MPI_T_cvar_handle handle_{};
  int before_ = 0;
  bool there_ = false;
};

struct Progress {
  std::vector<LibraryThread> threads;
  Polls polls;
  std::uint64_t begin = 0;
  std::uint64_t setting = kAsItIs;
};

std::vector<pid_t>* own_threads = nullptr;
Progress* progress = nullptr;

std::vector<pid_t> tasks_now() {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/task"), closedir);
  while (const dirent* const entry = folder ? readdir(folder.get()) : nullptr) {
    if (const pid_t id = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)); id > 0) {
      threads.push_back(id);
    }
  }
  return threads;
}

// 0 where that is not known.
double processor_seconds(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/schedstat";
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
  unsigned long long ns = 0;
  return file && std::fscanf(file.get(), "%llu", &ns) == 1 ? static_cast<double>(ns) * 1e-9 : 0;
}

bool works(const LibraryThread& thread) {
  const double elapsed = static_cast<double>(elbow_guard_now() - progress->begin) * 1e-9;
  return processor_seconds(thread.id) > kWorks * elapsed;
}

// Those that no rank of this node may use.
cpu_set_t free_cores() {
  cpu_set_t free;
  CPU_ZERO(&free);
  for (long core = 0; core < sysconf(_SC_NPROCESSORS_CONF) && core < CPU_SETSIZE; ++core) {
    CPU_SET(static_cast<int>(core), &free);
  }
  const guard::Board board(guard::usual_path(), 0);
  for (std::uint32_t i = 0; i < board.used(); ++i) {
    cpu_set_t cores;
    const auto process = static_cast<pid_t>(board.places()[i].process.load());
    for (int core = 0; process != 0 && sched_getaffinity(process, sizeof cores, &cores) == 0 && core < CPU_SETSIZE;
         ++core) {
      if (CPU_ISSET(core, &cores)) {
        CPU_CLR(core, &free);
      }
    }
  }
  return free;
}

bool schedule(const LibraryThread& thread, int policy) {
  const sched_param zero{};
  return sched_setscheduler(thread.id, policy, &zero) == 0;
}

// Threads that have ended need nothing.
Refusal restore() {
  bool done = !progress->polls.there() || progress->polls.set(false);
  for (const LibraryThread& thread : progress->threads) {
    if (processor_seconds(thread.id) > 0) {
      done = sched_setaffinity(thread.id, sizeof thread.cores, &thread.cores) == 0 && schedule(thread, thread.policy) &&
             done;
    }
  }
  return done ? kNone : kNotAllowed;
}

Refusal change_threads(std::uint64_t setting) {
  const cpu_set_t cores = free_cores();
  if (setting == kAway && CPU_COUNT(&cores) == 0) {
    return kNoCore;
  }
  Refusal result = kNoThread;
  for (const LibraryThread& thread : progress->threads) {
    if (!works(thread)) {
      continue;
    }
    const bool done =
        setting == kAway ? sched_setaffinity(thread.id, sizeof cores, &cores) == 0 : schedule(thread, SCHED_IDLE);
    if (!done) {
      return kNotAllowed;
    }
    result = kNone;
  }
  return result;
}

Refusal act(std::uint64_t setting) {
  const Refusal restored = restore();
  if (setting == kAsItIs || setting == kPlacebo || restored != kNone) {
    return restored;
  }
  if (setting != kYield) {
    return change_threads(setting);
  }
  if (!progress->polls.there()) {
    return kNoVariable;
  }
  return progress->polls.set(true) ? kNone : kNotAllowed;
}

}  // namespace

void note_own_threads() { own_threads = new std::vector<pid_t>(tasks_now()); }

void find_progress() {
  if (own_threads == nullptr) {
    return;  // MPI was begun by sessions: its threads are not known apart
  }
  progress = new Progress;  // as long as the process
  progress->begin = elbow_guard_now();
  for (const pid_t id : tasks_now()) {
    LibraryThread thread{id, {}, sched_getscheduler(id)};
    if (std::find(own_threads->begin(), own_threads->end(), id) == own_threads->end() &&
        sched_getaffinity(id, sizeof thread.cores, &thread.cores) == 0) {
      progress->threads.push_back(thread);
    }
  }
  progress->polls.find_variable();
}

void follow_progress_setting(elbow_guard* board) {
  const std::uint64_t setting = elbow_guard_setting(board, kLever);
  if (progress == nullptr || setting == progress->setting) {
    return;
  }
  progress->setting = setting;
  const Refusal refused = act(setting);
  elbow_guard_set(board, guard::place_of_seen(kLever), setting + refused * kRefusal);
}

}  // namespace elbowroom::pmpi
