#include "nic/next.hpp"

#include <string>

#include "behind.hpp"
#include "nic/said.hpp"

namespace elbowroom::nic {
namespace {

template <class Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(find_behind(name));
  if (function == nullptr) {
    give_up("the C library of this program has no " + std::string(name) + "; run it without elbow_nic");
  }
}

Next found() {
  Next all{};
  find(all.read, "read");
  find(all.write, "write");
  find(all.writev, "writev");
  find(all.send, "send");
  find(all.sendto, "sendto");
  find(all.sendmsg, "sendmsg");
  find(all.sendmmsg, "sendmmsg");
  find(all.socket, "socket");
  find(all.connect, "connect");
  find(all.listen, "listen");
  find(all.accept, "accept");
  find(all.accept4, "accept4");
  find(all.close, "close");
  find(all.dup, "dup");
  find(all.dup2, "dup2");
  find(all.dup3, "dup3");
  find(all.poll, "poll");
  find(all.epoll_wait, "epoll_wait");
  find(all.epoll_pwait, "epoll_pwait");
  find(all.epoll_ctl, "epoll_ctl");
  return all;
}

}  // namespace

const Next& next() {
  static const Next all = found();
  return all;
}

}  // namespace elbowroom::nic
