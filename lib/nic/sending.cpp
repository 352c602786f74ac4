// The calls that send: a socket to another node passes on what the NICs grant.
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include <algorithm>

#include "nic/next.hpp"
#include "nic/pieces.hpp"
#include "nic/process.hpp"

namespace elbowroom::nic {
namespace {

constexpr std::int64_t kLongestSleep = 1'000'000;  // ns of a blocking call before it looks again

void sleep_ns(std::int64_t duration) {
  const timespec time{duration / 1'000'000'000, duration % 1'000'000'000};
  nanosleep(&time, nullptr);
}

bool may_block(Process& process, int file, int flags) {
  if (process.sockets.by_edges(file)) {
    return true;
  }
  return (flags & MSG_DONTWAIT) == 0 && (fcntl(file, F_GETFL) & O_NONBLOCK) == 0;
}

void record(const Process& process, const Grant& grant, std::size_t bytes, int target) {
  process.transfers.add({static_cast<std::uint64_t>(grant.since_ns), static_cast<std::uint64_t>(grant.ended_ns), bytes,
                         process.settings.node, target});
}

// Sleeps until there is a grant, a nonblocking call for a nap at most: it would only be called again at once.
Grant granted(Process& process, int flow, std::size_t wanted, bool blocking) {
  Grant grant = process.board.take(flow, wanted);
  if (grant.bytes == 0 && !blocking && process.settings.nap_ns > 0) {
    sleep_ns(std::min(grant.wait_ns, process.settings.nap_ns));
    return process.board.take(flow, wanted);
  }
  while (grant.bytes == 0 && blocking) {
    sleep_ns(std::min(grant.wait_ns, kLongestSleep));
    grant = process.board.take(flow, wanted);
  }
  return grant;
}

// `send` passes buffers to the socket, and returns as the call does.
template <class Send>
ssize_t send_limited(Process& process, int file, int target, const iovec* buffers, std::size_t count, int flags,
                     Send send) {
  const int flow = process.sockets.flow_to(target);
  Pieces pieces(buffers, count);
  if (flow < 0 || pieces.left() == 0 || count > IOV_MAX) {
    return send(buffers, count);
  }
  const int before = errno;
  const bool blocking = may_block(process, file, flags);
  ssize_t sent = 0;
  for (;;) {
    const Grant grant = granted(process, flow, pieces.left(), blocking);
    if (grant.bytes == 0) {
      errno = EAGAIN;
      return -1;
    }
    std::size_t cut = 0;
    const iovec* const first = pieces.first(grant.bytes, cut);
    const ssize_t taken = send(first, cut);
    const std::size_t passed = taken < 0 ? 0 : static_cast<std::size_t>(taken);
    const int failed = errno;
    if (passed < grant.bytes) {
      process.board.give_back(flow, grant.bytes - passed);
    }
    if (passed > 0) {
      record(process, grant, passed, target);
      pieces.sent(passed);
      sent += taken;
    }
    if (taken < 0 && sent == 0) {
      errno = failed;
      return -1;
    }
    if (pieces.left() == 0 || passed < grant.bytes || !blocking) {
      errno = before;
      return sent;
    }
  }
}

// The process and the node that a call on this descriptor sends to; kNobody: as if this library were not there.
int target_of(Process* process, int file) {
  if (process == nullptr) {
    return kNobody;
  }
  const int before = errno;
  const int target = process->sockets.target_of(file);
  errno = before;
  return target;
}

ssize_t send_message(Process& process, int file, int target, const msghdr* message, int flags) {
  msghdr part = *message;
  return send_limited(process, file, target, message->msg_iov, message->msg_iovlen, flags,
                      [&](const iovec* buffers, std::size_t count) {
                        part.msg_iov = const_cast<iovec*>(buffers);
                        part.msg_iovlen = count;
                        const ssize_t sent = next().sendmsg(file, &part, flags);
                        part.msg_control = sent > 0 ? nullptr : part.msg_control;
                        part.msg_controllen = sent > 0 ? 0 : part.msg_controllen;
                        return sent;
                      });
}

ssize_t send_vector(Process& process, int file, int target, const iovec* buffers, std::size_t count) {
  return send_limited(process, file, target, buffers, count, 0, [file](const iovec* cut, std::size_t pieces) {
    return next().writev(file, cut, static_cast<int>(pieces));
  });
}

}  // namespace
}  // namespace elbowroom::nic

using namespace elbowroom::nic;

#define ELBOW_EXPORT extern "C" __attribute__((visibility("default")))

ELBOW_EXPORT ssize_t writev(int file, const iovec* buffers, int count) {
  Process* const process = limited();
  const int target = target_of(process, file);
  return target == kNobody || count < 0 ? next().writev(file, buffers, count)
                                        : send_vector(*process, file, target, buffers, static_cast<std::size_t>(count));
}

ELBOW_EXPORT ssize_t write(int file, const void* data, std::size_t size) {
  Process* const process = limited();
  const int target = target_of(process, file);
  if (target == kNobody) {
    return next().write(file, data, size);
  }
  const iovec whole{const_cast<void*>(data), size};
  return send_vector(*process, file, target, &whole, 1);
}

ELBOW_EXPORT ssize_t sendmsg(int file, const msghdr* message, int flags) {
  Process* const process = limited();
  const int target = target_of(process, file);
  return target == kNobody ? next().sendmsg(file, message, flags)
                           : send_message(*process, file, target, message, flags);
}

ELBOW_EXPORT ssize_t sendto(int file, const void* data, std::size_t size, int flags, const sockaddr* address,
                            socklen_t length) {
  Process* const process = limited();
  const int target = target_of(process, file);
  if (target == kNobody) {
    return next().sendto(file, data, size, flags, address, length);
  }
  iovec whole{const_cast<void*>(data), size};
  msghdr message{};
  message.msg_iov = &whole;
  message.msg_iovlen = 1;
  return send_message(*process, file, target, &message, flags);
}

ELBOW_EXPORT ssize_t send(int file, const void* data, std::size_t size, int flags) {
  return sendto(file, data, size, flags, nullptr, 0);
}

ELBOW_EXPORT int sendmmsg(int file, mmsghdr* messages, unsigned count, int flags) {
  Process* const process = limited();
  const int target = target_of(process, file);
  if (target == kNobody || count == 0) {
    return next().sendmmsg(file, messages, count, flags);
  }
  const ssize_t sent = send_message(*process, file, target, &messages[0].msg_hdr, flags);
  messages[0].msg_len = sent < 0 ? 0 : static_cast<unsigned>(sent);
  return sent < 0 ? -1 : 1;
}
