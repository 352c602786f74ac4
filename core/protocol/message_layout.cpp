#include "protocol/message_layout.hpp"

#include <algorithm>

namespace elbowroom {
namespace {

constexpr std::int64_t kCacheLine = 64;
// Small off-cache messages are a page and a line apart: the prefetchers do not cross pages, and the sets of the cache vary.
constexpr std::int64_t kApart = 4096 + kCacheLine;
constexpr std::int64_t kUnknownCache = std::int64_t{256} << 20;  // larger than the caches of most sockets

std::int64_t in_flight(const Request& request) { return request.pattern == Pattern::receive ? 2 : 1; }

std::int64_t sides(const Request& request) {
  return request.pattern == Pattern::pingpong || request.pattern == Pattern::receive ? 1 : 2;
}

}  // namespace

MessageLayout message_layout(const Request& request, std::int64_t llc, std::int64_t budget) {
  MessageLayout layout;
  layout.sides = sides(request);
  layout.stride = (request.size + kCacheLine - 1) / kCacheLine * kCacheLine;
  const std::int64_t least = in_flight(request);
  const std::int64_t beyond_cache = 4 * (llc > 0 ? llc : kUnknownCache);
  std::int64_t wanted = least;
  if (request.reuse == Reuse::rotate) {
    wanted = std::clamp<std::int64_t>(beyond_cache / layout.stride, 2, 16);
  } else if (request.reuse == Reuse::off_cache) {
    layout.stride = std::max(layout.stride, kApart);
    wanted = std::max(least, (beyond_cache + layout.stride - 1) / layout.stride);
  }
  const std::int64_t affordable = std::max(least, budget / (layout.stride * layout.sides));
  layout.count = std::min(wanted, affordable);
  layout.capped = layout.count < wanted;
  return layout;
}

std::int64_t least_message_bytes(const Request& request, std::size_t threads) {
  Request plain = request;
  plain.reuse = Reuse::same;
  return message_layout(plain, 0, 0).bytes() * static_cast<std::int64_t>(threads);
}

}  // namespace elbowroom
