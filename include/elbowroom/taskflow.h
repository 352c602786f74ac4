/* A task graph over several processes: every process submits the same tasks in the same order, and executes its own. Messages
 * follow from the accesses, and data that several processes read are sent by broadcasts over trees (elbowroom/broadcast.h).
 *
 *     elbow_taskflow* flow = elbow_taskflow_new(broadcast, rank, size, NULL);
 *     elbow_taskflow_register(flow, memory, size, owner, &tile);             on all processes; memory on the owner
 *     elbow_taskflow_use uses[] = {{a, ELBOW_TASKFLOW_READ}, {b, ELBOW_TASKFLOW_READ_WRITE}};
 *     elbow_taskflow_submit(flow, kernel, &argument, sizeof argument, uses, 2, priority, ELBOW_TASKFLOW_ANYWHERE);
 *     elbow_taskflow_wait(flow);
 *
 * A task starts when what it reads is here, and when what it writes is no longer read or sent here. Reads of data that are
 * known before the data are ready become one broadcast (Swartvagher 2022, section 4.2.1); a process whose read is submitted
 * later gets a message of its own. After a write on another process, the data go back to their owner.
 *
 * Tasks run in elbow_taskflow_submit and _wait, higher priorities first; or on an executor's threads, for instance StarPU's
 * (elbowroom/taskflow_starpu.h). The elbow_broadcast is the flow's alone: it takes its events.
 *
 * The flow goes on in _submit, _progress and _wait only: between these calls no task is given to an executor, and no data
 * leave (those that are on their way arrive if elbow_broadcast_start was called). A thread that has submitted its tasks and
 * does other work calls _progress from time to time. With an executor, ready data wait for further readers until 500 more
 * tasks are submitted or the data are written again; the next _progress or _wait sends them.
 *
 * Threads: one thread at a time uses an elbow_taskflow. _version and _error may be called by any thread. Structs that are
 * passed by pointer begin with their size, as in elbowroom/broadcast.h. NULL is EINVAL, unless stated. After a failure other
 * than EINVAL, the flow cannot go on: its calls fail again with that sentence.
 *
 * Errors: include/elbowroom/README.md (0 or -1, an object or NULL; errno, and elbow_taskflow_error()).
 */
#ifndef ELBOWROOM_TASKFLOW_H
#define ELBOWROOM_TASKFLOW_H

#include <stddef.h>
#include <stdint.h>

#include "elbowroom/broadcast.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct elbow_taskflow elbow_taskflow;
typedef uint32_t elbow_taskflow_data;

enum { ELBOW_TASKFLOW_READ = 1, ELBOW_TASKFLOW_WRITE = 2, ELBOW_TASKFLOW_READ_WRITE = 3 };
typedef struct elbow_taskflow_use {
  elbow_taskflow_data data;
  int mode;
} elbow_taskflow_use;

/* Executes on the owner of the last data that the task writes. */
enum { ELBOW_TASKFLOW_ANYWHERE = -1 };

/* `buffers` in the order of the uses. */
typedef void (*elbow_taskflow_kernel)(void* const* buffers, const void* argument);

/* Data that a runtime keeps where its tasks need them, in other memory than the program's, too. `add` takes over the data at
 * `memory` and returns a handle, or NULL where it cannot. `run` calls `body(argument, buffers)` once with the addresses at which
 * the handles' data are, and then `over(argument)`, when the runtime no longer uses them; modes are ELBOW_TASKFLOW_READ ... .
 * `acquire` returns when the data are at `memory` and tasks of other modes do not have them, until `release`; no task has
 * them that would wait for this thread. `remove` gives them up; with `home`, they are at `memory` afterwards. Functions that
 * return a number return 0, or -1 where they cannot. All are called by the thread that uses the flow. */
typedef struct elbow_taskflow_handles {
  size_t size; /* of this struct */
  void* (*add)(void* state, void* memory, size_t size);
  void (*remove)(void* state, void* handle, int home);
  int (*run)(void* state, int priority, void (*body)(void* argument, void* const* buffers),
             void (*over)(void* argument), void* argument, void* const* handles, const int* modes, size_t count);
  int (*acquire)(void* state, void* handle, int mode);
  void (*release)(void* state, void* handle);
} elbow_taskflow_handles;

/* Runs tasks on threads of its own. `run` calls `body(argument)` once, on any thread and now or later; 0, or -1 where it
 * cannot. It may itself be called by the thread that uses the flow only. `state` is theirs. */
typedef struct elbow_taskflow_executor {
  size_t size; /* of this struct */
  void* state;
  int (*run)(void* state, int priority, void (*body)(void* argument), void* argument);
  const elbow_taskflow_handles*
      handles; /* NULL: tasks use the flow's memory; else `run` is not called. Must live as long */
} elbow_taskflow_executor;

/* 0 stands for the default in every field but the first. */
typedef struct elbow_taskflow_settings {
  size_t size;                             /* of this struct */
  const elbow_broadcast_way* way;          /* of the broadcasts; it is copied */
  const elbow_taskflow_executor* executor; /* NULL: in _submit and _wait; it is copied */
  size_t window;      /* tasks of this process that may be under way when another one is submitted; 0: no limit. Where
                         nothing else can go on, more are submitted. */
  int point_to_point; /* 1: each recipient gets a message of its own */
  int wait_released;  /* 1: readers start at RELEASED, not at RECEIVED (thesis, section 4.3.4) */
  /* Called by the thread that uses the flow where nothing has moved for the broadcast's watchdog, with a sentence that names
   * the processes that are waited for. They may compute: a flow never fails for that. NULL: nobody is told. */
  void (*stalled)(void* state, const char* text);
  void* stalled_state;
  /* Not in the first release. 1: with an executor, data are sent as soon as they are ready (thesis, section 4.2.1). */
  int send_at_once;
} elbow_taskflow_settings;

ELBOW_API elbow_taskflow* elbow_taskflow_new(elbow_broadcast* broadcast, int rank, int size,
                                             const elbow_taskflow_settings* settings);
/* Not while tasks run. NULL is allowed. */
ELBOW_API void elbow_taskflow_free(elbow_taskflow* flow);

/* Data of `size` bytes at `memory` on process `owner`; elsewhere, `memory` is not used. They are numbered from 0 on, and
 * registered by all processes in the same order. EINVAL for an owner that does not exist, and without memory on it. */
ELBOW_API int elbow_taskflow_register(elbow_taskflow* flow, void* memory, size_t size, int owner,
                                      elbow_taskflow_data* data);

/* The argument is copied. EINVAL for data that are unknown, flushed, or named twice, modes that are none, a process that
 * does not exist, negative priorities, and ELBOW_TASKFLOW_ANYWHERE without a write. */
ELBOW_API int elbow_taskflow_submit(elbow_taskflow* flow, elbow_taskflow_kernel kernel, const void* argument,
                                    size_t size, const elbow_taskflow_use* uses, size_t count, int priority, int rank);

/* Announces how many processes will read the data as they are after the last submitted write: they are sent when all these
 * are known, at the next write, when the window is full, or in _progress and _wait. Without it they are sent when they are
 * ready. */
ELBOW_API int elbow_taskflow_expect(elbow_taskflow* flow, elbow_taskflow_data data, size_t recipients);

/* Only the owner reads the data until they are written again: other processes free their copies. */
ELBOW_API int elbow_taskflow_flush(elbow_taskflow* flow, elbow_taskflow_data data);

/* Sends ready data that wait for further readers, makes progress without waiting, and runs at most one task where there is no
 * executor. */
ELBOW_API int elbow_taskflow_progress(elbow_taskflow* flow);

/* Returns when all tasks of this process are over, and nothing of it is on its way. ECOMM where a message failed, or a
 * process is gone. Tasks may take as long as they like, here and elsewhere (`stalled` in the settings). */
ELBOW_API int elbow_taskflow_wait(elbow_taskflow* flow);

/* Of this process; sums over all processes are those of the graph. */
typedef struct elbow_taskflow_counters {
  size_t size; /* of this struct */
  uint64_t tasks;
  uint64_t data;       /* versions of data that other processes read */
  uint64_t broadcasts; /* versions that several others read */
  uint64_t complete;   /* of these, sent to all recipients at once */
  uint64_t late;       /* recipients that were known only after their data were sent */
  uint64_t messages;   /* that would be needed without broadcasts */
  uint64_t most;       /* recipients of one version */
} elbow_taskflow_counters;
ELBOW_API int elbow_taskflow_count(elbow_taskflow* flow, elbow_taskflow_counters* counters);

/* The release of the library that is loaded, as "1.2.3". */
ELBOW_API const char* elbow_taskflow_version(void);

/* The calling thread's last failure, as a sentence; "" before the first one. */
ELBOW_API const char* elbow_taskflow_error(void);

#ifdef __cplusplus
}
#endif

#endif
