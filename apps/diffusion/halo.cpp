#include "diffusion/halo.hpp"

#include <algorithm>

#include "common/complete.hpp"

namespace elbowroom::diffusion {
namespace {

constexpr int kTag = 1;
constexpr std::size_t kLine = 8;  // doubles of a cache line: messages start on lines of their own

// The piece of `count` values that is thread `thread`'s.
struct Piece {
  std::int32_t first;
  std::int32_t last;
};

Piece piece_of(std::int32_t count, int thread, int threads) {
  const auto cut = [&](int at) { return static_cast<std::int32_t>(static_cast<std::int64_t>(count) * at / threads); };
  return {cut(thread), cut(thread + 1)};
}

}  // namespace

Halo::Halo(const Part& part, int node, Waiting waiting) : part_(part), waiting_(waiting) {
  std::size_t doubles = 0;
  for (const Link& link : part.links) {
    starts_.push_back(doubles);
    doubles += (link.send.size() + kLine - 1) / kLine * kLine;
  }
  if (doubles > 0) {
    memory_ = Arena(doubles * sizeof(double), node);
  }
}

void Halo::connect(MPI_Comm comm, int threads) {
  comms_.resize(static_cast<std::size_t>(threads));
  requests_.resize(comms_.size());
  for (MPI_Comm& one : comms_) {
    MPI_Comm_dup(comm, &one);
  }
}

Halo::~Halo() {
  for (MPI_Comm& one : comms_) {
    MPI_Comm_free(&one);
  }
}

void Halo::exchange(double* field, int thread, int threads) {
  const auto own = static_cast<std::size_t>(thread);
  std::vector<MPI_Request>& requests = requests_[own];
  requests.clear();
  for (const Link& link : part_.links) {
    const Piece piece = piece_of(link.ghosts, thread, threads);
    requests.push_back(MPI_REQUEST_NULL);
    MPI_Irecv(field + link.first_ghost + piece.first, piece.last - piece.first, MPI_DOUBLE, link.rank, kTag,
              comms_[own], &requests.back());
  }
  for (std::size_t i = 0; i < part_.links.size(); ++i) {
    const Link& link = part_.links[i];
    const Piece piece = piece_of(static_cast<std::int32_t>(link.send.size()), thread, threads);
    double* message = packed(i);
    std::transform(link.send.begin() + piece.first, link.send.begin() + piece.last, message + piece.first,
                   [field](std::int32_t slot) { return field[slot]; });
    requests.push_back(MPI_REQUEST_NULL);
    MPI_Isend(message + piece.first, piece.last - piece.first, MPI_DOUBLE, link.rank, kTag, comms_[own],
              &requests.back());
  }
  program::complete(requests, waiting_);
}

}  // namespace elbowroom::diffusion
