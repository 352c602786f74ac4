// MPICH over UCX ends by a barrier of its launcher, in which a rank makes no progress: over TCP others wait for its answers
// for ever, with this library and without. Here a rank that waits for its launcher makes progress meanwhile.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <atomic>

#include "nic/next.hpp"
#include "nic/process.hpp"

namespace {

using Create = int (*)(void* context, const void* parameters, void** worker);
using Progress = unsigned (*)(void* worker);
using Read = ssize_t (*)(int file, void* data, std::size_t size);

constexpr int kPatience = 1;  // ms between two looks at what the launcher says

std::atomic<void*> g_worker{nullptr};  // of UCX, the first one
pthread_t g_owner;
thread_local bool t_progressing = false;

template <class Function>
Function found(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// A launcher is asked by a socket that is not of the internet, and its answer waited for.
bool waits_for_launcher(int file) {
  int domain = 0;
  socklen_t length = sizeof domain;
  return getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX &&
         (fcntl(file, F_GETFL) & O_NONBLOCK) == 0;
}

void progress_until_readable(int file) {
  static const auto progress = reinterpret_cast<Progress>(dlsym(RTLD_DEFAULT, "ucp_worker_progress"));
  pollfd one{file, POLLIN, 0};
  while (progress != nullptr && elbowroom::nic::next().poll(&one, 1, kPatience) == 0) {
    progress(g_worker);
  }
}

}  // namespace

#define ELBOW_EXPORT extern "C" __attribute__((visibility("default")))

ELBOW_EXPORT int ucp_worker_create(void* context, const void* parameters, void** worker) {
  static const auto create = found<Create>("ucp_worker_create");
  const int result = create(context, parameters, worker);
  if (result == 0 && g_worker == nullptr && elbowroom::nic::limited() != nullptr) {
    g_owner = pthread_self();
    g_worker = *worker;
  }
  return result;
}

ELBOW_EXPORT void ucp_worker_destroy(void* worker) {
  static const auto destroy = found<void (*)(void*)>("ucp_worker_destroy");
  void* same = worker;
  g_worker.compare_exchange_strong(same, nullptr);
  destroy(worker);
}

ELBOW_EXPORT ssize_t read(int file, void* data, std::size_t size) {
  static const auto next_read = found<Read>("read");
  if (g_worker != nullptr && !t_progressing && pthread_equal(g_owner, pthread_self()) != 0) {
    const int before = errno;
    t_progressing = true;
    if (waits_for_launcher(file)) {
      progress_until_readable(file);
    }
    t_progressing = false;
    errno = before;
  }
  return next_read(file, data, size);
}
