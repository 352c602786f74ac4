// The C interface: one profile of this process.
#include "elbowroom/profile.h"

#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>

#include "c_interface.hpp"
#include "profile/profile_file.hpp"
#include "profile/threads.hpp"
#include "profile/ticks.hpp"
#include "profile/windows.hpp"

using elbowroom::c_interface::fail;
using elbowroom::c_interface::guard;
using elbowroom::c_interface::taken;
using elbowroom::profile::CallTotals;
using elbowroom::profile::Header;
using elbowroom::profile::ProfileFile;
using elbowroom::profile::Refusal;
using elbowroom::profile::Windows;

struct elbow_profile {
  explicit elbow_profile(const elbow_profile_settings& settings)
      : file(settings), windows(file.header(), file.windows()), threads(settings.threads != 0), space(file.grow()) {}

  ProfileFile file;
  Windows windows;
  bool threads;
  std::uint64_t space;  // records that may be written
  bool is_full = false;
  std::atomic_flag taken = ATOMIC_FLAG_INIT;
  std::mutex growing;
};

namespace {

constexpr std::uint64_t kWindowNs = 1'000'000;
constexpr std::uint32_t kWindows = 4096;
constexpr std::uint64_t kRecords = 1 << 20;
constexpr std::uint64_t kMostRecords = std::uint64_t{1} << 40;

// The profile, for this thread alone: held for some ten ns, so that nobody sleeps for it.
class Locked {
 public:
  explicit Locked(elbow_profile& profile) : profile_(profile) {
    while (profile_.threads && profile_.taken.test_and_set(std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }
  ~Locked() {
    if (profile_.threads) {
      profile_.taken.clear(std::memory_order_release);
    }
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  elbow_profile& profile_;
};

// False where there is no space for it yet. With the lock.
bool keep_record(elbow_profile& profile, const elbow_profile_record& record) {
  Header& header = *profile.file.header();
  const std::uint64_t place = header.written & (header.records - 1);
  if (place >= profile.space) [[unlikely]] {
    header.lost += profile.is_full ? 1 : 0;
    return profile.is_full;
  }
  header.lost += header.written >= header.records ? 1 : 0;
  profile.file.records()[place] = record;
  // A reader of a process that was killed sees no record that is not whole.
  std::atomic_ref(header.written).store(header.written + 1, std::memory_order_release);
  return true;
}

// Takes space without the lock, which others may wait for; 0, or ENOSPC for the first record that there is no space for.
int keep_after_growth(elbow_profile& profile, const elbow_profile_record& record) {
  const std::lock_guard grows(profile.growing);
  for (;;) {
    {
      const Locked only(profile);
      if (keep_record(profile, record)) {
        return 0;
      }
    }
    const std::uint64_t space = profile.file.grow();
    const Locked only(profile);
    if (space == profile.space) {
      profile.is_full = true;
      profile.space = 0;  // nothing more is written
      keep_record(profile, record);
      return ENOSPC;
    }
    profile.space = space;
  }
}

void check(const elbow_profile_settings& settings) {
  const std::uint64_t records = settings.records;
  if (settings.path == nullptr || settings.ranks < 1 || settings.rank < 0 || settings.rank >= settings.ranks ||
      settings.calls == nullptr || settings.call_kinds == 0) {
    throw Refusal(EINVAL, "settings: path and calls are given, and rank is one of ranks");
  }
  if (settings.windows % 2 != 0 || (records & (records - 1)) != 0 || records > kMostRecords ||
      settings.call_kinds > 0xFFFF) {
    throw Refusal(EINVAL, "settings: windows is even, records a power of two up to 2^40, call_kinds below 65536");
  }
}

}  // namespace

elbow_profile* elbow_profile_new(const elbow_profile_settings* settings) {
  return guard([&] {
    elbow_profile_settings whole = taken(settings, "settings");
    check(whole);
    whole.window_ns = whole.window_ns == 0 ? kWindowNs : whole.window_ns;
    whole.windows = whole.windows == 0 ? kWindows : whole.windows;
    whole.records = whole.records == 0 ? kRecords : whole.records;
    return new elbow_profile(whole);
  });
}

int elbow_profile_set_nodes(elbow_profile* profile, const int32_t* nodes) {
  if (profile == nullptr || nodes == nullptr) {
    return fail(EINVAL, "%s: is NULL", profile == nullptr ? "profile" : "nodes");
  }
  profile->file.set_nodes(nodes);
  return 0;
}

uint64_t elbow_profile_now(void) { return elbowroom::profile::now(); }

int elbow_profile_add(elbow_profile* profile, const elbow_profile_record* given, int keep) {
  if (profile == nullptr || given == nullptr) {
    return fail(EINVAL, "%s: is NULL", profile == nullptr ? "profile" : "record");
  }
  elbow_profile_record record = *given;
  // Another thread began what this one ends, or the clocks were compared meanwhile.
  record.end_ns = record.end_ns < record.begin_ns ? record.begin_ns : record.end_ns;
  {
    const Locked only(*profile);
    Header& header = *profile->file.header();
    if (record.call >= header.call_kinds) [[unlikely]] {
      return fail(EINVAL, "the record's call is none of the profile's calls");
    }
    if ((record.flags & ELBOW_PROFILE_INSIDE) != 0) {
      const std::uint64_t ns = record.end_ns - record.begin_ns;
      CallTotals& totals = profile->file.calls()[record.call];
      totals.count += 1;
      totals.ns += ns;
      totals.bytes += record.bytes;
      header.calls += 1;
      header.mpi_ns += ns;
    }
    profile->windows.add(record);
    if (keep == 0 || keep_record(*profile, record)) [[likely]] {
      return 0;
    }
  }
  return keep_after_growth(*profile, record) == 0
             ? 0
             : fail(ENOSPC, "there is no space for more records; totals and windows go on");
}

int elbow_profile_look_at_threads(elbow_profile* profile) {
  if (profile == nullptr) {
    return fail(EINVAL, "profile: is NULL");
  }
  elbowroom::profile::look_at_threads(*profile->file.header());
  return 0;
}

int elbow_profile_finish(elbow_profile* profile) {
  if (profile == nullptr) {
    return fail(EINVAL, "profile: is NULL");
  }
  const Locked only(*profile);
  profile->file.header()->end_ns = elbowroom::profile::now();
  return 0;
}

void elbow_profile_free(elbow_profile* profile) { delete profile; }

const char* elbow_profile_error(void) { return elbowroom::c_interface::last_error; }

const char* elbow_profile_version(void) { return ELBOWROOM_VERSION; }
