/* What is in flight on this node, for any runtime: the ranks of a guarded job (`elbowroom guard`) write the bytes of their
 * messages to a board in shared memory, and anyone may read it.
 *
 *     elbow_guard* guard = elbow_guard_open(NULL);
 *     if (guard != NULL && elbow_guard_pressure(guard) > 0.5) { ... run a task that needs little memory bandwidth ... }
 *
 * elbow_guard_pressure takes some ns, with 64 ranks less than 30, and never waits; the other reads look at each rank of the node.
 * lib/guard/example.c is a runtime of 40 lines.
 *
 * Errors, sizes of structures, threads: include/elbowroom/README.md (0 or -1, an object or NULL; errno, and
 * elbow_guard_error()). NULL where it is not allowed is EINVAL.
 */
#ifndef ELBOWROOM_GUARD_H
#define ELBOWROOM_GUARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ELBOW_API
#define ELBOW_API __attribute__((visibility("default")))
#endif

enum { ELBOW_GUARD_OUT = 0, ELBOW_GUARD_IN = 1 };

/* Of all ranks of this node. A receive is in flight from its post on: its message may still be elsewhere. */
typedef struct elbow_guard_traffic {
  size_t size;       /* sizeof(elbow_guard_traffic) */
  uint64_t bytes[2]; /* in flight, by direction */
  uint64_t messages[2];
  uint64_t moved[2]; /* bytes of messages that are complete, since the ranks began */
  uint32_t ranks;
  uint32_t waiting;    /* ranks that are inside a call that waits for messages */
  uint64_t steps;      /* that the ranks began, added up */
  uint64_t step_begin; /* of the latest step: elbow_guard_now; 0: none began */
} elbow_guard_traffic;

typedef struct elbow_guard elbow_guard;
typedef struct elbow_guard_rank elbow_guard_rank;

/* The board at `path`; NULL: that of the environment variable ELBOW_GUARD, else the latest in /dev/shm that may be read.
 * NULL with ENOENT where there is none. Any thread. */
ELBOW_API elbow_guard* elbow_guard_open(const char* path);
/* The same, and the board is made where there is none yet, for up to `ranks` ranks of this node (0: 1024). Any thread. */
ELBOW_API elbow_guard* elbow_guard_make(const char* path, uint32_t ranks);
/* The board stays for others; `guard` may be NULL. */
ELBOW_API void elbow_guard_close(elbow_guard* guard);

/* Bytes in flight in both directions. Any thread. */
ELBOW_API uint64_t elbow_guard_in_flight(const elbow_guard* guard);
/* The bytes in flight as a share of what fills the memory bus or the link, between 0 and 1 (elbow_guard_set_scale). Of each rank
 * and direction, less than 16 KiB are left out. Any thread. */
ELBOW_API double elbow_guard_pressure(const elbow_guard* guard);
/* All of it. Any thread. */
ELBOW_API int elbow_guard_read(const elbow_guard* guard, elbow_guard_traffic* traffic);
/* CLOCK_MONOTONIC, ns. Any thread. */
ELBOW_API uint64_t elbow_guard_now(void);

/* `edge` is called with 1 once the pressure has reached `high`, then with 0 once it has fallen to `low`, and so on. One watch
 * for each object; it takes the place of the one before. */
typedef void elbow_guard_edge(void* context, int above, double pressure);
ELBOW_API int elbow_guard_watch(elbow_guard* guard, double high, double low, elbow_guard_edge* edge, void* context);
/* Looks, and calls `edge` where there was one; no thread does it by itself. Returns whether the pressure is above. One thread
 * at a time. */
ELBOW_API int elbow_guard_poll(elbow_guard* guard);

/* Settings of levers, by number, which whoever steers writes and levers read; 0 at the begin. EINVAL beyond
 * ELBOW_GUARD_SETTINGS, EACCES where the board may only be read. Any thread. */
enum { ELBOW_GUARD_SETTINGS = 32 };
ELBOW_API int elbow_guard_set(elbow_guard* guard, uint32_t lever, uint64_t value);
ELBOW_API uint64_t elbow_guard_setting(const elbow_guard* guard, uint32_t lever);
/* The bytes in flight at which the pressure is 1; 1 MiB at the begin. EINVAL for 0. */
ELBOW_API int elbow_guard_set_scale(elbow_guard* guard, uint64_t bytes);

/* A place on the board for this process, which is rank `rank`; `threads`: whether several of them publish at once. NULL with
 * ENOSPC where the board is full. Places of processes that have ended are taken again. */
ELBOW_API elbow_guard_rank* elbow_guard_join(elbow_guard* guard, int32_t rank, int threads);
/* The place is free; `place` may be NULL. */
ELBOW_API void elbow_guard_leave(elbow_guard_rank* place);
/* A message of `bytes` begins, and ends; a step begins. */
ELBOW_API void elbow_guard_begin(elbow_guard_rank* place, int direction, uint64_t bytes);
ELBOW_API void elbow_guard_end(elbow_guard_rank* place, int direction, uint64_t bytes);
ELBOW_API void elbow_guard_step(elbow_guard_rank* place);
/* A lever inside this process held work back for so long, in all its threads together; a receipt adds it up. ESRCH where the
 * process has no place, EACCES as elbow_guard_set. Any thread. */
ELBOW_API int elbow_guard_held(elbow_guard* guard, uint64_t ns);
/* Frees the places of processes that have ended; how many. EACCES as elbow_guard_set. */
ELBOW_API int elbow_guard_sweep(elbow_guard* guard);

/* The calling thread's last failure, as a sentence; "" before the first one. Valid until its next one. Any thread. */
ELBOW_API const char* elbow_guard_error(void);
/* The release of the library that is loaded, as "1.2.3". Any thread. */
ELBOW_API const char* elbow_guard_version(void);

#ifdef __cplusplus
}
#endif

#endif
