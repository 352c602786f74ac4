// The merged trace for programs that read it while it is written: a JSON line about the job, then blocks of records.
//
// A block is a tag of four letters, the number of its records (32 bits), and the records, packed. EVNT, MESG and GAPS come as
// they are told, in blocks of their own, each kind in order; DONE is the last and says how many there were, so that a
// stream that ends early is seen. Numbers are little-endian. src/elbowroom/trace/columns.py reads it.
#pragma once

#include <cstdint>

namespace elbowroom::trace {

constexpr int kColumnsVersion = 1;

struct ColumnBlock {
  char tag[4];
  std::uint32_t records;
};

struct ColumnEvent {
  std::int64_t time;
  std::int64_t error;
  std::uint64_t stamp;
  std::uint64_t first;
  std::uint64_t second;
  std::uint64_t message;
  std::uint32_t sequence;
  std::uint32_t thread;
  std::uint32_t type;
  std::uint32_t small;
  std::uint8_t kind;
  std::uint8_t flags;
  std::uint8_t reserved[6];
};
static_assert(sizeof(ColumnEvent) == 72);

struct ColumnMessage {
  std::uint64_t message;
  std::int64_t sent;
  std::int64_t received;
  std::uint64_t bytes;
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t communicator;
  std::int32_t tag;
  std::uint8_t flags;
  std::uint8_t reserved[7];
};
static_assert(sizeof(ColumnMessage) == 56);

struct ColumnGap {
  std::int64_t begin;
  std::int64_t end;
  std::uint64_t lost;
  std::uint32_t thread;
  std::uint32_t reserved;
};
static_assert(sizeof(ColumnGap) == 32);

struct ColumnTotals {
  std::uint64_t events;
  std::uint64_t messages;
  std::uint64_t gaps;
};
static_assert(sizeof(ColumnTotals) == 24);

}  // namespace elbowroom::trace
