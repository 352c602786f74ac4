/* StarPU-MPI's calls over libelbow_broadcast: a program includes this header in place of starpu_mpi.h, links libelbow_starpu_mpi
 * in place of libstarpumpi, and data that several ranks read are broadcast over a tree (Swartvagher 2022, chapter 4).
 *
 *     #include <elbowroom/starpu_mpi.h>
 *     starpu_mpi_init_conf(&argc, &argv, 1, MPI_COMM_WORLD, NULL);
 *     starpu_mpi_data_register(handle, tag, owner);
 *     starpu_mpi_task_insert(MPI_COMM_WORLD, &codelet, STARPU_R, a, STARPU_RW, b, STARPU_PRIORITY, 3, 0);
 *     starpu_mpi_wait_for_all(MPI_COMM_WORLD);
 *     starpu_mpi_shutdown();
 *
 * The calls mean what StarPU's manual says of them. Each is a function of its own (elbow_starpu_mpi_...): a program may be
 * linked with libstarpumpi, too. Data stay StarPU's: they are acquired in main memory before a message and released behind
 * it, so that schedulers, prefetching and device memory work as in any StarPU program. Tasks that read received data start
 * while these are still being forwarded; tasks that write wait until they are forwarded.
 *
 * Differences from StarPU-MPI:
 * - The cache of received data is always on. Data that the owner changes by other means than starpu_mpi_task_insert must be
 *   flushed first (starpu_mpi_cache_flush), as StarPU's manual asks with a cache.
 * - All communicators are the one that was given at the start, or have the same ranks.
 * - No reductions, no STARPU_MPI_PER_NODE, no synchronous sends, no scatter and gather: the compiler says so. Data are sent as
 *   the bytes of their interface: they must have the same size on all ranks.
 * - starpu_mpi_wait_for_all compares the order in which the ranks submitted their tasks.
 * - An error that StarPU-MPI answers with an assertion ends the program by MPI_Abort, after a sentence on stderr.
 *
 * Environment: ELBOW_BROADCAST_TREE (as in elbowroom/broadcast.h; "auto"), ELBOW_BROADCAST_SEGMENT (bytes; 0: whole messages, or
 * what "auto" chooses), ELBOW_BROADCAST_BANDWIDTH (B/s of a rank's link, for "auto"; 10e9), STARPU_MPI_THREAD_CPUID,
 * STARPU_MPI_NOBIND.
 */
#ifndef ELBOWROOM_STARPU_MPI_H
#define ELBOWROOM_STARPU_MPI_H

#ifdef __STARPU_MPI_H__
#error "starpu_mpi.h was included before elbowroom/starpu_mpi.h; include only the latter"
#endif
#define __STARPU_MPI_H__

#include <mpi.h>
#include <starpu.h>
#include <stdint.h>

#include "elbowroom/taskflow.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void* starpu_mpi_req;
typedef int64_t starpu_mpi_tag_t;

#define STARPU_MPI_TAG_UB MPI_TAG_UB

/* The function `name` of this library, by the name that it has in StarPU-MPI. */
#define ELBOW_STARPU_MPI(name) __asm__("elbow_" #name) ELBOW_API

/* The start. `major` and `minor` are those of the StarPU that the program was compiled with; 0, -EINVAL where the library or the
 * loaded StarPU is of another version or MPI allows one thread only, or what starpu_init returns. With `starts_starpu`, StarPU
 * is started with `conf`, and ended by starpu_mpi_shutdown. */
ELBOW_API int elbow_starpu_mpi_start(int* argc, char*** argv, int initialize_mpi, MPI_Comm comm,
                                     struct starpu_conf* conf, int starts_starpu, int major, int minor);

static inline int starpu_mpi_init_conf(int* argc, char*** argv, int initialize_mpi, MPI_Comm comm,
                                       struct starpu_conf* conf) {
  return elbow_starpu_mpi_start(argc, argv, initialize_mpi, comm, conf, 1, STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION);
}

static inline int starpu_mpi_init_comm(int* argc, char*** argv, int initialize_mpi, MPI_Comm comm) {
  return elbow_starpu_mpi_start(argc, argv, initialize_mpi, comm, NULL, 0, STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION);
}

static inline int starpu_mpi_init(int* argc, char*** argv, int initialize_mpi) {
  return starpu_mpi_init_comm(argc, argv, initialize_mpi, MPI_COMM_WORLD);
}

int starpu_mpi_shutdown(void) ELBOW_STARPU_MPI(starpu_mpi_shutdown);
int starpu_mpi_comm_size(MPI_Comm comm, int* size) ELBOW_STARPU_MPI(starpu_mpi_comm_size);
int starpu_mpi_comm_rank(MPI_Comm comm, int* rank) ELBOW_STARPU_MPI(starpu_mpi_comm_rank);
int starpu_mpi_world_rank(void) ELBOW_STARPU_MPI(starpu_mpi_world_rank);
int starpu_mpi_world_size(void) ELBOW_STARPU_MPI(starpu_mpi_world_size);

/* Data. */
void starpu_mpi_data_register_comm(starpu_data_handle_t handle, starpu_mpi_tag_t tag, int rank, MPI_Comm comm)
    ELBOW_STARPU_MPI(starpu_mpi_data_register_comm);
void starpu_mpi_data_set_tag(starpu_data_handle_t handle, starpu_mpi_tag_t tag)
    ELBOW_STARPU_MPI(starpu_mpi_data_set_tag);
void starpu_mpi_data_set_rank_comm(starpu_data_handle_t handle, int rank, MPI_Comm comm)
    ELBOW_STARPU_MPI(starpu_mpi_data_set_rank_comm);
int starpu_mpi_data_get_rank(starpu_data_handle_t handle) ELBOW_STARPU_MPI(starpu_mpi_data_get_rank);
starpu_mpi_tag_t starpu_mpi_data_get_tag(starpu_data_handle_t handle) ELBOW_STARPU_MPI(starpu_mpi_data_get_tag);
void starpu_mpi_data_migrate(MPI_Comm comm, starpu_data_handle_t handle, int new_rank)
    ELBOW_STARPU_MPI(starpu_mpi_data_migrate);
#define starpu_mpi_data_register(handle, tag, rank) starpu_mpi_data_register_comm(handle, tag, rank, MPI_COMM_WORLD)
#define starpu_mpi_data_set_rank(handle, rank) starpu_mpi_data_set_rank_comm(handle, rank, MPI_COMM_WORLD)
#define starpu_data_set_tag starpu_mpi_data_set_tag
#define starpu_data_set_rank starpu_mpi_data_set_rank
#define starpu_data_get_rank starpu_mpi_data_get_rank
#define starpu_data_get_tag starpu_mpi_data_get_tag

/* StarPU's own, which wait for the messages of the data. */
ELBOW_API void elbow_starpu_mpi_data_unregister(starpu_data_handle_t handle);
ELBOW_API void elbow_starpu_mpi_data_unregister_no_coherency(starpu_data_handle_t handle);
ELBOW_API void elbow_starpu_mpi_data_unregister_submit(starpu_data_handle_t handle);
#define starpu_data_unregister elbow_starpu_mpi_data_unregister
#define starpu_data_unregister_no_coherency elbow_starpu_mpi_data_unregister_no_coherency
#define starpu_data_unregister_submit elbow_starpu_mpi_data_unregister_submit

void starpu_mpi_cache_flush(MPI_Comm comm, starpu_data_handle_t handle) ELBOW_STARPU_MPI(starpu_mpi_cache_flush);
void starpu_mpi_cache_flush_all_data(MPI_Comm comm) ELBOW_STARPU_MPI(starpu_mpi_cache_flush_all_data);
int starpu_mpi_cache_is_enabled(void) ELBOW_STARPU_MPI(starpu_mpi_cache_is_enabled);
int starpu_mpi_cached_receive(starpu_data_handle_t handle) ELBOW_STARPU_MPI(starpu_mpi_cached_receive);
int starpu_mpi_cached_send(starpu_data_handle_t handle, int dest) ELBOW_STARPU_MPI(starpu_mpi_cached_send);

/* Tasks. */
int starpu_mpi_task_insert(MPI_Comm comm, struct starpu_codelet* codelet, ...) ELBOW_STARPU_MPI(starpu_mpi_task_insert);
struct starpu_task* starpu_mpi_task_build(MPI_Comm comm, struct starpu_codelet* codelet, ...)
    ELBOW_STARPU_MPI(starpu_mpi_task_build);
int starpu_mpi_task_post_build(MPI_Comm comm, struct starpu_codelet* codelet, ...)
    ELBOW_STARPU_MPI(starpu_mpi_task_post_build);
#define starpu_mpi_insert_task starpu_mpi_task_insert
void starpu_mpi_get_data_on_node(MPI_Comm comm, starpu_data_handle_t handle, int node)
    ELBOW_STARPU_MPI(starpu_mpi_get_data_on_node);
void starpu_mpi_get_data_on_node_detached(MPI_Comm comm, starpu_data_handle_t handle, int node, void (*callback)(void*),
                                          void* arg) ELBOW_STARPU_MPI(starpu_mpi_get_data_on_node_detached);
void starpu_mpi_get_data_on_all_nodes_detached(MPI_Comm comm, starpu_data_handle_t handle)
    ELBOW_STARPU_MPI(starpu_mpi_get_data_on_all_nodes_detached);

/* Messages that the program sends itself: to one rank each. */
int starpu_mpi_isend_prio(starpu_data_handle_t handle, starpu_mpi_req* req, int dest, starpu_mpi_tag_t tag, int prio,
                          MPI_Comm comm) ELBOW_STARPU_MPI(starpu_mpi_isend_prio);
int starpu_mpi_irecv(starpu_data_handle_t handle, starpu_mpi_req* req, int source, starpu_mpi_tag_t tag, MPI_Comm comm)
    ELBOW_STARPU_MPI(starpu_mpi_irecv);
int starpu_mpi_send_prio(starpu_data_handle_t handle, int dest, starpu_mpi_tag_t tag, int prio, MPI_Comm comm)
    ELBOW_STARPU_MPI(starpu_mpi_send_prio);
int starpu_mpi_recv(starpu_data_handle_t handle, int source, starpu_mpi_tag_t tag, MPI_Comm comm, MPI_Status* status)
    ELBOW_STARPU_MPI(starpu_mpi_recv);
int starpu_mpi_isend_detached_prio(starpu_data_handle_t handle, int dest, starpu_mpi_tag_t tag, int prio, MPI_Comm comm,
                                   void (*callback)(void*), void* arg) ELBOW_STARPU_MPI(starpu_mpi_isend_detached_prio);
int starpu_mpi_irecv_detached(starpu_data_handle_t handle, int source, starpu_mpi_tag_t tag, MPI_Comm comm,
                              void (*callback)(void*), void* arg) ELBOW_STARPU_MPI(starpu_mpi_irecv_detached);
int starpu_mpi_isend_detached_unlock_tag_prio(starpu_data_handle_t handle, int dest, starpu_mpi_tag_t tag, int prio,
                                              MPI_Comm comm, starpu_tag_t unlocked)
    ELBOW_STARPU_MPI(starpu_mpi_isend_detached_unlock_tag_prio);
int starpu_mpi_irecv_detached_unlock_tag(starpu_data_handle_t handle, int source, starpu_mpi_tag_t tag, MPI_Comm comm,
                                         starpu_tag_t unlocked) ELBOW_STARPU_MPI(starpu_mpi_irecv_detached_unlock_tag);
int starpu_mpi_wait(starpu_mpi_req* req, MPI_Status* status) ELBOW_STARPU_MPI(starpu_mpi_wait);
int starpu_mpi_test(starpu_mpi_req* req, int* flag, MPI_Status* status) ELBOW_STARPU_MPI(starpu_mpi_test);
#define starpu_mpi_isend(handle, req, dest, tag, comm) starpu_mpi_isend_prio(handle, req, dest, tag, 0, comm)
#define starpu_mpi_send(handle, dest, tag, comm) starpu_mpi_send_prio(handle, dest, tag, 0, comm)
#define starpu_mpi_isend_detached(handle, dest, tag, comm, callback, arg) \
  starpu_mpi_isend_detached_prio(handle, dest, tag, 0, comm, callback, arg)
#define starpu_mpi_isend_detached_unlock_tag(handle, dest, tag, comm, unlocked) \
  starpu_mpi_isend_detached_unlock_tag_prio(handle, dest, tag, 0, comm, unlocked)

int starpu_mpi_barrier(MPI_Comm comm) ELBOW_STARPU_MPI(starpu_mpi_barrier);
int starpu_mpi_wait_for_all(MPI_Comm comm) ELBOW_STARPU_MPI(starpu_mpi_wait_for_all);

/* What this rank sent so far by what it found in the graph, as elbow_taskflow_count: 0, or -1 with errno EINVAL where
 * `counters` is NULL or its size is wrong. */
ELBOW_API int elbow_starpu_mpi_count(elbow_taskflow_counters* counters);

/* The release of the library that is loaded, as "1.2.3". */
ELBOW_API const char* elbow_starpu_mpi_version(void);

/* What this library has not. */
#define ELBOW_STARPU_MPI_LACKS(name, instead) \
  int name(MPI_Comm comm, ...) __attribute__((error("elbowroom/starpu_mpi.h has no " #name "; " instead)))
#define ELBOW_STARPU_MPI_OTHER "include starpu_mpi.h and link libstarpumpi"
ELBOW_STARPU_MPI_LACKS(starpu_mpi_redux_data, ELBOW_STARPU_MPI_OTHER);
ELBOW_STARPU_MPI_LACKS(starpu_mpi_redux_data_prio, ELBOW_STARPU_MPI_OTHER);
ELBOW_STARPU_MPI_LACKS(starpu_mpi_scatter_detached, ELBOW_STARPU_MPI_OTHER);
ELBOW_STARPU_MPI_LACKS(starpu_mpi_gather_detached, ELBOW_STARPU_MPI_OTHER);
#undef ELBOW_STARPU_MPI_LACKS
#undef ELBOW_STARPU_MPI_OTHER

#ifdef __cplusplus
}
#endif

#endif
