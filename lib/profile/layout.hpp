// The file of a profile (docs/reference/profile-files.md): header, nodes, threads, modules, calls, sites, windows, records.
// Little endian.
#pragma once

#include <cstddef>
#include <cstdint>

#include "elbowroom/profile.h"

namespace elbowroom::profile {

constexpr char kMagic[8] = {'E', 'L', 'B', 'P', 'R', 'O', 'F', '1'};
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHeaderBytes = 4096;

// A thread of the process: the cores that it may run on, what the scheduler gave it, and where it ran last.
struct ThreadPlace {
  std::int32_t thread;  // the kernel's number
  std::uint32_t cpus;   // how many
  std::uint32_t first;
  std::uint32_t last;
  std::uint64_t mask;  // a hash of their numbers
  std::uint64_t cpu_ns;
  std::uint64_t waited_ns;   // in the run queue
  std::int32_t cpu;          // -1: not known
  std::int32_t node;         // NUMA node of it; -1: not known
  std::uint32_t migrations;  // how often it was seen on another core than before
  std::uint32_t reserved;
};
static_assert(sizeof(ThreadPlace) == 56);
constexpr std::size_t kMostThreads = 512;

// An executable or shared library that calls. Virtual address + bias = address in memory.
struct Module {
  std::uint64_t bias;
  std::uint64_t size;  // of its file, B
  std::int64_t mtime_ns;
  char path[1000];
};
static_assert(sizeof(Module) == 1024);
constexpr std::size_t kMostModules = 64;
constexpr std::uint32_t kNoModule = 0xFFFFFFFF;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t node;
  std::int32_t nodes;
  std::int32_t local_rank;
  std::int32_t local_size;
  std::uint64_t pid;
  std::uint64_t start_wall_ns;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint64_t window_ns;
  std::uint32_t windows;
  std::uint32_t window_count;
  std::uint64_t records;
  std::uint64_t written;
  std::uint64_t lost;
  std::uint64_t calls;
  std::uint64_t mpi_ns;
  std::uint32_t call_kinds;
  std::uint32_t merging;  // 1 while windows are merged: their contents are not to be trusted
  std::uint64_t nodes_offset;
  std::uint64_t calls_offset;
  std::uint64_t windows_offset;
  std::uint64_t records_offset;
  char host[64];
  char mpi[128];
  std::uint32_t threads;  // that were seen; those beyond kMostThreads are left out
  std::uint32_t thread_room;
  std::uint64_t threads_offset;
  std::uint32_t modules;
  std::uint32_t module_room;
  std::uint64_t modules_offset;
  std::uint32_t sites;
  std::uint32_t site_room;
  std::uint64_t sites_offset;
  double cpu_limit;  // of the control group: cores' worth of time; 0: none, below 0: not known
  char cpuset[256];  // its cores, as "0-3,8"; empty: not known
};
static_assert(offsetof(Header, threads) == 360 && sizeof(Header) <= kHeaderBytes);

struct CallTotals {
  char name[40];
  std::uint64_t count;
  std::uint64_t ns;
  std::uint64_t bytes;
};
static_assert(sizeof(CallTotals) == 64);

// A place that calls. Sites follow the calls in the file, and have their totals where calls have theirs, so that a record's
// `call` is the index of either: of a call if its place is not known.
struct SiteTotals {
  std::uint32_t call;
  std::uint32_t module;  // kNoModule: code that belongs to none
  std::uint64_t offset;  // the return address, as a virtual address of the module
  std::uint64_t reserved[3];
  std::uint64_t count;
  std::uint64_t ns;
  std::uint64_t bytes;
};
static_assert(sizeof(SiteTotals) == sizeof(CallTotals) && offsetof(SiteTotals, count) == offsetof(CallTotals, count));
static_assert(sizeof(elbow_profile_window) == 64);
static_assert(sizeof(elbow_profile_record) == 32);

// Where everything is in the file.
struct Places {
  std::uint64_t nodes;
  std::uint64_t threads;
  std::uint64_t modules;
  std::uint64_t calls;
  std::uint64_t sites;
  std::uint64_t windows;
  std::uint64_t records;
  std::uint64_t end;
};

constexpr std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

inline Places places_for(const elbow_profile_settings& settings) {
  Places places{};
  places.nodes = kHeaderBytes;
  places.threads = rounded_up(places.nodes + static_cast<std::uint64_t>(settings.ranks) * sizeof(std::int32_t), 64);
  places.modules = rounded_up(places.threads + kMostThreads * sizeof(ThreadPlace), 64);
  places.calls = places.modules + kMostModules * sizeof(Module);
  places.sites = places.calls + settings.call_kinds * sizeof(CallTotals);
  places.windows = places.sites + settings.sites * sizeof(SiteTotals);
  places.records = rounded_up(places.windows + settings.windows * sizeof(elbow_profile_window), kHeaderBytes);
  places.end = places.records + settings.records * sizeof(elbow_profile_record);
  return places;
}

}  // namespace elbowroom::profile
