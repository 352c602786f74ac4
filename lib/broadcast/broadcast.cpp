#include "elbowroom/broadcast.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "c_interface.hpp"
#include "engine.hpp"
#include "events.hpp"
#include "given.hpp"
#include "turns.hpp"
#include "ways.hpp"

namespace {

using namespace elbowroom::broadcast;

namespace c = elbowroom::c_interface;

// Runs a call of the C interface. What is neither the caller's fault nor memory is the transport's.
template <typename Call>
int guarded(const Call& call) {
  return c::guard(call, ECOMM);
}

// Sizes of the structs of the first release.
constexpr std::size_t kSettings = sizeof(elbow_broadcast_settings);
constexpr std::size_t kWay = sizeof(elbow_broadcast_way);
constexpr std::size_t kEvent = sizeof(elbow_broadcast_event);
constexpr std::size_t kCounters = sizeof(elbow_broadcast_counters);

constexpr double kWatchdog = 60.0;                         // s
constexpr int kSpins = 64;                                 // looks between two looks at the clock
constexpr double kLook = 25e-9;                            // s that a look takes at least: some clocks stand still
constexpr double kSpinning = 100e-6;                       // s of looks before others may have the core
constexpr double kSlowest = 1e-9;                          // s/B: so much longer while data are under way
constexpr double kLongestSpinning = 10e-3;                 // s
constexpr int kTurn = 64;                                  // happenings for which the thread keeps others waiting
constexpr auto kAttentive = std::chrono::milliseconds(1);  // after something happened, the thread looks without a pause
constexpr auto kLongest = std::chrono::microseconds(200);  // between two looks later

std::string sentence(const Stall& stall) {
  std::string text = "nothing has moved for " + std::to_string(static_cast<int>(stall.seconds)) + " s: data of rank " +
                     std::to_string(stall.key.root) + " with tag " + std::to_string(stall.key.tag) + " wait for rank";
  for (std::size_t i = 0; i < stall.ranks.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(stall.ranks[i]);
  }
  return text + "; see whether these make progress and have posted the receive";
}

std::string neglect(double seconds) {
  return "this rank made no progress for " + std::to_string(static_cast<int>(seconds)) +
         " s with operations open, and delayed those below it in the trees: without the library's thread, call "
         "elbow_broadcast_progress, _next or _wait often; or use elbow_broadcast_start";
}

constexpr int kKinds[] = {ELBOW_BROADCAST_RECEIVED, ELBOW_BROADCAST_RELEASED, ELBOW_BROADCAST_FAILED,
                          ELBOW_BROADCAST_LOST};

}  // namespace

struct elbow_broadcast {
  elbow_broadcast(const elbow_broadcast_transport& given, const elbow_broadcast_settings& settings)
      : transport(given),
        confined(given.confined),
        observer(make_trace_observer()),
        engine(transport, settings_of(&settings, given.ranks)),
        knows_network(settings.network != nullptr),
        chooser(network_of(settings.network), settings_of(&settings, given.ranks)),
        watchdog(settings.watchdog > 0 ? settings.watchdog : kWatchdog),
        stepped(transport.now()),
        attentive_since(stepped) {
    engine.observe(observer.get());
  }

  // Under the mutex: does all that can be done now, or so many things, and notes what happened.
  bool progress(int most = std::numeric_limits<int>::max()) {
    int done = 0;
    while (done < most && engine.step()) ++done;
    collect();
    return done > 0;
  }

  // How long to look for the next happening before others may have the core, s: data that are under way need this rank.
  double patience() const {
    return std::clamp(static_cast<double>(engine.under_way()) * kSlowest, kSpinning, kLongestSpinning);
  }

  // Looks for the next happening, some times, and does what it asks for; whether there was one. To look for one more, once
  // what is awaited is there, can cost a time slice: some MPIs give the core away whenever nothing has arrived.
  bool spin(double seconds) {
    watch();
    const double until = stepped + seconds;
    const int rounds = static_cast<int>(seconds / (kSpins * kLook));
    for (int round = 0; round < rounds && (round == 0 || transport.now() < until); ++round) {
      for (int i = 0; i < kSpins; ++i) {
        if (!engine.step()) continue;
        collect();
        return true;
      }
    }
    return false;
  }

  Way way_of(const elbow_broadcast_way* given, std::size_t size, std::size_t count) {
    const elbow_broadcast_way way = c::taken_or_zeros(given, "way", kWay);
    const std::size_t segment = way.segment;
    const char* const fallback = given == nullptr && knows_network ? "auto" : "binomial";
    const std::string_view tree = way.tree != nullptr ? way.tree : fallback;
    if (tree == "auto") return chooser.choose(size, count, segment);
    try {
      return parse_way(tree, segment);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("tree '" + std::string(tree) + "': " + error.what());
    }
  }

  void collect() {
    bool any = false;
    while (auto event = engine.next_event()) {
      events.add({kKinds[static_cast<int>(event->kind)], event->operation, event->rank, std::move(event->text)});
      any = true;
    }
    if (any && running) tell();
  }

  // Threads in _wait look again.
  void tell() {
    happened.fetch_add(1);
    happened.notify_all();
  }

  // The thread need not sleep: something was sent, or is wanted.
  void rouse() {
    if (running) roused.notify_one();
  }

  // Under the mutex, wherever progress is made: looks at the clock, for operations that wait too long.
  void watch() {
    const double now = transport.now();
    if (now - stepped >= watchdog) {
      // What did not happen meanwhile is not the others' fault.
      attentive_since = now;
      if (!engine.idle()) events.add({ELBOW_BROADCAST_STALLED, 0, transport.rank(), neglect(now - stepped), false});
    }
    stepped = now;
    if (now - attentive_since < watchdog || now - looked < watchdog / 8) return;
    looked = now;
    for (const Stall& stall : engine.stalls(watchdog)) {
      events.add({ELBOW_BROADCAST_STALLED, stall.operation, stall.ranks.front(), sentence(stall), stall.begun});
    }
    if (running) tell();
  }

  GivenTransport transport;
  const char* confined;
  std::unique_ptr<Observer> observer;  // null where the process is not traced
  Engine engine;
  bool knows_network;
  Chooser chooser;
  double watchdog;         // s
  double stepped;          // s, when progress was made last
  double attentive_since;  // s, from when on progress was made without a gap
  double looked = 0;       // s, for stalls
  Turns mutex;
  Events events;
  std::string failure;  // of the thread
  std::thread thread;
  std::atomic<bool> running = false;
  std::atomic<std::uint32_t> happened = 0;  // counts when something was noted by the thread
  std::mutex sleep;
  std::condition_variable roused;
};

namespace {

// Looks without a pause while things happen; else it lets others have the core, for longer the longer nothing happens.
void pause(elbow_broadcast& self, std::chrono::steady_clock::duration quiet) {
  if (quiet < kAttentive) {
    sched_yield();
    return;
  }
  std::unique_lock lock(self.sleep);
  self.roused.wait_for(lock, std::min<std::chrono::steady_clock::duration>(quiet / 16, kLongest));
}

void run_thread(elbow_broadcast& self) {
  if (self.observer != nullptr) self.observer->thread_started();
  auto moved = std::chrono::steady_clock::now();
  while (self.running) {
    bool any = false;
    const int done = c::guard(
        [&] {
          const std::lock_guard lock(self.mutex);
          self.watch();
          any = self.progress(kTurn);
          return 0;
        },
        ECOMM);
    if (done != 0) {
      const std::lock_guard lock(self.mutex);
      self.failure = c::last_error;
      self.tell();
      return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (any) {
      moved = now;
    } else {
      pause(self, now - moved);
    }
  }
}

// What a wait can say now: 0 when the event is there, 1 when it may still come, -1 with the error.
int look(elbow_broadcast& self, Operation operation, int kind) {
  Events& events = self.events;
  if (!self.failure.empty()) return c::fail(ECOMM, self.failure);
  if (!events.known(operation)) {
    return c::fail(EINVAL, "operation " + std::to_string(operation) + ": there was none of that number");
  }
  if (const auto failed = events.take(operation, ELBOW_BROADCAST_FAILED)) return c::fail(ECOMM, failed->text);
  if (events.failed(operation)) return c::fail(ECOMM, "operation " + std::to_string(operation) + ": failed before");
  if (events.had(operation, kind)) return 0;
  if (const auto unreadable = events.take(0, ELBOW_BROADCAST_FAILED)) return c::fail(ECOMM, unreadable->text);
  if (const auto stalled = events.take(operation, ELBOW_BROADCAST_STALLED)) return c::fail(ETIMEDOUT, stalled->text);
  if (!events.is_receive(operation)) return 1;
  const auto lost = events.take(operation, ELBOW_BROADCAST_LOST);
  if (!lost) return 1;
  return c::fail(ECOMM, "rank " + std::to_string(lost->rank) +
                            ": is gone, and sent no data for this receive; they come only if other ranks have them");
}

}  // namespace

extern "C" {

elbow_broadcast* elbow_broadcast_new(const elbow_broadcast_transport* transport,
                                     const elbow_broadcast_settings* settings) {
  elbow_broadcast* result = nullptr;
  guarded([&] {
    result = new elbow_broadcast(checked(transport), c::taken_or_zeros(settings, "settings", kSettings));
    result->transport.own();
    return 0;
  });
  return result;
}

void elbow_broadcast_free(elbow_broadcast* broadcast) {
  if (broadcast == nullptr) return;
  elbow_broadcast_stop(broadcast);
  delete broadcast;
}

int elbow_broadcast_receive(elbow_broadcast* broadcast, uint32_t context, int32_t root, int64_t tag, void* data,
                            size_t size, elbow_broadcast_operation* operation) {
  return guarded([&] {
    c::refuse_null(broadcast, "broadcast");
    c::refuse_null(operation, "operation");
    if (size > 0) c::refuse_null(data, "data");
    const std::lock_guard lock(broadcast->mutex);
    *operation = broadcast->engine.receive({context, root, tag}, {static_cast<std::byte*>(data), size});
    broadcast->events.begin(*operation, true);
    broadcast->collect();
    broadcast->rouse();
    return 0;
  });
}

int elbow_broadcast_send(elbow_broadcast* broadcast, uint32_t context, int64_t tag, const void* data, size_t size,
                         const elbow_broadcast_recipient* recipients, size_t count, const elbow_broadcast_way* way,
                         elbow_broadcast_operation* operation) {
  return guarded([&] {
    c::refuse_null(broadcast, "broadcast");
    c::refuse_null(operation, "operation");
    if (size > 0) c::refuse_null(data, "data");
    if (count > 0) c::refuse_null(recipients, "recipients");
    std::vector<Destination> destinations;
    destinations.reserve(count);
    for (size_t i = 0; i < count; ++i) destinations.push_back({recipients[i].rank, recipients[i].priority});
    const std::lock_guard lock(broadcast->mutex);
    *operation = broadcast->engine.send(context, tag, {static_cast<const std::byte*>(data), size}, destinations,
                                        broadcast->way_of(way, size, count));
    broadcast->events.begin(*operation, false);
    broadcast->collect();
    broadcast->rouse();
    return 0;
  });
}

int elbow_broadcast_progress(elbow_broadcast* broadcast) {
  return guarded([&] {
    c::refuse_null(broadcast, "broadcast");
    if (broadcast->running) return 0;
    const std::lock_guard lock(broadcast->mutex);
    broadcast->watch();
    broadcast->progress();
    return 0;
  });
}

int elbow_broadcast_next(elbow_broadcast* broadcast, elbow_broadcast_event* event) {
  return guarded([&] {
    thread_local std::string text;
    c::refuse_null(broadcast, "broadcast");
    const std::lock_guard lock(broadcast->mutex);
    if (!broadcast->failure.empty()) return c::fail(ECOMM, broadcast->failure);
    elbow_broadcast_event given{};
    c::check_size(event, "event", kEvent);
    c::give(given, event);
    if (broadcast->events.empty() && !broadcast->running) {
      broadcast->watch();
      broadcast->progress();
    }
    auto first = broadcast->events.next();
    if (!first) return 0;
    text = std::move(first->text);
    given = {sizeof given, first->kind, first->operation, first->rank, text.c_str()};
    c::give(given, event);
    return 1;
  });
}

int elbow_broadcast_wait(elbow_broadcast* broadcast, elbow_broadcast_operation operation, int kind) {
  return guarded([&] {
    c::refuse_null(broadcast, "broadcast");
    if (kind != ELBOW_BROADCAST_RECEIVED && kind != ELBOW_BROADCAST_RELEASED) {
      throw std::invalid_argument("kind " + std::to_string(kind) +
                                  ": use ELBOW_BROADCAST_RECEIVED or ELBOW_BROADCAST_RELEASED");
    }
    const auto spinning_until = std::chrono::steady_clock::now() + std::chrono::duration<double>(kSpinning);
    bool quiet = false;  // nothing happened while this thread looked
    for (;;) {
      const std::uint32_t before = broadcast->happened;
      {
        const std::lock_guard lock(broadcast->mutex);
        do {
          const int now = look(*broadcast, operation, kind);
          if (now <= 0) return now;
          if (broadcast->running) break;
          quiet = !broadcast->spin(quiet ? kSpinning : broadcast->patience());
        } while (!quiet);
      }
      if (broadcast->running && std::chrono::steady_clock::now() > spinning_until) {
        broadcast->happened.wait(before);
      } else {
        sched_yield();
      }
    }
  });
}

int elbow_broadcast_start(elbow_broadcast* broadcast, int core) {
  return guarded([&] {
    c::refuse_null(broadcast, "broadcast");
    if (broadcast->running) throw std::invalid_argument("thread: runs already; stop it first");
    if (broadcast->confined != nullptr) return c::fail(ENOTSUP, std::string("thread: ") + broadcast->confined);
    if (core >= CPU_SETSIZE) throw std::invalid_argument("core " + std::to_string(core) + ": does not exist");
    broadcast->running = true;
    try {
      broadcast->thread = std::thread(run_thread, std::ref(*broadcast));
    } catch (const std::system_error&) {
      broadcast->running = false;
      return c::fail(EAGAIN, "thread: cannot be started; raise the limit of threads");
    }
    if (core < 0) return 0;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<std::size_t>(core), &cores);
    if (pthread_setaffinity_np(broadcast->thread.native_handle(), sizeof cores, &cores) == 0) return 0;
    elbow_broadcast_stop(broadcast);
    throw std::invalid_argument("core " + std::to_string(core) +
                                ": cannot be used; give one that this process may use");
  });
}

int elbow_broadcast_stop(elbow_broadcast* broadcast) {
  return guarded([&] {
    c::refuse_null(broadcast, "broadcast");
    broadcast->running = false;
    broadcast->roused.notify_one();
    if (broadcast->thread.joinable()) broadcast->thread.join();
    broadcast->tell();  // threads in _wait make progress themselves now
    return 0;
  });
}

int elbow_broadcast_count(elbow_broadcast* broadcast, elbow_broadcast_counters* counters) {
  return guarded([&] {
    c::refuse_null(broadcast, "broadcast");
    const std::lock_guard lock(broadcast->mutex);
    const Counters& now = broadcast->engine.counters();
    const elbow_broadcast_counters given{sizeof given,  now.broadcasts, now.sends, now.receives,
                                         now.forwarded, now.bypassed,   now.stored};
    c::check_size(counters, "counters", kCounters);
    c::give(given, counters);
    return 0;
  });
}

const char* elbow_broadcast_version(void) { return ELBOWROOM_VERSION; }

const char* elbow_broadcast_error(void) { return c::last_error; }

}  // extern "C"
