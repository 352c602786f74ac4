// What a profile says of each call: the kind of its record, and of the operation that it posts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "calls.hpp"
#include "elbowroom/profile.h"

namespace elbowroom::pmpi {

struct Entry {
  std::uint8_t kind = ELBOW_PROFILE_OTHER;     // of the call
  std::uint8_t pending = ELBOW_PROFILE_OTHER;  // of the operation
  bool one_peer = false;                       // a message or an access: without a peer there is none
  bool many = false;                           // collective
  bool bytes = false;                          // About::bytes are bytes
  bool asks = false;                           // whether something is there: often for nothing
};

constexpr bool asks(std::string_view name) {
  for (const std::string_view asking :
       {"MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Iprobe", "MPI_Improbe", "MPI_Request_get_status",
        "MPI_Request_get_status_all", "MPI_Request_get_status_any", "MPI_Request_get_status_some"}) {
    if (name == asking) {
      return true;
    }
  }
  return false;
}

constexpr std::uint8_t kind_of(Role role) {
  switch (role) {
    case Role::send: return ELBOW_PROFILE_SEND;
    case Role::receive: return ELBOW_PROFILE_RECEIVE;
    case Role::exchange: return ELBOW_PROFILE_EXCHANGE;
    case Role::collective: return ELBOW_PROFILE_COLLECTIVE;
    case Role::barrier: return ELBOW_PROFILE_BARRIER;
    case Role::access: return ELBOW_PROFILE_ONE_SIDED;
    case Role::completion: return ELBOW_PROFILE_COMPLETION;
    case Role::other: break;
  }
  return ELBOW_PROFILE_OTHER;
}

constexpr std::uint8_t pending_kind_of(Role role) {
  switch (role) {
    case Role::send:
    case Role::exchange: return ELBOW_PROFILE_SEND_LATER;
    case Role::receive: return ELBOW_PROFILE_RECEIVE_LATER;
    case Role::collective:
    case Role::barrier: return ELBOW_PROFILE_COLLECTIVE_LATER;
    case Role::access: return ELBOW_PROFILE_ONE_SIDED;
    case Role::completion:
    case Role::other: break;
  }
  return ELBOW_PROFILE_OTHER;
}

constexpr std::array<Entry, kCalls> make_entries() {
  std::array<Entry, kCalls> entries{};
  for (int call = 0; call < kCalls; ++call) {
    const CallInfo& info = calls[call];
    Entry& entry = entries[static_cast<std::size_t>(call)];
    entry.kind = info.blocking ? kind_of(info.role) : static_cast<std::uint8_t>(ELBOW_PROFILE_OTHER);
    entry.pending = pending_kind_of(info.role);
    entry.one_peer = info.role == Role::send || info.role == Role::receive || info.role == Role::exchange ||
                     info.role == Role::access;
    entry.many = info.role == Role::collective || info.role == Role::barrier;
    entry.bytes = info.kind == Kind::message;
    entry.asks = asks(info.name);
  }
  return entries;
}

inline constexpr std::array<Entry, kCalls> kEntries = make_entries();

}  // namespace elbowroom::pmpi
