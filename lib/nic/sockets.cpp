#include "nic/sockets.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>

namespace elbowroom::nic {
namespace {

constexpr std::uint8_t kUnknown = 0;
constexpr std::uint8_t kUnlimited = 1;
constexpr std::uint8_t kFirstNode = 2;  // this and more: leads to a node
constexpr std::uint8_t kEdges = 1;      // a note

using Ask = int (*)(int, sockaddr*, socklen_t*);

struct End {
  std::uint16_t port;
  bool ipv6;
};

std::optional<End> end_in(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return End{ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port), false};
  }
  if (address->sa_family == AF_INET6) {
    const auto* const ipv6 = reinterpret_cast<const sockaddr_in6*>(address);
    return End{ntohs(ipv6->sin6_port), !IN6_IS_ADDR_V4MAPPED(&ipv6->sin6_addr)};
  }
  return std::nullopt;
}

std::optional<End> end_of(int file, Ask ask) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (ask(file, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return std::nullopt;
  }
  return end_in(reinterpret_cast<const sockaddr*>(&address));
}

bool is_tcp(int file) {
  int type = 0;
  socklen_t length = sizeof type;
  return getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM &&
         end_of(file, getsockname).has_value();
}

}  // namespace

void Sockets::begin(int node) {
  node_ = node;
  for (std::atomic<int>& flow : flows_) {
    flow = 0;
  }
  for (std::atomic<std::uint32_t>& key : entered_) {
    key.store(0, std::memory_order_relaxed);
  }
}

void Sockets::end() {
  for (std::atomic<int>& flow : flows_) {
    if (flow > 0) {
      board_.close_flow(flow - 1);
    }
  }
}

void Sockets::listens(int file) {
  if (const auto own = end_of(file, getsockname)) {
    enter(file, own->ipv6 ? kListens6 : kListens4);
  }
}

void Sockets::connects(int file, const sockaddr* address) {
  // getpeername knows the other port only when the connection is there.
  if (const auto peer = end_in(address)) {
    enter(file, peer->port);
  }
}

void Sockets::enter(int file, std::uint16_t peer) {
  if (file < 0 || file >= kFiles || !is_tcp(file)) {
    return;
  }
  if (const auto own = end_of(file, getsockname)) {
    const Connection connection{own->port, peer};
    board_.enter(connection, node_);
    entered_[static_cast<std::size_t>(file)] = connection.key();
  }
}

void Sockets::forget(int file) {
  if (file < 0 || file >= kFiles) {
    return;
  }
  const auto index = static_cast<std::size_t>(file);
  kinds_[index] = kUnknown;
  notes_[index] = 0;
  if (const std::uint32_t key = entered_[index].exchange(0)) {
    board_.leave({static_cast<std::uint16_t>(key >> 16), static_cast<std::uint16_t>(key)});
  }
}

void Sockets::watched_by_edges(int file) {
  if (file >= 0 && file < kFiles) {
    notes_[static_cast<std::size_t>(file)] = kEdges;
  }
}

bool Sockets::by_edges(int file) const {
  return file >= 0 && file < kFiles && notes_[static_cast<std::size_t>(file)] == kEdges;
}

// A process of another node connected to this one, or listens where this one connected to. Neither: a launcher's, or one
// that will say so soon, or no connection yet.
std::uint8_t Sockets::look_at(int file) {
  if (!is_tcp(file)) {
    return kUnlimited;
  }
  const auto own = end_of(file, getsockname);
  const auto peer = end_of(file, getpeername);
  if (!own || !peer) {
    return kUnknown;
  }
  const Connection connection{own->port, peer->port};
  int node = board_.node_of(connection.reversed());
  if (node == kNobody && board_.node_of(connection) == node_) {
    node = board_.node_of({peer->port, peer->ipv6 ? kListens6 : kListens4});
    // A socket of IPv6 may listen for IPv4, too.
    node = node == kNobody ? board_.node_of({peer->port, kListens6}) : node;
  }
  if (node == kNobody) {
    return kUnknown;
  }
  return node == node_ ? kUnlimited : static_cast<std::uint8_t>(kFirstNode + node);
}

int Sockets::target_of(int file) {
  if (file < 0 || file >= kFiles) {
    return kNobody;
  }
  std::atomic<std::uint8_t>& kind = kinds_[static_cast<std::size_t>(file)];
  if (kind == kUnknown) {
    kind = look_at(file);
  }
  return kind >= kFirstNode ? kind - kFirstNode : kNobody;
}

int Sockets::flow_to(int target) {
  std::atomic<int>& flow = flows_[static_cast<std::size_t>(target)];
  int number = flow;
  if (number == 0) {
    // Another thread, or a signal handler, may have opened one meanwhile.
    const int opened = board_.open_flow(node_, target) + 1;
    if (flow.compare_exchange_strong(number, opened)) {
      return opened - 1;
    }
    board_.close_flow(opened - 1);
  }
  return number - 1;
}

}  // namespace elbowroom::nic
