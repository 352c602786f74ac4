/* Bandwidths of computations and communications that run side by side, from a model that was fitted to the machine:
 *
 *     elbowroom fit RUN -o M.json
 *
 * A runtime system loads the model once and then asks at any time, from any thread. All answers are computed while
 * loading; asking is looking up in a table (some ten ns), without locks or allocation. Only computing cores of both
 * sockets of machines with far more than 64 on each are computed when they are asked for (some ten us), as freely, and so
 * are loads (elbow_predict_for_load): messages of any size and direction, any groups of cores, copies of accelerators.
 *
 * Concepts. `n` cores of the first socket and `n_other` of the second one compute on data of NUMA node `comp_node`
 * while messages arrive in NUMA node `comm_node`. Nodes are counted from 0, those of the first socket first; the
 * operating system's numbers are turned into these by elbow_predict_node. Each bandwidth is that of all computing cores
 * together, or of all messages, in MB/s (1e6 B/s), with a 90 % interval: alone, and together with the other side.
 *
 * Errors, sizes of structures, threads: include/elbowroom/README.md (0 or -1, an object or NULL; errno, and
 * elbow_predict_error()). NULL where it is not allowed is EINVAL.
 */
#ifndef ELBOWROOM_PREDICT_H
#define ELBOWROOM_PREDICT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ELBOW_API
#define ELBOW_API __attribute__((visibility("default")))
#endif

/* The version of the file format (schema elbowroom/model) that this library reads; older ones are read for ever. */
#define ELBOW_PREDICT_FORMAT 1

/* A fitted model, immutable once loaded: any number of threads may ask it at once. */
typedef struct elbow_predict_model elbow_predict_model;

/* MB/s, and the 90 % interval around it. Never changes, as arrays are made of it; nor do groups and copies. */
typedef struct elbow_predict_interval {
  double value;
  double low;
  double high;
} elbow_predict_interval;

/* What the prediction rests on; elbow_predict_result.flags is a sum of these. */
enum {
  ELBOW_PREDICT_EXTRAPOLATED =
      1,                      /* other numbers of computing cores than were measured, or data on a socket with none */
  ELBOW_PREDICT_VIRTUAL = 2,  /* the machine is a simulated one */
  ELBOW_PREDICT_REPAIRED = 4, /* threshold model: differs from the published equations, which cannot be so here */
  ELBOW_PREDICT_SAMPLES_ONLY = 8, /* threshold model: the interval was estimated on other placements */
  /* Loads, where no run told of them: */
  ELBOW_PREDICT_SEND_UNKNOWN = 16,    /* sending is taken for receiving */
  ELBOW_PREDICT_BOTH_UNKNOWN = 32,    /* both directions together are taken for receiving */
  ELBOW_PREDICT_THREADS_UNKNOWN = 64, /* what one communication thread drives is taken for the NIC's limit */
  ELBOW_PREDICT_COPIES_UNKNOWN = 128, /* copies are served as messages are */
  ELBOW_PREDICT_NODES_UNKNOWN = 256,  /* cores of one socket on several nodes, or of several kinds */
  /* Cases on an accelerator (elbow_predict_gpu): */
  ELBOW_PREDICT_GPU_MEASURED = 512,        /* the case itself was measured: `kept` is that */
  ELBOW_PREDICT_GPU_FAMILY_UNKNOWN = 1024, /* no such victim beside such a mover was measured */
  ELBOW_PREDICT_GPU_SHAPE_UNKNOWN = 2048,  /* products of another shape were measured */
  ELBOW_PREDICT_GPU_ORDER_UNKNOWN = 4096   /* that the victim starts first was not measured */
};

typedef struct elbow_predict_result {
  size_t size; /* sizeof(elbow_predict_result) */
  elbow_predict_interval comp_alone;
  elbow_predict_interval comm_alone;
  elbow_predict_interval comp_together;
  elbow_predict_interval comm_together;
  unsigned flags;
} elbow_predict_result;

/* `count` cores of `socket` (from 0) compute on data of `node`, at `intensity` flop/B (0: that of the calibration). */
typedef struct elbow_predict_group {
  int socket;
  int node;
  int count;
  double intensity;
} elbow_predict_group;

enum { ELBOW_PREDICT_RECEIVE = 0, ELBOW_PREDICT_SEND = 1, ELBOW_PREDICT_BOTH = 2 };

/* `threads` communication threads exchange messages of `bytes` (0: elbow_predict_machine.message_size) with data in `node`.
 * Of both directions at once bandwidths are those of both together. */
typedef struct elbow_predict_messages {
  size_t size; /* sizeof(elbow_predict_messages) */
  int node;
  int direction;
  size_t bytes;
  int threads;
} elbow_predict_messages;

/* An accelerator copies from or to `node`, and alone it would at `demand` MB/s. */
typedef struct elbow_predict_copy {
  int node;
  double demand;
} elbow_predict_copy;

/* All that goes on at once. Groups may share a socket or a node. */
typedef struct elbow_predict_load {
  size_t size; /* sizeof(elbow_predict_load) */
  const elbow_predict_group* groups;
  size_t group_count;
  const elbow_predict_messages* messages; /* NULL: none */
  const elbow_predict_copy* copies;
  size_t copy_count;
} elbow_predict_load;

/* As elbow_predict_result. `groups` and `copies` are the caller's: as many as the load has, for what each of them gets together
 * with everything; NULL where that is of no interest. comp_alone is the computing cores together, without messages and
 * copies. */
typedef struct elbow_predict_load_result {
  size_t size; /* sizeof(elbow_predict_load_result) */
  elbow_predict_interval comp_alone;
  elbow_predict_interval comm_alone;
  elbow_predict_interval comp_together;
  elbow_predict_interval comm_together;
  unsigned flags;
  elbow_predict_interval* groups;
  elbow_predict_interval* copies;
} elbow_predict_load_result;

/* The machine that the model was fitted to. Strings live as long as the model. */
typedef struct elbow_predict_machine {
  size_t size; /* sizeof(elbow_predict_machine) */
  const char* name;
  const char* model;      /* which model answers: "flow", "robust" or "threshold" */
  int cores_first_socket; /* n may be 0 to this */
  int cores_other;        /* n_other may be 0 to this; 0 where the model knows one socket only */
  int sockets;
  int numa_per_socket;
  int nodes;           /* comp_node and comm_node may be 0 to this less 1 */
  double message_size; /* bytes: the predictions are for messages of this size */
} elbow_predict_machine;

/* Reads a model file. `model` names which of its models is to answer ("flow", "robust", "threshold"); NULL: the best.
 * NULL with errno: what the system says (ENOENT ...), EBADMSG, ENOTSUP, EINVAL, ENOMEM. Takes milliseconds up to a
 * second: do it once, before the work starts. Any thread. */
ELBOW_API elbow_predict_model* elbow_predict_model_load(const char* path, const char* model);

/* The same from the content of a file, `length` bytes at `text` (one process reads, others get it by message).
 * Any thread. */
ELBOW_API elbow_predict_model* elbow_predict_model_parse(const char* text, size_t length, const char* model);

/* The same model for messages of another size than that it was fitted to, with answers of its own; for as many sizes as
 * the program tells apart. NULL with ENOTSUP where only one size was measured, EDOM, EINVAL, ENOMEM. Any thread. */
ELBOW_API elbow_predict_model* elbow_predict_model_at_size(const elbow_predict_model* model, size_t message_size);

/* Frees a model; no thread may use it any more. */
ELBOW_API void elbow_predict_model_free(elbow_predict_model* model);

/* The four bandwidths. -1 with errno: EINVAL (cores or nodes that the machine does not have, NULL), EDOM (the model was
 * fitted without such accesses). Any thread, several at once. */
ELBOW_API int elbow_predict(const elbow_predict_model* model, int n, int n_other, int comp_node, int comm_node,
                            elbow_predict_result* prediction);

/* The same for any load: computed when asked for. -1 with errno: EINVAL (what the machine does not have, NULL), ENOTSUP (the
 * model has no runs for that question), EDOM (it was fitted without such accesses), ENOMEM (up to
 * a dozen groups and copies nothing is allocated). Then `prediction` stays as it is. Any thread, several at once. */
ELBOW_API int elbow_predict_for_load(const elbow_predict_model* model, const elbow_predict_load* load,
                                     elbow_predict_load_result* prediction);

/* What the model was fitted to: check that it is the machine at hand. Any thread, several at once. */
ELBOW_API int elbow_predict_model_machine(const elbow_predict_model* model, elbow_predict_machine* machine);

/* The model's number of the NUMA node that the operating system numbers `os_node` (hwloc: os_index). -1 with EINVAL
 * where it has none. Any thread, several at once. */
ELBOW_API int elbow_predict_node(const elbow_predict_model* model, int os_node);

/* What computes on the accelerator: a BF16 matrix product, a triad in its memory, a chain of small kernels. */
enum { ELBOW_PREDICT_GPU_GEMM = 0, ELBOW_PREDICT_GPU_TRIAD = 1, ELBOW_PREDICT_GPU_CHAIN = 2 };

/* What is beside it: a copy engine, SMs that copy, SMs that are held idle, or SMs that the victim was planned without. */
enum {
  ELBOW_PREDICT_GPU_COPY = 0,
  ELBOW_PREDICT_GPU_SM_COPY = 1,
  ELBOW_PREDICT_GPU_SM_IDLE = 2,
  ELBOW_PREDICT_GPU_SM_TARGET = 3
};

/* Where it moves data: host to device, device to host, both at once, inside the device (copy engines); inside the device's
 * memory, to host memory (SMs); NOWHERE of movers that move nothing. */
enum {
  ELBOW_PREDICT_GPU_NOWHERE = 0,
  ELBOW_PREDICT_GPU_H2D = 1,
  ELBOW_PREDICT_GPU_D2H = 2,
  ELBOW_PREDICT_GPU_BOTH = 3,
  ELBOW_PREDICT_GPU_D2D = 4,
  ELBOW_PREDICT_GPU_HBM = 5,
  ELBOW_PREDICT_GPU_HOST = 6
};

/* `sms`: SMs of the mover (0 of copy engines); `node`: NUMA node of the pinned buffer, -1: the only measured one, or none;
 * `victim_first`: the victim starts before the mover; `pace`: the most that the mover moves, MB/s, 0: as fast as it can;
 * `shape`: m, n and k of a product, zeros: the only measured one. */
typedef struct elbow_predict_gpu_case {
  size_t size; /* sizeof(elbow_predict_gpu_case) */
  int victim;
  int mover;
  int direction;
  int sms;
  int node;
  int victim_first;
  double pace;
  int shape[3];
} elbow_predict_gpu_case;

/* What the victim keeps of its rate alone, and that rate (in the unit of the measurement); MB/s of the mover, and what it
 * keeps, zeros where nothing moves. 90 % intervals. */
typedef struct elbow_predict_gpu_result {
  size_t size; /* sizeof(elbow_predict_gpu_result) */
  elbow_predict_interval kept;
  elbow_predict_interval rate;
  elbow_predict_interval mover_alone;
  elbow_predict_interval mover_together;
  elbow_predict_interval mover_kept;
  unsigned flags;
} elbow_predict_gpu_result;

/* The model of an accelerator, immutable once loaded: any number of threads may ask it at once. */
typedef struct elbow_predict_gpu_model elbow_predict_gpu_model;

/* Reads the accelerator of a model file. NULL with errno: what the system says, EBADMSG, ENOTSUP (no accelerator in it, or
 * a newer version), ENOMEM. Any thread. */
ELBOW_API elbow_predict_gpu_model* elbow_predict_gpu_load(const char* path);

/* The same from the content of a file, `length` bytes at `text`. Any thread. */
ELBOW_API elbow_predict_gpu_model* elbow_predict_gpu_parse(const char* text, size_t length);

/* Frees it; no thread may use it any more. */
ELBOW_API void elbow_predict_gpu_free(elbow_predict_gpu_model* gpu);

/* How many SMs it has. Any thread, several at once. */
ELBOW_API int elbow_predict_gpu_sms(const elbow_predict_gpu_model* gpu);

/* What both sides keep, as `elbowroom predict --gpu` says it. -1 with errno: EINVAL (what no such accelerator can have),
 * ENOTSUP (a victim, or a link, that was not measured), EDOM, ENOMEM. Then `prediction` stays as it is. Any thread, several
 * at once. */
ELBOW_API int elbow_predict_gpu(const elbow_predict_gpu_model* gpu, const elbow_predict_gpu_case* asked,
                                elbow_predict_gpu_result* prediction);

/* The calling thread's last failure, as a sentence; "" before the first one. Valid until its next one. Any thread. */
ELBOW_API const char* elbow_predict_error(void);

/* The release of the library that is loaded, as "1.2.3". Any thread. */
ELBOW_API const char* elbow_predict_version(void);

#ifdef __cplusplus
}
#endif

#endif
