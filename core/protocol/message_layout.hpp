// Where messages lie in memory: the policy of reuse (docs/design/method.md, rule 8).
#pragma once

#include <cstdint>

#include "protocol/request.hpp"

namespace elbowroom {

// Messages of one communication thread: `sides` regions (1: what arrives is sent back, 2: sent and received apart) of
// `count` buffers, `stride` bytes apart.
struct MessageLayout {
  std::int64_t stride = 0;
  std::int64_t count = 1;
  std::int64_t sides = 1;
  bool capped = false;  // fewer buffers than the policy asks for, for lack of memory
  std::int64_t bytes() const { return stride * count * sides; }
};

// `llc`: bytes of the last-level cache, 0 unknown. `budget`: bytes that one thread's messages may take beyond the single
// buffers a pattern needs in any case.
//   same       one buffer (receive: two, both in flight)
//   rotate     16 buffers, as long as they are not more than 4 times the last-level cache
//   off-cache  as many as are needed to be 4 times the last-level cache
MessageLayout message_layout(const Request& request, std::int64_t llc, std::int64_t budget);

// Bytes that a rank needs whatever the policy.
std::int64_t least_message_bytes(const Request& request, std::size_t threads);

}  // namespace elbowroom
