#include "common/gate.hpp"

#include <hwy/cache_control.h>

namespace elbowroom::program {

void relax() { hwy::Pause(); }

void Gate::wait_for(std::uint32_t count, int spins) const {
  for (int look = 0; look < spins; ++look) {
    if (count_.load(std::memory_order_acquire) >= count) {
      return;
    }
    relax();
  }
  for (;;) {
    const std::uint32_t now = count_.load(std::memory_order_acquire);
    if (now >= count) {
      return;
    }
    count_.wait(now, std::memory_order_acquire);
  }
}

}  // namespace elbowroom::program
