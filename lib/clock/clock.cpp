// The C interface: checks arguments, turns exceptions into errno and a sentence.
#include "elbowroom/clock.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "c_interface.hpp"
#include "clock/job_clock.hpp"

struct elbow_clock {
  elbowroom::clock::JobClock job;
};

namespace {

using namespace elbowroom::c_interface;
using namespace elbowroom::clock;

int needs_synchronising(const elbow_clock* clock) {
  return clock->job.synchronised()
             ? 0
             : fail(EAGAIN, "the clocks were not compared yet: call elbow_clock_synchronise on every process first");
}

// Which clock ELBOW_CLOCK asks for.
int read_wanted(Wanted& wanted) {
  const char* name = std::getenv("ELBOW_CLOCK");
  if (name == nullptr || *name == '\0') {
    wanted = Wanted::best;
  } else if (std::strcmp(name, "raw") == 0) {
    wanted = Wanted::raw;
  } else if (std::strcmp(name, "monotonic") == 0) {
    wanted = Wanted::steered;
  } else {
    return fail(EINVAL, "ELBOW_CLOCK '%.100s': no such clock; raw or monotonic, or unset it", name);
  }
  return 0;
}

elbow_clock_sync_point as_c(const SyncPoint& point) {
  return {sizeof(elbow_clock_sync_point),
          point.local,
          point.offset.offset,
          point.offset.low,
          point.offset.high,
          point.offset.jumped};
}

// Of sync points that need not be given.
void check_point(const elbow_clock_sync_point* point) {
  if (point != nullptr) {
    check_size(point, "point");
  }
}

void give_point(const SyncPoint& result, elbow_clock_sync_point* point) {
  if (point != nullptr) {
    give(as_c(result), point);
  }
}

Peers wrapped(const elbow_clock_peers& peers) {
  const auto done = [](int result, const char* what, int rank) {
    if (result != 0) {
      throw Unreachable(std::string(what) + " rank " + std::to_string(rank) +
                        " failed: its process or the network is gone");
    }
  };
  return {peers.rank, peers.ranks,
          [peers, done](int to, const void* bytes, std::size_t count) {
            done(peers.send(peers.self, to, bytes, count), "sending to", to);
          },
          [peers, done](int from, void* bytes, std::size_t count) {
            done(peers.receive(peers.self, from, bytes, count), "receiving from", from);
          }};
}

}  // namespace

extern "C" {

elbow_clock* elbow_clock_new(const elbow_clock_peers* given) {
  return guard([&]() -> elbow_clock* {
    const elbow_clock_peers peers = taken(given, "peers");
    if (peers.ranks < 1 || peers.rank < 0 || peers.rank >= peers.ranks) {
      fail(EINVAL, "rank %d of %d: there is no such rank; ranks are 0 to ranks - 1", peers.rank, peers.ranks);
      return nullptr;
    }
    if (peers.ranks > 1 && (peers.send == nullptr || peers.receive == nullptr)) {
      fail(EINVAL, "peers: holds NULL; name a function to send and one to receive");
      return nullptr;
    }
    Wanted wanted = Wanted::best;
    return read_wanted(wanted) != 0 ? nullptr : new elbow_clock{JobClock(wrapped(peers), source_of_host(wanted))};
  });
}

void elbow_clock_free(elbow_clock* clock) { delete clock; }

int elbow_clock_synchronise(elbow_clock* clock, elbow_clock_sync_point* point) {
  return guard([&] {
    refuse_null(clock, "clock");
    check_point(point);
    give_point(clock->job.synchronise(), point);
  });
}

int elbow_clock_now(const elbow_clock* clock, int64_t* time, int64_t* error) {
  if (clock == nullptr || time == nullptr) {
    return fail(EINVAL, "%s: is NULL", clock == nullptr ? "clock" : "time");
  }
  if (needs_synchronising(clock) != 0) {
    return -1;
  }
  const Corrected now = clock->job.now();
  *time = now.time;
  if (error != nullptr) {
    *error = now.error;
  }
  return 0;
}

int elbow_clock_barrier(elbow_clock* clock, elbow_clock_sync_point* point, int64_t* late) {
  return guard([&] {
    refuse_null(clock, "clock");
    check_point(point);
    if (needs_synchronising(clock) != 0) {
      return -1;
    }
    const Left left = clock->job.barrier();
    give_point(left.point, point);
    if (late != nullptr) {
      *late = left.late;
    }
    return 0;
  });
}

int elbow_clock_due(elbow_clock* clock, double seconds, int* due) {
  return guard([&] {
    refuse_null(clock, "clock");
    refuse_null(due, "due");
    if (!(seconds >= 0)) {
      return fail(EINVAL, "seconds: is below 0; give 0 or more");
    }
    *due = clock->job.due(seconds) ? 1 : 0;
    return 0;
  });
}

int64_t elbow_clock_local(const elbow_clock* clock) {
  return clock == nullptr ? fail(EINVAL, "clock: is NULL") : clock->job.local();
}

int elbow_clock_count(const elbow_clock* clock) {
  return clock == nullptr ? fail(EINVAL, "clock: is NULL") : clock->job.clocks();
}

const char* elbow_clock_source(const elbow_clock* clock) {
  return guard([&] {
    refuse_null(clock, "clock");
    const elbowroom::HostClock& own = clock->job.calibration();
    const char* const kernels = own.steered ? "monotonic" : "raw";
    return own.counter ? "tsc" : kernels;
  });
}

int elbow_clock_calibrated(const elbow_clock* clock, elbow_clock_calibration* calibration) {
  return guard([&] {
    check_size(calibration, "calibration");
    Wanted wanted = Wanted::best;
    if (clock == nullptr && read_wanted(wanted) != 0) {
      return -1;
    }
    const elbowroom::HostClock own = clock != nullptr ? clock->job.calibration() : calibration_of(wanted);
    give({sizeof(elbow_clock_calibration), own.counter ? 1 : 0, own.start_ticks, own.start_ns, own.scale,
          own.steered ? 1 : 0},
         calibration);
    return 0;
  });
}

int elbow_clock_anchor(uint64_t* ticks, int64_t* raw, int64_t* width) {
  return guard([&] {
    refuse_null(ticks, "ticks");
    refuse_null(raw, "raw");
    refuse_null(width, "width");
    if (!elbowroom::host_clock().counter) {
      return fail(ENOTSUP, "no counter of this processor can be trusted");
    }
    const elbowroom::Anchor anchor = elbowroom::take_anchor();
    *ticks = anchor.ticks;
    *raw = anchor.ns;
    *width = anchor.width;
    return 0;
  });
}

const char* elbow_clock_error(void) { return last_error; }

const char* elbow_clock_version(void) { return ELBOWROOM_VERSION; }

}  // extern "C"
