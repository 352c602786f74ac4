/* One time for all processes of a job, on any number of hosts, with an error bound.
 *
 *     elbow_clock* clock = elbow_clock_new(&peers);       every process, together
 *     elbow_clock_synchronise(clock, NULL);               every process, together; again from time to time
 *     elbow_clock_now(clock, &time, &error);              any process, at any moment
 *     elbow_clock_barrier(clock, &point);                 every process, together: all leave at the same instant
 *
 * Times are ns of the reference: the clock of process 0's host (the processor's counter where it is invariant and the
 * kernel trusts it, else CLOCK_MONOTONIC_RAW). Processes of one host share a clock, which is found out (boot identifier,
 * time namespace); between hosts the clocks are compared by messages there and back, over a tree of hosts: log2 rounds.
 * `error` is a bound, not a guess: the half width of what the exchanges leave possible, and what the clocks may have
 * drifted apart since. Environment: ELBOW_CLOCK=raw keeps to CLOCK_MONOTONIC_RAW,
 * ELBOW_CLOCK=monotonic to CLOCK_MONOTONIC, which NTP steers: to compare with.
 *
 * The library needs no MPI: `elbow_clock_peers` says how processes send and receive. elbowroom/clock_mpi.h does it with MPI.
 *
 * Collective functions are called by one thread of every process, together.
 *
 * Errors, sizes of structures, threads: include/elbowroom/README.md (0 or -1, an object or NULL; errno, and
 * elbow_clock_error()). NULL where it is not allowed is EINVAL. A peer that cannot be reached is ECOMM.
 */
#ifndef ELBOWROOM_CLOCK_H
#define ELBOWROOM_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ELBOW_API
#define ELBOW_API __attribute__((visibility("default")))
#endif

/* How this process, `rank` of `ranks`, reaches the others. Both functions block, return 0, or -1 where it failed. Messages
 * between two processes arrive in order. `self` is theirs. */
typedef struct elbow_clock_peers {
  size_t size; /* sizeof(elbow_clock_peers) */
  int rank;
  int ranks;
  void* self;
  int (*send)(void* self, int to, const void* bytes, size_t count);
  int (*receive)(void* self, int from, void* bytes, size_t count);
} elbow_clock_peers;

typedef struct elbow_clock elbow_clock;

/* When `local` ns had passed on this host's clock, the reference's was `offset` further, between `low` and `high`. `jumped`
 * is 1 where one of the clocks jumped while they were compared: `low` and `high` then cover the offsets before and after. */
typedef struct elbow_clock_sync_point {
  size_t size; /* sizeof(elbow_clock_sync_point) */
  int64_t local;
  int64_t offset;
  int64_t low;
  int64_t high;
  int jumped;
} elbow_clock_sync_point;

/* Finds out who shares a clock with whom. `peers` is copied; what it points at must outlive the clock. Collective. */
ELBOW_API elbow_clock* elbow_clock_new(const elbow_clock_peers* peers);
/* `clock` may be NULL. No thread may use the clock any more. */
ELBOW_API void elbow_clock_free(elbow_clock* clock);

/* Compares all clocks, and remembers the result besides the earlier ones. `point` may be NULL. Collective; no other
 * thread uses this clock meanwhile. */
ELBOW_API int elbow_clock_synchronise(elbow_clock* clock, elbow_clock_sync_point* point);

/* The reference's time now, ns, and how wrong it may be at most; `error` may be NULL. EAGAIN before the first
 * elbow_clock_synchronise. Any thread, several at once, but not while the same clock is synchronised. */
ELBOW_API int elbow_clock_now(const elbow_clock* clock, int64_t* time, int64_t* error);

/* All processes leave at the same instant of the reference, `point->local` of each one's own clock: the moment that was
 * agreed on, whatever kept this process from leaving then. `late`, which may be NULL, is how long it was kept, ns: where it
 * is not small, what is timed from now on is not timed from the same instant. Where a process heard of the moment after it
 * had passed, all try again with twice the time. EAGAIN before the first elbow_clock_synchronise. Collective; other
 * threads may call elbow_clock_now meanwhile. */
ELBOW_API int elbow_clock_barrier(elbow_clock* clock, elbow_clock_sync_point* point, int64_t* late);

/* Tells all processes alike, in `due` (1 or 0), whether `seconds` of the reference's time (rank 0's argument counts) went by
 * since the clocks were compared last: for programs that compare again where they are together anyway, after a barrier of
 * their own for instance. 1 before the first comparison. Clocks alone cannot agree on that, however right they are: some
 * processes would read theirs just before the moment, some after it. So rank 0 decides, and says with each answer how many
 * of the next calls are answered 0 without a message: as many as fit into an eighth of the time that is left, 16 at most
 * (the answer 1 comes so many calls late at worst). Not while something is timed: some calls wait for a message. EINVAL for
 * `seconds` below 0. Collective, and called equally often by every process; other threads may call elbow_clock_now. */
ELBOW_API int elbow_clock_due(elbow_clock* clock, double seconds, int* due);

/* This host's clock now, ns: that of the sync points' `local`, the same for all processes of a host. -1 with
 * EINVAL for NULL. Any thread, several at once. */
ELBOW_API int64_t elbow_clock_local(const elbow_clock* clock);

/* How many clocks there are in the job, hosts as a rule; and where local times come from: "tsc", "raw" or "monotonic". -1
 * and NULL with EINVAL for NULL. Any thread, several at once. */
ELBOW_API int elbow_clock_count(const elbow_clock* clock);
ELBOW_API const char* elbow_clock_source(const elbow_clock* clock);

/* Local times as numbers: the processor's counter read `start_ticks` at `start_ns` of CLOCK_MONOTONIC_RAW, and goes on by
 * `scale` / 2^32 ns a tick. `counter` 0: local times are CLOCK_MONOTONIC_RAW's, or CLOCK_MONOTONIC's where `steered`. */
typedef struct elbow_clock_calibration {
  size_t size; /* sizeof(elbow_clock_calibration) */
  int counter;
  uint64_t start_ticks;
  int64_t start_ns;
  uint64_t scale;
  int steered;
} elbow_clock_calibration;

/* How `clock` turns the counter into local times; of NULL, how this process does by itself (found out on first use, 40 ms).
 * Readings of one host's counter are the same instant for all processes, whatever calibration each has. EINVAL where
 * ELBOW_CLOCK names no clock. Any thread, several at once. */
ELBOW_API int elbow_clock_calibrated(const elbow_clock* clock, elbow_clock_calibration* calibration);

/* The same instant by the processor's counter and by CLOCK_MONOTONIC_RAW, known to `width` ns: taken now and then, they
 * say how the counter drifts. ENOTSUP where no counter can be trusted. Any thread. */
ELBOW_API int elbow_clock_anchor(uint64_t* ticks, int64_t* raw, int64_t* width);

/* The calling thread's last failure, as a sentence; "" before the first one. Valid until its next one. Any thread. */
ELBOW_API const char* elbow_clock_error(void);

/* The release of the library that is loaded, as "1.2.3". Any thread. */
ELBOW_API const char* elbow_clock_version(void);

#ifdef __cplusplus
}
#endif

#endif
