#include "exchange/job.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "exchange/transport.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr int kControlTag = 1;
constexpr int kEagerPolls = 5000;       // about a second: longer than any pause inside a repetition
constexpr double kIdleInterval = 2e-3;  // s, when nobody asks for anything

std::string own_cpuset() {
  std::string text;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    return "unknown";
  }
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) {
      continue;
    }
    const int first = cpu;
    while (cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu + 1, &set)) {
      ++cpu;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    text += cpu > first ? fmt::format("-{}", cpu) : "";
  }
  return text;
}

std::string level_name(int level) {
  switch (level) {
    case MPI_THREAD_MULTIPLE: return "multiple";
    case MPI_THREAD_SERIALIZED: return "serialized";
    case MPI_THREAD_FUNNELED: return "funneled";
    default: return "single";
  }
}

}  // namespace

void sleep_for(double seconds) {
  timespec left{};
  left.tv_sec = static_cast<time_t>(seconds);
  left.tv_nsec = static_cast<long>((seconds - static_cast<double>(left.tv_sec)) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
  }
}

Job::Job(int* argc, char*** argv, const std::string& threads) {
  const int wanted = threads == "multiple" ? MPI_THREAD_MULTIPLE
                     : threads == "single" ? MPI_THREAD_SINGLE
                                           : MPI_THREAD_FUNNELED;
  if (MPI_Init_thread(argc, argv, wanted, &thread_level_) != MPI_SUCCESS) {
    throw std::runtime_error("MPI_Init_thread failed");
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm_dup(MPI_COMM_WORLD, &control_);
  MPI_Comm_dup(MPI_COMM_WORLD, &messages_);
  MPI_Comm_dup(MPI_COMM_WORLD, &headers_);
  gather_ranks();
  transport_ = transport_name(ranks_on_host_of(0) == size_);
}

Job::~Job() {
  MPI_Comm_free(&headers_);
  MPI_Comm_free(&messages_);
  MPI_Comm_free(&control_);
  MPI_Finalize();
}

// Every rank learns the hosts of all: who shares one decides about cores and buffers.
void Job::gather_ranks() {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  const std::string own =
      json{{"rank", rank_}, {"host", std::string(name)}, {"pid", getpid()}, {"cpuset", own_cpuset()}}.dump();
  constexpr std::size_t kRoom = 1024;
  std::string fixed = own.substr(0, kRoom);
  fixed.resize(kRoom, ' ');
  std::string all(kRoom * static_cast<std::size_t>(size_), ' ');
  MPI_Allgather(fixed.data(), kRoom, MPI_CHAR, all.data(), kRoom, MPI_CHAR, control_);
  for (std::size_t r = 0; r < static_cast<std::size_t>(size_); ++r) {
    ranks_.push_back(all.substr(r * kRoom, kRoom));
    hosts_.push_back(json::parse(ranks_.back()).at("host"));
  }
}

json Job::ranks() const {
  json all = json::array();
  for (const std::string& rank : ranks_) {
    all.push_back(json::parse(rank));
  }
  return all;
}

int Job::ranks_on_host_of(int rank) const {
  return static_cast<int>(std::count(hosts_.begin(), hosts_.end(), hosts_[static_cast<std::size_t>(rank)]));
}

bool Job::first_on_host() const {
  const auto own = hosts_.begin() + rank_;
  return std::find(hosts_.begin(), own, *own) == own;
}

std::uint64_t Job::common_number() const {
  std::random_device random;
  std::uint64_t number = (static_cast<std::uint64_t>(random()) << 32) | random();
  MPI_Bcast(&number, 1, MPI_UINT64_T, 0, control_);
  return number;
}

std::string Job::library() const {
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(library, &length);
  const std::string text(library);  // its length may or may not count the final zero
  return text.substr(0, text.find('\n'));
}

json Job::mpi_facts() const {
  int version = 0;
  int subversion = 0;
  MPI_Get_version(&version, &subversion);
  return {{"library", library()},
          {"standard", std::to_string(version) + "." + std::to_string(subversion)},
          {"thread_level", level_name(thread_level_)},
          {"transport", transport_},
          {"prefix", library_prefix()}};
}

void Job::send(int rank, const json& message) const {
  const std::string text = message.dump();
  MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, rank, kControlTag, control_);
}

void Job::send_to_others(const json& message) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) {
      send(rank, message);
    }
  }
}

std::optional<json> Job::try_receive(int rank) const {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(rank, kControlTag, control_, &there, &status);
  if (there == 0) {
    return std::nullopt;
  }
  int count = 0;
  MPI_Get_count(&status, MPI_CHAR, &count);
  std::string text(static_cast<std::size_t>(count), '\0');
  MPI_Recv(text.data(), count, MPI_CHAR, rank, kControlTag, control_, MPI_STATUS_IGNORE);
  return json::parse(text);
}

json Job::receive(int rank) const {
  for (int polls = 0;; ++polls) {
    if (auto message = try_receive(rank)) {
      return *message;
    }
    sleep_for(polls < kEagerPolls ? kPollInterval : kIdleInterval);
  }
}

}  // namespace elbowroom
