#include "minikernels/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace elbowroom::minikernels {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

// A buffer of at least so many words; what was in it may be lost.
std::span<std::uint64_t> room(std::vector<std::uint64_t>& buffer, std::size_t words) {
  if (buffer.size() < words) {
    buffer.resize(words);
  }
  return {buffer.data(), words};
}

std::vector<int> begins(const std::vector<int>& counts) {
  std::vector<int> result(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), result.begin(), 0);
  return result;
}

std::size_t total(const std::vector<int>& counts) {
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0));
}

}  // namespace

Exchange::Exchange(MPI_Comm all, Check check) : all_(all), check_(check) {
  MPI_Comm_rank(all_, &rank_);
  MPI_Comm_size(all_, &size_);
  sent_.resize(static_cast<std::size_t>(size_));
  received_.resize(static_cast<std::size_t>(size_));
}

void Exchange::count(std::size_t bytes, std::uint64_t messages) {
  if (size_ > 1) {
    bytes_ += bytes;
    messages_ += messages;
  }
}

// The words of the next message to a rank, from word `first` of the buffer on, which has room for them.
std::span<std::uint64_t> Exchange::outgoing(int to, std::size_t first, std::size_t words) {
  const std::span<std::uint64_t> message(out_.data() + first, words);
  fill(message, key_of(rank_, to, sent_[static_cast<std::size_t>(to)]++), check_);
  return message;
}

void Exchange::check(int from, std::span<const std::uint64_t> words) {
  valid_ = holds(words, key_of(from, rank_, received_[static_cast<std::size_t>(from)]++), check_) && valid_;
}

void Exchange::send(int to, std::size_t bytes) {
  room(out_, bytes / kWord);
  const auto message = outgoing(to, 0, bytes / kWord);
  MPI_Send(message.data(), static_cast<int>(message.size()), MPI_UINT64_T, to, 0, all_);
  count(bytes, 1);
}

void Exchange::receive(int from, std::size_t bytes) {
  const auto message = room(in_, bytes / kWord);
  MPI_Recv(message.data(), static_cast<int>(message.size()), MPI_UINT64_T, from, 0, all_, MPI_STATUS_IGNORE);
  check(from, message);
}

void Exchange::send_and_receive(int to, int from, std::size_t bytes) {
  const auto in = room(in_, bytes / kWord);
  room(out_, bytes / kWord);
  const auto out = outgoing(to, 0, bytes / kWord);
  const int words = static_cast<int>(bytes / kWord);
  MPI_Sendrecv(out.data(), words, MPI_UINT64_T, to, 0, in.data(), words, MPI_UINT64_T, from, 0, all_,
               MPI_STATUS_IGNORE);
  check(from, in);
  count(bytes, 1);
}

void Exchange::sum(std::size_t values) {
  std::vector<double> own(values, rank_ + 1.0);
  std::vector<double> sums(values);
  MPI_Allreduce(own.data(), sums.data(), static_cast<int>(values), MPI_DOUBLE, MPI_SUM, all_);
  const double right = size_ * (size_ + 1.0) / 2;
  valid_ = valid_ && std::all_of(sums.begin(), sums.end(), [right](double sum) { return sum == right; });
  count(values * sizeof(double), 1);
}

void Exchange::to_all(std::size_t bytes) {
  const std::size_t words = bytes / kWord;
  const auto ranks = static_cast<std::size_t>(size_);
  room(out_, words * ranks);
  const auto in = room(in_, words * ranks);
  for (int to = 0; to < size_; ++to) {
    outgoing(to, words * static_cast<std::size_t>(to), words);
  }
  const int count_each = static_cast<int>(words);
  MPI_Alltoall(out_.data(), count_each, MPI_UINT64_T, in.data(), count_each, MPI_UINT64_T, all_);
  for (int from = 0; from < size_; ++from) {
    check(from, in.subspan(words * static_cast<std::size_t>(from), words));
  }
  count(bytes * (ranks - 1), ranks - 1);
}

void Exchange::to_all(std::span<const std::size_t> bytes) {
  const auto ranks = static_cast<std::size_t>(size_);
  std::vector<int> sending(ranks);
  std::transform(bytes.begin(), bytes.end(), sending.begin(), [](std::size_t one) { return int(one / kWord); });
  std::vector<int> receiving(ranks);
  MPI_Alltoall(sending.data(), 1, MPI_INT, receiving.data(), 1, MPI_INT, all_);
  count(sizeof(int) * (ranks - 1), ranks - 1);
  const std::vector<int> to_begin = begins(sending);
  const std::vector<int> from_begin = begins(receiving);
  room(out_, total(sending));
  const auto in = room(in_, total(receiving));
  for (std::size_t to = 0; to < ranks; ++to) {
    outgoing(static_cast<int>(to), static_cast<std::size_t>(to_begin[to]), static_cast<std::size_t>(sending[to]));
    count(to == static_cast<std::size_t>(rank_) ? 0 : bytes[to], to == static_cast<std::size_t>(rank_) ? 0 : 1);
  }
  MPI_Alltoallv(out_.data(), sending.data(), to_begin.data(), MPI_UINT64_T, in.data(), receiving.data(),
                from_begin.data(), MPI_UINT64_T, all_);
  for (std::size_t from = 0; from < ranks; ++from) {
    check(static_cast<int>(from),
          in.subspan(static_cast<std::size_t>(from_begin[from]), static_cast<std::size_t>(receiving[from])));
  }
}

}  // namespace elbowroom::minikernels
