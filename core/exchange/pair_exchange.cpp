#include "exchange/pair_exchange.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "exchange/job.hpp"
#include "protocol/batching.hpp"
#include "protocol/median.hpp"

namespace elbowroom {
namespace {

constexpr int kPairTag = 7;
constexpr int kBatches = 5;
constexpr int kCalibrations = 8;
constexpr std::uint64_t kPairSeedStep = 256;
constexpr double kSilence = 30;  // s without a word, after which a partner counts as silent

MPI_Comm communicator(int first, int second) {
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group both = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  const std::array<int, 2> ranks = {first, second};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 2, ranks.data(), &both);
  MPI_Comm_create_group(MPI_COMM_WORLD, both, first < second ? 0 : 1, &comm);
  MPI_Group_free(&both);
  MPI_Group_free(&world);
  return comm;
}

// Sleeps until a header is there: the partner may still compute, or be dead.
void wait_for_header(MPI_Comm comm, int from, int partner) {
  const std::int64_t begun = now_ns();
  for (int there = 0;;) {
    MPI_Iprobe(from, kPairTag, comm, &there, MPI_STATUS_IGNORE);
    if (there != 0) {
      return;
    }
    if (static_cast<double>(now_ns() - begun) * 1e-9 > kSilence) {
      throw std::runtime_error("no message from rank " + std::to_string(partner));
    }
    sleep_for(kPollInterval);
  }
}

}  // namespace

// Announces a batch; with 0 iterations it ends a window and carries its result.
struct PairExchange::Header {
  std::int64_t iterations;
  std::uint64_t seed;
  double result;
};

PairExchange::PairExchange(int rank, int partner, char* memory) : rank_(rank), partner_(partner), memory_(memory) {
  MPI_Comm lower = communicator(std::min(rank, partner), std::max(rank, partner));
  MPI_Comm upper = communicator(std::max(rank, partner), std::min(rank, partner));
  led_ = rank < partner ? lower : upper;
  followed_ = rank < partner ? upper : lower;
}

PairExchange::~PairExchange() {
  MPI_Comm first = rank_ < partner_ ? led_ : followed_;
  MPI_Comm second = rank_ < partner_ ? followed_ : led_;
  MPI_Comm_free(&first);
  MPI_Comm_free(&second);
}

Lane PairExchange::lane(Pattern pattern, std::size_t size, bool leads) const {
  MessageLayout layout;
  layout.stride = static_cast<std::int64_t>(size);
  layout.count = pattern == Pattern::receive ? 2 : 1;
  layout.sides = pattern == Pattern::bidirectional ? 2 : 1;
  Lane lane;
  lane.pattern = pattern;
  lane.comm = leads ? led_ : followed_;
  lane.rank = leads ? 0 : 1;
  lane.size = static_cast<int>(size);
  lane.buffers = Buffers(memory_, layout);
  return lane;
}

// Nanoseconds of the whole batch. The follower is ready when the clock is read, since it has answered.
double PairExchange::batch(const Lane& lane, std::int64_t iterations, bool& holds) {
  seed_ += kPairSeedStep;
  const Header header{iterations, seed_, 0};
  prepare_batch(lane, iterations, seed_);
  MPI_Send(&header, sizeof header, MPI_BYTE, 1, kPairTag, lane.comm);
  wait_for_header(lane.comm, 1, partner_);
  std::int64_t held = 0;
  MPI_Recv(&held, sizeof held, MPI_BYTE, 1, kPairTag, lane.comm, MPI_STATUS_IGNORE);
  const std::int64_t start = now_ns();
  const bool own = run_batch(lane, iterations, seed_);
  const std::int64_t end = now_ns();
  holds = holds && held != 0 && own && batch_holds(lane, iterations, seed_);
  return static_cast<double>(end - start);
}

double PairExchange::lead(Pattern pattern, std::size_t size, double seconds) {
  const Lane lane = this->lane(pattern, size, true);
  const std::int64_t least = least_iterations(pattern);
  const double target = std::max(seconds * 1e9 / kBatches, minimum_sample_ns());
  bool holds = true;
  std::int64_t iterations = least;
  std::vector<double> times;
  for (int round = 0; round < kCalibrations; ++round) {
    const double took = batch(lane, iterations, holds);
    if (batch_fits(iterations, took, target, least)) {
      // On a link so slow that the fewest messages outlast the window, the warm-up is one of the batches.
      times.assign(took > kBatches * target ? 1 : 0, took / static_cast<double>(iterations));
      break;
    }
    iterations = next_iterations(iterations, took, target, least);
  }
  double spent = times.empty() ? 0 : times.front() * static_cast<double>(iterations);
  do {
    const double took = batch(lane, iterations, holds);
    spent += took;
    times.push_back(took / static_cast<double>(iterations));
  } while (times.size() < kBatches && spent < seconds * 1e9 * 2);
  const Header end{0, 0, holds ? median(times) : -1.0};
  MPI_Send(&end, sizeof end, MPI_BYTE, 1, kPairTag, lane.comm);
  return end.result;
}

double PairExchange::follow(Pattern pattern, std::size_t size) {
  const Lane lane = this->lane(pattern, size, false);
  std::int64_t held = 1;
  for (;;) {
    Header header{};
    wait_for_header(lane.comm, 0, partner_);
    MPI_Recv(&header, sizeof header, MPI_BYTE, 0, kPairTag, lane.comm, MPI_STATUS_IGNORE);
    if (header.iterations == 0) {
      return held != 0 ? header.result : -1.0;
    }
    prepare_batch(lane, header.iterations, header.seed);
    MPI_Send(&held, sizeof held, MPI_BYTE, 0, kPairTag, lane.comm);
    const bool own = run_batch(lane, header.iterations, header.seed);
    held = own && batch_holds(lane, header.iterations, header.seed) ? 1 : 0;
  }
}

void PairExchange::meet() {
  const MPI_Comm comm = rank_ < partner_ ? led_ : followed_;
  const int other = rank_ < partner_ ? 1 : 0;
  char token = 0;
  MPI_Request sent = MPI_REQUEST_NULL;
  MPI_Isend(&token, 1, MPI_CHAR, other, kPairTag, comm, &sent);
  wait_for_header(comm, other, partner_);
  char received = 0;
  MPI_Recv(&received, 1, MPI_CHAR, other, kPairTag, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

}  // namespace elbowroom
