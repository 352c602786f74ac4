#include "exchange/cluster_node.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/cgroup.hpp"
#include "base/clock.hpp"
#include "base/system_files.hpp"
#include "kernels/links.hpp"
#include "observe/state.hpp"
#include "protocol/median.hpp"
#include "protocol/record.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr std::size_t kCaches = 4;  // last-level caches that TRIAD's arrays are as large as
constexpr std::size_t kUnknownCache = 64 << 20;
constexpr std::size_t kLeastBytes = 256 << 10;  // of a core's arrays
constexpr std::size_t kMostLinks = 256 << 20;   // bytes
constexpr std::size_t kLoads = 1000;            // of a sample of the latency
constexpr std::size_t kInFlight = 64;           // small messages
constexpr std::size_t kSmall = 8;               // bytes of a small message
constexpr double kColdLimit = 20;               // s in which all threads must have begun to compute
constexpr double kDisturbed = 1.25;             // times the usual time of a chunk
constexpr double kPieceNs = 500e3;              // of work between two barriers
constexpr SteadyRule kSteady;

// Five digits: each node sends its values to rank 0.
json rounded(double value) {
  return std::isfinite(value) && value >= 0 ? json(std::stod(fmt::format("{:.5g}", value))) : json();
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_object() ? "" : value.dump();
}

std::string gibibytes(double bytes) {
  const double step = bytes > 64e9 ? 4.0 : 1.0;
  return fmt::format("{:.0f} GiB", std::round(bytes / step / (1 << 30)) * step);
}

// Speed and width of the links of all interfaces, those of one kind counted.
std::string links_of(const json& nics) {
  std::map<std::string, int> counts;
  for (const json& nic : nics) {
    const std::string rate = nic.contains("rate") ? text_of(nic["rate"]) : text_of(nic.value("mbit_per_s", json()));
    const std::string unit = nic.contains("mbit_per_s") && !rate.empty() ? " Mbit/s" : "";
    const std::string link = text_of(nic["link"]);
    if (!rate.empty() || !link.empty()) {
      ++counts[fmt::format("{}{}{}{}", link, link.empty() || rate.empty() ? "" : ", ", rate, unit)];
    }
  }
  std::string text;
  for (const auto& [link, count] : counts) {
    text += (text.empty() ? "" : "; ") + (count > 1 ? fmt::format("{} x {}", count, link) : link);
  }
  return text;
}

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string governor_of(const json& governors) {
  std::string names;
  for (const auto& [name, units] : governors.items()) {
    names += (names.empty() ? "" : ", ") + name;
  }
  return governors.contains("unknown") ? "" : names;
}

}  // namespace

// Of one kernel on all computing cores: the sum of the rates, that of the NUMA node with the least (NaN where there is
// one), the middle one of the cores, the share of the time in chunks that took longer than usual; and seconds in which
// threads had a core, and in which they wanted one.
struct ClusterNode::Computed {
  double sum = 0;
  double least = std::numeric_limits<double>::quiet_NaN();
  double middle = 0;
  double disturbed = 0;
  double running = 0;
  double wanted = 0;
};

json ClusterNode::facts() {
  const SystemRoots roots;
  const json processor = processor_state(roots);
  const json memory = memory_state(roots);
  const json platform = platform_state(roots);
  const json group = cgroup_state(roots);
  const Machine& machine = Machine::here();
  const auto cores =
      std::count_if(machine.cores().begin(), machine.cores().end(), [](const CoreInfo& one) { return one.allowed; });
  const std::string model = text_of(processor["cpu_model"]);
  const std::string limit = text_of(group["cpu_max"]);
  const char* const slurm = std::getenv("SLURMD_NODENAME");
  json facts = {{"node", slurm != nullptr ? slurm : ""},
                {"architecture", text_of(platform["architecture"])},
                {"processor", fmt::format("{}, {} cores", model.empty() ? "unknown" : model, cores)},
                {"memory", memory["memory_kernel"].is_number() ? gibibytes(memory["memory_kernel"].get<double>()) : ""},
                {"governor", governor_of(processor["governor"])},
                {"bios", read_text(roots.sys + "/class/dmi/id/bios_version").value_or("")},
                {"kernel", text_of(platform["kernel"])},
                {"huge-pages", text_of(memory["transparent_huge_pages"])},
                {"cgroup", limit == "none" || limit.empty() ? "" : fmt::format("{:.5} cores' worth of time", limit)},
                {"link", links_of(nic_state(roots))}};
  for (auto it = facts.begin(); it != facts.end();) {
    it = it->get<std::string>().empty() ? facts.erase(it) : std::next(it);
  }
  return facts;
}

json ClusterNode::quantities() {
  return {{"alone",
           {"memory", "memory-latency", "core", "cache", "message-rate", "slow-moments", "memory-numa", "waiting",
            "throttled", "steal"}},
          {"pairs", {"latency", "bandwidth", "bandwidth-both", "latency-beside", "bandwidth-beside", "memory-beside"}},
          {"train", {"late", "clock"}}};
}

ClusterNode::ClusterNode(const Job& job, std::size_t working_set)
    : job_(job),
      pool_([](int core) { Machine::here().bind_this_thread(core); }),
      cache_(std::numeric_limits<std::size_t>::max()) {
  const Machine& machine = Machine::here();
  for (const CoreInfo& core : machine.cores()) {
    if (core.allowed) {
      cores_.push_back(core);
      units_.insert(units_.end(), core.pus.begin(), core.pus.end());
    }
  }
  if (cores_.empty()) {
    throw std::runtime_error("no core is allowed");
  }
  comm_core_ = cores_.front().number;
  comm_node_ = std::max(cores_.front().node, 0);
  if (cores_.size() > 1) {
    cores_.erase(cores_.begin());
  }
  const std::size_t known = machine.last_level_cache();
  const std::size_t cache = known > 0 ? known : kUnknownCache;
  const std::size_t all = working_set > 0 ? working_set : kCaches * cache;
  triad_bytes_ = std::max(all / cores_.size(), kLeastBytes);
  cache_bytes_ = std::max(std::min(cache, all) / 2 / cores_.size(), kLeastBytes);
  machine.bind_this_thread(comm_core_);
  links_ = Arena(std::min(std::max(all, kLeastBytes), kMostLinks), comm_node_);
  link_lines(links_.data(), links_.size() / kLinkBytes, 1);
  std::vector<int> numbers;
  for (const CoreInfo& core : cores_) {
    numbers.push_back(core.number);
  }
  pool_.use(numbers);
  piece_ = make_worker("prime", nullptr, 0, 1);
  taken_ = taken();
}

std::vector<CachedWorker*> ClusterNode::workers(const char* kernel, std::size_t bytes) {
  std::vector<WorkerKey> keys;
  for (const CoreInfo& core : cores_) {
    keys.push_back({kernel, 1, bytes, core.number, std::max(core.node, 0)});
  }
  return cache_.get(keys, pool_);
}

// Returns when all threads compute.
void ClusterNode::start(const std::vector<CachedWorker*>& workers, Window& window) {
  std::vector<ComputingJob*> jobs;
  for (CachedWorker* worker : workers) {
    worker->job.items_per_chunk = 0;  // found anew: one that was found beside other load would make all rounds alike
    jobs.push_back(&worker->job);
  }
  const std::int64_t begun = now_ns();
  pool_.start(jobs, kSteady, nullptr);
  while (pool_.warm_since() == 0) {
    if (static_cast<double>(now_ns() - begun) * 1e-9 > kColdLimit) {
      pool_.stop();
      throw std::runtime_error("threads that compute did not start in time");
    }
    sleep_for(kPollInterval);
  }
  window.start = now_ns();
}

ClusterNode::Computed ClusterNode::stop(const char* kernel, Window window) {
  const std::vector<ComputingReport> reports = pool_.stop();
  const double scale = rate_scale(*find_kernel(kernel), 1);
  Computed computed;
  std::vector<double> rates;
  std::map<int, double> domains;
  double slow = 0;
  double spent = 0;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const ComputingReport& report = reports[i];
    const double rate = inside(*report.chunks, window).rate() * scale;
    if (!report.valid || !(rate > 0)) {
      const double nothing = std::numeric_limits<double>::quiet_NaN();
      return {nothing, nothing, nothing, nothing};
    }
    rates.push_back(rate);
    computed.sum += rate;
    domains[cores_[i].node] += rate;
    std::vector<double> times;
    for (const Chunk& chunk : *report.chunks) {
      if (chunk.start >= window.start && chunk.end <= window.end && chunk.items > 0) {
        times.push_back(static_cast<double>(chunk.end - chunk.start) / static_cast<double>(chunk.items));
      }
    }
    const double usual = median(times);
    for (const double time : times) {
      slow += time > kDisturbed * usual ? time : 0;
      spent += time;
    }
  }
  if (domains.size() > 1) {
    computed.least = std::ranges::min_element(domains, {}, [](const auto& one) { return one.second; })->second;
  }
  computed.middle = median(rates);
  computed.disturbed = slow / spent;
  return computed;
}

ClusterNode::Computed ClusterNode::compute(const char* kernel, std::size_t bytes, double seconds) {
  Window window{};
  start(workers(kernel, bytes), window);
  const double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  sleep_for(seconds);
  window.end = now_ns();
  const double running = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before;
  Computed computed = stop(kernel, window);
  computed.running = running;
  computed.wanted = static_cast<double>(window.end - window.start) * 1e-9 * static_cast<double>(cores_.size());
  return computed;
}

ClusterNode::Taken ClusterNode::taken() const {
  const Cgroup group = read_cgroup();
  const auto steal = parse_steal(read_text("/proc/stat").value_or(""), static_cast<double>(sysconf(_SC_CLK_TCK)));
  Taken taken{now_ns(), std::nullopt, !group.unknown.empty(), group.periods, group.throttled_periods};
  for (const int unit : units_) {
    if (const auto it = steal.find(unit); it != steal.end()) {
      taken.steal = taken.steal.value_or(0) + it->second;
    }
  }
  return taken;
}

// ns of a load, the median of samples.
double ClusterNode::latency(double seconds) {
  std::vector<double> samples;
  const std::int64_t begun = now_ns();
  for (std::int64_t last = begun; static_cast<double>(last - begun) * 1e-9 < seconds || samples.empty();) {
    line_ = follow_links(links_.data(), line_, kLoads);
    const std::int64_t now = now_ns();
    samples.push_back(static_cast<double>(now - last) / kLoads);
    last = now;
  }
  return median(samples);
}

// Million messages a second that this rank sends to itself: the path through the MPI, without a network.
double ClusterNode::message_rate(double seconds) const {
  std::array<char, kInFlight * kSmall> sent{};
  std::array<char, kInFlight * kSmall> received{};
  std::array<MPI_Request, 2 * kInFlight> requests{};
  std::vector<double> rates;
  const std::int64_t begun = now_ns();
  for (std::int64_t last = begun; static_cast<double>(last - begun) * 1e-9 < seconds || rates.empty();) {
    for (std::size_t i = 0; i < kInFlight; ++i) {
      MPI_Irecv(&received[i * kSmall], kSmall, MPI_CHAR, 0, 0, MPI_COMM_SELF, &requests[i]);
    }
    for (std::size_t i = 0; i < kInFlight; ++i) {
      MPI_Isend(&sent[i * kSmall], kSmall, MPI_CHAR, 0, 0, MPI_COMM_SELF, &requests[kInFlight + i]);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    const std::int64_t now = now_ns();
    rates.push_back(kInFlight * 1e3 / static_cast<double>(now - last));
    last = now;
  }
  return median(rates);
}

json ClusterNode::alone(double seconds) {
  const Computed memory = compute("triad", triad_bytes_, 2 * seconds);
  const double load = latency(seconds);
  const Computed core = compute("fma", 0, seconds);
  const Computed cache = compute("triad_llc", cache_bytes_, seconds);
  const double rate = message_rate(seconds);
  const Taken before = std::exchange(taken_, taken());
  const std::uint64_t periods = taken_.periods - before.periods;
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  const double throttled =
      taken_.group_unknown ? nothing
      : periods == 0       ? 0
                           : static_cast<double>(taken_.throttled - before.throttled) / static_cast<double>(periods);
  const double ran = (memory.running + core.running + cache.running) / (memory.wanted + core.wanted + cache.wanted);
  const double waiting = throttled > 0 ? nothing : std::max(0.0, 1 - ran);  // else the limit is why they wait
  const double elapsed = static_cast<double>(taken_.time - before.time) * 1e-9;
  const double steal = before.steal && taken_.steal
                           ? std::max(0.0, *taken_.steal - *before.steal) / elapsed / static_cast<double>(units_.size())
                           : nothing;
  return {rounded(memory.sum),       rounded(load),         rounded(core.middle), rounded(cache.sum), rounded(rate),
          rounded(memory.disturbed), rounded(memory.least), rounded(waiting),     rounded(throttled), rounded(steal)};
}

json ClusterNode::pair(int partner, std::size_t size, double seconds) {
  if (messages_.size() < 2 * size) {
    messages_ = Arena(2 * size, comm_node_);
    std::memset(messages_.data(), 1, 2 * size);
  }
  PairExchange exchange(job_.rank(), partner, static_cast<char*>(messages_.data()));
  const bool first = job_.rank() < partner;
  // What this node sends: the leader's value of a ping-pong, the follower's of a stream.
  const auto sent = [&](Pattern pattern, std::size_t bytes) {
    double own = 0;
    for (const bool leads : {first, !first}) {
      const double ns = leads ? exchange.lead(pattern, bytes, seconds) : exchange.follow(pattern, bytes);
      own = leads == (pattern == Pattern::pingpong) ? ns : own;
    }
    return own;
  };
  const auto rate = [&](double ns) { return static_cast<double>(size) * 1e3 / ns; };  // MB/s
  const double latency = sent(Pattern::pingpong, kSmall) / 2e3;                       // us
  const double bandwidth = rate(sent(Pattern::receive, size));
  const double both = rate(first ? exchange.lead(Pattern::bidirectional, size, seconds)
                                 : exchange.follow(Pattern::bidirectional, size));
  Window window{};
  start(workers("triad", triad_bytes_), window);
  exchange.meet();  // both compute
  window.start = now_ns();
  const double latency_beside = sent(Pattern::pingpong, kSmall) / 2e3;
  const double bandwidth_beside = rate(sent(Pattern::receive, size));
  window.end = now_ns();
  exchange.meet();
  const Computed beside = stop("triad", window);
  return {rounded(latency),        rounded(bandwidth),        rounded(both),
          rounded(latency_beside), rounded(bandwidth_beside), rounded(beside.sum)};
}

json ClusterNode::train(int barriers) {
  if (piece_items_ == 0) {
    constexpr std::uint64_t kTried = 1000;
    const std::int64_t start = now_ns();
    piece_->run(kTried);
    const auto took = static_cast<double>(std::max<std::int64_t>(now_ns() - start, 1));
    piece_items_ = static_cast<std::uint64_t>(std::max(kPieceNs / took * kTried, 1.0));
  }
  double shortest = std::numeric_limits<double>::infinity();
  double all = 0;
  double clock = 0;
  for (int i = 0; i < barriers; ++i) {
    MPI_Barrier(job_.control());
    clock += seconds_of(CLOCK_REALTIME) / barriers;
    const std::int64_t start = now_ns();
    piece_->run(piece_items_);
    const auto took = static_cast<double>(now_ns() - start);
    shortest = std::min(shortest, took);
    all += took;
  }
  return json::array({rounded(1 - shortest * barriers / all), std::round(clock * 1e6) / 1e6});
}

}  // namespace elbowroom
