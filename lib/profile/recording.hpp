// A profile, and what adding a record to it takes each time. A tool inlines that part: a record that is passed in memory is
// copied by words that are wider than those it was written by, which costs more than all the rest.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "elbowroom/profile.h"
#include "profile/layout.hpp"
#include "profile/profile_file.hpp"
#include "profile/scheduler.hpp"
#include "profile/sites.hpp"
#include "profile/windows.hpp"

struct elbow_profile {
  explicit elbow_profile(const elbow_profile_settings& settings)
      : file(settings),
        windows(file.header(), file.windows()),
        sites(file),
        threads(settings.threads != 0),
        space(file.grow()) {}

  static inline std::atomic<std::uint64_t> made{0};

  const std::uint64_t number = ++made;  // never 0: a thread knows its last sample's profile by it
  elbowroom::profile::ProfileFile file;
  elbowroom::profile::Windows windows;
  elbowroom::profile::Sites sites;
  bool threads;
  std::uint64_t space;  // records that may be written
  bool is_full = false;
  std::atomic_flag taken = ATOMIC_FLAG_INIT;
  std::mutex growing;
  std::mutex adding_threads;
};

namespace elbowroom::profile {

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
inline bool keep_record(elbow_profile& profile, const elbow_profile_record& record) {
  Header& header = *profile.file.header();
  const std::uint64_t written = header.written;
  const std::uint64_t place = written & (header.records - 1);
  if (place >= profile.space) [[unlikely]] {
    header.lost += profile.is_full ? 1 : 0;
    return profile.is_full;
  }
  header.lost += written >= header.records ? 1 : 0;
  profile.file.records()[place] = record;
  // A reader of a process that was killed sees no record that is not whole.
  std::atomic_ref(header.written).store(written + 1, std::memory_order_release);
  return true;
}

// The same where there may be no space: 0, or -1 with the error for the first record that there is no space for.
int keep_after_growth(elbow_profile& profile, elbow_profile_record record);

// A record that counts nowhere.
inline int keep(elbow_profile& profile, const elbow_profile_record& record) {
  {
    const Locked only(profile);
    if (keep_record(profile, record)) [[likely]] {
      return 0;
    }
  }
  return keep_after_growth(profile, record);
}

// As elbow_profile_add, for a record whose call is one of the profile's.
inline int add(elbow_profile& profile, elbow_profile_record record, bool keep) {
  // Another thread began what this one ends, or the clocks were compared meanwhile.
  record.end_ns = record.end_ns < record.begin_ns ? record.begin_ns : record.end_ns;
  {
    const Locked only(profile);
    if ((record.flags & ELBOW_PROFILE_INSIDE) != 0) {
      Header& header = *profile.file.header();
      const std::uint64_t ns = record.end_ns - record.begin_ns;
      CallTotals& totals = profile.file.calls()[record.call];
      totals.count += 1;
      totals.ns += ns;
      totals.bytes += record.bytes;
      header.calls += 1;
      header.mpi_ns += ns;
    }
    profile.windows.add(record);
    if (!keep || keep_record(profile, record)) [[likely]] {
      return 0;
    }
  }
  return keep_after_growth(profile, record);
}

// On which cores the threads of this process may run, and how long they have run: threads that share a core slow each other
// down, and none of them can see it.
// Adds what /proc/self/task says now; threads that have ended keep what was seen of them. One thread at a time.
void look_at_threads(elbow_profile& profile);
// The place in the table of the thread with this number, which is added; kMostThreads where there is no room. Any thread.
std::size_t place_of_thread(elbow_profile& profile, std::int32_t thread);

}  // namespace elbowroom::profile
