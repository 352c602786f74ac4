#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "bench.hpp"
#include "elbowroom/broadcast_mpi.h"
#include "elbowroom/clock_mpi.h"

namespace elbowroom::broadcast::bench {
namespace {

constexpr int kTag = 1;
constexpr std::size_t kStride = 4096;  // of the bytes that are checked
constexpr double kCompare = 1.0;       // s between comparisons of the clocks

int rank_of(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}

// The library over a communicator of its own, with the settings of a case.
class Library {
 public:
  explicit Library(const Case& one) {
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
    const elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(communicator_);
    elbow_broadcast_settings settings{};
    settings.size = sizeof settings;
    settings.window = one.window;
    settings.speeds = one.speeds.empty() ? nullptr : one.speeds.data();
    broadcast_ = elbow_broadcast_new(&transport, &settings);
    check(broadcast_ != nullptr);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    elbow_broadcast_free(broadcast_);
    MPI_Comm_free(&communicator_);
  }

  elbow_broadcast* get() const { return broadcast_; }

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  elbow_broadcast* broadcast_ = nullptr;
};

// Bytes that differ from repetition to repetition, at the same places in all buffers.
class Data {
 public:
  explicit Data(std::size_t most) : bytes_(most + 1) {}

  char* get() { return bytes_.data(); }

  void mark(std::size_t size, int stamp) {
    for (std::size_t at = 0; at < size; at += kStride) bytes_[at] = value(at, stamp);
    if (size > 0) bytes_[size - 1] = value(size - 1, stamp);
  }

  void verify(std::size_t size, int stamp) const {
    bool right = size == 0 || bytes_[size - 1] == value(size - 1, stamp);
    for (std::size_t at = 0; at + 1 < size; at += kStride) right = right && bytes_[at] == value(at, stamp);
    if (right) return;
    std::fprintf(stderr, "error: rank %d received wrong data of %zu bytes\n", rank_of(MPI_COMM_WORLD), size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

 private:
  static char value(std::size_t at, int stamp) {
    return static_cast<char>(at / kStride + static_cast<unsigned>(stamp));
  }

  std::vector<char> bytes_;
};

// By the clock that all ranks share: when this rank began (the root), received and released.
struct Moment {
  double begun = 0;
  double received = 0;
  double released = 0;
};

using Group = std::pair<std::size_t, int>;  // size and number of recipients

class Bench {
 public:
  Bench(const std::vector<Case>& cases, bool with_baselines, Clock& clock)
      : cases_(cases), clock_(clock), rank_(rank_of(MPI_COMM_WORLD)), data_(largest(cases)), moments_(cases.size()) {
    for (const Case& one : cases) {
      std::unique_ptr<Library>& library = libraries_[{one.window, one.speeds}];
      if (!library) library = std::make_unique<Library>(one);
      if (!with_baselines) continue;
      int& repeat = groups_[{one.size, one.recipients}];
      repeat = std::max(repeat, one.repeat);
      MPI_Comm& communicator = communicators_.try_emplace(one.recipients, MPI_COMM_NULL).first->second;
      if (communicator == MPI_COMM_NULL) {
        MPI_Comm_split(MPI_COMM_WORLD, rank_ <= one.recipients ? 0 : 1, rank_, &communicator);
      }
    }
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    MPI_Barrier(MPI_COMM_WORLD);
    for (auto& [recipients, communicator] : communicators_) MPI_Comm_free(&communicator);
  }

  Measured run() {
    int rounds = 0;
    for (const Case& one : cases_) rounds = std::max(rounds, one.repeat);
    for (int round = -1; round < rounds; ++round) {  // the first one warms up
      clock_.compare();
      for (const auto& part : order(round)) part();
    }
    return result();
  }

 private:
  static std::size_t largest(const std::vector<Case>& cases) {
    std::size_t most = 0;
    for (const Case& one : cases) most = std::max(most, one.size);
    return most;
  }

  // All that is measured in a round, shuffled alike on all ranks: what came before has an effect on caches and on who
  // sleeps.
  std::vector<std::function<void()>> order(int round) {
    std::vector<std::function<void()>> parts;
    for (std::size_t number = 0; number < cases_.size(); ++number) {
      if (round < cases_[number].repeat) parts.emplace_back([=, this] { run_case(number, round); });
    }
    for (const auto& [group, repeat] : groups_) {
      if (round >= repeat) continue;
      for (std::size_t method = 0; method < 3; ++method) {
        parts.emplace_back([this, group = group, method, round] { run_baseline(group, method, round); });
      }
    }
    std::shuffle(parts.begin(), parts.end(), std::minstd_rand(static_cast<unsigned>(round + 2)));
    return parts;
  }

  void run_case(std::size_t number, int round) {
    const Case& one = cases_[number];
    const Moment moment = rank_ == 0 ? send(one, round) : receive(one, round);
    if (round >= 0) moments_[number].push_back(moment);
  }

  Moment send(const Case& one, int round) {
    elbow_broadcast* const broadcast = libraries_[{one.window, one.speeds}]->get();
    std::vector<elbow_broadcast_recipient> recipients;
    for (int to = 1; to <= one.recipients; ++to) recipients.push_back({to, one.rising ? to : 0});
    const elbow_broadcast_way way = {sizeof way, one.tree.c_str(), one.segment};
    data_.mark(one.size, round);
    MPI_Barrier(MPI_COMM_WORLD);
    Moment moment;
    elbow_broadcast_operation operation = 0;
    moment.begun = clock_.now();
    check(elbow_broadcast_send(broadcast, 0, kTag, data_.get(), one.size, recipients.data(), recipients.size(), &way,
                               &operation) == 0);
    check(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED) == 0);
    moment.received = moment.released = clock_.now();
    return moment;
  }

  Moment receive(const Case& one, int round) {
    elbow_broadcast* const broadcast = libraries_[{one.window, one.speeds}]->get();
    Moment moment;
    if (rank_ > one.recipients) {
      MPI_Barrier(MPI_COMM_WORLD);
      return moment;
    }
    data_.mark(one.size, round - 1);
    elbow_broadcast_operation operation = 0;
    check(elbow_broadcast_receive(broadcast, 0, 0, kTag, data_.get(), one.size, &operation) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    check(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RECEIVED) == 0);
    moment.received = clock_.now();
    check(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED) == 0);
    moment.released = clock_.now();
    data_.verify(one.size, round);
    return moment;
  }

  void run_baseline(const Group& group, std::size_t method, int round) {
    constexpr void (Bench::*kMethods[])(const Group&) = {&Bench::bcast, &Bench::ibcast, &Bench::sends};
    data_.mark(group.first, rank_ == 0 ? round : round - 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ > group.second) return;
    const double begun = clock_.now();
    (this->*kMethods[method])(group);
    if (round >= 0) baselines_[group][method].push_back(rank_ == 0 ? begun : clock_.now());
    data_.verify(group.first, round);
  }

  void bcast(const Group& group) {
    MPI_Bcast(data_.get(), static_cast<int>(group.first), MPI_BYTE, 0, communicators_[group.second]);
  }

  void ibcast(const Group& group) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data_.get(), static_cast<int>(group.first), MPI_BYTE, 0, communicators_[group.second], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }

  void sends(const Group& group) {
    const auto count = static_cast<int>(group.first);
    if (rank_ != 0) {
      MPI_Recv(data_.get(), count, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      return;
    }
    std::vector<MPI_Request> requests(static_cast<std::size_t>(group.second));
    for (int to = 1; to <= group.second; ++to) {
      MPI_Isend(data_.get(), count, MPI_BYTE, to, kTag, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(to - 1)]);
    }
    MPI_Waitall(group.second, requests.data(), MPI_STATUSES_IGNORE);
  }

  // What each rank has of each repetition, in the order of ranks; on rank 0.
  std::vector<std::vector<double>> gather(const std::vector<double>& own, std::size_t count) const {
    std::vector<double> sent = own;
    sent.resize(count);
    std::vector<double> all(rank_ == 0 ? count * static_cast<std::size_t>(ranks_) : 0);
    MPI_Gather(sent.data(), static_cast<int>(count), MPI_DOUBLE, all.data(), static_cast<int>(count), MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
    std::vector<std::vector<double>> rows;
    for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(count)) {
      rows.emplace_back(at, at + static_cast<std::ptrdiff_t>(count));
    }
    return rows;
  }

  Measured result() {
    Measured measured;
    for (std::size_t number = 0; number < cases_.size(); ++number) measured.cases.push_back(times(number));
    for (const auto& [group, repeat] : groups_) {
      auto& own = baselines_[group];
      measured.baselines.push_back(
          {group.first, group.second, latest(group, own[0]), latest(group, own[1]), latest(group, own[2])});
    }
    return measured;
  }

  Times times(std::size_t number) const {
    const Case& one = cases_[number];
    std::vector<double> begun;
    std::vector<double> received;
    std::vector<double> released;
    for (const Moment& moment : moments_[number]) {
      begun.push_back(moment.begun);
      received.push_back(moment.received);
      released.push_back(moment.released);
    }
    const auto repeat = static_cast<std::size_t>(one.repeat);
    return {since(begun, gather(received, repeat), 1, one.recipients),
            since(begun, gather(released, repeat), 0, one.recipients)};
  }

  // One row a repetition, of the ranks from `first` to `last`.
  static std::vector<std::vector<double>> since(const std::vector<double>& begun,
                                                const std::vector<std::vector<double>>& by_rank, int first, int last) {
    std::vector<std::vector<double>> rows;
    for (std::size_t i = 0; i < begun.size() && !by_rank.empty(); ++i) {
      std::vector<double>& row = rows.emplace_back();
      for (int rank = first; rank <= last; ++rank) row.push_back(by_rank[static_cast<std::size_t>(rank)][i] - begun[i]);
    }
    return rows;
  }

  // From rank 0's begin to the last recipient's end.
  std::vector<double> latest(const Group& group, const std::vector<double>& own) const {
    const auto by_rank = gather(own, static_cast<std::size_t>(groups_.at(group)));
    if (rank_ != 0) return {};
    std::vector<double> result;
    for (const auto& row : since(own, by_rank, 1, group.second)) {
      result.push_back(*std::max_element(row.begin(), row.end()));
    }
    return result;
  }

  const std::vector<Case>& cases_;
  Clock& clock_;
  int rank_;
  int ranks_ = 1;
  Data data_;
  std::map<std::pair<std::size_t, std::vector<double>>, std::unique_ptr<Library>> libraries_;  // by window and speeds
  std::map<int, MPI_Comm> communicators_;     // by number of recipients
  std::map<Group, int> groups_;               // and their repetitions
  std::vector<std::vector<Moment>> moments_;  // by case
  std::map<Group, std::vector<double>[3]> baselines_;
};

}  // namespace

Clock::Clock(MPI_Comm communicator) : communicator_(communicator) {
  const elbow_clock_peers peers = elbow_clock_peers_of_mpi(&communicator_);
  clock_ = elbow_clock_new(&peers);
  compare();
}

Clock::~Clock() { elbow_clock_free(clock_); }

void Clock::compare() {
  int due = 0;
  if (clock_ != nullptr && elbow_clock_due(clock_, kCompare, &due) == 0 &&
      (due == 0 || elbow_clock_synchronise(clock_, nullptr) == 0)) {
    return;
  }
  std::fprintf(stderr, "error: %s\n", elbow_clock_error());
  MPI_Abort(communicator_, 1);
}

double Clock::now() const {
  std::int64_t time = 0;
  elbow_clock_now(clock_, &time, nullptr);
  return static_cast<double>(time) * 1e-9;
}

double Clock::error() const {
  std::int64_t time = 0;
  std::int64_t error = 0;
  elbow_clock_now(clock_, &time, &error);
  return static_cast<double>(error) * 1e-9;
}

Measured measure_broadcasts(const std::vector<Case>& cases, bool with_baselines, Clock& clock) {
  return Bench(cases, with_baselines, clock).run();
}

}  // namespace elbowroom::broadcast::bench
