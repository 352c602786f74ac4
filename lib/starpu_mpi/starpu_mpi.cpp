#include "elbowroom/starpu_mpi.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "c_interface.hpp"
#include "job.hpp"
#include "node_start.hpp"

// In this file, StarPU's own.
#undef starpu_data_unregister
#undef starpu_data_unregister_no_coherency
#undef starpu_data_unregister_submit

namespace {

using namespace elbowroom::starpu_mpi;
using elbowroom::taskflow::Recipients;
namespace c = elbowroom::c_interface;

std::unique_ptr<Job> running;

Job& job() {
  if (!running) {
    std::fprintf(stderr, "elbowroom: a call of StarPU-MPI before starpu_mpi_init_conf, or after starpu_mpi_shutdown\n");
    std::abort();
  }
  return *running;
}

Job& job(MPI_Comm communicator) {
  Job& here = job();
  here.check(communicator);
  return here;
}

int refuse(const std::string& sentence) {
  std::fprintf(stderr, "elbowroom: %s\n", sentence.c_str());
  return -EINVAL;
}

std::string version_text(int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); }

bool moves(const starpu_data_descr& data) { return (data.mode & STARPU_SCRATCH) == 0; }
bool writes(const starpu_data_descr& data) { return moves(data) && (data.mode & STARPU_W) != 0; }
bool reads(const starpu_data_descr& data) { return moves(data) && (data.mode & STARPU_R) != 0; }

// A task as all ranks see it.
struct Submission {
  Arguments arguments;
  std::vector<Data*> data;  // by buffer; NULL where nothing is moved
  int node = kNone;
};

// The rank that owns most bytes that the task reads, as StarPU-MPI's only policy.
int most_read(const Submission& task) {
  std::map<int, std::size_t> bytes;
  for (std::size_t i = 0; i < task.data.size(); ++i) {
    if (task.data[i] != nullptr && reads(task.arguments.data[i])) {
      bytes[task.data[i]->owner] += starpu_data_get_size(task.arguments.data[i].handle);
    }
  }
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& one, const auto& other) { return one.second < other.second; });
  return most == bytes.end() ? kNone : most->first;
}

int node_of(const Submission& task) {
  if (task.arguments.node) return *task.arguments.node;
  if (task.arguments.on_data != nullptr)
    return job().registered(task.arguments.on_data, "STARPU_EXECUTE_ON_DATA").owner;
  int node = kNone;
  for (std::size_t i = 0; i < task.data.size(); ++i) {
    if (task.data[i] == nullptr || !writes(task.arguments.data[i])) continue;
    if (node != kNone && node != task.data[i]->owner) return most_read(task);
    node = task.data[i]->owner;
  }
  return node == kNone ? most_read(task) : node;
}

// False where data that the task writes are NULL here: the program knows that this rank has no part in it.
bool take(Submission& task, const starpu_codelet& codelet, va_list list) {
  task.arguments = parse(codelet, list);
  const char* const name = codelet.name != nullptr ? codelet.name : "a task";
  for (const starpu_data_descr& data : task.arguments.data) {
    if (data.handle == nullptr && writes(data)) return false;
    if ((data.mode & STARPU_REDUX) != 0) {
      throw std::invalid_argument("STARPU_REDUX of " + std::string(name) + ": is not supported; include starpu_mpi.h");
    }
    task.data.push_back(data.handle == nullptr || !moves(data) ? nullptr : &job().registered(data.handle, name));
  }
  task.node = node_of(task);
  if (task.node < 0 || task.node >= job().messages.size()) {
    throw std::invalid_argument("node " + std::to_string(task.node) + " of " + name +
                                ": is not a rank; the task has no data, or STARPU_EXECUTE_ON_NODE is wrong");
  }
  return true;
}

std::uint64_t hash_of(const Submission& task, const starpu_codelet& codelet) {
  std::uint64_t hash = hashed(static_cast<std::uint64_t>(task.node) + 1, codelet.name);
  for (std::size_t i = 0; i < task.data.size(); ++i) {
    if (task.data[i] == nullptr) continue;
    hash = hashed(hash, static_cast<std::uint64_t>(task.data[i]->tag));
    hash = hashed(hash, static_cast<std::uint64_t>(task.arguments.data[i].mode));
  }
  return hash;
}

// The messages before a task, and on the rank that executes it the task.
starpu_task* build(const Submission& task, starpu_codelet& codelet) {
  Job& here = job();
  const bool own = task.node == here.rank();
  here.order.task(hash_of(task, codelet), codelet.name);
  here.messages.count_submission(own);
  for (std::size_t i = 0; i < task.data.size(); ++i) {
    const starpu_data_descr& data = task.arguments.data[i];
    if (own && data.handle == nullptr) {
      throw std::invalid_argument("buffer " + std::to_string(i) + " of " +
                                  (codelet.name != nullptr ? codelet.name : "a task") +
                                  ": is NULL on the rank that executes it; register it");
    }
    if (task.data[i] != nullptr && reads(data)) {
      here.fetch(data.handle, *task.data[i], task.node, task.arguments.priority);
    }
  }
  return own ? make_task(codelet, task.arguments) : nullptr;
}

void note_writes(const Submission& task) {
  for (std::size_t i = 0; i < task.data.size(); ++i) {
    if (task.data[i] == nullptr || !writes(task.arguments.data[i])) continue;
    job().note_write(task.arguments.data[i].handle, *task.data[i], task.node, task.arguments.priority);
  }
}

// Calls `use` with the task that the list describes: its result, or -EINVAL where this rank has no part in it. What cannot be
// done ends the job: the other ranks would wait.
template <typename Use>
int with_task(MPI_Comm comm, starpu_codelet* codelet, va_list list, const Use& use) {
  Job& here = job(comm);
  try {
    if (codelet == nullptr) throw std::invalid_argument("codelet: is NULL");
    Submission task;
    return take(task, *codelet, list) ? use(task) : -EINVAL;
  } catch (const std::exception& error) {
    here.messages.fail(error.what());
  }
}

Request* new_request(int peer, std::int64_t tag, starpu_mpi_req* req) {
  auto* const request = new Request{peer, tag};
  *req = request;
  return request;
}

void set_status(const Request& request, MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = request.peer;
  status->MPI_TAG = static_cast<int>(request.tag);
  status->MPI_ERROR = MPI_SUCCESS;
}

std::function<void()> calling(void (*callback)(void*), void* arg) {
  if (callback == nullptr) return {};
  return [callback, arg] { callback(arg); };
}

void send(MPI_Comm comm, starpu_data_handle_t handle, int dest, starpu_mpi_tag_t tag, int prio,
          std::function<void()> over) {
  job(comm).messages.send(handle, {Kind::kProgram, tag}, dest, prio, std::move(over));
}

void receive(MPI_Comm comm, starpu_data_handle_t handle, int source, starpu_mpi_tag_t tag,
             std::function<void()> received) {
  job(comm).messages.receive(handle, {Kind::kProgram, tag}, source, std::move(received));
}

// Where the thread of messages runs: where the environment says, else on a core that StarPU has left for it.
int chosen_cpu(bool starts_starpu) {
  const char* const cpu = std::getenv("STARPU_MPI_THREAD_CPUID");
  if (cpu != nullptr && std::atoi(cpu) >= 0) return std::atoi(cpu);
  const char* const unbound = std::getenv("STARPU_MPI_NOBIND");
  if (!starts_starpu || (unbound != nullptr && std::atoi(unbound) > 0)) return kNone;
  return static_cast<int>(starpu_get_next_bindid(STARPU_THREAD_ACTIVE, nullptr, 0));
}

int start_starpu(starpu_conf* conf) {
  starpu_conf own;
  if (conf == nullptr) {
    starpu_conf_init(&own);
    conf = &own;
  }
  const char* const unbound = std::getenv("STARPU_MPI_NOBIND");
  if (unbound == nullptr || std::atoi(unbound) <= 0) ++conf->reserve_ncpus;
  return starpu_init(conf);
}

}  // namespace

extern "C" {

int elbow_starpu_mpi_start(int* argc, char*** argv, int initialize_mpi, MPI_Comm comm, starpu_conf* conf,
                           int starts_starpu, int major, int minor) {
  int loaded_major = 0, loaded_minor = 0, release = 0;
  starpu_get_version(&loaded_major, &loaded_minor, &release);
  const std::string loaded = version_text(loaded_major, loaded_minor);
  const std::string own = version_text(STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION);
  if (running) return refuse("starpu_mpi_init_conf: was called before; call starpu_mpi_shutdown first");
  if (version_text(major, minor) != loaded || own != loaded) {
    return refuse("StarPU " + loaded + " is loaded, but the program was compiled with " + version_text(major, minor) +
                  " and libelbow_starpu_mpi with " + own + "; compile both with the version that is loaded");
  }
  int initialized = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  if (initialize_mpi != 0 && initialized == 0) {
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
  } else if (initialized == 0) {
    return refuse("MPI: is not initialized; call MPI_Init_thread first, or give initialize_mpi 1");
  }
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED) {
    return refuse("MPI: allows one thread only; ask MPI_Init_thread for MPI_THREAD_MULTIPLE, or give initialize_mpi 1");
  }
  if (starts_starpu != 0) {
    const int failed = elbowroom::start_on_nodes(comm, [conf] { return start_starpu(conf); });
    if (failed != 0) return failed;
  }
  running = std::make_unique<Job>(comm, chosen_cpu(starts_starpu != 0), starts_starpu != 0,
                                  initialize_mpi != 0 && initialized == 0);
  return 0;
}

int starpu_mpi_shutdown(void) {
  job().wait_for_all();
  const bool ends_starpu = job().ends_starpu, ends_mpi = job().ends_mpi;
  running.reset();
  if (ends_starpu) starpu_shutdown();
  if (ends_mpi) MPI_Finalize();
  return 0;
}

int starpu_mpi_comm_size(MPI_Comm comm, int* size) { return MPI_Comm_size(comm, size) == MPI_SUCCESS ? 0 : -EINVAL; }
int starpu_mpi_comm_rank(MPI_Comm comm, int* rank) { return MPI_Comm_rank(comm, rank) == MPI_SUCCESS ? 0 : -EINVAL; }

int starpu_mpi_world_rank(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int starpu_mpi_world_size(void) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

void starpu_mpi_data_register_comm(starpu_data_handle_t handle, starpu_mpi_tag_t tag, int rank, MPI_Comm comm) {
  job(comm).forget(handle);  // one that had this address before
  job().noted(handle).tag = tag;
  job().set_owner(handle, rank);
}

void starpu_mpi_data_set_tag(starpu_data_handle_t handle, starpu_mpi_tag_t tag) { job().noted(handle).tag = tag; }

void starpu_mpi_data_set_rank_comm(starpu_data_handle_t handle, int rank, MPI_Comm comm) {
  job(comm).set_owner(handle, rank);
}

int starpu_mpi_data_get_rank(starpu_data_handle_t handle) { return job().noted(handle).owner; }
starpu_mpi_tag_t starpu_mpi_data_get_tag(starpu_data_handle_t handle) { return job().noted(handle).tag; }

void starpu_mpi_data_migrate(MPI_Comm comm, starpu_data_handle_t handle, int new_rank) {
  Job& here = job(comm);
  Data& data = here.registered(handle, "starpu_mpi_data_migrate");
  here.fetch(handle, data, new_rank, 0);
  if (new_rank == here.rank()) data.here = false;  // its own from now on
  here.flush(handle, data);
  here.set_owner(handle, new_rank);
}

void elbow_starpu_mpi_data_unregister(starpu_data_handle_t handle) {
  if (running) running->forget(handle);
  starpu_data_unregister(handle);
}

void elbow_starpu_mpi_data_unregister_no_coherency(starpu_data_handle_t handle) {
  if (running) running->forget(handle);
  starpu_data_unregister_no_coherency(handle);
}

void elbow_starpu_mpi_data_unregister_submit(starpu_data_handle_t handle) {
  if (running) running->forget(handle);
  starpu_data_unregister_submit(handle);
}

void starpu_mpi_cache_flush(MPI_Comm comm, starpu_data_handle_t handle) {
  job(comm).flush(handle, job().registered(handle, "starpu_mpi_cache_flush"));
}

void starpu_mpi_cache_flush_all_data(MPI_Comm comm) { job(comm).flush_all(); }

int starpu_mpi_cache_is_enabled(void) { return 1; }

int starpu_mpi_cached_receive(starpu_data_handle_t handle) { return job().noted(handle).here ? 1 : 0; }

int starpu_mpi_cached_send(starpu_data_handle_t handle, int dest) {
  const VersionPtr& version = job().noted(handle).version;
  if (!version || dest < 0) return 0;
  const std::vector<bool>& holders = version->recipients.holders;
  const auto place = static_cast<std::size_t>(dest);
  return place < holders.size() && holders[place] ? 1 : 0;
}

int starpu_mpi_task_insert(MPI_Comm comm, starpu_codelet* codelet, ...) {
  va_list list;
  va_start(list, codelet);
  const int result = with_task(comm, codelet, list, [codelet](const Submission& task) {
    starpu_task* const own = build(task, *codelet);
    const int failed = own == nullptr ? 0 : starpu_task_submit(own);
    if (failed != 0) throw std::runtime_error("starpu_task_submit: fails with " + std::to_string(failed));
    note_writes(task);
    return 0;
  });
  va_end(list);
  return result;
}

starpu_task* starpu_mpi_task_build(MPI_Comm comm, starpu_codelet* codelet, ...) {
  va_list list;
  va_start(list, codelet);
  starpu_task* own = nullptr;
  with_task(comm, codelet, list, [codelet, &own](const Submission& task) {
    own = build(task, *codelet);
    return 0;
  });
  va_end(list);
  return own;
}

int starpu_mpi_task_post_build(MPI_Comm comm, starpu_codelet* codelet, ...) {
  va_list list;
  va_start(list, codelet);
  const int result = with_task(comm, codelet, list, [](const Submission& task) {
    note_writes(task);
    return 0;
  });
  va_end(list);
  return result;
}

void starpu_mpi_get_data_on_node_detached(MPI_Comm comm, starpu_data_handle_t handle, int node, void (*callback)(void*),
                                          void* arg) {
  Job& here = job(comm);
  Data& data = here.registered(handle, "starpu_mpi_get_data_on_node");
  const bool there = here.fetch(handle, data, node, 0, calling(callback, arg));
  if (there && node == here.rank() && callback != nullptr) callback(arg);
}

void starpu_mpi_get_data_on_node(MPI_Comm comm, starpu_data_handle_t handle, int node) {
  Job& here = job(comm);
  Request request{node, 0};
  const bool there = here.fetch(handle, here.registered(handle, "starpu_mpi_get_data_on_node"), node, 0,
                                [&] { here.complete(&request); });
  here.messages.close_all();
  if (!there) here.wait(&request);
}

void starpu_mpi_get_data_on_all_nodes_detached(MPI_Comm comm, starpu_data_handle_t handle) {
  for (int node = 0; node < job(comm).messages.size(); ++node) {
    starpu_mpi_get_data_on_node_detached(comm, handle, node, nullptr, nullptr);
  }
}

int starpu_mpi_isend_prio(starpu_data_handle_t handle, starpu_mpi_req* req, int dest, starpu_mpi_tag_t tag, int prio,
                          MPI_Comm comm) {
  Request* const request = new_request(dest, tag, req);
  send(comm, handle, dest, tag, prio, [request] { job().complete(request); });
  return 0;
}

int starpu_mpi_irecv(starpu_data_handle_t handle, starpu_mpi_req* req, int source, starpu_mpi_tag_t tag,
                     MPI_Comm comm) {
  Request* const request = new_request(source, tag, req);
  receive(comm, handle, source, tag, [request] { job().complete(request); });
  return 0;
}

int starpu_mpi_wait(starpu_mpi_req* req, MPI_Status* status) {
  const std::unique_ptr<Request> request(static_cast<Request*>(*req));
  *req = nullptr;
  if (!request) return -EINVAL;
  job().wait(request.get());
  set_status(*request, status);
  return 0;
}

int starpu_mpi_test(starpu_mpi_req* req, int* flag, MPI_Status* status) {
  if (*req == nullptr) return -EINVAL;
  *flag = job().completed(static_cast<Request*>(*req)) ? 1 : 0;
  return *flag != 0 ? starpu_mpi_wait(req, status) : 0;
}

int starpu_mpi_send_prio(starpu_data_handle_t handle, int dest, starpu_mpi_tag_t tag, int prio, MPI_Comm comm) {
  starpu_mpi_req req = nullptr;
  starpu_mpi_isend_prio(handle, &req, dest, tag, prio, comm);
  return starpu_mpi_wait(&req, MPI_STATUS_IGNORE);
}

int starpu_mpi_recv(starpu_data_handle_t handle, int source, starpu_mpi_tag_t tag, MPI_Comm comm, MPI_Status* status) {
  starpu_mpi_req req = nullptr;
  starpu_mpi_irecv(handle, &req, source, tag, comm);
  return starpu_mpi_wait(&req, status);
}

int starpu_mpi_isend_detached_prio(starpu_data_handle_t handle, int dest, starpu_mpi_tag_t tag, int prio, MPI_Comm comm,
                                   void (*callback)(void*), void* arg) {
  send(comm, handle, dest, tag, prio, calling(callback, arg));
  return 0;
}

int starpu_mpi_irecv_detached(starpu_data_handle_t handle, int source, starpu_mpi_tag_t tag, MPI_Comm comm,
                              void (*callback)(void*), void* arg) {
  receive(comm, handle, source, tag, calling(callback, arg));
  return 0;
}

int starpu_mpi_isend_detached_unlock_tag_prio(starpu_data_handle_t handle, int dest, starpu_mpi_tag_t tag, int prio,
                                              MPI_Comm comm, starpu_tag_t unlocked) {
  send(comm, handle, dest, tag, prio, [unlocked] { starpu_tag_notify_from_apps(unlocked); });
  return 0;
}

int starpu_mpi_irecv_detached_unlock_tag(starpu_data_handle_t handle, int source, starpu_mpi_tag_t tag, MPI_Comm comm,
                                         starpu_tag_t unlocked) {
  receive(comm, handle, source, tag, [unlocked] { starpu_tag_notify_from_apps(unlocked); });
  return 0;
}

int starpu_mpi_barrier(MPI_Comm comm) {
  job(comm).barrier();
  return 0;
}

int starpu_mpi_wait_for_all(MPI_Comm comm) {
  job(comm).wait_for_all();
  return 0;
}

int elbow_starpu_mpi_count(elbow_taskflow_counters* counters) {
  return c::guard([&] {
    c::check_size(counters, "counters");
    const auto now = job().messages.counters();
    c::give(elbow_taskflow_counters{sizeof(elbow_taskflow_counters), now.tasks, now.data, now.broadcasts, now.complete,
                                    now.late, now.messages, now.most},
            counters);
  });
}

const char* elbow_starpu_mpi_version(void) { return ELBOWROOM_VERSION; }

}  // extern "C"
