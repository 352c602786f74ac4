#include "messages.hpp"

#include <sched.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "elbowroom/broadcast_mpi.h"

namespace elbowroom::starpu_mpi {

// Data that this rank receives.
struct Incoming {
  starpu_data_handle_t handle = nullptr;
  Address address;
  int root = 0;
  std::function<void()> received;
  std::optional<Contents> contents;
  bool forwards = false;  // the handle is acquired for reading behind the receive, until the data are forwarded
  // Under the mutex:
  bool readable = false;   // the second acquisition has happened
  bool forwarded = false;  // the data are no longer needed for others
};

namespace {

// Ready data wait for further recipients until so many more tasks are submitted, or none was for a while: a thread that
// submits is given a core later than the workers that finish its first tasks.
constexpr std::uint64_t kHold = 500;
constexpr std::chrono::microseconds kHoldTime(100);

constexpr std::chrono::microseconds kAttentive(200);  // after something happened, the thread looks without a pause
constexpr std::chrono::microseconds kLongest(100);    // between two looks while messages are under way
constexpr std::chrono::milliseconds kIdle(1);         // while none is

// What StarPU calls when a handle is acquired.
struct Callback {
  std::function<void()> function;
  static void call(void* own) {
    const std::unique_ptr<Callback> callback(static_cast<Callback*>(own));
    callback->function();
  }
};

void acquire_for(starpu_data_handle_t handle, starpu_data_access_mode mode, std::function<void()> then) {
  starpu_data_acquire_on_node_cb(handle, STARPU_MAIN_RAM, mode, Callback::call, new Callback{std::move(then)});
}

void release(starpu_data_handle_t handle) { starpu_data_release_on_node(handle, STARPU_MAIN_RAM); }

// Priorities of StarPU may be negative, those of broadcasts may not: the order is kept.
std::int32_t not_negative(int priority) {
  constexpr int kHalf = 1 << 30;
  return std::clamp(priority, -kHalf, kHalf - 1) + kHalf;
}

const char* environment(const char* name, const char* otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : otherwise;
}

}  // namespace

Messages::Messages(MPI_Comm communicator, int cpu) {
  MPI_Comm_dup(communicator, &communicator_);
  MPI_Comm_dup(communicator, &collectives_on_);
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &size_);
  const elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(communicator_);
  elbow_broadcast_network network{};
  network.size = sizeof network;
  network.bandwidth = std::strtod(environment("ELBOW_BROADCAST_BANDWIDTH", "0"), nullptr);
  elbow_broadcast_settings settings{};
  settings.size = sizeof settings;
  settings.network = &network;
  broadcast_ = elbow_broadcast_new(&transport, &settings);
  if (broadcast_ == nullptr) fail(elbow_broadcast_error());
  tree_ = environment("ELBOW_BROADCAST_TREE", "auto");
  way_ = {sizeof way_, tree_.c_str(), std::strtoull(environment("ELBOW_BROADCAST_SEGMENT", "0"), nullptr, 10)};
  thread_ = std::thread([this, cpu] {
    try {
      progress(cpu);
    } catch (const std::exception& error) {
      fail(error.what());
    }
  });
}

Messages::~Messages() {
  {
    const Lock lock(mutex_);
    stop_ = true;
  }
  posted_any_.notify_one();
  thread_.join();
  elbow_broadcast_free(broadcast_);
  MPI_Comm_free(&communicator_);
  MPI_Comm_free(&collectives_on_);
}

void Messages::fail(const std::string& sentence) const {
  warn(sentence);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void Messages::warn(const std::string& sentence) const {
  std::fprintf(stderr, "elbowroom: rank %d: %s\n", rank_, sentence.c_str());
}

void Messages::check(int result) const {
  if (result != 0) throw std::runtime_error(elbow_broadcast_error());
}

taskflow::Counters Messages::counters() {
  const Lock lock(mutex_);
  return counters_;
}

taskflow::Recipients::Added Messages::add(const VersionPtr& version, int rank, int priority) {
  using Added = taskflow::Recipients::Added;
  Added added{};
  {
    const Lock lock(mutex_);
    added = version->recipients.add(rank, priority, size_, version->sent, counters_);
  }
  if (added == Added::kLate) send(version->handle, version->address, rank, priority, {});
  if (added == Added::kGathered && version->recipients.count == 1) acquire(version);
  return added;
}

void Messages::send(starpu_data_handle_t handle, Address address, int rank, int priority, std::function<void()> over) {
  const auto version = std::make_shared<Version>(handle, address);
  version->over = std::move(over);
  version->held = false;
  version->recipients.bag.push_back({rank, priority});
  acquire(version);
}

void Messages::acquire(const VersionPtr& version) {
  {
    const Lock lock(mutex_);
    ++pending_;
  }
  acquire_for(version->handle, STARPU_R, [this, version] { on_ready(version); });
}

void Messages::on_ready(const VersionPtr& version) {
  {
    const Lock lock(mutex_);
    version->ready = true;
    if (version->held) held_.push_back({submitted_ + kHold, version});
    if (!version->held) posted_.emplace_back([this, version] { transmit(version); });
  }
  posted_any_.notify_one();
}

void Messages::close(const VersionPtr& version) {
  const Lock lock(mutex_);
  if (!std::exchange(version->held, false) || !version->ready || version->sent) return;
  posted_.emplace_back([this, version] { transmit(version); });
}

void Messages::close_all() {
  const Lock lock(mutex_);
  last_submission_ = {};
}

void Messages::receive(starpu_data_handle_t handle, Address address, int root, std::function<void()> received) {
  const auto incoming = std::make_shared<Incoming>();
  incoming->handle = handle;
  incoming->address = address;
  incoming->root = root;
  incoming->received = std::move(received);
  // Without it, StarPU would not run the second acquisition behind the first one.
  incoming->forwards = starpu_data_get_sequential_consistency_flag(handle) != 0;
  {
    const Lock lock(mutex_);
    ++pending_;
  }
  acquire_for(handle, STARPU_W, [this, incoming] { post([this, incoming] { expect(incoming); }); });
  if (!incoming->forwards) return;
  // Readers start when the data are here; a writer waits for this one, too, which ends when they are forwarded.
  acquire_for(handle, STARPU_R, [this, incoming] { note(incoming, &Incoming::readable); });
}

void Messages::count_submission(bool here) {
  const auto now = Clock::now();
  const Lock lock(mutex_);
  ++submitted_;
  last_submission_ = now;
  counters_.tasks += here;
}

void Messages::post(std::function<void()> action) {
  {
    const Lock lock(mutex_);
    posted_.push_back(std::move(action));
  }
  posted_any_.notify_one();
}

void Messages::finish_one() {
  const Lock lock(mutex_);
  if (--pending_ == 0) changed_.notify_all();
}

void Messages::wait() {
  close_all();
  Lock lock(mutex_);
  changed_.wait(lock, [this] { return pending_ == 0; });
}

bool Messages::idle() {
  const Lock lock(mutex_);
  return pending_ == 0;
}

void Messages::collective(const std::function<MPI_Request(MPI_Comm)>& start) {
  bool over = false;
  post([&] { collectives_.push_back({start(collectives_on_), &over}); });
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return over; });
}

void Messages::progress(int cpu) {
  if (cpu >= 0) starpu_bind_thread_on(cpu, STARPU_THREAD_ACTIVE, "MPI");
  auto moved = Clock::now();
  for (;;) {
    {
      const Lock lock(mutex_);
      if (stop_) return;
    }
    const bool acted = act();
    const bool any = take_events() || acted;
    const auto now = Clock::now();
    if (test_collectives() || any) {
      moved = now;
    } else {
      pause(now - moved);
    }
  }
}

// What other threads asked for, and what was held for long enough.
bool Messages::act() {
  {
    const Lock lock(mutex_);
    actions_.swap(posted_);
    const bool quiet = !held_.empty() && Clock::now() - last_submission_ > kHoldTime;
    while (!held_.empty() && (quiet || held_.front().until <= submitted_)) {
      const VersionPtr version = std::move(held_.front().version);
      held_.pop_front();
      if (std::exchange(version->held, false)) actions_.emplace_back([this, version] { transmit(version); });
    }
  }
  for (const auto& action : actions_) action();
  const bool any = !actions_.empty();
  actions_.clear();
  return any;
}

void Messages::pause(Clock::duration quiet) {
  if (quiet < kAttentive) {
    sched_yield();
    return;
  }
  Lock lock(mutex_);
  const Clock::duration longest = pending_ > 0 || !collectives_.empty() ? Clock::duration(kLongest) : kIdle;
  if (posted_.empty() && !stop_) posted_any_.wait_for(lock, std::min(quiet / 16, longest));
}

bool Messages::test_collectives() {
  bool any = false;
  for (std::size_t i = 0; i < collectives_.size();) {
    int over = 0;
    MPI_Test(&collectives_[i].request, &over, MPI_STATUS_IGNORE);
    if (over == 0) {
      ++i;
      continue;
    }
    any = true;
    const Lock lock(mutex_);
    *collectives_[i].over = true;
    collectives_.erase(collectives_.begin() + static_cast<std::ptrdiff_t>(i));
    changed_.notify_all();
  }
  return any;
}

void Messages::transmit(const VersionPtr& version) {
  std::vector<elbow_broadcast_recipient> list;
  {
    const Lock lock(mutex_);
    version->sent = true;
    for (const auto& [rank, priority] : std::exchange(version->recipients.bag, {})) {
      list.push_back({rank, not_negative(priority)});
    }
  }
  Contents& contents = version->contents.emplace(version->handle);
  contents.copy_out();
  Operation operation = 0;
  check(elbow_broadcast_send(broadcast_, static_cast<std::uint32_t>(version->address.kind), version->address.tag,
                             contents.bytes().data(), contents.bytes().size(), list.data(), list.size(), &way_,
                             &operation));
  transfers_[operation].version = version;
  if (contents.copied()) release(version->handle);
}

void Messages::expect(const std::shared_ptr<Incoming>& incoming) {
  Contents& contents = incoming->contents.emplace(incoming->handle);
  Operation operation = 0;
  check(elbow_broadcast_receive(broadcast_, static_cast<std::uint32_t>(incoming->address.kind), incoming->root,
                                incoming->address.tag, contents.bytes().data(), contents.bytes().size(), &operation));
  transfers_[operation].incoming = incoming;
}

bool Messages::take_events() {
  bool any = false;
  elbow_broadcast_event event{};
  event.size = sizeof event;
  for (;;) {
    const int result = elbow_broadcast_next(broadcast_, &event);
    if (result < 0) throw std::runtime_error(elbow_broadcast_error());
    if (result == 0) return any;
    any = true;
    switch (event.kind) {
      case ELBOW_BROADCAST_RECEIVED: {
        const auto found = transfers_.find(event.operation);
        if (found != transfers_.end() && found->second.incoming) received(*found->second.incoming);
        break;
      }
      case ELBOW_BROADCAST_RELEASED: released(event.operation); break;
      case ELBOW_BROADCAST_STALLED: warn(name_of(event.operation) + event.text); break;
      case ELBOW_BROADCAST_LOST: throw std::runtime_error("rank " + std::to_string(event.rank) + ": is gone");
      default: throw std::runtime_error(name_of(event.operation) + event.text);
    }
  }
}

std::string Messages::name_of(Operation operation) const {
  const auto found = transfers_.find(operation);
  if (found == transfers_.end()) return {};
  const auto& [version, incoming] = found->second;
  const std::string tag = "data with tag " + std::to_string((version ? version->address : incoming->address).tag);
  return tag + (version ? ", sent: " : " of rank " + std::to_string(incoming->root) + ": ");
}

void Messages::received(Incoming& incoming) {
  incoming.contents->copy_back();
  if (incoming.forwards) release(incoming.handle);
  if (incoming.forwards && incoming.received) incoming.received();
}

void Messages::released(Operation operation) {
  const Transfer transfer = std::move(transfers_.extract(operation).mapped());
  if (const VersionPtr& version = transfer.version) {
    if (!version->contents->copied()) release(version->handle);
    version->contents.reset();
    if (version->over) version->over();
    finish_one();
    return;
  }
  Incoming& incoming = *transfer.incoming;
  if (!incoming.forwards) {
    release(incoming.handle);
    if (incoming.received) incoming.received();
    finish_one();
    return;
  }
  note(transfer.incoming, &Incoming::forwarded);
}

// Both have happened: writers may have the handle.
void Messages::note(const std::shared_ptr<Incoming>& incoming, bool Incoming::*happened) {
  {
    const Lock lock(mutex_);
    *incoming.*happened = true;
    if (!incoming->readable || !incoming->forwarded) return;
  }
  release(incoming->handle);
  finish_one();
}

}  // namespace elbowroom::starpu_mpi
