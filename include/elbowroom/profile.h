/* The profile of one process: totals of its calls, histograms over time, and records of calls and messages, in a file that
 * is mapped into memory. What was recorded is in the file at once, also where the process is killed.
 *
 *     elbow_profile* profile = elbow_profile_new(&settings);
 *     elbow_profile_record record = {.begin_ns = elbow_profile_now(), ...};
 *     elbow_profile_add(profile, &record, 1);
 *     elbow_profile_finish(profile);
 *     elbow_profile_free(profile);
 *
 * Memory and file have a fixed size: windows become wider where they do not reach (elbow_profile_window), and of the records
 * the latest are kept. docs/reference/profile-files.md describes the file. The library needs no MPI.
 *
 * Errors, sizes of structures, threads: include/elbowroom/README.md (0 or -1, an object or NULL; errno, and
 * elbow_profile_error()). NULL where it is not allowed is EINVAL. Nothing is written where the file system is full: records
 * are then counted as lost. A child of fork must not use the profile of its parent, whose file it would write.
 */
#ifndef ELBOWROOM_PROFILE_H
#define ELBOWROOM_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ELBOW_API
#define ELBOW_API __attribute__((visibility("default")))
#endif

/* What a record is about. */
enum elbow_profile_kind {
  ELBOW_PROFILE_OTHER = 0,
  ELBOW_PROFILE_SEND = 1,
  ELBOW_PROFILE_RECEIVE = 2,
  ELBOW_PROFILE_EXCHANGE = 3, /* the send half of MPI_Sendrecv; the other half is a receive */
  ELBOW_PROFILE_COLLECTIVE = 4,
  ELBOW_PROFILE_SEND_LATER = 5, /* nonblocking: from the post to the completion */
  ELBOW_PROFILE_RECEIVE_LATER = 6,
  ELBOW_PROFILE_COLLECTIVE_LATER = 7,
  ELBOW_PROFILE_COMPLETION = 8, /* MPI_Wait and others, MPI_Test and others that completed something */
  ELBOW_PROFILE_ONE_SIDED = 9,
  ELBOW_PROFILE_MARK = 10, /* MPI_Pcontrol; `bytes` is the level */
  ELBOW_PROFILE_BARRIER = 11,
  /* Written by elbow_profile_sample: `bytes` are the ns of the time that a thread was on a core, `peer` is that core at the
   * end, `call` the thread's place in the table of threads; ELBOW_PROFILE_UNFINISHED: how long it waited is not known */
  ELBOW_PROFILE_RAN = 12,
  ELBOW_PROFILE_WAITED = 13 /* follows the former, if it waited in the run queue: `bytes` are the ns */
};

enum elbow_profile_flag {
  ELBOW_PROFILE_BETWEEN = 1,   /* the peer is on another node, or the communicator spans nodes */
  ELBOW_PROFILE_INSIDE = 2,    /* the time of the record was spent inside a call */
  ELBOW_PROFILE_PENDING = 4,   /* the record is from a post to its completion */
  ELBOW_PROFILE_UNFINISHED = 8 /* the completion is not known: the request was freed, or still open at the end */
};

/* 32 bytes, as in the file: never changes. */
typedef struct elbow_profile_record {
  uint64_t begin_ns;
  uint64_t end_ns;
  uint64_t bytes;
  int32_t peer;  /* rank in MPI_COMM_WORLD; -1: none; -(members) - 1: a collective operation without root */
  uint16_t call; /* the place of its name in `calls`, or what elbow_profile_site gave */
  uint8_t kind;
  uint8_t flags;
} elbow_profile_record;

/* A part of the time. `wait_ns` is the part of `mpi_ns` in receives, completions and barriers. Bytes of sends count where
 * they begin, bytes of receives where they end; collective operations count as sent. */
typedef struct elbow_profile_window {
  uint64_t mpi_ns;
  uint64_t wait_ns;
  uint64_t calls;
  uint64_t sent_inside;
  uint64_t sent_between;
  uint64_t received_inside;
  uint64_t received_between;
  uint64_t messages; /* that were sent to one process */
} elbow_profile_window;

typedef struct elbow_profile_settings {
  size_t size;      /* sizeof(elbow_profile_settings) */
  const char* path; /* must not exist yet */
  int32_t rank;
  int32_t ranks;
  const int32_t* nodes; /* the node of each rank, numbered from 0; NULL: elbow_profile_set_nodes will say it */
  const char* mpi;      /* what the MPI says of itself */
  const char* const* calls;
  uint32_t call_kinds;
  uint64_t window_ns; /* 0: 1 ms */
  uint32_t windows;   /* even; 0: 4096 */
  uint64_t records;   /* a power of two, 2^40 at most; 0: 1 Mi */
  int threads;        /* whether several threads add at once */
  uint32_t sites;     /* places that call; 0: 4096. With call_kinds below 65535 */
} elbow_profile_settings;

typedef struct elbow_profile elbow_profile;

/* Creates the file, valid from now on if the nodes are known. Any thread. */
ELBOW_API elbow_profile* elbow_profile_new(const elbow_profile_settings* settings);
/* The node of each rank, once, before the first record: the file is valid, and the profile begins now. */
ELBOW_API int elbow_profile_set_nodes(elbow_profile* profile, const int32_t* nodes);
/* CLOCK_MONOTONIC, ns, to some 100 ns; by the processor's counter where that can be trusted. Any thread. */
ELBOW_API uint64_t elbow_profile_now(void);
/* Adds to totals and windows, and keeps the record itself if `keep` is not 0. Totals count records with
 * ELBOW_PROFILE_INSIDE, which are calls. -1, once, where there is no space for more records (ENOSPC); the rest goes on. -1
 * also for a record whose `call` is none of `calls` (EINVAL), of which nothing is kept. Any thread where `threads` is set;
 * without, one at a time. */
ELBOW_API int elbow_profile_add(elbow_profile* profile, const elbow_profile_record* record, int keep);
/* Adds which cores each thread of the process may run on now, its CPU time, its wait in the run queue and where it ran last:
 * some 20 us for each thread, to be called at the begin, at the end and now and then. Not by two threads at once. */
ELBOW_API int elbow_profile_look_at_threads(elbow_profile* profile);
/* The record's `call` for a call from `caller` (__builtin_return_address(0)): the same number for the same place, some ns. At
 * first sight, some 100 us, the place is written into the table of sites. `call` itself where `caller` is NULL, and for
 * further places where the table is full. -1 for a call that is none of `calls` (EINVAL). Any thread. */
ELBOW_API int elbow_profile_site(elbow_profile* profile, uint16_t call, const void* caller);
/* Adds how long the calling thread was on a core and waited for one since its last sample: some us. The thread's first sample
 * is only where the next one begins. As elbow_profile_add. */
ELBOW_API int elbow_profile_sample(elbow_profile* profile);
/* The end of the profile is now. As elbow_profile_add. */
ELBOW_API int elbow_profile_finish(elbow_profile* profile);
/* Unmaps the file; `profile` may be NULL. No thread may use it any more. */
ELBOW_API void elbow_profile_free(elbow_profile* profile);
/* The calling thread's last failure, as a sentence; "" before the first one. Valid until its next one. Any thread. */
ELBOW_API const char* elbow_profile_error(void);
/* The release of the library that is loaded, as "1.2.3". Any thread. */
ELBOW_API const char* elbow_profile_version(void);

#ifdef __cplusplus
}
#endif

#endif
