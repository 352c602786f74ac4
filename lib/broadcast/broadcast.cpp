#include "elbowroom/broadcast.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "engine.hpp"
#include "ways.hpp"

namespace {

using namespace elbowroom::broadcast;

thread_local std::string last_error;

int refused(int error, std::string text) {
  last_error = std::move(text);
  errno = error;
  return -1;
}

// Runs a call of the C interface: exceptions become errno and a sentence.
template <typename Call>
int guarded(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return refused(ENOMEM, "memory: is used up; send less at once");
  } catch (const std::invalid_argument& error) {
    return refused(EINVAL, error.what());
  } catch (const std::exception& error) {
    return refused(ECOMM, error.what());
  }
}

struct Unreachable : std::runtime_error {
  Unreachable() : std::runtime_error("transport: failed; see what it says of itself") {}
};

// The caller's transport.
class GivenTransport : public Transport {
 public:
  explicit GivenTransport(const elbow_transport& given) : given_(given) {}
  ~GivenTransport() override {
    if (given_.close != nullptr) given_.close(given_.state);
  }

  int rank() const override { return given_.rank; }
  int size() const override { return given_.size; }
  double now() override { return given_.now(given_.state); }
  std::uint32_t channels() const override { return given_.channels; }

  void send_control(int peer, std::span<const std::byte> bytes) override {
    check(given_.send_control(given_.state, peer, bytes.data(), bytes.size()));
  }
  void send_data(int peer, std::uint32_t channel, std::span<const std::byte> data, Ticket ticket) override {
    check(given_.send_data(given_.state, peer, channel, data.data(), data.size(), ticket));
  }
  void receive_data(int peer, std::uint32_t channel, std::span<std::byte> data, Ticket ticket) override {
    check(given_.receive_data(given_.state, peer, channel, data.data(), data.size(), ticket));
  }
  void cancel(Ticket ticket) override { check(given_.cancel(given_.state, ticket)); }

  void wake(double at) override { wake_at_ = at; }

  bool poll(Happening& happening) override {
    if (wake_at_ >= 0 && now() >= wake_at_) {
      wake_at_ = -1;
      happening.kind = Happening::Kind::kWake;
      return true;
    }
    elbow_happening given{};
    const int found = given_.poll(given_.state, &given);
    if (found < 0) throw Unreachable();
    if (found == 0) return false;
    happening.kind = static_cast<Happening::Kind>(given.kind);
    happening.peer = given.peer;
    happening.ticket = given.ticket;
    happening.bytes = {static_cast<const std::byte*>(given.bytes), given.kind == ELBOW_CONTROL ? given.size : 0};
    return true;
  }

 private:
  static void check(int result) {
    if (result != 0) throw Unreachable();
  }

  elbow_transport given_;
  double wake_at_ = -1;  // s; below 0: not wanted
};

constexpr double kWatchdog = 60.0;    // s
constexpr int kSpins = 64;            // looks between two looks at the clock
constexpr int kRounds = 16;           // of them, at most, before others may have the core
constexpr double kSpinning = 100e-6;  // s, the same

Settings settings_of(const elbow_broadcast_settings* given, int size) {
  Settings settings;
  if (given == nullptr) return settings;
  if (given->inline_limit != 0) settings.inline_limit = given->inline_limit;
  if (given->window != 0) settings.window = given->window;
  if (given->pool != 0) settings.pool = given->pool;
  if (given->late < ELBOW_STORE_FORWARD || given->late > ELBOW_POSTPONE) {
    throw std::invalid_argument("late " + std::to_string(given->late) +
                                ": is unknown; use ELBOW_STORE_FORWARD, ELBOW_BYPASS or ELBOW_POSTPONE");
  }
  if (given->watchdog < 0) throw std::invalid_argument("watchdog: is negative; give seconds, or 0 for the default");
  if (settings.inline_limit > kMostSegment) {
    throw std::invalid_argument("inline_limit " + std::to_string(settings.inline_limit) +
                                ": is more than 1 GiB; larger data are sent in segments");
  }
  constexpr Late kLate[] = {Late::kStoreForward, Late::kBypass, Late::kPostpone};
  settings.late = kLate[given->late];
  if (given->groups != nullptr) settings.groups.assign(given->groups, given->groups + size);
  if (given->speeds != nullptr) settings.speeds.assign(given->speeds, given->speeds + size);
  return settings;
}

Network network_of(const elbow_network* given) {
  Network network;
  if (given == nullptr) return network;
  const auto take = [](double value, const char* field, double& into) {
    if (!(value >= 0) || std::isinf(value)) {
      throw std::invalid_argument(std::string(field) + ": is no number from 0 on; give 0 for the default");
    }
    if (value > 0) into = value;
  };
  take(given->latency, "latency", network.latency);
  take(given->overhead, "overhead", network.overhead);
  take(given->bandwidth, "bandwidth", network.bandwidth);
  take(given->forwarding, "forwarding", network.forwarding);
  return network;
}

std::string sentence(const Stall& stall) {
  std::string text = "nothing has moved for " + std::to_string(static_cast<int>(stall.seconds)) + " s: data of rank " +
                     std::to_string(stall.key.root) + " with tag " + std::to_string(stall.key.tag) + ", number " +
                     std::to_string(stall.sequence) + ", wait for rank";
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

constexpr int kKinds[] = {ELBOW_RECEIVED, ELBOW_RELEASED, ELBOW_FAILED, ELBOW_LOST};

}  // namespace

struct elbow_broadcast {
  elbow_broadcast(const elbow_transport& given, const elbow_broadcast_settings* settings)
      : transport(given),
        confined(given.confined),
        observer(make_trace_observer()),
        engine(transport, settings_of(settings, given.size)),
        knows_network(settings != nullptr && settings->network != nullptr),
        chooser(network_of(knows_network ? settings->network : nullptr), settings_of(settings, given.size)),
        watchdog(settings != nullptr && settings->watchdog > 0 ? settings->watchdog : kWatchdog),
        stepped(transport.now()),
        attentive_since(stepped) {
    engine.observe(observer.get());
  }

  struct Noted {
    int kind;
    Operation operation;
    int rank;
    std::string text;
  };

  // Under the mutex: does all that can be done now, and notes what happened.
  bool progress() {
    const bool any = engine.progress();
    collect();
    return any;
  }

  // Looks for the next happening, some times, and does what it asks for; whether there was one. To look for one more, once
  // what is awaited is there, can cost a time slice: some MPIs give the core away whenever nothing has arrived.
  bool spin() {
    watch();
    const double until = stepped + kSpinning;
    for (int round = 0; round < kRounds && (round == 0 || transport.now() < until); ++round) {
      for (int i = 0; i < kSpins; ++i) {
        if (!engine.step()) continue;
        collect();
        return true;
      }
    }
    return false;
  }

  Way way_of(const elbow_way* given, std::size_t size, std::size_t count) {
    const std::size_t segment = given != nullptr ? given->segment : 0;
    const char* const fallback = given == nullptr && knows_network ? "auto" : "binomial";
    const std::string tree = given != nullptr && given->tree != nullptr ? given->tree : fallback;
    if (tree == "auto") return chooser.choose(size, count, segment);
    try {
      return parse_way(tree, segment);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("tree '" + tree + "': " + error.what());
    }
  }

  void collect() {
    while (auto event = engine.next_event()) {
      const int kind = kKinds[static_cast<int>(event->kind)];
      events.push_back({kind, event->operation, event->rank, std::move(event->text)});
      if (kind == ELBOW_RECEIVED) received[event->operation] = true;
      if (kind == ELBOW_RELEASED || kind == ELBOW_FAILED) received.erase(event->operation);
    }
  }

  // Under the mutex, wherever progress is made: looks at the clock, for operations that wait too long.
  void watch() {
    const double now = transport.now();
    if (now - stepped >= watchdog) {
      // What did not happen meanwhile is not the others' fault.
      attentive_since = now;
      if (!engine.idle()) events.push_back({ELBOW_STALLED, 0, transport.rank(), neglect(now - stepped)});
    }
    stepped = now;
    if (now - attentive_since < watchdog || now - looked < watchdog / 8) return;
    looked = now;
    for (const Stall& stall : engine.stalls(watchdog)) {
      if (reported.insert({stall.key, stall.sequence}).second) {
        events.push_back({ELBOW_STALLED, stall.operation, stall.ranks.front(), sentence(stall)});
      }
    }
  }

  // The place of the first of these events; the end where there is none.
  std::deque<Noted>::iterator find(Operation operation, int kind) {
    return std::find_if(events.begin(), events.end(),
                        [=](const Noted& event) { return event.operation == operation && event.kind == kind; });
  }

  bool take(Operation operation, int kind) {
    const auto found = find(operation, kind);
    if (found == events.end()) return false;
    text = std::move(found->text);
    events.erase(found);
    return true;
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
  std::mutex mutex;
  std::deque<Noted> events;
  std::unordered_map<Operation, bool> received;  // operations that are not over
  std::set<std::pair<Key, std::uint32_t>> reported;
  std::string text;
  std::string failure;  // of the thread
  std::thread thread;
  std::atomic<bool> running = false;
};

namespace {

void run_thread(elbow_broadcast& self) {
  if (self.observer != nullptr) self.observer->thread_started();
  while (self.running) {
    bool any = false;
    try {
      const std::lock_guard lock(self.mutex);
      self.watch();
      any = self.progress();
    } catch (const std::exception& error) {
      const std::lock_guard lock(self.mutex);
      self.failure = error.what();
      return;
    }
    if (!any) sched_yield();
  }
}

// What a wait can say now: 0 when the event is there, 1 when it may still come, -1 with the error.
int look(elbow_broadcast& self, Operation operation, int kind) {
  if (!self.failure.empty()) return refused(ECOMM, self.failure);
  if (self.take(operation, ELBOW_FAILED)) return refused(ECOMM, self.text);
  if (self.take(operation, ELBOW_STALLED)) return refused(ETIMEDOUT, self.text);
  const auto live = self.received.find(operation);
  if (kind == ELBOW_RECEIVED && live != self.received.end() && live->second) {
    self.take(operation, ELBOW_RECEIVED);
    return 0;
  }
  const bool over = self.find(operation, ELBOW_RELEASED) != self.events.end();
  if (over) {
    self.take(operation, ELBOW_RECEIVED);
    if (kind == ELBOW_RELEASED) self.take(operation, ELBOW_RELEASED);
    return 0;
  }
  if (live != self.received.end()) return 1;
  return refused(EINVAL, "operation " + std::to_string(operation) + ": is over, or there was none of that number");
}

}  // namespace

extern "C" {

elbow_broadcast* elbow_broadcast_new(const elbow_transport* transport, const elbow_broadcast_settings* settings) {
  elbow_broadcast* result = nullptr;
  guarded([&] {
    if (transport == nullptr) throw std::invalid_argument("transport: is NULL; use elbow_transport_of_mpi");
    if (transport->poll == nullptr || transport->channels == 0) throw std::bad_alloc();
    result = new elbow_broadcast(*transport, settings);
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
                            size_t size, elbow_operation* operation) {
  return guarded([&] {
    const std::lock_guard lock(broadcast->mutex);
    *operation = broadcast->engine.receive({context, root, tag}, {static_cast<std::byte*>(data), size});
    broadcast->received[*operation] = false;
    broadcast->collect();
    return 0;
  });
}

int elbow_broadcast_send(elbow_broadcast* broadcast, uint32_t context, int64_t tag, const void* data, size_t size,
                         const elbow_recipient* recipients, size_t count, const elbow_way* way,
                         elbow_operation* operation) {
  return guarded([&] {
    std::vector<Destination> destinations;
    destinations.reserve(count);
    for (size_t i = 0; i < count; ++i) destinations.push_back({recipients[i].rank, recipients[i].priority});
    const std::lock_guard lock(broadcast->mutex);
    *operation = broadcast->engine.send(context, tag, {static_cast<const std::byte*>(data), size}, destinations,
                                        broadcast->way_of(way, size, count));
    broadcast->received[*operation] = false;
    broadcast->collect();
    return 0;
  });
}

int elbow_broadcast_progress(elbow_broadcast* broadcast) {
  return guarded([&] {
    if (broadcast->running) return 0;
    const std::lock_guard lock(broadcast->mutex);
    broadcast->watch();
    broadcast->progress();
    return 0;
  });
}

int elbow_broadcast_next(elbow_broadcast* broadcast, elbow_broadcast_event* event) {
  return guarded([&] {
    const std::lock_guard lock(broadcast->mutex);
    if (!broadcast->failure.empty()) return refused(ECOMM, broadcast->failure);
    if (broadcast->events.empty() && !broadcast->running) {
      broadcast->watch();
      broadcast->progress();
    }
    if (broadcast->events.empty()) return 0;
    const auto& first = broadcast->events.front();
    broadcast->text = first.text;
    *event = {first.kind, first.operation, first.rank, broadcast->text.c_str()};
    broadcast->events.pop_front();
    return 1;
  });
}

int elbow_broadcast_wait(elbow_broadcast* broadcast, elbow_operation operation, int kind) {
  return guarded([&] {
    if (kind != ELBOW_RECEIVED && kind != ELBOW_RELEASED) {
      throw std::invalid_argument("kind " + std::to_string(kind) + ": use ELBOW_RECEIVED or ELBOW_RELEASED");
    }
    for (;;) {
      {
        const std::lock_guard lock(broadcast->mutex);
        const int now = look(*broadcast, operation, kind);
        if (now <= 0) return now;
        if (!broadcast->running && broadcast->spin()) continue;
      }
      sched_yield();
    }
  });
}

int elbow_broadcast_start(elbow_broadcast* broadcast, int core) {
  return guarded([&] {
    if (broadcast->running) throw std::invalid_argument("thread: runs already; stop it first");
    if (broadcast->confined != nullptr) return refused(ENOTSUP, std::string("thread: ") + broadcast->confined);
    if (core >= CPU_SETSIZE) throw std::invalid_argument("core " + std::to_string(core) + ": does not exist");
    broadcast->running = true;
    try {
      broadcast->thread = std::thread(run_thread, std::ref(*broadcast));
    } catch (const std::system_error&) {
      broadcast->running = false;
      return refused(EAGAIN, "thread: cannot be started; raise the limit of threads");
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
  broadcast->running = false;
  if (broadcast->thread.joinable()) broadcast->thread.join();
  return 0;
}

int elbow_broadcast_count(elbow_broadcast* broadcast, elbow_broadcast_counters* counters) {
  const std::lock_guard lock(broadcast->mutex);
  const Counters& now = broadcast->engine.counters();
  *counters = {now.broadcasts, now.sends, now.receives, now.forwarded, now.bypassed, now.stored};
  return 0;
}

const char* elbow_broadcast_error(void) { return last_error.c_str(); }

}  // extern "C"
