// The C interface: one profile of this process.
#include "elbowroom/profile.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "c_interface.hpp"
#include "profile/recording.hpp"
#include "profile/ticks.hpp"

using elbowroom::c_interface::fail;
using elbowroom::c_interface::guard;
using elbowroom::c_interface::taken;
using elbowroom::profile::Locked;
using elbowroom::profile::Refusal;

namespace {

constexpr std::uint64_t kWindowNs = 1'000'000;
constexpr std::uint32_t kWindows = 4096;
constexpr std::uint32_t kSites = 4096;
constexpr std::uint64_t kRecords = 1 << 20;
constexpr std::uint64_t kMostRecords = std::uint64_t{1} << 40;

void check(const elbow_profile_settings& settings) {
  const std::uint64_t records = settings.records;
  if (settings.path == nullptr || settings.ranks < 1 || settings.rank < 0 || settings.rank >= settings.ranks ||
      settings.calls == nullptr || settings.call_kinds == 0) {
    throw Refusal(EINVAL, "settings: path and calls are given, and rank is one of ranks");
  }
  if (settings.windows % 2 != 0 || (records & (records - 1)) != 0 || records > kMostRecords ||
      settings.call_kinds > 0xFFFF - std::min(settings.sites, std::uint32_t{0xFFFF})) {
    throw Refusal(EINVAL,
                  "settings: windows is even, records a power of two up to 2^40, call_kinds and sites below 65536");
  }
}

}  // namespace

// Takes space without the lock, which others may wait for.
int elbowroom::profile::keep_after_growth(elbow_profile& profile, elbow_profile_record record) {
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
      return fail(ENOSPC, "there is no space for more records; totals and windows go on");
    }
    profile.space = space;
  }
}

elbow_profile* elbow_profile_new(const elbow_profile_settings* settings) {
  return guard([&] {
    elbow_profile_settings whole = taken(settings, "settings");
    whole.sites = whole.sites == 0 ? kSites : whole.sites;
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
  elbowroom::profile::Header& header = *profile->file.header();
  if (given->call >= header.call_kinds + std::atomic_ref(header.sites).load(std::memory_order_relaxed)) {
    return fail(EINVAL, "the record's call is none of the profile's calls and sites");
  }
  return elbowroom::profile::add(*profile, *given, keep != 0);
}

int elbow_profile_look_at_threads(elbow_profile* profile) {
  if (profile == nullptr) {
    return fail(EINVAL, "profile: is NULL");
  }
  elbowroom::profile::look_at_threads(*profile);
  return 0;
}

int elbow_profile_site(elbow_profile* profile, uint16_t call, const void* caller) {
  if (profile == nullptr) {
    return fail(EINVAL, "profile: is NULL");
  }
  if (call >= profile->file.header()->call_kinds) {
    return fail(EINVAL, "call: is none of the profile's calls");
  }
  return profile->sites.find(call, caller);
}

int elbow_profile_sample(elbow_profile* profile) {
  if (profile == nullptr) {
    return fail(EINVAL, "profile: is NULL");
  }
  return elbowroom::profile::sample(*profile);
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
