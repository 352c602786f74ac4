// The C interface.
#include "elbowroom/guard.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "guard/board.hpp"
#include "guard/publishing.hpp"

using elbowroom::c_interface::check_size;
using elbowroom::c_interface::fail;
using elbowroom::c_interface::give;
using elbowroom::c_interface::sized;
using elbowroom::guard::Board;
using elbowroom::guard::kBytesInFlight;
using elbowroom::guard::Place;
using elbowroom::guard::Refusal;

struct elbow_guard {
  Board board;
  double high = 0;
  double low = 0;
  elbow_guard_edge* edge = nullptr;
  void* context = nullptr;
  bool above = false;

  elbow_guard(const std::string& path, std::uint32_t make) : board(path, make) {}
  template <typename Visit>
  void for_each(Visit visit) const {
    const Place* const end = board.places() + board.used();
    for (const Place* place = board.places(); place != end; ++place) {
      visit(*place);
    }
  }
};

namespace {

void need_writable(const elbow_guard* guard) {
  elbowroom::c_interface::refuse_null(guard, "guard");
  if (!guard->board.writable()) {
    throw Refusal(EACCES, "the board is another user's: it may only be read");
  }
}

std::uint64_t in_flight(const elbow_guard& guard) {
  std::uint64_t bytes = 0;
  guard.for_each([&](const Place& place) {
    for (const auto& flight : place.flight) {
      bytes += flight.load(std::memory_order_relaxed) & kBytesInFlight;
    }
  });
  return bytes;
}

// By the amounts alone: 4 cache lines for 64 ranks. Four at a time, as loads of one chain would wait for each other; they fill
// whole lines, and those of free places are 0.
double pressure(const elbow_guard& guard) {
  const elbowroom::guard::Amount* const end = guard.board.amounts() + guard.board.used();
  std::uint64_t units = 0;
  for (const elbowroom::guard::Amount* four = guard.board.amounts(); four < end; four += 4) {
    units += (four[0].load(std::memory_order_relaxed) + four[1].load(std::memory_order_relaxed)) +
             (four[2].load(std::memory_order_relaxed) + four[3].load(std::memory_order_relaxed));
  }
  const auto scale = static_cast<double>(guard.board.header().scale.load(std::memory_order_relaxed));
  return std::min(1.0, static_cast<double>(units * elbowroom::guard::kUnit) / scale);
}

bool is_direction(int direction) { return direction == ELBOW_GUARD_OUT || direction == ELBOW_GUARD_IN; }

}  // namespace

elbow_guard* elbow_guard_open(const char* path) {
  return elbowroom::c_interface::guard(
      [&] { return new elbow_guard(path != nullptr ? path : elbowroom::guard::usual_path(), 0); });
}

elbow_guard* elbow_guard_make(const char* path, uint32_t ranks) {
  return elbowroom::c_interface::guard([&] {
    elbowroom::c_interface::refuse_null(path, "path");
    if (ranks > elbowroom::guard::kMostRanks) {
      throw Refusal(EINVAL, "ranks: a board has places for at most 1048576");
    }
    return new elbow_guard(path, ranks == 0 ? elbowroom::guard::kRanks : ranks);
  });
}

void elbow_guard_close(elbow_guard* guard) { delete guard; }

uint64_t elbow_guard_in_flight(const elbow_guard* guard) { return guard == nullptr ? 0 : in_flight(*guard); }

double elbow_guard_pressure(const elbow_guard* guard) { return guard == nullptr ? 0 : pressure(*guard); }

int elbow_guard_read(const elbow_guard* guard, elbow_guard_traffic* traffic) {
  return elbowroom::c_interface::guard([&] {
    elbowroom::c_interface::refuse_null(guard, "guard");
    check_size(traffic, "traffic");
    auto sum = sized<elbow_guard_traffic>();
    guard->for_each([&](const Place& place) {
      if (place.process == 0) {
        return;
      }
      for (const int direction : {ELBOW_GUARD_OUT, ELBOW_GUARD_IN}) {
        const std::uint64_t flight = place.flight[direction];
        sum.bytes[direction] += flight & kBytesInFlight;
        sum.messages[direction] += flight >> 48;
        sum.moved[direction] += place.moved[direction];
      }
      sum.ranks += 1;
      sum.waiting += place.waiting != 0 ? 1 : 0;
      sum.steps += place.steps;
      sum.step_begin = std::max<std::uint64_t>(sum.step_begin, place.step_begin);
    });
    give(sum, traffic);
  });
}

uint64_t elbow_guard_now(void) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

int elbow_guard_watch(elbow_guard* guard, double high, double low, elbow_guard_edge* edge, void* context) {
  if (guard == nullptr || edge == nullptr) {
    return fail(EINVAL, "%s: is NULL", guard == nullptr ? "guard" : "edge");
  }
  if (!(low >= 0 && low < high && high <= 1)) {
    return fail(EINVAL, "high %g, low %g: must be shares of 1, and low below high", high, low);
  }
  guard->high = high;
  guard->low = low;
  guard->edge = edge;
  guard->context = context;
  guard->above = false;
  return 0;
}

int elbow_guard_poll(elbow_guard* guard) {
  if (guard == nullptr || guard->edge == nullptr) {
    return fail(EINVAL, guard == nullptr ? "guard: is NULL" : "nothing is watched; call elbow_guard_watch first");
  }
  const double now = pressure(*guard);
  if (guard->above ? now <= guard->low : now >= guard->high) {
    guard->above = !guard->above;
    guard->edge(guard->context, guard->above ? 1 : 0, now);
  }
  return guard->above ? 1 : 0;
}

int elbow_guard_set(elbow_guard* guard, uint32_t lever, uint64_t value) {
  return elbowroom::c_interface::guard([&] {
    need_writable(guard);
    if (lever >= ELBOW_GUARD_SETTINGS) {
      throw Refusal(EINVAL, "lever " + std::to_string(lever) + ": levers are numbered from 0 to 31");
    }
    guard->board.header().settings[lever] = value;
  });
}

uint64_t elbow_guard_setting(const elbow_guard* guard, uint32_t lever) {
  return guard == nullptr || lever >= ELBOW_GUARD_SETTINGS
             ? 0
             : guard->board.header().settings[lever].load(std::memory_order_relaxed);
}

int elbow_guard_set_scale(elbow_guard* guard, uint64_t bytes) {
  return elbowroom::c_interface::guard([&] {
    need_writable(guard);
    if (bytes == 0) {
      throw Refusal(EINVAL, "bytes: must be above 0");
    }
    guard->board.header().scale = bytes;
  });
}

elbow_guard_rank* elbow_guard_join(elbow_guard* guard, int32_t rank, int threads) {
  return elbowroom::c_interface::guard([&] {
    need_writable(guard);
    Place* const place = guard->board.take(rank);
    if (place == nullptr) {
      throw Refusal(ENOSPC, "the board is full: it has places for " + std::to_string(guard->board.count()) +
                                " ranks; make it for more");
    }
    return new elbow_guard_rank{place, &guard->board.amounts()[place - guard->board.places()], threads != 0};
  });
}

void elbow_guard_leave(elbow_guard_rank* place) {
  if (place != nullptr) {
    elbowroom::guard::free_place(*place->place, *place->amount);
    delete place;
  }
}

int elbow_guard_held(elbow_guard* guard, uint64_t ns) {
  return elbowroom::c_interface::guard([&] {
    need_writable(guard);
    const auto own = static_cast<std::uint32_t>(getpid());
    Place* const places = guard->board.places();
    Place* const end = places + guard->board.used();
    Place* const place = std::find_if(places, end, [&](const Place& one) { return one.process == own; });
    if (place == end) {
      throw Refusal(ESRCH, "this process has no place on the board; call elbow_guard_join first");
    }
    place->held += static_cast<std::uint32_t>(ns / elbowroom::guard::kHeldUnit);
  });
}

void elbow_guard_begin(elbow_guard_rank* place, int direction, uint64_t bytes) {
  if (place != nullptr && is_direction(direction)) {
    elbowroom::guard::begin(*place, direction, bytes, place->threads);
  }
}

void elbow_guard_end(elbow_guard_rank* place, int direction, uint64_t bytes) {
  if (place != nullptr && is_direction(direction)) {
    elbowroom::guard::end(*place, direction, bytes, place->threads);
  }
}

void elbow_guard_step(elbow_guard_rank* place) {
  if (place != nullptr) {
    elbowroom::guard::step(*place->place, elbow_guard_now());
  }
}

int elbow_guard_sweep(elbow_guard* guard) {
  return elbowroom::c_interface::guard([&] {
    need_writable(guard);
    return guard->board.sweep();
  });
}

const char* elbow_guard_error(void) { return elbowroom::c_interface::last_error; }

const char* elbow_guard_version(void) { return ELBOWROOM_VERSION; }
