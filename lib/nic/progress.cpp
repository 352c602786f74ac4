// MPICH over UCX ends by a barrier of its launcher, in which a rank makes no progress: over TCP others wait for its answers
// for ever, with this library and without. Here a rank that waits for its launcher makes progress meanwhile.
//
// Programs without UCX find these functions here, too, where they look for them by name.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "behind.hpp"
#include "nic/next.hpp"
#include "nic/process.hpp"
#include "nic/said.hpp"

namespace {

using Create = int (*)(void* context, const void* parameters, void** worker);
using Destroy = void (*)(void* worker);
using Progress = unsigned (*)(void* worker);

constexpr int kPatience = 1;     // ms between two looks at what the launcher says
constexpr int kNoElement = -12;  // UCS_ERR_NO_ELEM

std::atomic<void*> g_worker{nullptr};  // of UCX, the first one
Progress g_progress = nullptr;
pthread_t g_owner;
pid_t g_process = 0;  // of the owner: a child of fork has its thread's name, and must not use its worker
thread_local bool t_progressing = false;

// Looked up at each call, which are few: a process may have opened several copies of UCX, each for a library of its own.
template <class Function>
Function find_in_ucx(const char* name, const void* caller) {
  return reinterpret_cast<Function>(elbowroom::find_behind(name, caller));
}

// A launcher is asked by a socket that is not of the internet, and its answer waited for.
bool waits_for_launcher(int file) {
  int domain = 0;
  socklen_t length = sizeof domain;
  return getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX &&
         (fcntl(file, F_GETFL) & O_NONBLOCK) == 0;
}

void progress_until_readable(int file) {
  pollfd one{file, POLLIN, 0};
  while (elbowroom::nic::next().poll(&one, 1, kPatience) == 0) {
    g_progress(g_worker);
  }
}

}  // namespace

#define ELBOW_EXPORT extern "C" __attribute__((visibility("default")))

ELBOW_EXPORT int ucp_worker_create(void* context, const void* parameters, void** worker) {
  const void* const caller = __builtin_return_address(0);
  const auto create = find_in_ucx<Create>("ucp_worker_create", caller);
  if (create == nullptr) {
    elbowroom::nic::say("error: ucp_worker_create was called, and no library of this program defines it");
    return kNoElement;
  }
  const int result = create(context, parameters, worker);
  if (result == 0 && g_worker == nullptr && elbowroom::nic::limited() != nullptr) {
    g_owner = pthread_self();
    g_process = getpid();
    g_progress = find_in_ucx<Progress>("ucp_worker_progress", caller);
    g_worker = g_progress == nullptr ? nullptr : *worker;
  }
  return result;
}

ELBOW_EXPORT void ucp_worker_destroy(void* worker) {
  void* same = worker;
  g_worker.compare_exchange_strong(same, nullptr);
  if (const auto destroy = find_in_ucx<Destroy>("ucp_worker_destroy", __builtin_return_address(0))) {
    destroy(worker);
  }
}

ELBOW_EXPORT ssize_t read(int file, void* data, std::size_t size) {
  if (g_worker != nullptr && !t_progressing && pthread_equal(g_owner, pthread_self()) != 0 && g_process == getpid()) {
    const int before = errno;
    t_progressing = true;
    if (waits_for_launcher(file)) {
      progress_until_readable(file);
    }
    t_progressing = false;
    errno = before;
  }
  return elbowroom::nic::next().read(file, data, size);
}
