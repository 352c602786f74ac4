#include "exchange/station.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "exchange/several_threads.hpp"
#include "observe/frequency.hpp"
#include "observe/tracing.hpp"
#include "protocol/message_layout.hpp"
#include "protocol/record.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr double kWatchInterval = 200e-6;  // s between looks at threads that are getting steady
constexpr std::size_t kCacheShare = 4;     // one part in four of a node's memory is kept touched
constexpr std::int64_t kMessageShare = 8;  // one part in eight of a node's free memory for messages beyond cache
constexpr std::uint64_t kBeyondCache = 4;  // times the last-level cache (docs/design/method.md, rule 8)

std::size_t cache_cap(const Machine& machine) {
  std::uint64_t smallest = 0;
  for (const NodeInfo& node : machine.nodes()) {
    const std::uint64_t memory = std::max(node.memory, node.available);
    smallest = smallest == 0 ? memory : std::min(smallest, memory);
  }
  return smallest / kCacheShare;
}

}  // namespace

const elbow_trace_type* traced_phase(Phase phase) {
  switch (phase) {
    case Phase::computation: return traced(Traced::alone);
    case Phase::communication: return traced(Traced::messages);
    case Phase::together: return traced(Traced::together);
    default: return traced(Traced::sleep);
  }
}

Station::Station(const Job& job)
    : job_(job),
      machine_(Machine::here()),
      pool_([](int core) { Machine::here().bind_this_thread(core); }),
      cache_(cache_cap(machine_)),
      exchange_(job, [](int core) { Machine::here().bind_this_thread(core); }),
      extraneous_(job, [](int core) { Machine::here().bind_this_thread(core); }),
      overlap_(job, pool_, [](int core) { Machine::here().bind_this_thread(core); }) {}

// What this rank may use: free memory, and what its own caches would give back.
Site Station::site(const Placement& placement) const {
  Site site;
  for (const CoreInfo& core : machine_.cores()) {
    site.cores.push_back({core.number, core.pus, core.allowed});
  }
  for (const NodeInfo& node : machine_.nodes()) {
    std::size_t own = 0;
    if (node.number == placement.comp_node || node.number == placement.comm_node) {
      own = cache_.bytes_on(node.number) + extraneous_.bytes_on(node.number);
      for (const Arena& arena : message_arenas_) {
        own += arena.node() == node.number ? arena.size() : 0;
      }
    }
    site.nodes.push_back({node.number, static_cast<std::int64_t>(machine_.available_memory(node.number) + own)});
  }
  return site;
}

void Station::check(const Request& request) const {
  const Placement placement = placement_of(request, job_.rank(), job_.same_host(job_.rank()));
  int sharers = 0;
  for (int rank = 0; rank < job_.size(); ++rank) {
    sharers += rank_communicates(request, rank) && job_.hosts()[static_cast<std::size_t>(rank)] ==
                                                       job_.hosts()[static_cast<std::size_t>(job_.rank())]
                   ? 1
                   : 0;
  }
  const bool bystanders = has_bystanders(request, job_.rank());
  check_placement(request, placement, rank_computes(request, job_.rank()) || bystanders, site(placement), sharers);
  if (job_.ranks_on_host_of(job_.rank()) == job_.size()) {
    check_extraneous_site(request, placement, site(placement));
  }
  check_overlap_site(request, placement, site(placement), job_.rank(), job_.size(), sharers);
  check_mpi(request);
  if (job_.thread_level() == MPI_THREAD_SINGLE && (request.kernel != "none" || bystanders)) {
    throw RequestError("kernel", request.kernel, "the MPI was started for programs of one thread",
                       "start the probe without --threads single, or leave the kernel out");
  }
  if (placement.comm_cores.size() > 1 && rank_communicates(request, job_.rank())) {
    if (request.pattern != Pattern::ring) {
      throw RequestError("comm_cores", std::to_string(placement.comm_cores.size()),
                         "only a ring has several communication threads", "name one core, or the pattern ring");
    }
    check_several_threads(job_, "comm_cores", placement.comm_cores.size());
  }
}

// What an operation needs of the MPI.
void Station::check_mpi(const Request& request) const {
  if (!request.overlap) {
    return;
  }
  if (request.overlap->progress == Progress::thread && job_.thread_level() < MPI_THREAD_MULTIPLE) {
    throw RequestError("overlap.progress", "thread",
                       "a progress thread needs MPI_THREAD_MULTIPLE, which this MPI does not grant",
                       "start the probe with --threads multiple, or use another MPI");
  }
  if (request.overlap->form == Form::persistent && is_collective(request.overlap->operation) &&
      !has_persistent_collectives()) {
    throw RequestError("overlap.form", "persistent", "this MPI has no persistent collectives (MPI_Allreduce_init)",
                       "use an MPI with MPI 4, or the form nonblocking");
  }
}

void Station::prepare(const Request& request) {
  request_ = request;
  placement_ = placement_of(request, job_.rank(), job_.same_host(job_.rank()));
  computing_ = rank_computes(request, job_.rank());
  communicating_ = rank_communicates(request, job_.rank());
  if (!placement_.comm_cores.empty()) {
    machine_.bind_this_thread(placement_.comm_cores.front());
  }
  workers_.clear();
  pool_.use(computing_ ? placement_.comp_cores : std::vector<int>{});
  if (computing_) {
    prepare_computation();
  }
  if (communicating_) {
    prepare_communication();
  }
}

void Station::prepare_computation() {
  const KernelInfo& kernel = *find_kernel(request_.kernel);
  std::vector<WorkerKey> keys;
  for (const int core : placement_.comp_cores) {
    const std::size_t bytes = kernel.arrays == 0 ? 0 : static_cast<std::size_t>(request_.working_set);
    keys.push_back({request_.kernel, kernel.uses_cursor ? request_.cursor : 1, bytes, core, placement_.comp_node});
  }
  try {
    workers_ = cache_.get(keys, pool_);
  } catch (const std::invalid_argument& error) {
    throw RequestError("working_set", std::to_string(request_.working_set), error.what(), "give a larger working set");
  }
}

// The arena of a node only grows; its pages are touched by the communication thread.
char* Station::message_memory(std::size_t bytes) {
  const auto it = std::find_if(message_arenas_.begin(), message_arenas_.end(),
                               [&](const Arena& arena) { return arena.node() == placement_.comm_node; });
  if (it != message_arenas_.end() && it->size() >= bytes) {
    return static_cast<char*>(it->data());
  }
  if (it != message_arenas_.end()) {
    message_arenas_.erase(it);
  }
  message_arenas_.emplace_back(bytes, placement_.comm_node);
  void* memory = message_arenas_.back().data();
  std::memset(memory, 1, bytes);
  return static_cast<char*>(memory);
}

// Bytes of the arena that this request uses.
std::size_t Station::message_bytes() const {
  return static_cast<std::size_t>(request_.overlap ? overlap_bytes(*request_.overlap, request_.size, job_.size()).all()
                                                   : layout_.bytes());
}

void Station::prepare_communication() {
  if (request_.overlap) {
    layout_ = MessageLayout{};
    overlap_.use(request_, workers_, message_memory(std::max<std::size_t>(message_bytes(), 1)));
    return;
  }
  const auto lanes = static_cast<std::int64_t>(request_.pattern == Pattern::ring ? placement_.comm_cores.size() : 1);
  const auto sharers = static_cast<std::int64_t>(job_.ranks_on_host_of(job_.rank()));
  const auto free = static_cast<std::int64_t>(machine_.available_memory(placement_.comm_node));
  layout_ = message_layout(request_, static_cast<std::int64_t>(machine_.last_level_cache()),
                           free / kMessageShare / sharers / lanes);
  char* memory = message_memory(static_cast<std::size_t>(layout_.bytes() * lanes));
  if (request_.extraneous) {
    extraneous_.use(request_, placement_, memory);
    return;
  }
  std::vector<Lane> all;
  for (std::int64_t i = 0; i < lanes; ++i) {
    Lane lane;
    lane.pattern = request_.pattern;
    lane.comm = job_.messages();
    lane.rank = job_.rank();
    lane.ranks = request_.pattern == Pattern::ring ? job_.size() : 2;
    lane.tag = static_cast<int>(i);
    lane.size = static_cast<int>(request_.size);
    lane.buffers = Buffers(memory + i * layout_.bytes(), layout_);
    all.push_back(lane);
  }
  exchange_.use(std::move(all), placement_.comm_cores, request_.fault == "message" && job_.rank() == 1);
}

// Cores on which this rank runs threads.
std::vector<int> Station::threads_cores() const {
  std::vector<int> cores = placement_.comm_cores;
  if (computing_ || has_bystanders(request_, job_.rank())) {
    cores.insert(cores.end(), placement_.comp_cores.begin(), placement_.comp_cores.end());
  }
  return cores;
}

// Cores of this host on which any rank runs a thread.
std::vector<int> Station::busy_cores() const {
  std::vector<int> cores;
  const std::string& host = job_.hosts()[static_cast<std::size_t>(job_.rank())];
  for (int rank = 0; rank < job_.size(); ++rank) {
    if (job_.hosts()[static_cast<std::size_t>(rank)] != host) {
      continue;
    }
    const Placement placement = placement_of(request_, rank, job_.same_host(rank));
    cores.insert(cores.end(), placement.comm_cores.begin(), placement.comm_cores.end());
    if (rank_computes(request_, rank) || has_bystanders(request_, rank)) {
      cores.insert(cores.end(), placement.comp_cores.begin(), placement.comp_cores.end());
    }
  }
  return cores;
}

void Station::begin_phase() {
  std::vector<std::string> wanted = request_.observe;
  if (job_.rank() != 0) {
    std::erase(wanted, "frequency_trace");  // only rank 0's is kept
  }
  observer_ = std::make_unique<PhaseObserver>(threads_cores(), wanted, sampling_core(machine_.cores(), busy_cores()));
  reports_.clear();
  exchanged_ = ExchangeReport{};
  observer_->start();
  phase_start_ = now_ns();
}

void Station::start_computing() {
  std::vector<ComputingJob*> jobs;
  for (CachedWorker* worker : workers_) {
    worker->job.name = worker->key.kernel;
    jobs.push_back(&worker->job);
  }
  pool_.start(jobs, {request_.steady_window, request_.steady_cov}, observer_.get());
}

bool Station::wait_until_computing() const {
  const TracedSpan span(traced(Traced::settling), 0);
  const std::int64_t start = now_ns();
  for (;;) {
    if (pool_.steady_since() != 0) {
      return true;
    }
    if (static_cast<double>(now_ns() - start) * 1e-9 > request_.steady_limit && pool_.warm_since() != 0) {
      return false;
    }
    sleep_for(kWatchInterval);
  }
}

void Station::stop_computing() { reports_ = pool_.stop(); }
void Station::lead_exchange() { exchanged_ = exchange_.lead(request_, minimum_sample_ns(), *observer_); }
void Station::follow_exchange() { exchanged_ = exchange_.follow(*observer_); }
void Station::end_phase() { observer_->stop(); }

json Station::computed(const Window& window, std::set<std::string>& flags) const {
  return computation_record(reports_, window, *find_kernel(request_.kernel), request_.cursor, flags);
}

json Station::communicated(std::set<std::string>& flags) const {
  std::vector<BatchTime> batches;
  for (const Batch& batch : exchanged_.batches) {
    batches.push_back({static_cast<double>(batch.end - batch.start) * 1e-9, batch.iterations});
  }
  if (!exchanged_.holds) {
    flags.insert("validation_failed");
  }
  if (!exchanged_.due.empty()) {
    return due_record(exchanged_.due, request_, minimum_sample_ns(), flags);
  }
  const std::size_t lanes = request_.pattern == Pattern::ring ? placement_.comm_cores.size() : 1;
  return communication_record(batches, request_, lanes, minimum_sample_ns(), flags);
}

json Station::observed(std::set<std::string>& flags) const {
  json record = observer_->result();
  if (record.value("migrations", 0) > 0) {
    flags.insert("migrated");
  }
  if (observer_->sampling_disturbs()) {
    flags.insert("sampling_disturbs");
  }
  if (stolen(record, static_cast<double>(now_ns() - phase_start_) * 1e-9)) {
    flags.insert("steal");
  }
  return record;
}

json Station::pages(std::set<std::string>& flags) const {
  json record = json::object();
  std::vector<PageReport> reports;
  for (const CachedWorker* worker : workers_) {
    if (worker->key.bytes > 0) {
      reports.push_back(worker->arena.verify(worker->key.bytes));
    }
  }
  const bool extraneous = request_.extraneous.has_value();
  if (extraneous) {
    reports = extraneous_.bystanders_pages();
  }
  if (const json comp = pages_record(reports, flags); !comp.is_null()) {
    record["comp"] = comp;
  }
  if (!communicating_) {
    return record;
  }
  for (const Arena& arena : message_arenas_) {
    if (arena.node() == placement_.comm_node) {
      reports = extraneous ? extraneous_.own_pages() : std::vector<PageReport>{};
      reports.push_back(arena.verify(message_bytes()));
      record["comm"] = pages_record(reports, flags);
    }
  }
  return record;
}

std::set<std::string> Station::request_flags() const {
  std::set<std::string> flags;
  const KernelInfo* kernel = computing_ ? find_kernel(request_.kernel) : nullptr;
  if (kernel != nullptr && kernel->arrays > 0 && !kernel->cache_resident && !kernel->non_temporal) {
    const auto bytes = static_cast<std::uint64_t>(request_.working_set) * placement_.comp_cores.size();
    if (bytes < kBeyondCache * machine_.last_level_cache()) {
      flags.insert("working_set_small");
    }
  }
  if (communicating_ && layout_.capped) {
    flags.insert("region_capped");
  }
  return flags;
}

}  // namespace elbowroom
