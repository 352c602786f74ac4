// A transport for threads that are ranks: they leave mail for each other. For example_threads.cpp.
#pragma once

#include <elbowroom/broadcast.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

using Wire = std::tuple<int, int, int64_t>;  // from, to, channel (-1: control messages)
inline std::mutex mutex;
inline std::map<Wire, std::deque<std::string>> mail;
inline thread_local int self;
inline thread_local std::deque<std::pair<Wire, elbow_broadcast_happening>>
    awaited;  // `bytes`: where data are to be put
inline thread_local std::string taken;

inline int put(int to, int64_t channel, const void* bytes, size_t size) {
  const std::lock_guard lock(mutex);
  mail[{self, to, channel}].emplace_back(static_cast<const char*>(bytes), size);
  return 0;
}

inline int poll(void*, elbow_broadcast_happening* happening) {
  const std::lock_guard lock(mutex);
  for (auto one = awaited.begin(); one != awaited.end(); ++one) {
    const auto here = mail.find(one->first);
    const bool sent = one->second.kind == ELBOW_BROADCAST_SENT;
    if (!sent && (here == mail.end() || here->second.empty())) continue;
    *happening = one->second;
    if (!sent) taken = std::move(here->second.front()), here->second.pop_front();
    if (happening->kind == ELBOW_BROADCAST_ARRIVED)
      std::memcpy(const_cast<void*>(happening->bytes), taken.data(), taken.size());
    if (happening->kind == ELBOW_BROADCAST_CONTROL) happening->bytes = taken.data(), happening->length = taken.size();
    if (happening->kind != ELBOW_BROADCAST_CONTROL) awaited.erase(one);
    return 1;
  }
  return 0;
}

inline elbow_broadcast_transport transport_of(int rank, int ranks) {
  self = rank;
  for (int from = 0; from < ranks; ++from)
    awaited.push_back({{from, rank, -1}, {0, ELBOW_BROADCAST_CONTROL, from, 0, nullptr, 0}});
  elbow_broadcast_transport result{};
  result.rank = rank;
  result.size = sizeof result;
  result.ranks = ranks;
  result.channels = 1000;
  result.poll = poll;
  result.now = [](void*) {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::duration<double>(1);
  };
  result.send_control = [](void*, int to, const void* bytes, size_t size) { return put(to, -1, bytes, size); };
  result.send_data = [](void*, int to, uint32_t channel, const void* data, size_t size, uint64_t ticket) {
    awaited.push_back({{}, {0, ELBOW_BROADCAST_SENT, to, ticket, nullptr, 0}});
    return put(to, channel, data, size);
  };
  result.receive_data = [](void*, int from, uint32_t channel, void* data, size_t size, uint64_t ticket) {
    awaited.push_back({{from, self, channel}, {0, ELBOW_BROADCAST_ARRIVED, from, ticket, data, size}});
    return 0;
  };
  return result;
}
