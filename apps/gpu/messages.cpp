#include "messages.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "protocol/batching.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr int kTag = 3;
constexpr std::uint64_t kSeedStep = 8;  // seeds of one batch differ by less than this (exchange/pattern)
constexpr std::size_t kWarm = 2;        // batches
constexpr std::size_t kLeast = 3;       // of a sample
constexpr std::int64_t kEnd = 0;        // iterations of the header that ends a phase

struct Header {
  std::int64_t iterations;
  std::uint64_t seed;
};

int node_of(int core) {
  const CoreInfo* const info = core < 0 ? nullptr : Machine::here().core(core);
  return std::max(info == nullptr ? 0 : info->node, 0);
}

}  // namespace

MessageLane::MessageLane(const Job& job, std::size_t bytes, int core) : memory_(bytes, node_of(core)) {
  if (core >= 0) Machine::here().bind_this_thread(core);
  MessageLayout layout;
  layout.stride = static_cast<std::int64_t>(bytes);
  lane_.comm = job.messages();
  lane_.rank = job.rank();
  lane_.size = static_cast<int>(bytes);
  lane_.buffers = Buffers(static_cast<char*>(memory_.data()), layout);
}

class Messages::AsLoad final : public Load {
 public:
  explicit AsLoad(Messages& messages) : messages_(messages) {}
  const char* unit() const override { return messages_.unit_.c_str(); }

  void start() override {
    const std::lock_guard lock(messages_.mutex_);
    messages_.batches_.clear();
    messages_.state_ = State::running;
    settled_from_ = begun_ = ended_ = 0;
    messages_.changed_.notify_all();
  }

  void settle() override { settled_from_ = count(); }
  bool running() override { return messages_.calibrated_ && count() >= settled_from_ + kWarm; }
  void begin() override { begun_ = count(); }
  void end() override { ended_ = count(); }

  double measured_s() const override {
    const std::lock_guard lock(messages_.mutex_);
    return messages_.batches_.size() < begun_ + kLeast ? 0 : seconds(begun_, messages_.batches_.size());
  }

  void stop() override {
    std::unique_lock lock(messages_.mutex_);
    if (messages_.state_ != State::running) return;
    messages_.state_ = State::stopping;
    messages_.changed_.notify_all();
    messages_.changed_.wait(lock, [&] { return messages_.state_ == State::idle; });
  }

  Sample sample() const override {
    const std::lock_guard lock(messages_.mutex_);
    Sample sample;
    if (ended_ <= begun_) return sample;
    std::int64_t round_trips = 0;
    for (std::size_t i = begun_; i < ended_; ++i) round_trips += messages_.batches_[i].count;
    sample.units = static_cast<std::size_t>(round_trips);
    const double half = seconds(begun_, ended_) / (2 * static_cast<double>(round_trips));
    sample.rate = 1e6 * half;
    if (!messages_.latency_) sample.rate = 1e-6 * messages_.lane_.lane().size / half;
    return sample;
  }

  std::string check() override { return messages_.holds_ ? "" : "a message did not arrive as it was sent"; }

 private:
  Messages& messages_;
  std::size_t settled_from_ = 0;
  std::size_t begun_ = 0;
  std::size_t ended_ = 0;

  std::size_t count() const {
    const std::lock_guard lock(messages_.mutex_);
    return messages_.batches_.size();
  }

  double seconds(std::size_t from, std::size_t to) const {
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += 1e-9 * static_cast<double>(messages_.batches_[i].took_ns);
    return sum;
  }
};

Messages::Messages(const Job& job, const Work& work, double window_s)
    : job_(job),
      lane_(job, work.bytes, work.core),
      unit_(work.latency ? "us" : "MB/s"),
      latency_(work.latency),
      target_ns_(batch_target_ns(window_s, minimum_sample_ns())) {}

std::unique_ptr<Load> Messages::load() { return std::make_unique<AsLoad>(*this); }

void Messages::lead() {
  std::unique_lock lock(mutex_);
  while (state_ != State::over) {
    changed_.wait(lock, [&] { return state_ != State::idle; });
    while (state_ == State::running) {
      lock.unlock();
      batch();
      lock.lock();
    }
    if (state_ == State::stopping) {
      state_ = State::idle;
      changed_.notify_all();
    }
  }
  state_ = State::idle;
  lock.unlock();
  holds_ = announce(kEnd) && holds_;
}

void Messages::release() {
  const std::lock_guard lock(mutex_);
  state_ = State::over;
  changed_.notify_all();
}

// Rank 1 stands ready when the clock is read, and its answer says whether the batch before arrived.
bool Messages::announce(std::int64_t iterations) {
  const Header header{iterations, seed_};
  MPI_Send(&header, sizeof header, MPI_BYTE, 1, kTag, job_.headers());
  std::int64_t held = 0;
  MPI_Recv(&held, sizeof held, MPI_BYTE, 1, kTag, job_.headers(), MPI_STATUS_IGNORE);
  return held != 0;
}

void Messages::batch() {
  seed_ += kSeedStep;
  prepare_batch(lane_.lane(), iterations_, seed_);
  const bool followed = announce(iterations_);
  const std::int64_t start = now_ns();
  const bool held = run_batch(lane_.lane(), iterations_, seed_);
  const std::int64_t took = now_ns() - start;
  holds_ = holds_ && followed && held && batch_holds(lane_.lane(), iterations_, seed_);
  const std::lock_guard lock(mutex_);
  batches_.push_back({took, iterations_});
  if (calibrated_) return;
  calibrated_ = batch_fits(iterations_, static_cast<double>(took), target_ns_, 1);
  if (!calibrated_) iterations_ = next_iterations(iterations_, static_cast<double>(took), target_ns_, 1);
}

void follow_messages(const Job& job, const Lane& lane) {
  for (bool held = true;;) {
    Header header{};
    MPI_Recv(&header, sizeof header, MPI_BYTE, 0, kTag, job.headers(), MPI_STATUS_IGNORE);
    if (header.iterations != kEnd) prepare_batch(lane, header.iterations, header.seed);
    const std::int64_t answer = held ? 1 : 0;
    MPI_Send(&answer, sizeof answer, MPI_BYTE, 0, kTag, job.headers());
    if (header.iterations == kEnd) return;
    held = run_batch(lane, header.iterations, header.seed);
  }
}

}  // namespace elbowroom::gpu_bench
