// The calls that wait for sockets. MPI calls them without a timeout, again and again: where more ranks than cores wait, they
// take the cores from those that have something to do. A thread that polls in vain sleeps until there is something, for a
// nap at most. A poll that computation is between does not.
#include <errno.h>
#include <poll.h>
#include <time.h>

#include <algorithm>

#include "nic/next.hpp"
#include "nic/process.hpp"

using namespace elbowroom::nic;

namespace {

constexpr std::int64_t kSpinning = 20'000;  // ns from one poll in vain to the next: nothing is computed between
constexpr int kPolls = 50;                  // polls in vain before the first nap
constexpr int kLongest = 8;                 // naps: the next ones in a row are longer, up to this

thread_local std::int64_t t_ended = 0;  // of the last poll in vain
thread_local int t_vain = 0;            // polls in a row

// How long a thread sleeps that has polled in vain; 0: not at all.
std::int64_t nap() {
  const Process* const process = limited();
  if (process == nullptr || process->settings.nap_ns == 0) {
    return 0;
  }
  t_vain = now_ns() - t_ended < kSpinning ? t_vain + 1 : 0;
  return t_vain < kPolls ? 0 : std::min(t_vain - kPolls + 1, kLongest) * process->settings.nap_ns;
}

// `poll_now` polls without a timeout; `files` are what it looks at.
template <class Poll>
int poll_or_nap(pollfd* files, nfds_t count, Poll poll_now) {
  int ready = poll_now();
  if (ready != 0) {
    t_vain = 0;
    return ready;
  }
  const int before = errno;
  const std::int64_t duration = nap();
  if (duration > 0) {
    const timespec time{0, static_cast<long>(duration)};
    ppoll(files, count, &time, nullptr);
    ready = poll_now();
  }
  t_ended = now_ns();
  t_vain = ready == 0 ? t_vain : 0;
  errno = ready < 0 ? errno : before;
  return ready;
}

}  // namespace

#define ELBOW_EXPORT extern "C" __attribute__((visibility("default")))

ELBOW_EXPORT int poll(pollfd* files, nfds_t count, int timeout) {
  if (timeout != 0 || limited() == nullptr) {
    return next().poll(files, count, timeout);
  }
  return poll_or_nap(files, count, [=] { return next().poll(files, count, 0); });
}

ELBOW_EXPORT int __poll_chk(pollfd* files, nfds_t count, int timeout, std::size_t size) {
  if (size / sizeof(pollfd) < count) {
    __builtin_trap();
  }
  return poll(files, count, timeout);
}

ELBOW_EXPORT int epoll_wait(int set, epoll_event* events, int most, int timeout) {
  if (timeout != 0 || limited() == nullptr) {
    return next().epoll_wait(set, events, most, timeout);
  }
  pollfd all{set, POLLIN, 0};
  return poll_or_nap(&all, 1, [=] { return next().epoll_wait(set, events, most, 0); });
}

ELBOW_EXPORT int epoll_pwait(int set, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  if (timeout != 0 || limited() == nullptr) {
    return next().epoll_pwait(set, events, most, timeout, mask);
  }
  pollfd all{set, POLLIN, 0};
  return poll_or_nap(&all, 1, [=] { return next().epoll_pwait(set, events, most, 0, mask); });
}

ELBOW_EXPORT int epoll_ctl(int set, int operation, int file, epoll_event* event) {
  Process* const process = limited();
  if (process != nullptr && event != nullptr && (event->events & EPOLLET) != 0) {
    process->sockets.watched_by_edges(file);
  }
  return next().epoll_ctl(set, operation, file, event);
}
