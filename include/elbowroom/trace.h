/* What happens in a program, when, on every thread, for some ten ns an event.
 *
 *     elbow_trace_settings settings = {.directory = "trace", .rank = rank, .ranks = ranks};
 *     elbow_trace_start(&settings);                                       once a process
 *     int tasks = elbow_trace_category("task");
 *     const elbow_trace_type* solve = elbow_trace_type_new("solve", tasks, "block", "row", "cells");
 *     elbow_trace_thread("worker 3");                                     once a thread, before its first event
 *     elbow_trace_begin(solve, block, row, cells);
 *     elbow_trace_end(solve, block, row, cells);
 *     elbow_trace_stop(&summary);                                         once a process, or left to its end
 *
 * Each thread writes into a ring of its own: no lock, no system call, no allocation, no write to a disk while events are
 * recorded; a signal handler may record, too. The rings are files in memory, which outlive a process that is killed; when
 * the trace is stopped they move to `directory`. A ring that is full loses the events that follow (ELBOW_TRACE_STOP: what
 * was recorded stays undisturbed) or the oldest (ELBOW_TRACE_OVERWRITE: a flight recorder). What was lost is counted to the
 * event: recorded = kept + lost. ELBOW_TRACE_FLUSH is there to compare with: its thread writes a full ring to the disk and waits.
 *
 * Each event has a type, each type a category; categories are switched on and off at any time by a mask, types by
 * themselves. What is off costs a load and a branch; with ELBOW_TRACE_OFF defined before this header, nothing. Events
 * in ELBOW_TRACE_AT(level, elbow_trace_event(...)) are not even compiled where `level` is above ELBOW_TRACE_LEVEL, a number that
 * is defined before this header (without: all are).
 *
 * Processes whose clocks differ compare them now and then (elbowroom/clock.h) and record it: elbow_trace_sync.
 *
 * What the tools know besides: in the category "task", `first` is the number of a task in its process, begun and ended on the
 * thread that runs it, and a text with that key its name; an event of a type named "dependency" says that task `second` waits
 * for task `first`. A message is sent or received by an event of any type; bytes given by elbow_trace_numbered say which
 * one it is.
 *
 * Errors, sizes of structures, threads: include/elbowroom/README.md (0 or -1, an object or NULL; errno, and
 * elbow_trace_error()). NULL where it is not allowed is EINVAL. Recording itself has no errors and checks nothing: events of a
 * process that was not started, or of a thread whose ring could not be made, are not recorded; a type is not NULL.
 *
 * A child of fork is not traced, and leaves the trace of its parent alone.
 */
#ifndef ELBOWROOM_TRACE_H
#define ELBOWROOM_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "elbowroom/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the files that this library writes. */
#define ELBOW_TRACE_FORMAT 1

enum {
  ELBOW_TRACE_STOP = 0,
  ELBOW_TRACE_OVERWRITE = 1,
  ELBOW_TRACE_DRAIN = 2,
  ELBOW_TRACE_GROW = 3,
  ELBOW_TRACE_FLUSH = 4
};

/* Zero stands for a default: `directory` "trace", `memory` /dev/shm (where the rings are meanwhile), `bytes` 4 MiB for each
 * thread's events, `text_bytes` 256 KiB for its descriptive records, `job` 0, `policy` ELBOW_TRACE_STOP, `ranks` 1. All
 * processes of a job give the same `job`, any number; traces of different jobs are not merged. `categories`, which may be
 * NULL for all, is a list of names: "task,mpi"; `without`, which may be NULL, of types that are off from the start:
 * "submit,ready". `core`, which may be NULL for any, is the number of the core that the
 * library's own thread keeps to ("3"), which the policies ELBOW_TRACE_DRAIN and ELBOW_TRACE_GROW have. `flush_at`, of
 * ELBOW_TRACE_FLUSH, is the number of events after which each ring is written for the first time (0: when it is full). */
typedef struct elbow_trace_settings {
  size_t size; /* sizeof(elbow_trace_settings) */
  const char* directory;
  const char* memory;
  const char* categories;
  const char* core;
  size_t bytes;
  size_t text_bytes;
  uint64_t job;
  int policy;
  int rank;
  int ranks;
  const char* without;
  size_t flush_at;
} elbow_trace_settings;

/* Of all threads: events recorded = kept + lost; `fullest` events of the fullest ring (of ELBOW_TRACE_DRAIN the most that
 * waited at once, or would have), and how many it holds; `advised` bytes a thread for none to be lost; `overhead_ns` that
 * recording took, estimated: events x what one took at the start. `refused_threads` could not make a ring, since memory was
 * full or for what elbow_trace_thread told them: their events are not among these. */
typedef struct elbow_trace_summary {
  size_t size; /* sizeof(elbow_trace_summary) */
  uint64_t recorded;
  uint64_t kept;
  uint64_t lost;
  uint64_t fullest;
  uint64_t capacity;
  uint64_t texts_kept;
  uint64_t texts_lost;
  size_t advised;
  double event_ns;
  double overhead_ns;
  int threads;
  int refused_threads;
} elbow_trace_summary;

/* Opaque but for the mask of its category, which is 0 while the type is off. */
typedef struct elbow_trace_type {
  uint64_t category;
  uint16_t number;
} elbow_trace_type;

/* Starts the trace of this process, once. EBUSY afterwards. Any thread. */
ELBOW_API int elbow_trace_start(const elbow_trace_settings* settings);
/* The same with the settings of `elbowroom trace record`: ELBOW_TRACE_DIRECTORY, _MEMORY, _CATEGORIES, _WITHOUT, _BYTES, _TEXT_BYTES,
 * _POLICY (stop, overwrite, drain, grow, flush), _CORE (drain's), _FLUSH_AT (flush's), _JOB; rank and ranks as the launcher told them (ELBOW_TRACE_RANK and
 * _RANKS, else those of Open MPI, PMI, PMIx or Slurm; 0 of 1 without). 0 also where the process is traced already; -1
 * (EINVAL) where ELBOW_TRACE_DIRECTORY is not set. Any thread. */
ELBOW_API int elbow_trace_start_from_environment(void);
/* Moves the rings to the directory; `summary` may be NULL. Threads that still record do no harm, and are not heard. Where it
 * fails (ENOSPC: the disk is full) what was recorded stays in memory, and it may be called again. Any thread. */
ELBOW_API int elbow_trace_stop(elbow_trace_summary* summary);
/* After the stop: how many events of a category were kept (63: the library's own), and what recording them took, estimated,
 * ns. Of events that were lost nobody knows the category. Any thread. */
ELBOW_API int elbow_trace_cost(int category, uint64_t* events, double* overhead_ns);
/* The summary for a person, a sentence or a few: as snprintf, `size` bytes at most, and returns how many it has. Any
 * thread. */
ELBOW_API int elbow_trace_describe(const elbow_trace_summary* summary, char* text, size_t size);

/* The number of the category of that name, made when it is new; 63 at most. ENOSPC beyond. Any thread. */
ELBOW_API int elbow_trace_category(const char* name);
/* Which categories are recorded, bit i for number i; a change is an event of its own. Any thread; the
 * last change counts. */
ELBOW_API void elbow_trace_set_mask(uint64_t mask);
ELBOW_API uint64_t elbow_trace_mask(void);

/* A type of events with names for up to three fields (NULL: not used): `small` of 32 bits, `first` and `second` of 64.
 * Any thread; the type lives as long as the process. */
ELBOW_API const elbow_trace_type* elbow_trace_type_new(const char* name, int category, const char* small,
                                                       const char* first, const char* second);
/* Switches a type off, or on again. Any thread. */
ELBOW_API int elbow_trace_filter(const elbow_trace_type* type, int on);

/* Makes this thread's ring, and names it; -1 where it is there already or cannot be made. Without, the first event does it.
 * The thread itself. */
ELBOW_API int elbow_trace_thread(const char* name);

/* A record without a time, kept apart from events: `key` of one is what the reader finds it by. Any thread, in its ring. */
ELBOW_API int elbow_trace_text(const elbow_trace_type* type, uint64_t key, const char* text);
/* Clocks were compared: what elbow_clock_synchronise or elbow_clock_barrier said of this process, in times of `clock`. Any
 * thread. */
ELBOW_API int elbow_trace_sync(const elbow_clock* clock, const elbow_clock_sync_point* point);
/* The region of interest begins (1) or ends (0), for the whole process. Any thread. */
ELBOW_API void elbow_trace_region(int on);

/* The calling thread's last failure, as a sentence; "" before the first one. Valid until its next one. Any thread. */
ELBOW_API const char* elbow_trace_error(void);

/* The release of the library that is loaded, as "1.2.3". Any thread. */
ELBOW_API const char* elbow_trace_version(void);

/* From here on: how an event is recorded, in the calling program. Not to be used by itself. */
enum {
  ELBOW_TRACE_EVENT = 0,
  ELBOW_TRACE_BEGIN = 1,
  ELBOW_TRACE_END = 2,
  ELBOW_TRACE_COUNTER = 3,
  ELBOW_TRACE_SEND = 4,
  ELBOW_TRACE_RECEIVE = 5,
  ELBOW_TRACE_MASK = 6,
  ELBOW_TRACE_REGION = 7,
  ELBOW_TRACE_LOST = 8 /* the recorder's own: `first` events of this thread are missing before this one */
};

/* 32 bytes; `time` is written last, and 0 until then. */
typedef struct elbow_trace_slot {
  uint64_t time;
  uint16_t type;
  uint8_t kind;
  uint8_t lap; /* how often the ring was full before, modulo 256 */
  uint32_t small;
  uint64_t first;
  uint64_t second;
} elbow_trace_slot;

typedef struct elbow_trace_ring {
  uint64_t recorded; /* also those that were lost */
  uint64_t limit;    /* events from this number on are lost */
  uint64_t wrap;     /* number of slots - 1, a power of two less one */
  elbow_trace_slot* slots;
  int counter;    /* times are the processor's counter, else ns of the kernel's clock (elbow_trace_raw) */
  uint32_t shift; /* number >> shift: how often the ring was full before */
} elbow_trace_ring;

extern ELBOW_API uint64_t elbow_trace_recorded_categories;
extern ELBOW_API __thread elbow_trace_ring* elbow_trace_own __attribute__((tls_model("initial-exec")));
ELBOW_API elbow_trace_ring* elbow_trace_attach(void);
ELBOW_API int elbow_trace_more(elbow_trace_ring* ring, uint64_t number);
ELBOW_API uint64_t elbow_trace_raw(void);

static inline uint64_t elbow_trace_time(const elbow_trace_ring* ring) {
#if defined(__x86_64__)
  if (__builtin_expect(ring->counter, 1)) {
    return __rdtsc();
  }
#elif defined(__aarch64__)
  if (__builtin_expect(ring->counter, 1)) {
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
  }
#endif
  (void)ring;
  return elbow_trace_raw();
}

/* One instruction takes a number, so that a signal handler in between takes another; no other thread takes any. On
 * aarch64 a handler in between makes the store fail, and the number is taken anew; what compilers make of an atomic
 * addition is a call there. */
static inline uint64_t elbow_trace_take(elbow_trace_ring* ring) {
#if defined(__x86_64__)
  uint64_t number = 1;
  __asm__ volatile("xaddq %0, %1" : "+r"(number), "+m"(ring->recorded)::"cc", "memory");
  return number;
#elif defined(__aarch64__)
  uint64_t number, next;
  uint32_t failed;
  __asm__ volatile("1: ldxr %0, %3\n add %1, %0, #1\n stxr %w2, %1, %3\n cbnz %w2, 1b"
                   : "=&r"(number), "=&r"(next), "=&r"(failed), "+Q"(ring->recorded)::"memory");
  return number;
#else
  return __atomic_fetch_add(&ring->recorded, 1, __ATOMIC_RELAXED);
#endif
}

static inline void elbow_trace_write(const elbow_trace_type* type, uint8_t kind, uint32_t small, uint64_t first,
                                     uint64_t second) {
#ifndef ELBOW_TRACE_OFF
  if (__builtin_expect((__atomic_load_n(&elbow_trace_recorded_categories, __ATOMIC_RELAXED) &
                        __atomic_load_n(&type->category, __ATOMIC_RELAXED)) == 0,
                       1)) {
    return;
  }
  elbow_trace_ring* ring = elbow_trace_own;
  if (__builtin_expect(!ring, 0)) {
    ring = elbow_trace_attach();
  }
  const uint64_t number = elbow_trace_take(ring);
  if (__builtin_expect(number >= __atomic_load_n(&ring->limit, __ATOMIC_ACQUIRE), 0) &&
      !elbow_trace_more(ring, number)) {
    return;
  }
  elbow_trace_slot* slot = &ring->slots[number & ring->wrap];
  __atomic_store_n(&slot->time, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->type, type->number, __ATOMIC_RELEASE);
  __atomic_store_n(&slot->kind, kind, __ATOMIC_RELEASE);
  __atomic_store_n(&slot->lap, (uint8_t)(number >> ring->shift), __ATOMIC_RELEASE);
  __atomic_store_n(&slot->small, small, __ATOMIC_RELEASE);
  __atomic_store_n(&slot->first, first, __ATOMIC_RELEASE);
  __atomic_store_n(&slot->second, second, __ATOMIC_RELEASE);
  __atomic_store_n(&slot->time, elbow_trace_time(ring), __ATOMIC_RELEASE);
#else
  (void)type, (void)kind, (void)small, (void)first, (void)second;
#endif
}

/* Categories of a level of detail that a program may leave out when it is compiled. */
#ifndef ELBOW_TRACE_LEVEL
#define ELBOW_TRACE_LEVEL 1000
#endif
#define ELBOW_TRACE_AT(level, record)   \
  do {                                  \
    if ((level) <= ELBOW_TRACE_LEVEL) { \
      record;                           \
    }                                   \
  } while (0)

/* The public ways to record: any thread, in its ring, and signal handlers. */
static inline void elbow_trace_event(const elbow_trace_type* type, uint32_t small, uint64_t first, uint64_t second) {
  elbow_trace_write(type, ELBOW_TRACE_EVENT, small, first, second);
}
static inline void elbow_trace_begin(const elbow_trace_type* type, uint32_t small, uint64_t first, uint64_t second) {
  elbow_trace_write(type, ELBOW_TRACE_BEGIN, small, first, second);
}
static inline void elbow_trace_end(const elbow_trace_type* type, uint32_t small, uint64_t first, uint64_t second) {
  elbow_trace_write(type, ELBOW_TRACE_END, small, first, second);
}
/* The same for libraries that look this one up at run time (dlsym) and work without it; `kind` is one of ELBOW_TRACE_EVENT to
 * ELBOW_TRACE_RECEIVE, and `first` and `second` of messages are as elbow_trace_send gives them. */
ELBOW_API void elbow_trace_record(const elbow_trace_type* type, int kind, uint32_t small, uint64_t first,
                                  uint64_t second);
/* A quantity from now on: `which` of several, `value` as a signed number. */
static inline void elbow_trace_count(const elbow_trace_type* type, uint32_t which, int64_t value) {
  elbow_trace_write(type, ELBOW_TRACE_COUNTER, which, (uint64_t)value, 0);
}
/* A message leaves for, or came from, rank `peer` over `communicator` (any number that both sides give it). */
static inline void elbow_trace_send(const elbow_trace_type* type, int peer, uint32_t communicator, int tag,
                                    uint64_t bytes) {
  elbow_trace_write(type, ELBOW_TRACE_SEND, (uint32_t)tag, ((uint64_t)communicator << 32) | (uint32_t)peer, bytes);
}
static inline void elbow_trace_receive(const elbow_trace_type* type, int peer, uint32_t communicator, int tag,
                                       uint64_t bytes) {
  elbow_trace_write(type, ELBOW_TRACE_RECEIVE, (uint32_t)tag, ((uint64_t)communicator << 32) | (uint32_t)peer, bytes);
}

/* The same where messages of one sender, communicator and tag may be recorded in another order than they are sent or
 * received in, or where some may be lost: `sequence` counts them from 1, alike on both sides (2^24 of them, then from 1
 * again); messages of 2^40 bytes and more are recorded as 2^40 - 1. */
static inline uint64_t elbow_trace_numbered(uint32_t sequence, uint64_t bytes) {
  const uint64_t most = (1ULL << 40) - 1;
  return ((uint64_t)((sequence - 1) % 0xFFFFFFU + 1) << 40) | (bytes < most ? bytes : most);
}

#ifdef __cplusplus
}
#endif

#endif
