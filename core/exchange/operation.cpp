#include "exchange/operation.hpp"

#include <algorithm>
#include <utility>

#include "protocol/payload.hpp"

namespace elbowroom {
namespace {

constexpr int kTag = 0;
constexpr std::uint64_t kNothing = std::uint64_t{1} << 62;  // what lies in a buffer before anything arrives
constexpr std::uint64_t kWrong = 100;
constexpr float kNoSum = -1;

}  // namespace

MpiOperation::MpiOperation(const Overlap& overlap, MPI_Comm comm, int size, char* memory)
    : overlap_(overlap), comm_(comm), size_(size), sent_(memory), received_(memory + [&] {
        int ranks = 1;
        MPI_Comm_size(comm, &ranks);
        return overlap_bytes(overlap, size, ranks).sent;
      }()) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &ranks_);
  elements_ = reduces(overlap.operation) ? static_cast<std::size_t>(size) / sizeof(float) : 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    counts_.push_back(static_cast<int>(share_of(elements_, rank, ranks_).second));
  }
  if (overlap.form == Form::persistent) {
    make_persistent();
  }
}

MpiOperation::~MpiOperation() {
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL) {
      MPI_Request_free(&request);
    }
  }
  if (answer_ != MPI_REQUEST_NULL) {
    MPI_Request_free(&answer_);
  }
}

// Contents

void MpiOperation::write_sent(std::uint64_t seed, Write write) {
  const auto size = static_cast<std::size_t>(size_);
  switch (overlap_.operation) {
    case Operation::pingpong:
      if (!answers()) {
        write(sent_, size, message_seed(seed, rank_, 0));
      }
      break;
    case Operation::exchange:
      for (int j = 0; j < overlap_.neighbours; ++j) {
        write(sent_to(j), size, message_seed(seed, rank_, j));
      }
      break;
    case Operation::alltoall:
      for (int rank = 0; rank < ranks_; ++rank) {
        write(sent_to(rank), size, message_seed(seed, rank_, rank));
      }
      break;
    case Operation::bcast:
      if (rank_ != kRoot) {
        break;
      }
      [[fallthrough]];
    case Operation::allgather: write(sent_, size, message_seed(seed, rank_, 0)); break;
    default: break;
  }
}

void MpiOperation::write_received(std::uint64_t seed, Write write) {
  const int blocks = overlap_.operation == Operation::exchange ? overlap_.neighbours
                     : overlap_.operation == Operation::allgather || overlap_.operation == Operation::alltoall ? ranks_
                                                                                                               : 1;
  if (overlap_.operation == Operation::barrier || (overlap_.operation == Operation::bcast && rank_ == kRoot)) {
    return;
  }
  for (int block = 0; block < blocks; ++block) {
    write(received_from(block), static_cast<std::size_t>(size_), seed + kNothing);
  }
}

void MpiOperation::fill(std::uint64_t seed) {
  if (elements_ == 0) {
    write_sent(seed, fill_message);
    write_received(seed, fill_message);
    return;
  }
  for (std::size_t element = 0; element < elements_; ++element) {
    sent_elements()[element] = contribution(element, rank_, seed);
  }
  std::fill_n(received_elements(), elements_, kNoSum);
}

void MpiOperation::stamp(std::uint64_t seed, bool wrong) {
  const std::uint64_t own = wrong ? seed + kWrong : seed;
  if (elements_ == 0) {
    write_sent(own, stamp_message);
    write_received(seed, stamp_message);
    return;
  }
  for (const std::size_t element : stamped_elements(elements_)) {
    sent_elements()[element] = contribution(element, rank_, own);
  }
  for (const std::size_t element : own_stamps()) {
    result(element) = kNoSum;
  }
}

std::pair<std::size_t, std::size_t> MpiOperation::own_elements() const {
  if (overlap_.operation == Operation::reduce && rank_ != kRoot) {
    return {0, 0};
  }
  return scatters() ? share_of(elements_, rank_, ranks_) : std::pair{std::size_t{0}, elements_};
}

std::vector<std::size_t> MpiOperation::own_stamps() const {
  std::vector<std::size_t> elements = stamped_elements(elements_);
  const auto [first, count] = own_elements();
  std::erase_if(elements, [first = first, count = count](std::size_t element) {
    return element < first || element >= first + count;
  });
  return elements;
}

bool MpiOperation::element_holds(std::size_t element, std::uint64_t seed) const {
  return result(element) == contributions(element, ranks_, seed);
}

bool MpiOperation::received_hold(std::uint64_t seed, Check check) const {
  const auto size = static_cast<std::size_t>(size_);
  bool holds = true;
  switch (overlap_.operation) {
    case Operation::pingpong: return idle() || check(received_, size, message_seed(seed, rank_ & ~1, 0));
    case Operation::exchange:
      for (int j = 0; j < overlap_.neighbours; ++j) {
        holds = check(received_from(j), size, message_seed(seed, from(j), j)) && holds;
      }
      return holds;
    case Operation::alltoall:
      for (int rank = 0; rank < ranks_; ++rank) {
        holds = check(received_from(rank), size, message_seed(seed, rank, rank_)) && holds;
      }
      return holds;
    case Operation::allgather:
      for (int rank = 0; rank < ranks_; ++rank) {
        holds = check(received_from(rank), size, message_seed(seed, rank, 0)) && holds;
      }
      return holds;
    case Operation::bcast: return rank_ == kRoot || check(received_, size, message_seed(seed, kRoot, 0));
    default: return true;
  }
}

bool MpiOperation::whole_holds(std::uint64_t seed) const {
  if (elements_ == 0) {
    return received_hold(seed, message_holds);
  }
  const auto [first, count] = own_elements();
  for (std::size_t element = first; element < first + count; ++element) {
    if (!element_holds(element, seed)) {
      return false;
    }
  }
  return true;
}

bool MpiOperation::stamps_hold(std::uint64_t seed) const {
  if (elements_ == 0) {
    return received_hold(seed, stamp_holds);
  }
  const std::vector<std::size_t> elements = own_stamps();
  return std::all_of(elements.begin(), elements.end(),
                     [&](std::size_t element) { return element_holds(element, seed); });
}

// Calls

void MpiOperation::call() {
  if (is_collective(overlap_.operation)) {
    call_collective();
  } else if (overlap_.operation == Operation::exchange) {
    for (int j = 0; j < overlap_.neighbours; ++j) {
      MPI_Sendrecv(sent_to(j), size_, MPI_BYTE, to(j), j, received_from(j), size_, MPI_BYTE, from(j), j, comm_,
                   MPI_STATUS_IGNORE);
    }
  } else if (answers()) {
    MPI_Recv(received_, size_, MPI_BYTE, partner(), kTag, comm_, MPI_STATUS_IGNORE);
    MPI_Send(received_, size_, MPI_BYTE, partner(), kTag, comm_);
  } else if (!idle()) {
    MPI_Send(sent_, size_, MPI_BYTE, partner(), kTag, comm_);
    MPI_Recv(received_, size_, MPI_BYTE, partner(), kTag, comm_, MPI_STATUS_IGNORE);
  }
}

void MpiOperation::start() {
  to_answer_ = answers();
  if (overlap_.form == Form::persistent) {
    MPI_Startall(static_cast<int>(requests_.size()), requests_.data());
  } else if (is_collective(overlap_.operation)) {
    requests_.assign(1, MPI_REQUEST_NULL);
    start_collective(requests_.data());
  } else {
    start_messages();
  }
}

void MpiOperation::start_messages() {
  requests_.clear();
  const auto added = [&] { return &requests_.emplace_back(MPI_REQUEST_NULL); };
  if (overlap_.operation == Operation::exchange) {
    for (int j = 0; j < overlap_.neighbours; ++j) {
      MPI_Irecv(received_from(j), size_, MPI_BYTE, from(j), j, comm_, added());
    }
    for (int j = 0; j < overlap_.neighbours; ++j) {
      MPI_Isend(sent_to(j), size_, MPI_BYTE, to(j), j, comm_, added());
    }
  } else if (!idle()) {
    MPI_Irecv(received_, size_, MPI_BYTE, partner(), kTag, comm_, added());
    if (!answers()) {
      MPI_Isend(sent_, size_, MPI_BYTE, partner(), kTag, comm_, added());
    }
  }
}

void MpiOperation::make_persistent() {
  if (is_collective(overlap_.operation)) {
    requests_.assign(1, MPI_REQUEST_NULL);
    make_collective(requests_.data());
  } else {
    make_messages();
  }
}

void MpiOperation::make_messages() {
  const auto added = [&] { return &requests_.emplace_back(MPI_REQUEST_NULL); };
  if (overlap_.operation == Operation::exchange) {
    for (int j = 0; j < overlap_.neighbours; ++j) {
      MPI_Recv_init(received_from(j), size_, MPI_BYTE, from(j), j, comm_, added());
    }
    for (int j = 0; j < overlap_.neighbours; ++j) {
      MPI_Send_init(sent_to(j), size_, MPI_BYTE, to(j), j, comm_, added());
    }
  } else if (!idle()) {
    MPI_Recv_init(received_, size_, MPI_BYTE, partner(), kTag, comm_, added());
    if (answers()) {
      MPI_Send_init(received_, size_, MPI_BYTE, partner(), kTag, comm_, &answer_);
    } else {
      MPI_Send_init(sent_, size_, MPI_BYTE, partner(), kTag, comm_, added());
    }
  }
}

void MpiOperation::answer() {
  to_answer_ = false;
  if (idle()) {
    return;
  }
  if (overlap_.form == Form::persistent) {
    MPI_Start(&answer_);
  } else {
    MPI_Isend(received_, size_, MPI_BYTE, partner(), kTag, comm_, &answer_);
  }
}

bool MpiOperation::test() {
  int complete = 0;
  MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &complete, MPI_STATUSES_IGNORE);
  if (complete != 0 && to_answer_) {
    answer();
  }
  if (complete != 0 && answers()) {
    MPI_Test(&answer_, &complete, MPI_STATUS_IGNORE);
  }
  return complete != 0;
}

void MpiOperation::wait() {
  MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  if (to_answer_) {
    answer();
  }
  if (answers()) {
    MPI_Wait(&answer_, MPI_STATUS_IGNORE);
  }
}

}  // namespace elbowroom
