// forwarder: what forwarding broadcasts costs the computing cores of a rank inside the tree (README.md).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "broadcast/products.hpp"
#include "broadcast/stream.hpp"
#include "common/blas.hpp"
#include "common/command_line.hpp"
#include "common/cores.hpp"
#include "common/serve.hpp"
#include "common/sharing.hpp"
#include "common/together.hpp"
#include "lib/broadcast/tree.hpp"
#include "machine/machine.hpp"
#include "observe/observer.hpp"
#include "protocol/pool.hpp"
#include "protocol/record.hpp"
#include "protocol/request.hpp"

namespace elbowroom::forwarding {
namespace {

// The program: broadcasts from rank 0, and a kernel on the computing cores of the rank that forwards most.
// A computing thread with its memory.
struct Cruncher {
  Arena memory;
  ComputingJob job;
};

class Forwarder : public program::Program {
 public:
  // Refuses threads that would share a core where one of them computes. Collective; throws RequestError on all ranks alike.
  Forwarder(const Job& job, const program::Settings& settings);

  nlohmann::json facts() const override;
  nlohmann::json answer(const nlohmann::json& request) override;

 private:
  struct PointRequest;
  PointRequest read_point(const nlohmann::json& request) const;
  void read_program(const nlohmann::json& program);
  void take_cores(const program::Settings& settings);
  void prepare(const PointRequest& request);
  bool computes() const { return job_.rank() == kInner; }
  nlohmann::json phase(const PointRequest& request, Phase phase, int index);
  bool start_computing(const PointRequest& request);
  Window compute_alone(const PointRequest& request, bool steady);
  Window communicate(const PointRequest& request, StreamReport& stream);
  nlohmann::json own_report(Phase phase, const Window& window, const StreamReport& stream);
  nlohmann::json facts_of(const PointRequest& request) const;

  const Job& job_;
  std::string kernel_;
  std::string tree_;
  std::size_t segment_ = 0;
  Placement placement_;
  int bound_ = -1;               // processing unit of the communication thread
  std::set<std::string> flags_;  // of where the threads are
  ComputingPool pool_;
  std::size_t working_set_ = 0;  // bytes of each computing thread
  std::vector<Cruncher> crunchers_;
  std::unique_ptr<PhaseObserver> observer_;
  std::optional<Stream> stream_;
  std::map<std::string, std::uint64_t> counted_;  // on the computing rank, in this repetition
};

using nlohmann::json;
using program::BusyThread;
using program::gathered;
using program::read;
using program::together;

constexpr int kLeastRanks = 3;             // a root, a rank that forwards, a leaf
constexpr double kWatchInterval = 200e-6;  // s between looks at threads that are getting steady
constexpr double kChunkMargin = 1e-3;      // s: the chunk that the end of the window cuts is not counted

const KernelInfo* find_any_kernel(const std::string& name) {
  return name == kProducts.name ? &kProducts : find_kernel(name);
}

Phase phase_named(const std::string& name) {
  for (const Phase phase : {Phase::computation, Phase::communication, Phase::together}) {
    if (name_of(phase) == name) {
      return phase;
    }
  }
  throw RequestError("sequence", name, "is not a phase of this program", "A computing, B broadcasts, AB both");
}

void check_tree(const std::string& tree) {
  try {
    tree == "two" ? void() : void(broadcast::parse_tree(tree));
  } catch (const std::invalid_argument& error) {
    throw RequestError("tree", tree, error.what(), "or two: two trees at once");
  }
}

// The bandwidth of what each recipient gets, of all batches and of each.
json messages_record(const program::Batches& batches, std::size_t size) {
  const auto rate = [size](double seconds, std::int64_t count) {
    return static_cast<double>(size) * static_cast<double>(count) / seconds * 1e-6;
  };
  json values = json::array();
  for (const program::Batch& batch : batches.measured) {
    values.push_back(rate(static_cast<double>(batch.took_ns) * 1e-9, batch.count));
  }
  return {{"value", rate(batches.seconds(), batches.count())},
          {"unit", "MB/s"},
          {"batches", values},
          {"messages", batches.count()},
          {"bytes", batches.count() * static_cast<std::int64_t>(size)}};
}

// Where the threads of a rank are: those that only pass messages on may share a core, and then yield to each other.
std::vector<BusyThread> busy(const Placement& placement, bool computing) {
  std::vector<BusyThread> threads = {{"the communication thread", placement.comm_cores.front(), "comm_cores", true}};
  for (const int core : computing ? placement.comp_cores : std::vector<int>{}) {
    threads.push_back({"a computing thread", core, "comp_cores"});
  }
  return threads;
}

// Adds phases, and what they and the flags of the whole repetition say of its status.
void judge(json& record, json phases, std::set<std::string> flags) {
  std::string status = "ok";
  for (json& phase : phases) {
    if (flags.contains("wrong_node")) {
      phase["status"] = "void";
    }
    const std::string one = phase.at("status");
    status = one == "void" ? "failed" : one == "not_stable" && status == "ok" ? one : status;
    flags.merge(phase.at("flags").get<std::set<std::string>>());
  }
  record["status"] = status;
  record["reason"] = status == "failed"       ? "a rule of measuring was broken: see the flags of the phases"
                     : status == "not_stable" ? "no steady window inside the limit"
                                              : "";
  record["validated"] = !flags.contains("validation_failed");
  record["flags"] = flags;
  record["phases"] = std::move(phases);
}

struct Forwarder::PointRequest {
  std::string point;
  std::int64_t repetition = 0;
  std::vector<Phase> sequence;
  std::size_t working_set = 0;
  std::vector<std::string> observe;
  StreamWindow stream;
};

Forwarder::Forwarder(const Job& job, const program::Settings& settings)
    : job_(job), pool_([](int core) { Machine::here().bind_this_thread(core); }) {
  together(job_, [&] {
    read_program(settings.program);
    take_cores(settings);
  });
  if (program::place(job_, busy(placement_, computes()), settings.scheduling)) {
    flags_.insert(settings.scheduling ? "scheduling" : "shared_comm_core");
  }
  program::one_thread_each();
  together(job_, [&] {
    Machine::here().bind_this_thread(placement_.comm_cores.front());
    bound_ = sched_getcpu();
    pool_.use(computes() ? placement_.comp_cores : std::vector<int>{});
    stream_.emplace(job_, tree_, segment_, placement_.comm_node);
  });
}

void Forwarder::read_program(const json& program) {
  kernel_ = read(program, "kernel", std::string("triad"));
  tree_ = read(program, "tree", std::string("binomial"));
  segment_ = read(program, "segment", std::size_t{0});
  check_tree(tree_);
  const KernelInfo* kernel = find_any_kernel(kernel_);
  if (kernel == nullptr || kernel->pool) {
    throw RequestError("kernel", kernel_, "is not a kernel of this program", "gemm, triad, or another of the probe");
  }
  if (job_.size() < kLeastRanks) {
    throw RequestError("ranks", std::to_string(job_.size()), "a root, a rank that forwards and a leaf are needed",
                       fmt::format("start {} or more", kLeastRanks));
  }
  if (read(program, "ranks", job_.size()) != job_.size()) {
    throw RequestError("ranks", program.at("ranks").dump(), fmt::format("{} were started", job_.size()),
                       "start as many as the settings say");
  }
}

void Forwarder::take_cores(const program::Settings& settings) {
  placement_ = settings.placement(job_.rank(), job_.same_host(job_.rank()));
  if (placement_.comm_cores.size() != 1) {
    throw RequestError("comm_cores", fmt::format("{}", fmt::join(placement_.comm_cores, ",")),
                       "one thread of a rank communicates", "name one core");
  }
  placement_.comm_node = program::node_of("comm_node", placement_.comm_node, placement_.comm_cores.front());
  if (!computes()) {
    return;
  }
  if (placement_.comp_cores.empty()) {
    throw RequestError("comp_cores", "", fmt::format("rank {} computes, and has no core for it", kInner),
                       "name one core or more");
  }
  placement_.comp_node = program::node_of("comp_node", placement_.comp_node, placement_.comp_cores.front());
}

json Forwarder::facts() const {
  return {{"application", "forwarder"}, {"kernel", kernel_}, {"tree", tree_}, {"computing_rank", kInner}};
}

Forwarder::PointRequest Forwarder::read_point(const json& request) const {
  PointRequest result;
  result.point = read(request, "point", std::string());
  result.repetition = read(request, "repetition", std::int64_t{0});
  for (const std::string& name : read(request, "sequence", std::vector<std::string>{"A", "B", "AB"})) {
    result.sequence.push_back(phase_named(name));
  }
  const auto size = read(request, "size", std::int64_t{0});
  if (size < 1 || size > std::numeric_limits<int>::max()) {
    throw RequestError("size", std::to_string(size), "is not a size of a broadcast", "from 1 B to 2 GiB");
  }
  result.working_set = read(request, "working_set", std::size_t{0});
  result.observe = read(request, "observe", std::vector<std::string>{});
  result.stream = {program::read_window(request), static_cast<std::size_t>(size),
                   read(request, "fault", std::string()) == "message"};
  return result;
}

// Memory for both sides, touched by who uses it; kept while the sizes are the same.
void Forwarder::prepare(const PointRequest& request) {
  stream_->use(request.stream.size);
  if (!computes() || (!crunchers_.empty() && working_set_ == request.working_set)) {
    return;
  }
  crunchers_.clear();
  const std::size_t bytes = find_any_kernel(kernel_)->arrays == 0 ? 0 : request.working_set;
  try {
    for (std::size_t i = 0; i < placement_.comp_cores.size(); ++i) {
      Cruncher cruncher;
      cruncher.memory = bytes > 0 ? Arena(bytes, placement_.comp_node) : Arena();
      void* const memory = cruncher.memory.data();
      cruncher.job.worker =
          kernel_ == kProducts.name ? make_products(memory, bytes) : make_worker(kernel_, memory, bytes, 1);
      cruncher.job.name = kernel_;
      crunchers_.push_back(std::move(cruncher));
    }
  } catch (const std::invalid_argument& error) {
    crunchers_.clear();
    throw RequestError("working_set", std::to_string(request.working_set), error.what(), "give a larger working set");
  }
  working_set_ = request.working_set;
  pool_.each([this](std::size_t i) { crunchers_[i].job.worker->first_touch(); });
}

// Returns whether all computing threads are steady; they are at least warm.
bool Forwarder::start_computing(const PointRequest& request) {
  std::vector<ComputingJob*> jobs;
  for (Cruncher& cruncher : crunchers_) {
    jobs.push_back(&cruncher.job);
  }
  const program::BatchWindow& window = request.stream.batches;
  pool_.start(jobs, {window.steady_window, window.steady_cov}, observer_.get());
  const std::int64_t begun = now_ns();
  while (pool_.steady_since() == 0 &&
         (pool_.warm_since() == 0 || static_cast<double>(now_ns() - begun) * 1e-9 < window.limit)) {
    sleep_for(kWatchInterval);
  }
  return pool_.steady_since() != 0;
}

Window Forwarder::compute_alone(const PointRequest& request, bool steady) {
  const program::BatchWindow& wanted = request.stream.batches;
  Window window{steady ? pool_.steady_since() : pool_.warm_since(), 0};
  const double length = steady ? wanted.seconds : std::max(wanted.seconds, wanted.limit);
  sleep_for(std::max(0.0, length + kChunkMargin - static_cast<double>(now_ns() - window.start) * 1e-9));
  window.end = now_ns();
  return window;
}

// The window of this rank, by its own clock: from the announcement of the first batch that is counted to what follows the
// last one.
Window Forwarder::communicate(const PointRequest& request, StreamReport& stream) {
  if (job_.rank() == 0) {
    stream = stream_->lead(request.stream);
    job_.send_to_others({{"before", stream.batches.before}, {"measured", stream.batches.measured.size()}});
    return {stream.batches.start_ns, stream.batches.end_ns};
  }
  stream = stream_->follow();
  const json counted = job_.receive(0);
  const std::size_t first = 1 + counted.at("before").get<std::size_t>();
  const std::size_t last = first + counted.at("measured").get<std::size_t>();
  return {stream.announcements.at(first), stream.announcements.at(last)};
}

// What this rank saw of a phase; the computing rank's sides and facts.
json Forwarder::own_report(Phase phase, const Window& window, const StreamReport& stream) {
  std::set<std::string> flags;
  json report = {{"rank", job_.rank()}, {"steady", true}};
  if (!stream.valid) {
    flags.insert("validation_failed");
  }
  if (sched_getcpu() != bound_) {
    flags.insert("migrated");
  }
  if (computes()) {
    if (elbowroom::computes(phase)) {
      report["comp"] = computation_record(pool_.stop(), window, *find_any_kernel(kernel_), 1, flags);
    }
    report["seconds"] = window.seconds();
    observer_->stop();
    report["observed"] = observer_->result();
    if (report["observed"].value("migrations", 0) > 0) {
      flags.insert("migrated");
    }
    if (stolen(report["observed"], window.seconds())) {
      flags.insert("steal");
    }
    report["counters"] = {{"broadcasts", stream.broadcasts},
                          {"forwarded", stream.counters.forwarded},
                          {"bypassed", stream.counters.bypassed},
                          {"stored", stream.counters.stored}};
  }
  report["flags"] = flags;
  return report;
}

json Forwarder::phase(const PointRequest& request, Phase phase, int index) {
  if (computes()) {
    observer_ = std::make_unique<PhaseObserver>(placement_.comp_cores, request.observe, placement_.comm_cores.front());
    observer_->start();
  }
  const std::int64_t start = now_ns();
  const bool computing = computes() && elbowroom::computes(phase);
  bool steady = !computing || start_computing(request);
  gathered(job_, nullptr);  // so that no broadcast begins before all computing threads run
  StreamReport stream;
  Window window{start, now_ns()};
  if (communicates(phase)) {
    window = communicate(request, stream);
    steady = steady && (job_.rank() != 0 || stream.batches.steady);
  } else if (computing) {
    window = compute_alone(request, steady);
  }
  json own = own_report(phase, window, stream);
  own["steady"] = steady;
  json record = {{"phase", name_of(phase)}, {"index", index}, {"start_ns", start}};
  const std::vector<json> reports = gathered(job_, own);
  record["end_ns"] = now_ns();
  const json& inner = reports[kInner];
  std::set<std::string> flags;
  for (const json& report : reports) {
    flags.merge(report.at("flags").get<std::set<std::string>>());
    steady = steady && report.at("steady").get<bool>();
  }
  if (communicates(phase)) {
    record["comm"] = messages_record(stream.batches, request.stream.size);
    for (const auto& [name, count] : inner.at("counters").items()) {
      counted_[name] += count.get<std::uint64_t>();
    }
  }
  if (inner.contains("comp")) {
    record["comp"] = inner.at("comp");
  }
  record["measured_s"] = communicates(phase) ? stream.batches.seconds() : inner.at("seconds").get<double>();
  record["observed"] = inner.at("observed");
  record["flags"] = flags;
  record["status"] = phase_status(steady, flags);
  return record;
}

// Of all broadcasts of the repetition, on the computing rank.
json Forwarder::facts_of(const PointRequest& request) const {
  const auto count = [this](const char* name) {
    const auto found = counted_.find(name);
    return found == counted_.end() ? 0.0 : static_cast<double>(found->second);
  };
  const double received = count("broadcasts") * static_cast<double>(request.stream.size);
  json facts = {{"ranks", job_.size()},          {"broadcasts", count("broadcasts")},
                {"received_bytes", received},    {"forwarded_bytes", count("forwarded")},
                {"bypassed", count("bypassed")}, {"stored", count("stored")}};
  if (received > 0) {
    facts["copies"] = count("forwarded") / received;
  }
  return facts;
}

json Forwarder::answer(const json& request) {
  PointRequest point;
  together(job_, [&] {
    point = read_point(request);
    prepare(point);
  });
  counted_.clear();
  json phases = json::array();
  for (const Phase one : point.sequence) {
    phases.push_back(phase(point, one, static_cast<int>(phases.size())));
  }
  std::set<std::string> flags = flags_;
  json own = {{"comm", pages_record({stream_->memory().verify(stream_->memory().size())}, flags)}};
  std::vector<PageReport> computing;
  for (const Cruncher& cruncher : crunchers_) {
    computing.push_back(cruncher.memory.verify(cruncher.memory.size()));
  }
  if (const json pages = pages_record(computing, flags); !pages.is_null()) {
    own["comp"] = pages;
  }
  const std::vector<json> reports = gathered(job_, {{"pages", own}, {"flags", flags}});
  for (const json& report : reports) {
    flags.merge(report.at("flags").get<std::set<std::string>>());
  }
  json record = {{"record", "repetition"}, {"point", point.point}, {"repetition", point.repetition}};
  record["pages"] = reports[kInner].at("pages");
  record["bytes"] = bytes_record(*find_any_kernel(kernel_), 1);
  record["facts"] = facts_of(point);
  judge(record, phases, flags);
  return record;
}

}  // namespace
}  // namespace elbowroom::forwarding

int main(int argc, char** argv) {
  using namespace elbowroom;
  program::choose_blas_kernels(argv);
  program::CommandLine line("broadcasts over a tree, and a kernel beside them on a rank that forwards",
                            "three MPI ranks or more", "tree, kernel, cores, nodes");
  line.accept_threads("funneled");
  if (const auto code = line.parse(argc, argv)) return *code;
  return program::with_ranks("forwarder", argc, argv, "funneled",
                             [&](const Job& job) { return line.serve<forwarding::Forwarder>(job); });
}
