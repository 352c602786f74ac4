// The file of a profile (docs/reference/profile-files.md): header, nodes, calls, windows, records. Little endian.
#pragma once

#include <cstddef>
#include <cstdint>

#include "elbowroom/profile.h"

namespace elbowroom::profile {

constexpr char kMagic[8] = {'E', 'L', 'B', 'P', 'R', 'O', 'F', '1'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 4096;

// A thread of the process: the cores that it may run on, and the CPU time that it has used.
struct ThreadPlace {
  std::int32_t thread;  // the kernel's number
  std::uint32_t cpus;   // how many
  std::uint32_t first;
  std::uint32_t last;
  std::uint64_t mask;  // a hash of their numbers
  std::uint64_t cpu_ns;
};
constexpr std::size_t kMostThreads = 116;

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
  // Zero in files of older releases.
  std::uint32_t threads;  // that were seen; those beyond kMostThreads are left out
  std::uint32_t reserved;
  ThreadPlace places[kMostThreads];
};
static_assert(offsetof(Header, threads) == 360 && sizeof(Header) <= kHeaderBytes);

struct CallTotals {
  char name[40];
  std::uint64_t count;
  std::uint64_t ns;
  std::uint64_t bytes;
};
static_assert(sizeof(CallTotals) == 64);
static_assert(sizeof(elbow_profile_window) == 64);
static_assert(sizeof(elbow_profile_record) == 32);

// Where everything is in the file of `size` ranks.
struct Places {
  std::uint64_t nodes;
  std::uint64_t calls;
  std::uint64_t windows;
  std::uint64_t records;
  std::uint64_t end;
};

constexpr std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

inline Places places_for(std::uint64_t size, std::uint64_t call_kinds, std::uint64_t windows, std::uint64_t records) {
  Places places{};
  places.nodes = kHeaderBytes;
  places.calls = rounded_up(places.nodes + size * sizeof(std::int32_t), 64);
  places.windows = places.calls + call_kinds * sizeof(CallTotals);
  places.records = rounded_up(places.windows + windows * sizeof(elbow_profile_window), kHeaderBytes);
  places.end = places.records + records * sizeof(elbow_profile_record);
  return places;
}

}  // namespace elbowroom::profile
