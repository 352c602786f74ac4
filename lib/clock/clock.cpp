// The C interface: checks arguments, turns exceptions into errno and a sentence.
#include "elbowroom/clock.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>

#include "clock/job_clock.hpp"

struct elbow_clock {
  elbowroom::clock::JobClock job;
};

namespace {

using namespace elbowroom::clock;

thread_local char last_error[512] = "";

int refuse(int code, const char* sentence) {
  std::snprintf(last_error, sizeof last_error, "%s", sentence);
  errno = code;
  return -1;
}

// Calls `work`; -1 with errno where it throws.
template <typename Work>
int guarded(Work work) {
  try {
    work();
    return 0;
  } catch (const Unreachable& error) {
    return refuse(ECOMM, error.what());
  } catch (const Unsteady& error) {
    return refuse(EIO, error.what());
  } catch (const std::bad_alloc&) {
    return refuse(ENOMEM, "there is not enough memory for the clock");
  } catch (const std::system_error& error) {
    return refuse(error.code().value(), error.what());
  } catch (const std::exception& error) {
    return refuse(EIO, error.what());
  }
}

int needs_synchronising(const elbow_clock* clock) {
  return clock->job.synchronised()
             ? 0
             : refuse(EAGAIN, "the clocks were not compared yet: call elbow_clock_synchronise on every process first");
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
    std::snprintf(last_error, sizeof last_error, "ELBOW_CLOCK '%.100s': no such clock; raw or monotonic, or unset it",
                  name);
    errno = EINVAL;
    return -1;
  }
  return 0;
}

elbow_sync_point as_c(const SyncPoint& point) {
  return {point.local, point.offset.offset, point.offset.low, point.offset.high};
}

Peers wrapped(const elbow_peers& peers) {
  const auto done = [](int result, const char* what, int rank) {
    if (result != 0) {
      throw Unreachable(std::string(what) + " rank " + std::to_string(rank) +
                        " failed: its process or the network is gone");
    }
  };
  return {peers.rank, peers.size,
          [peers, done](int to, const void* bytes, std::size_t count) {
            done(peers.send(peers.self, to, bytes, count), "sending to", to);
          },
          [peers, done](int from, void* bytes, std::size_t count) {
            done(peers.receive(peers.self, from, bytes, count), "receiving from", from);
          }};
}

}  // namespace

extern "C" {

elbow_clock* elbow_clock_new(const elbow_peers* peers) {
  if (peers == nullptr || (peers->size > 1 && (peers->send == nullptr || peers->receive == nullptr))) {
    refuse(EINVAL, "peers: is or holds NULL; name a function to send and one to receive");
    return nullptr;
  }
  if (peers->size < 1 || peers->rank < 0 || peers->rank >= peers->size) {
    std::snprintf(last_error, sizeof last_error, "rank %d of %d: there is no such rank; ranks are 0 to size - 1",
                  peers->rank, peers->size);
    errno = EINVAL;
    return nullptr;
  }
  Wanted wanted = Wanted::best;
  if (read_wanted(wanted) != 0) {
    return nullptr;
  }
  std::unique_ptr<elbow_clock> opened;
  if (guarded([&] { opened.reset(new elbow_clock{JobClock(wrapped(*peers), source_of_host(wanted))}); }) != 0) {
    return nullptr;
  }
  return opened.release();
}

void elbow_clock_free(elbow_clock* clock) { delete clock; }

int elbow_clock_synchronise(elbow_clock* clock, elbow_sync_point* point) {
  if (clock == nullptr) {
    return refuse(EINVAL, "clock: is NULL");
  }
  return guarded([&] {
    const SyncPoint result = clock->job.synchronise();
    if (point != nullptr) {
      *point = as_c(result);
    }
  });
}

int elbow_clock_now(const elbow_clock* clock, int64_t* time, int64_t* error) {
  if (clock == nullptr || time == nullptr) {
    return refuse(EINVAL, clock == nullptr ? "clock: is NULL" : "time: is NULL");
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

int elbow_clock_barrier(elbow_clock* clock, elbow_sync_point* point, int64_t* late) {
  if (clock == nullptr) {
    return refuse(EINVAL, "clock: is NULL");
  }
  if (needs_synchronising(clock) != 0) {
    return -1;
  }
  return guarded([&] {
    const Left left = clock->job.barrier();
    if (point != nullptr) {
      *point = as_c(left.point);
    }
    if (late != nullptr) {
      *late = left.late;
    }
  });
}

int elbow_clock_due(elbow_clock* clock, double seconds, int* due) {
  if (clock == nullptr || due == nullptr) {
    return refuse(EINVAL, clock == nullptr ? "clock: is NULL" : "due: is NULL");
  }
  if (!(seconds >= 0)) {
    return refuse(EINVAL, "seconds: is below 0; give 0 or more");
  }
  return guarded([&] { *due = clock->job.due(seconds) ? 1 : 0; });
}

int64_t elbow_clock_local(const elbow_clock* clock) { return clock->job.local(); }

int elbow_clock_count(const elbow_clock* clock) { return clock->job.clocks(); }

const char* elbow_clock_source(const elbow_clock* clock) {
  const elbowroom::HostClock& own = clock->job.calibration();
  const char* const kernels = own.steered ? "monotonic" : "raw";
  return own.counter ? "tsc" : kernels;
}

int elbow_clock_calibrated(const elbow_clock* clock, elbow_calibration* calibration) {
  Wanted wanted = Wanted::best;
  if (calibration == nullptr) {
    return refuse(EINVAL, "calibration: is NULL");
  }
  if (clock == nullptr && read_wanted(wanted) != 0) {
    return -1;
  }
  return guarded([&] {
    const elbowroom::HostClock own = clock != nullptr ? clock->job.calibration() : calibration_of(wanted);
    *calibration = {own.counter ? 1 : 0, own.start_ticks, own.start_ns, own.scale, own.steered ? 1 : 0};
  });
}

int elbow_clock_anchor(uint64_t* ticks, int64_t* raw, int64_t* width) {
  if (ticks == nullptr || raw == nullptr || width == nullptr) {
    return refuse(EINVAL, "ticks, raw or width: is NULL");
  }
  return guarded([&] {
    if (!elbowroom::host_clock().counter) {
      throw std::system_error(ENOTSUP, std::generic_category(), "no counter of this processor can be trusted");
    }
    const elbowroom::Anchor anchor = elbowroom::take_anchor();
    *ticks = anchor.ticks;
    *raw = anchor.ns;
    *width = anchor.width;
  });
}

const char* elbow_clock_error(void) { return last_error; }

}  // extern "C"
