// The tool that profiles: what the shims tell becomes totals, windows and records of lib/profile.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "elbowroom/profile.h"
#include "pmpi/agreement.hpp"
#include "pmpi/books.hpp"
#include "pmpi/hooks.hpp"
#include "pmpi/mpi.hpp"
#include "pmpi/nodes.hpp"
#include "pmpi/profile/roles.hpp"
#include "profile/recording.hpp"
#include "profile/scheduler.hpp"
#include "profile/ticks.hpp"
#include "trace/job_identity.hpp"
#include "trace/refusal.hpp"

namespace elbowroom::pmpi {
namespace {

// Others are kept whatever they took. Most calls that only look something up are shorter, and would leave no room.
constexpr std::uint64_t kShortest = 1000;  // ns

elbow_profile* recorded = nullptr;  // NULL: this process is not profiled
std::vector<std::int32_t> nodes;    // of each rank
std::int32_t own_node = 0;
bool for_threads = false;  // the profile locks itself
bool several_nodes = false;

// Threads are looked at when this time has come: at most so often, and for a thousandth of the time.
constexpr std::uint64_t kBetweenLooks = 100'000'000;  // ns
constexpr std::uint64_t kShareOfLooks = 1000;
std::atomic<std::uint64_t> next_look{0};

void look_at_threads(std::uint64_t now) {
  // The one thread that moves the time away looks.
  std::uint64_t due = next_look;
  if (due <= now && next_look.compare_exchange_strong(due, ~std::uint64_t{0})) {
    elbow_profile_look_at_threads(recorded);
    const std::uint64_t end = profile::now();
    next_look = end + std::max(kBetweenLooks, kShareOfLooks * (end - now));
  }
}

// The call that this thread is in.
struct Current {
  std::uint16_t site = 0;
  const void* caller = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // where it is known already
  bool completed = false;
  bool got = false;  // a message: its sender and bytes
  std::int32_t peer = 0;
  std::uint64_t bytes = 0;
};
constinit thread_local Current current __attribute__((tls_model("initial-exec")));

const char* folder() {
  const char* const value = std::getenv("ELBOW_PROFILE_DIRECTORY");
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// 0: as the library has it.
std::uint64_t number(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
}

void not_profiled(const std::string& what) {
  std::fprintf(stderr, "elbowroom: the program is not profiled: %s\n", what.c_str());
}

// A child shares the mapping: what it calls is not the parent's.
void forget_in_child() { recorded = nullptr; }

// Where processes of other jobs are is not known: of a job on one node they count as on that node, else as on others.
inline std::uint8_t between(int peer) {
  const bool other =
      peer == kElsewhere ? several_nodes : peer >= 0 && nodes[static_cast<std::size_t>(peer)] != own_node;
  return other ? ELBOW_PROFILE_BETWEEN : 0;
}

void say_error() {
  std::fprintf(stderr, "elbowroom: process %d: %s\n", static_cast<int>(getpid()), elbow_profile_error());
}

// Sessions that are opened later may be for several threads.
void add_alone(elbow_profile_record record, bool keep) {
  const Locked only;
  if (profile::add(*recorded, record, keep) != 0) {
    say_error();
  }
}

// What the scheduler has done with this thread since its last sample.
[[gnu::noinline]] void sample() {
  const auto add = [] {
    if (profile::sample(*recorded) != 0) {
      say_error();
    }
  };
  if (threaded() && !for_threads) {
    const Locked only;
    add();
  } else {
    add();
  }
}

inline void add(const elbow_profile_record& record, bool keep) {
  if (threaded() && !for_threads) [[unlikely]] {
    add_alone(record, keep);
  } else if (profile::add(*recorded, record, keep) != 0) [[unlikely]] {
    say_error();
  }
}

// The peer, bytes and flags of what a call or an operation is about, which comes from that site.
inline elbow_profile_record record_of(int call, std::uint16_t site, const About& about) {
  const Entry& entry = kEntries[static_cast<std::size_t>(call)];
  elbow_profile_record record{};
  record.call = site;
  record.peer = about.peer;
  record.bytes = entry.bytes && !(entry.one_peer && about.peer == kNobody) ? about.bytes : 0;
  if (entry.many) {
    const int members = about.span >> 1;
    record.peer = about.peer == kNobody && members > 0 ? -members - 1 : std::max(about.peer, kNobody);
    record.flags = (about.span & 1) != 0 ? ELBOW_PROFILE_BETWEEN : 0;
  } else {
    record.flags = between(about.peer);
    record.peer = std::max(about.peer, kNobody);
  }
  return record;
}

inline void add_received(elbow_profile_record record, std::uint8_t kind, int peer, std::uint64_t bytes) {
  record.kind = kind;
  record.peer = std::max(peer, kNobody);
  record.bytes = bytes;
  record.flags = static_cast<std::uint8_t>((record.flags & ELBOW_PROFILE_PENDING) | between(peer));
  add(record, true);
}

std::string path_of(int rank) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "/rank-%06d.profile", rank);
  return std::string(folder()) + name.data();
}

elbow_profile* open_file(const Place& place, const std::string& path) {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  PMPI_Get_library_version(version.data(), &length);
  std::vector<const char*> names;
  for (const CallInfo& info : calls) {
    names.push_back(info.name);
  }
  elbow_profile_settings settings{};
  settings.size = sizeof settings;
  settings.path = path.c_str();
  settings.rank = place.rank;
  settings.ranks = place.ranks;
  settings.mpi = version.data();
  settings.calls = names.data();
  settings.call_kinds = kCalls;
  settings.window_ns = number("ELBOW_PROFILE_WINDOW_NS");
  settings.windows = static_cast<std::uint32_t>(number("ELBOW_PROFILE_WINDOWS"));
  settings.records = number("ELBOW_PROFILE_RECORDS");
  for_threads = place.threads;
  settings.threads = for_threads ? 1 : 0;
  return elbow_profile_new(&settings);
}

void drop(const std::string& path) {
  if (recorded != nullptr) {
    unlink(path.c_str());
    elbow_profile_free(std::exchange(recorded, nullptr));
  }
}

// A command may start several jobs: each agrees in a folder of its own.
std::string agreement_folder(const Place& place) {
  std::string job;
  try {
    job = trace::launched_job([](const char* name) { return std::getenv(name); });
  } catch (const trace::Refusal&) {
    // It has no name, but is the only one, as spawned ones are not profiled.
  }
  if (job.empty() && place.ranks == 1) {
    job = trace::process_identity();
  }
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "/agreement-%08x", static_cast<unsigned>(std::hash<std::string>{}(job)));
  return std::string(folder()) + name.data() + suffix_of(place);
}

// Whether this process is profiled. Files of another job in the folder stay its own: then no process of this job is.
bool agree(const Place& place, const std::string& path) {
  const auto [rank, size] = std::pair(place.rank, place.ranks);
  const std::string folder_of_job = agreement_folder(place);
  const int code = errno;
  Agreement agreement(folder_of_job, rank, size, {"profiled", "profile"});
  const Sign sign = recorded != nullptr ? Sign::ready : code == EEXIST ? Sign::refused : Sign::absent;
  const std::string reason = sign == Sign::ready ? ""
                             : sign == Sign::absent
                                 ? elbow_profile_error()
                                 : "the folder has the profile of another job of this command: " + path;
  if (!agreement.announce(sign, reason)) {
    if (rank == 0) {
      not_profiled(recorded != nullptr ? folder_of_job + ": no file can be made in it" : elbow_profile_error());
    }
    return false;
  }
  if (recorded == nullptr) {
    agreement.lead_if_first();
    return false;
  }
  const Decision decision = agreement.decide();
  if (!decision.records) {
    return false;
  }
  nodes = emulated_nodes(size);
  nodes = nodes.empty() ? decision.nodes : nodes;
  return true;
}

bool start(const Place& place) {
  const auto [rank, size] = std::pair(place.rank, place.ranks);
  if (place.spawned) {
    if (rank == 0) {
      not_profiled("spawned processes are another job");
    }
    return false;
  }
  const std::string path = path_of(rank);
  recorded = open_file(place, path);
  if (!agree(place, path)) {
    drop(path);
    return false;
  }
  own_node = nodes[static_cast<std::size_t>(rank)];
  several_nodes = std::any_of(nodes.begin(), nodes.end(), [](std::int32_t node) { return node != own_node; });
  elbow_profile_set_nodes(recorded, nodes.data());
  sample();
  pthread_atfork(nullptr, nullptr, forget_in_child);
  return true;
}

}  // namespace

const bool tool_matches = false;
const bool tool_times = true;

bool tool_starting() { return folder() != nullptr; }

bool tool_started(const Place& place) {
  try {
    return folder() != nullptr && start(place);
  } catch (const std::exception& error) {
    not_profiled(error.what());
    elbow_profile_free(std::exchange(recorded, nullptr));
    return false;
  }
}

void tool_finishing() {
  if (recorded != nullptr) {
    next_look = 0;
    look_at_threads(profile::now());
    sample();
  }
}

void tool_paused() {
  tool_finishing();
  if (recorded != nullptr) {
    elbow_profile_finish(recorded);
  }
}

void tool_enter(int call, const About&, const void* caller) {
  current = {};
  current.caller = caller;
  if (recorded == nullptr) [[unlikely]] {
    current.begin = profile::now();
    return;
  }
  current.site = recorded->sites.find(static_cast<std::uint16_t>(call), caller);
  current.begin = profile::now();  // last: what this tool does is no time of the call
  if (current.begin >= profile::sampling.due) [[unlikely]] {
    sample();
    current.begin = profile::now();
  }
}

void tool_leave(int call, const About& about) {
  if (recorded == nullptr) {
    return;
  }
  current.end = current.end != 0 ? current.end : profile::now();
  const Entry& entry = kEntries[static_cast<std::size_t>(call)];
  if (call == call::Init || call == call::Init_thread) {
    // The profile begins with the end of MPI_Init.
    current.begin = current.end = profile::now();
    current.site = recorded->sites.find(static_cast<std::uint16_t>(call), current.caller);
  }
  elbow_profile_record record = record_of(call, current.site, about);
  record.begin_ns = current.begin;
  record.end_ns = current.end;
  record.flags |= ELBOW_PROFILE_INSIDE;
  const bool nothing = entry.asks && !current.completed;
  record.kind = nothing ? static_cast<std::uint8_t>(ELBOW_PROFILE_OTHER) : entry.kind;
  add(record, record.kind != ELBOW_PROFILE_OTHER || (!nothing && record.end_ns - record.begin_ns >= kShortest));
  if (current.got && record.kind == ELBOW_PROFILE_EXCHANGE) {
    add_received(record, ELBOW_PROFILE_RECEIVE, current.peer, current.bytes);
  }
  if (record.end_ns >= profile::sampling.due) [[unlikely]] {
    sample();
  }
  if (record.end_ns >= next_look.load(std::memory_order_relaxed)) [[unlikely]] {
    look_at_threads(record.end_ns);
  }
  if (call == call::Finalize) {
    elbow_profile_finish(recorded);
  }
}

// How long it took until then, nobody knows.
void tool_left(int call) {
  current.end = current.begin;
  tool_leave(call, {});
}

void tool_sent(const Message&) {}

void tool_received(const Message& message) {
  current.got = true;
  current.peer = message.peer;
  current.bytes = message.bytes;
}

Posting tool_posting(int call, const About&) {
  const auto number = static_cast<std::uint16_t>(call);
  return {current.begin, recorded == nullptr ? number : recorded->sites.find(number, current.caller)};
}

void tool_completed(const Interval& interval, const Message* got, Ending ending) {
  current.completed = true;
  if (recorded == nullptr) {
    return;
  }
  current.end = current.end != 0 ? current.end : profile::now();
  const Entry& entry = kEntries[static_cast<std::size_t>(interval.call)];
  elbow_profile_record record = record_of(interval.call, interval.posted.site, interval.about);
  record.begin_ns = interval.posted.ns;
  record.end_ns = current.end;
  record.kind = entry.pending;
  record.flags |= ELBOW_PROFILE_PENDING;
  record.flags |= ending == Ending::unknown ? ELBOW_PROFILE_UNFINISHED : 0;
  const bool exchange = calls[interval.call].role == Role::exchange;
  if (!exchange || interval.about.peer != kNobody) {
    if (got != nullptr && !exchange) {
      return add_received(record, entry.pending, got->peer, got->bytes);
    }
    record.bytes = ending == Ending::cancelled ? 0 : record.bytes;
    add(record, true);
  }
  if (exchange && got != nullptr) {
    add_received(record, ELBOW_PROFILE_RECEIVE_LATER, got->peer, got->bytes);
  }
}

int tool_communicator(const std::vector<int>& world, int members) {
  if (nodes.empty()) {
    return 0;
  }
  const bool spans = std::any_of(world.begin(), world.end(), [](int rank) {
    return rank == kNobody ? several_nodes : nodes[static_cast<std::size_t>(rank)] != own_node;
  });
  return members << 1 | (spans ? 1 : 0);
}

void tool_world_barrier() {}

void tool_region(int level) {
  if (recorded != nullptr) {
    const std::uint64_t now = profile::now();
    add({now, now, static_cast<std::uint64_t>(level < 0 ? 0 : level), kNobody, current.site, ELBOW_PROFILE_MARK, 0},
        true);
    if (now >= profile::sampling.mark) {
      const int error = errno;
      sample();
      errno = error;
    }
  }
}

}  // namespace elbowroom::pmpi
