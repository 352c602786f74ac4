// The calls by which descriptors become connections, and end.
#include <errno.h>

#include "nic/next.hpp"
#include "nic/process.hpp"

using namespace elbowroom::nic;

namespace {

// `then` sees the sockets of a limited process; errno stays that of the call.
template <class Then>
int after(int result, Then then) {
  if (Process* const process = limited()) {
    const int before = errno;
    then(process->sockets);
    errno = before;
  }
  return result;
}

int made(int file) {
  return after(file, [file](Sockets& sockets) { sockets.forget(file); });
}

void ends(int file) {
  after(0, [file](Sockets& sockets) { sockets.forget(file); });
}

}  // namespace

#define ELBOW_EXPORT extern "C" __attribute__((visibility("default")))

ELBOW_EXPORT int socket(int domain, int type, int protocol) { return made(next().socket(domain, type, protocol)); }

ELBOW_EXPORT int accept(int file, sockaddr* address, socklen_t* length) {
  return made(next().accept(file, address, length));
}

ELBOW_EXPORT int accept4(int file, sockaddr* address, socklen_t* length, int flags) {
  return made(next().accept4(file, address, length, flags));
}

ELBOW_EXPORT int listen(int file, int backlog) {
  const int result = next().listen(file, backlog);
  return after(result, [file, result](Sockets& sockets) {
    if (result == 0) {
      sockets.listens(file);
    }
  });
}

ELBOW_EXPORT int connect(int file, const sockaddr* address, socklen_t length) {
  const int result = next().connect(file, address, length);
  const bool begun = result == 0 || errno == EINPROGRESS || errno == EINTR;
  return after(result, [file, address, begun](Sockets& sockets) {
    if (begun) {
      sockets.connects(file, address);
    }
  });
}

ELBOW_EXPORT int close(int file) {
  ends(file);
  return next().close(file);
}

ELBOW_EXPORT int dup(int file) { return made(next().dup(file)); }

ELBOW_EXPORT int dup2(int file, int other) {
  if (file != other) {
    ends(other);
  }
  return next().dup2(file, other);
}

ELBOW_EXPORT int dup3(int file, int other, int flags) {
  if (file != other) {
    ends(other);
  }
  return next().dup3(file, other, flags);
}
