// The C interface: one recorder for the process; turns exceptions into errno and a sentence.
#include "elbowroom/trace.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "c_interface.hpp"
#include "trace/environment.hpp"
#include "trace/job.h"
#include "trace/job_identity.hpp"
#include "trace/recorder.hpp"

std::uint64_t elbow_trace_recorded_categories = 0;
__thread elbow_trace_ring* elbow_trace_own = nullptr;

namespace {

using elbowroom::c_interface::check_size;
using elbowroom::c_interface::fail;
using elbowroom::c_interface::give;
using elbowroom::c_interface::refuse_null;
using elbowroom::c_interface::taken;
using elbowroom::trace::Environment;
using elbowroom::trace::Recorder;
using elbowroom::trace::Refusal;
using elbowroom::trace::Ring;
using elbowroom::trace::RingHeader;

// What a thread without a ring writes into: nothing fits.
thread_local RingHeader nowhere{};
// This thread is in the library: a signal handler of its own must not enter it again.
thread_local bool inside = false;
thread_local Ring* own_ring = nullptr;

// What is read where times are not the processor's counter.
clockid_t kernel_clock = CLOCK_MONOTONIC_RAW;

std::mutex starting;
// Never destroyed: threads may hold rings of it until the process ends.
Recorder* current_recorder = nullptr;
pid_t traced_process = 0;
// The same while it records.
std::atomic<Recorder*> recorder{nullptr};

struct Inside {
  bool before = inside;
  Inside() { inside = true; }
  ~Inside() { inside = before; }
};

template <typename Work>
auto guarded(Work work) {
  const Inside here;
  return elbowroom::c_interface::guard(work);
}

constexpr const char* kNotStarted = "nothing is traced: call elbow_trace_start first";

void thread_ended(void* ring);

pthread_key_t ending = 0;  // its value: the ring of the thread
bool ends_are_heard = false;

void hear_ends_of_threads() { ends_are_heard = pthread_key_create(&ending, thread_ended) == 0; }

void own(Ring* ring) {
  own_ring = ring;
  elbow_trace_own = ring == nullptr ? &nowhere.ring : &ring->header().ring;
  // Where this fails the ring keeps its memory until the trace is stopped.
  if (ring != nullptr && ends_are_heard) {
    pthread_setspecific(ending, ring);
  }
}

// Other libraries' ends of threads may record, too: this one's is put off to the second round.
void thread_ended(void* ring) {
  static thread_local bool again = false;
  if (!again) {
    again = true;
    pthread_setspecific(ending, ring);
    return;
  }
  Recorder* const traced = recorder;
  if (traced != nullptr && own_ring == ring) {
    own(nullptr);
    guarded([&] { traced->detach(*static_cast<Ring*>(ring)); });
  }
}

void lock_before_fork() { starting.lock(); }
void unlock_after_fork() { starting.unlock(); }

// A child of fork shares its parent's rings: it must not write into them.
void forget_after_fork() {
  starting.unlock();
  elbow_trace_recorded_categories = 0;
  elbow_trace_own = &nowhere.ring;
  own_ring = nullptr;
  recorder = nullptr;
}

// Which job this process is of, and its folder, by elbow_trace_start_as.
struct Place {
  std::string folder;
  int rank = 0;
  int ranks = 1;
};
Place place;

void claim(const std::string& identity, const elbow_trace_settings& settings) {
  const std::string whole = identity + " of " + std::to_string(settings.ranks);
  place = {elbowroom::trace::claim_folder(settings.directory, whole, settings.ranks), settings.rank, settings.ranks};
}

int start_in_place(elbow_trace_settings settings) {
  settings.directory = place.folder.c_str();
  settings.rank = place.rank;
  settings.ranks = place.ranks;
  return elbow_trace_start(&settings);
}

// In the folder of the process's job. Where the launcher's variables were only inherited (a program that a rank starts), that
// process has its files there already: this one is a job of its own.
int start_in_folder(elbow_trace_settings settings, bool from_mpi) {
  const std::string own = elbowroom::trace::process_identity();
  std::string job = elbowroom::trace::launched_job([](const char* name) { return std::getenv(name); });
  if (job.empty()) {
    job = settings.ranks > 1 ? "job " + std::to_string(settings.job) : own;
  }
  claim(job, settings);
  if (recorder != nullptr) {
    return 0;  // the program has started it, in a directory of its own
  }
  const int started = start_in_place(settings);
  if (started == 0 || errno != EEXIST || from_mpi || job == own) {
    return started;
  }
  settings.rank = 0;
  settings.ranks = 1;
  claim(own, settings);
  return start_in_place(settings);
}

// A program that ends without elbow_trace_stop keeps its trace. A child that was made without the handlers of fork (vfork, a
// system call) must not end it.
void stop_at_exit() {
  if (getpid() == traced_process && recorder != nullptr && elbow_trace_stop(nullptr) != 0) {
    std::fprintf(stderr, "elbowroom: the trace of process %d is not complete: %s\n", static_cast<int>(getpid()),
                 elbow_trace_error());
  }
}

}  // namespace

namespace elbowroom::trace {

void flush_own_ring() {
  Recorder* const traced = recorder;
  // A signal came while this thread was in the library: its event is lost.
  if (traced == nullptr || own_ring == nullptr || inside) {
    return;
  }
  const int error = errno;  // the program's own
  guarded([&] { traced->flush_full(*own_ring); });
  errno = error;
}

}  // namespace elbowroom::trace

extern "C" {

int elbow_trace_start(const elbow_trace_settings* given) {
  const std::lock_guard lock(starting);
  if (current_recorder != nullptr) {
    return fail(EBUSY,
                "a process is traced once, and a child of fork with its parent: switch events on and off by "
                "elbow_trace_set_mask, and let a child that is to be traced run a program of its own");
  }
  return guarded([&] {
    const elbow_trace_settings settings = taken(given, "settings");
    if (!ends_are_heard) {
      hear_ends_of_threads();
    }
    auto fresh = std::make_unique<Recorder>(settings);
    kernel_clock = fresh->steered() ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_RAW;
    const std::uint64_t mask = fresh->initial_mask();
    pthread_atfork(lock_before_fork, unlock_after_fork, forget_after_fork);
    std::atexit(stop_at_exit);
    traced_process = getpid();
    recorder = current_recorder = fresh.release();
    __atomic_store_n(&elbow_trace_recorded_categories, mask, __ATOMIC_RELAXED);
  });
}

int elbow_trace_start_from_environment(void) { return recorder != nullptr ? 0 : elbow_trace_start_as(-1, 0); }

int elbow_trace_start_as(int rank, int ranks) {
  if (recorder != nullptr && !place.folder.empty()) {
    return 0;
  }
  int result = 0;
  const int read = guarded([&] {
    // What MPI says counts: without a launcher, Open MPI 4 sets PMIX_RANK alone while it starts.
    const std::string own_rank = std::to_string(rank);
    const std::string own_ranks = std::to_string(ranks);
    const Environment environment([&](const char* name) -> const char* {
      const std::string_view wanted(name);
      if (rank >= 0 && (wanted == "ELBOW_TRACE_RANK" || wanted == "ELBOW_TRACE_RANKS")) {
        return (wanted == "ELBOW_TRACE_RANK" ? own_rank : own_ranks).c_str();
      }
      return std::getenv(name);
    });
    const elbow_trace_settings settings = environment.settings();
    result = start_in_folder(settings, rank >= 0);
  });
  // Another thread may have been quicker.
  return read == 0 && (result == 0 || recorder != nullptr) ? 0 : -1;
}

const char* elbow_trace_folder(int* rank, int* ranks) {
  *rank = place.rank;
  *ranks = place.ranks;
  return place.folder.empty() ? nullptr : place.folder.c_str();
}

void elbow_trace_discard(void) {
  const std::lock_guard lock(starting);
  if (Recorder* own = recorder.exchange(nullptr)) {
    __atomic_store_n(&elbow_trace_recorded_categories, 0, __ATOMIC_RELAXED);
    guarded([&] { own->discard(); });
  }
}

int elbow_trace_finalised(const int* own, int count) {
  Recorder* const traced = recorder;
  if (traced == nullptr) {
    return 0;
  }
  bool others = true;
  const int marked = guarded([&] {
    others = traced->has_others({own, own + count});
    if (others) {
      traced->finalised();
    }
  });
  return others ? marked : elbow_trace_stop(nullptr);
}

int elbow_trace_stop(elbow_trace_summary* summary) {
  const std::lock_guard lock(starting);
  if (recorder == nullptr) {
    return fail(EINVAL, "%s", kNotStarted);
  }
  const int result = guarded([&] {
    if (summary != nullptr) {
      check_size(summary, "summary");
    }
    __atomic_store_n(&elbow_trace_recorded_categories, 0, __ATOMIC_RELAXED);
    const elbow_trace_summary all = recorder.load()->stop();
    if (summary != nullptr) {
      give(all, summary);
    }
  });
  if (result == 0) {
    recorder = nullptr;
  }
  return result;
}

int elbow_trace_cost(int category, uint64_t* events, double* overhead_ns) {
  const std::lock_guard lock(starting);
  if (current_recorder == nullptr || events == nullptr || overhead_ns == nullptr) {
    return fail(EINVAL, "%s", current_recorder == nullptr ? kNotStarted : "events or overhead_ns: is NULL");
  }
  return guarded([&] { current_recorder->cost(category, *events, *overhead_ns); });
}

int elbow_trace_describe(const elbow_trace_summary* summary, char* text, size_t size) {
  return guarded([&] {
    if (size > 0) {
      refuse_null(text, "text");
    }
    const std::string description = elbowroom::trace::described(taken(summary, "summary"));
    return std::snprintf(text, size, "%s", description.c_str());
  });
}

int elbow_trace_category(const char* name) {
  if (recorder == nullptr || name == nullptr) {
    return fail(EINVAL, "%s", name == nullptr ? "name: is NULL" : kNotStarted);
  }
  int number = -1;
  return guarded([&] { number = recorder.load()->category(name); }) == 0 ? number : -1;
}

void elbow_trace_set_mask(uint64_t mask) {
  if (Recorder* own = recorder) {
    // The library's own events stay on: they say what is off.
    const std::uint64_t whole = mask | 1ULL << 63;
    elbow_trace_write(own->own_mask(), ELBOW_TRACE_MASK, 0, whole, 0);
    __atomic_store_n(&elbow_trace_recorded_categories, whole, __ATOMIC_RELAXED);
  }
}

uint64_t elbow_trace_mask(void) { return __atomic_load_n(&elbow_trace_recorded_categories, __ATOMIC_RELAXED); }

const elbow_trace_type* elbow_trace_type_new(const char* name, int category, const char* small, const char* first,
                                             const char* second) {
  if (name == nullptr) {
    fail(EINVAL, "name: is NULL");
    return nullptr;
  }
  if (recorder == nullptr) {
    // A program that is not traced goes on without asking.
    static elbow_trace_type untraced{0, 0};
    fail(EINVAL, "%s", kNotStarted);
    return &untraced;
  }
  const elbow_trace_type* type = nullptr;
  const char* const fields[3] = {small, first, second};
  guarded([&] {
    if (category == 63) {
      throw Refusal(EINVAL, "category 63: there is no such category; elbow_trace_category makes one");
    }
    type = recorder.load()->type(name, category, fields);
  });
  return type;
}

int elbow_trace_filter(const elbow_trace_type* type, int on) {
  if (recorder == nullptr || type == nullptr) {
    return fail(EINVAL, "%s", type == nullptr ? "type: is NULL" : kNotStarted);
  }
  return guarded([&] { recorder.load()->filter(type, on != 0); });
}

int elbow_trace_thread(const char* name) {
  if (recorder == nullptr) {
    return fail(EINVAL, "%s", kNotStarted);
  }
  if (own_ring != nullptr) {
    return fail(EEXIST, "this thread has its ring already: name it before its first event");
  }
  const int status = guarded([&] { own(&recorder.load()->attach(name == nullptr ? "" : name)); });
  if (status != 0) {
    own(nullptr);  // once is enough: its events do not try again
  }
  return status;
}

elbow_trace_ring* elbow_trace_attach(void) {
  Recorder* traced = recorder;
  // A signal came while this thread was in the library: that one event is not recorded.
  if (inside) {
    return &nowhere.ring;
  }
  const int error = errno;  // the program's own
  if (traced == nullptr || guarded([&] { own(&traced->attach("")); }) != 0) {
    own(nullptr);
  }
  errno = error;
  return elbow_trace_own;
}

int elbow_trace_text(const elbow_trace_type* type, uint64_t key, const char* text) {
  if (recorder == nullptr || type == nullptr || text == nullptr) {
    return fail(EINVAL, "%s", recorder == nullptr ? kNotStarted : "type or text: is NULL");
  }
  if ((elbow_trace_mask() & type->category) == 0) {
    return 0;
  }
  if (elbow_trace_own == nullptr) {
    elbow_trace_attach();
  }
  if (own_ring == nullptr || !own_ring->add_text(type->number, key, text)) {
    return fail(ENOSPC, "this thread's records are full: give more text_bytes");
  }
  return 0;
}

int elbow_trace_sync(const elbow_clock* clock, const elbow_clock_sync_point* point) {
  if (recorder == nullptr || clock == nullptr || point == nullptr) {
    return fail(EINVAL, "%s", recorder == nullptr ? kNotStarted : "clock or point: is NULL");
  }
  return guarded([&] { recorder.load()->sync(clock, taken(point, "point")); });
}

void elbow_trace_region(int on) {
  if (Recorder* own = recorder) {
    guarded([&] { own->region(on != 0); });
  }
}

void elbow_trace_record(const elbow_trace_type* type, int kind, uint32_t small, uint64_t first, uint64_t second) {
  if (type == nullptr) {
    return;
  }
  elbow_trace_write(type, static_cast<std::uint8_t>(kind), small, first, second);
}

uint64_t elbow_trace_raw(void) {
  timespec time{};
  clock_gettime(kernel_clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(time.tv_nsec);
}

const char* elbow_trace_error(void) { return elbowroom::c_interface::last_error; }

const char* elbow_trace_version(void) { return ELBOWROOM_VERSION; }

}  // extern "C"
