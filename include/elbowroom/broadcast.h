/* Broadcasts for task graphs: the root alone knows the recipients, and a receive does not tell how its data came.
 *
 *     elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(&own);         elbowroom/broadcast_mpi.h
 *     elbow_broadcast* broadcast = elbow_broadcast_new(&transport, NULL);
 *     elbow_broadcast_receive(broadcast, 0, root, tag, data, size, &operation);           on each recipient, at any time
 *     elbow_broadcast_send(broadcast, 0, tag, data, size, recipients, count, NULL, &operation);     on the root
 *     elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RECEIVED);
 *
 * Data travel through a tree of the recipients (Swartvagher 2022, chapter 4). Announcements carry the list of the subtree,
 * so that recipients need not know each other. Each receive has two events: RECEIVED, from which on the data may be read, and
 * RELEASED, from which on the buffer may be written: in between, this process forwards the data. A send is RELEASED only.
 * Receives are matched by context, root and tag, in the order in which the root sent, whatever way the data took.
 *
 * Progress is made in elbow_broadcast_progress, _next and _wait, or by a thread of the library (elbow_broadcast_start).
 * Without the thread, a process that computes for long delays those below it in the tree; where it made no progress for the
 * watchdog's time with operations open, its next call says so by an event ELBOW_BROADCAST_STALLED of no operation.
 *
 * A receive that nobody announced data for, and a send whose recipients have no receive yet, wait as long as the others
 * compute: after the watchdog's time they get ELBOW_BROADCAST_STALLED once, and go on.
 *
 * Threads: with the library's thread, all functions may be called by any thread, at the same time. Without it, one thread at
 * a time uses an elbow_broadcast. Functions without one may be called by any thread.
 *
 * Structs that are passed by pointer begin with their size, which the program sets to sizeof: EINVAL where it is smaller
 * than that of the first release, and where fields that this release does not know are not zero. Elements of arrays have
 * none. NULL is EINVAL, unless stated.
 *
 * Errors: include/elbowroom/README.md (0 or -1, an object or NULL; errno, and elbow_broadcast_error()). What goes wrong later
 * is an event ELBOW_BROADCAST_FAILED with a sentence.
 */
#ifndef ELBOWROOM_BROADCAST_H
#define ELBOWROOM_BROADCAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ELBOW_API
#define ELBOW_API __attribute__((visibility("default")))
#endif

typedef struct elbow_broadcast elbow_broadcast;
typedef uint64_t elbow_broadcast_operation; /* a send or a receive; 0: none */

/* What happened to a transfer: ELBOW_BROADCAST_CONTROL is a message with `length` bytes, valid until the next poll. */
enum { ELBOW_BROADCAST_CONTROL = 0, ELBOW_BROADCAST_SENT = 1, ELBOW_BROADCAST_ARRIVED = 2, ELBOW_BROADCAST_GONE = 3 };
typedef struct elbow_broadcast_happening {
  size_t size; /* of this struct; the library sets it */
  int kind;
  int peer; /* the sender of a control message, or the process that is gone */
  uint64_t ticket;
  const void* bytes;
  size_t length;
} elbow_broadcast_happening;

/* How this process reaches the others. Control messages are copied by send_control, and arrive in order between two
 * processes. Data go from buffer to buffer; those between two processes on one channel (0 to channels - 1) match in order.
 * `poll` returns 1 with what happened next, 0 where nothing did. All others return 0. -1: it failed. `state` is theirs.
 * `cancel` and `close` may be NULL. `confined` is NULL where any thread may use the transport, one at a time; else a sentence
 * that says why only the thread that made it may, which elbow_broadcast_start then fails with. */
typedef struct elbow_broadcast_transport {
  size_t size; /* of this struct */
  void* state;
  int rank;
  int ranks;
  uint32_t channels;
  double (*now)(void* state); /* s */
  int (*send_control)(void* state, int peer, const void* bytes, size_t length);
  int (*send_data)(void* state, int peer, uint32_t channel, const void* data, size_t length, uint64_t ticket);
  int (*receive_data)(void* state, int peer, uint32_t channel, void* data, size_t length, uint64_t ticket);
  int (*cancel)(void* state, uint64_t ticket); /* of a receive: its buffer is not written any more */
  int (*poll)(void* state, elbow_broadcast_happening* happening);
  void (*close)(void* state);
  const char* confined;
} elbow_broadcast_transport;

/* What to do with data that others wait for while no receive is posted for them here. */
enum {
  ELBOW_BROADCAST_STORE_FORWARD = 0, /* take them into a pool while there is room, else as ELBOW_BROADCAST_BYPASS */
  ELBOW_BROADCAST_BYPASS = 1,        /* the parent in the tree serves the others */
  ELBOW_BROADCAST_POSTPONE = 2       /* the others wait (the thesis) */
};

/* The network, for the tree "auto": each process has a link to one switch. `elbowroom broadcast tune` measures it. 0 stands
 * for the default in every field. */
typedef struct elbow_broadcast_network {
  size_t size;       /* of this struct */
  double latency;    /* s of a process's link; a message passes two. Default: 1e-6 */
  double overhead;   /* s of a process for each message that it sends or receives. Default: 0.5e-6 */
  double bandwidth;  /* B/s of a process's link, in each direction. Default: 10e9 */
  double forwarding; /* s of computation that a process loses for each byte that it forwards; added to the time that a
                        tree takes, for the recipient that forwards most. Default: 0 */
} elbow_broadcast_network;

/* 0 stands for the default in every field but the first. */
typedef struct elbow_broadcast_settings {
  size_t size;         /* of this struct */
  size_t inline_limit; /* bytes, up to 1 GiB; smaller data travel with their announcement. Default: 4096 */
  size_t window;       /* bytes in flight to one process, and to all processes that take them. Default: 131072 */
  size_t pool;         /* bytes for ELBOW_BROADCAST_STORE_FORWARD, and as many for data that come before their receive,
                             of which each root has the same share. The same on all processes. Default: 16 MiB */
  int late;            /* one of the above */
  double watchdog;     /* s without a change after which an operation gets ELBOW_BROADCAST_STALLED. Default: 60 */
  const uint16_t* groups; /* the rack of each process, for trees of two levels; "two" and "auto" have two then */
  const double* speeds; /* of each process's link, in any unit; those half as fast as the fastest, or slower, come last
                           * among recipients of their priority, and forward nothing if others can. NULL: all alike */
  const elbow_broadcast_network* network; /* with it, sends of which no way is given go by "auto"; it is copied */
} elbow_broadcast_settings;

/* `tree`: "flat", "chain", "binary", "binomial", "4-ary", "8-nomial", with "two-level-", "delegate-" or "split3-" before it,
 * "two" (two trees at once, each with every other segment), or "auto" (the tree of the least predicted time; the first send
 * of a size and number of recipients computes it, in milliseconds, and later ones look it up). NULL: "binomial".
 * `segment`: bytes, 1 GiB at most; 0: whole messages, or segments of 1 GiB of larger ones, and for "auto" those that it
 * chooses. */
typedef struct elbow_broadcast_way {
  size_t size; /* of this struct */
  const char* tree;
  size_t segment;
} elbow_broadcast_way;

/* Higher priorities are served first; 0 is the lowest. */
typedef struct elbow_broadcast_recipient {
  int32_t rank;
  int32_t priority;
} elbow_broadcast_recipient;

enum {
  ELBOW_BROADCAST_RECEIVED = 0, /* the data may be read */
  ELBOW_BROADCAST_RELEASED = 1, /* the buffer may be written; the operation is over */
  ELBOW_BROADCAST_FAILED = 2,   /* the operation is over; `text` says why */
  ELBOW_BROADCAST_LOST = 3,     /* process `rank` is gone; the operation goes on with the others. Of a receive: its root
                                   is gone, and the data will come only if others have them */
  ELBOW_BROADCAST_STALLED = 4 /* nothing has moved for the watchdog's time; `text` names what is waited for. Told again
                                   after as long a time; once where the others have not begun: no data were announced, or
                                   no recipient has a receive */
};
typedef struct elbow_broadcast_event {
  size_t size; /* of this struct */
  int kind;
  elbow_broadcast_operation operation; /* 0: of no operation of this process */
  int rank;                            /* -1: none */
  const char* text;                    /* valid until this thread's next call of _next; "" without one */
} elbow_broadcast_event;

/* `transport` is copied, and closed by _free, but not where this fails. `settings` may be NULL. EINVAL for settings that
 * contradict each other. Any thread. */
ELBOW_API elbow_broadcast* elbow_broadcast_new(const elbow_broadcast_transport* transport,
                                               const elbow_broadcast_settings* settings);
/* Gives up what is not over, and ends the thread. NULL is allowed. One thread, while no other one uses it. */
ELBOW_API void elbow_broadcast_free(elbow_broadcast* broadcast);

/* Posts a receive of `size` bytes. The first receive of a context, root and tag gets the first data sent with them. EINVAL
 * for a root that is no other process. `data` may be NULL where `size` is 0. Threads: see the top. */
ELBOW_API int elbow_broadcast_receive(elbow_broadcast* broadcast, uint32_t context, int32_t root, int64_t tag,
                                      void* data, size_t size, elbow_broadcast_operation* operation);

/* Sends to each of `count` recipients. `way` may be NULL: "auto" where the settings have a network, else "binomial". EINVAL for
 * processes that are no others or are named twice, negative priorities, no recipient, and a tree that is unknown. After -1,
 * nothing was sent, unless the transport failed. Threads: see the top. */
ELBOW_API int elbow_broadcast_send(elbow_broadcast* broadcast, uint32_t context, int64_t tag, const void* data,
                                   size_t size, const elbow_broadcast_recipient* recipients, size_t count,
                                   const elbow_broadcast_way* way, elbow_broadcast_operation* operation);

/* Does all that can be done now; with the thread, nothing. Threads: see the top. */
ELBOW_API int elbow_broadcast_progress(elbow_broadcast* broadcast);

/* Takes the next event: 1, or 0 where there is none. Without the thread, it makes progress where there is none. Threads: see
 * the top; each event goes to one of them. */
ELBOW_API int elbow_broadcast_next(elbow_broadcast* broadcast, elbow_broadcast_event* event);

/* Returns when the operation has had that event (ELBOW_BROADCAST_RECEIVED or _RELEASED), at once where it had it before. From
 * then on _next does not return this operation's RECEIVED and RELEASED. EINVAL for a number that no operation had. ECOMM where
 * the operation failed, where its root is gone, and where a message came that cannot be read. ETIMEDOUT where the watchdog
 * ended the wait: data that were announced, or segments for recipients that are ready, have not moved for its time; the
 * operation goes on, and may be waited for again. Threads: see the top. */
ELBOW_API int elbow_broadcast_wait(elbow_broadcast* broadcast, elbow_broadcast_operation operation, int kind);

/* A thread makes progress, bound to a core (-1: to none). It sleeps for up to 0.2 ms where nothing happened for long. One
 * thread calls _start and _stop. The transport is used by that thread, and by those that send and
 * receive, one at a time. ENOTSUP where the transport is confined to one thread: MPI with less than MPI_THREAD_SERIALIZED. */
ELBOW_API int elbow_broadcast_start(elbow_broadcast* broadcast, int core);
ELBOW_API int elbow_broadcast_stop(elbow_broadcast* broadcast);

typedef struct elbow_broadcast_counters {
  size_t size;         /* of this struct */
  uint64_t broadcasts; /* sends to several recipients */
  uint64_t sends;      /* to one */
  uint64_t receives;
  uint64_t forwarded; /* bytes sent for other roots */
  uint64_t bypassed;  /* children that this process served for one that had no buffer yet */
  uint64_t stored;    /* messages that waited in the pool */
} elbow_broadcast_counters;
/* Threads: see the top. */
ELBOW_API int elbow_broadcast_count(elbow_broadcast* broadcast, elbow_broadcast_counters* counters);

/* The release of the library that is loaded, as "1.2.3". Any thread. */
ELBOW_API const char* elbow_broadcast_version(void);

/* The calling thread's last failure, as a sentence; "" before the first one. Any thread. */
ELBOW_API const char* elbow_broadcast_error(void);

#ifdef __cplusplus
}
#endif

#endif
