#include "factorizations/factorizations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"
#include "broadcast/tree.hpp"
#include "common/blas.hpp"
#include "common/together.hpp"
#include "elbowroom/broadcast_mpi.h"
#include "factorizations/steps.hpp"
#include "machine/machine.hpp"

namespace elbowroom::factorizations {
namespace {

using nlohmann::json;
using program::communicates;
using program::computes;
using program::gathered;
using program::Mode;
using program::read;
using program::together;
using taskflow::Factorization;

constexpr double kMega = 1e-6;
constexpr double kMostRuns = 10000;         // in a phase
constexpr double kRoom = 0.9;               // of the available memory that tiles may take
constexpr double kLargestResidual = 1e-12;  // of a factorization that is right
constexpr std::int64_t kMostTiles = 1000;   // on a side

std::int64_t read_count(const json& program, const char* key, std::int64_t otherwise, std::int64_t most) {
  const auto count = read(program, key, otherwise);
  if (count < 1 || count > most) {
    throw RequestError(key, std::to_string(count), "is too small or too large", fmt::format("use 1 to {}", most));
  }
  return count;
}

Factorization read_task(const std::string& task) {
  if (task != "cholesky" && task != "qr") {
    throw RequestError("task", task, "is no factorization", "use cholesky or qr");
  }
  return task == "qr" ? Factorization::kQr : Factorization::kCholesky;
}

std::string read_tree(const json& program) {
  std::string tree = read(program, "tree", std::string("binomial"));
  try {
    if (tree != "two") broadcast::parse_tree(tree);
  } catch (const std::invalid_argument& error) {
    throw RequestError("tree", tree, error.what(), "see elbowroom help broadcast");
  }
  return tree;
}

Layout read_layout(const json& program, int ranks) {
  Layout layout;
  taskflow::Problem& problem = layout.problem;
  problem.factorization = read_task(read(program, "task", std::string("cholesky")));
  problem.rows = static_cast<unsigned>(read_count(program, "tiles", 8, kMostTiles));
  const bool wide = problem.factorization == Factorization::kQr;
  problem.columns =
      wide ? static_cast<unsigned>(read_count(program, "columns", problem.rows, kMostTiles)) : problem.rows;
  problem.grid.rows = static_cast<int>(read_count(program, "grid_rows", 1, ranks));
  problem.grid.columns = static_cast<int>(read_count(program, "grid_columns", ranks / problem.grid.rows, ranks));
  problem.priorities = read(program, "priorities", true);
  if (problem.grid.size() != ranks) {
    throw RequestError("grid", fmt::format("{}x{}", problem.grid.rows, problem.grid.columns),
                       fmt::format("has {} processes, and {} were started", problem.grid.size(), ranks),
                       "give rows x columns whose product is the number of ranks");
  }
  layout.block = static_cast<std::size_t>(read_count(program, "block", 256, kMostBlock));
  layout.inner_block = std::min(layout.block, kInnerBlock);
  return layout;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Nanoseconds that this thread had a core: ranks that share cores would else seem to compute slower where they all compute.
std::int64_t thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// A transport of one process.
elbow_broadcast_transport transport_of_one() {
  elbow_broadcast_transport transport{};
  transport.size = sizeof transport;
  transport.ranks = 1;
  transport.channels = 1;
  transport.now = [](void*) { return static_cast<double>(now_ns()) * 1e-9; };
  transport.poll = [](void*, elbow_broadcast_happening*) { return 0; };
  transport.send_control = [](void*, int, const void*, std::size_t) { return -1; };
  transport.send_data = [](void*, int, std::uint32_t, const void*, std::size_t, std::uint64_t) { return -1; };
  transport.receive_data = [](void*, int, std::uint32_t, void*, std::size_t, std::uint64_t) { return -1; };
  return transport;
}

void check(int result, const char* (*error)()) {
  if (result != 0) throw std::runtime_error(error());
}

}  // namespace

// What one run was on this rank.
struct Factorizations::Run {
  std::int64_t start = 0;  // ns
  std::int64_t end = 0;
  double busy = 0;  // s in tasks, summed over the computing threads
  elbow_taskflow_counters counters = [] {
    elbow_taskflow_counters empty{};
    empty.size = sizeof empty;
    return empty;
  }();

  double seconds() const { return static_cast<double>(end - start) * 1e-9; }
};

// The argument of a task.
struct Factorizations::Work {
  Factorizations* self;
  taskflow::Step step;
  bool computes;
};

Factorizations::Factorizations(const Job& job, const program::Settings& settings) : job_(job) {
  together(job_, [&] {
    program::check_build(settings.program, Engine::kName, job_.size());
    layout_ = read_layout(settings.program, job_.size());
    task_ = read(settings.program, "task", std::string("cholesky"));
    tree_ = read_tree(settings.program);
    way_ = {sizeof way_, tree_.c_str(), read(settings.program, "segment", std::size_t{0})};
    flow_.size = sizeof flow_;
    flow_.way = &way_;
    flow_.window = read(settings.program, "window", std::size_t{0});
    flow_.point_to_point = read(settings.program, "broadcasts", true) ? 0 : 1;
    flow_.wait_released = read(settings.program, "early", true) ? 0 : 1;
    flow_.send_at_once = read(settings.program, "hold", true) ? 0 : 1;
    place_ = program::place_of(settings, job_.hosts(), static_cast<std::size_t>(job_.rank()));
    check_memory();
  });
  program::one_thread_each();
  together(job_, [&] { engine_ = std::make_unique<Engine>(place_.seat); });
  flow_.executor = engine_->executor();
  together(job_, [&] {
    matrix_ = std::make_unique<Matrix>(layout_, job_.rank());
    replicas_.resize(layout_.problem.data());
    open_broadcasts();
  });
  for (const Mode mode : {Mode::all, Mode::computing, Mode::messages}) {
    if (!failure_.empty()) return;
    const Run warm = run(mode);
    double longest = 0;
    for (const json& seconds : gathered(job_, warm.seconds())) longest = std::max(longest, seconds.get<double>());
    seconds_[static_cast<std::size_t>(mode)] = longest;
  }
}

Factorizations::~Factorizations() {
  engine_->resume();
  elbow_broadcast_free(alone_);
  elbow_broadcast_free(broadcast_);
}

void Factorizations::check_memory() const {
  const double sharers = job_.ranks_on_host_of(job_.rank());
  const double there = kRoom * static_cast<double>(Machine::here().available_memory(place_.comp_node));
  // The own tiles, and at most all others twice: as copies, and for phases without messages.
  const double needed = sharers * layout_.most_bytes() * (job_.size() == 1 ? 1 : 3);
  if (needed > there) {
    throw RequestError("block", std::to_string(layout_.block),
                       fmt::format("the matrix does not fit: {:.3g} GB needed on this host, {:.3g} GB there",
                                   needed * 1e-9, there * 1e-9),
                       "give smaller or fewer tiles");
  }
}

void Factorizations::open_broadcasts() {
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  const elbow_broadcast_transport others = elbow_broadcast_transport_of_mpi(own);
  broadcast_ = elbow_broadcast_new(&others, nullptr);
  const elbow_broadcast_transport nobody = transport_of_one();
  alone_ = elbow_broadcast_new(&nobody, nullptr);
  if (broadcast_ == nullptr || alone_ == nullptr) throw std::runtime_error(elbow_broadcast_error());
}

void Factorizations::compute_step(void* const* tiles, const void* argument) {
  Work work{};
  std::memcpy(&work, argument, sizeof work);
  if (!work.computes) return;
  Factorizations& self = *work.self;
  const std::int64_t start = thread_ns();
  const bool done = compute(work.step, self.layout_.block, self.layout_.inner_block, tiles);
  self.busy_ns_ += thread_ns() - start;
  if (!done) self.failed_ = true;
}

// Another rank's tile where no messages travel: as harmless as zeros, and the diagonal tiles can be divided by.
double* Factorizations::replica(Data data) {
  auto& memory = replicas_[data];
  if (memory == nullptr) {
    memory = std::make_unique<double[]>(layout_.doubles(data));
    if (layout_.problem.factorization == Factorization::kCholesky) {
      for (std::size_t i = 0; i < layout_.block; ++i) {
        memory[i * layout_.block + i] = std::sqrt(static_cast<double>(layout_.order()));
      }
    }
  }
  return memory.get();
}

void Factorizations::register_data(elbow_taskflow* flow, Mode mode) {
  for (Data data = 0; data < layout_.problem.data(); ++data) {
    const bool messages = communicates(mode);
    double* memory = matrix_->at(data);
    if (memory == nullptr && !messages) memory = replica(data);
    elbow_taskflow_data number = 0;
    check(
        elbow_taskflow_register(flow, memory, layout_.bytes(data), messages ? layout_.problem.owner(data) : 0, &number),
        elbow_taskflow_error);
  }
}

// All tasks where messages travel, this rank's own where they do not.
void Factorizations::submit(elbow_taskflow* flow, Mode mode) {
  taskflow::enumerate(layout_.problem, [&](const taskflow::Call& call) {
    if (!communicates(mode) && call.rank != job_.rank()) return;
    std::array<elbow_taskflow_use, 4> uses{};
    for (std::size_t i = 0; i < call.count; ++i) uses[i] = {call.uses[i].data, static_cast<int>(call.uses[i].mode)};
    const Work work{this, call.step, computes(mode)};
    check(elbow_taskflow_submit(flow, compute_step, &work, sizeof work, uses.data(), call.count, call.priority,
                                communicates(mode) ? call.rank : 0),
          elbow_taskflow_error);
  });
}

// No rank begins before all have come, and none ends its broadcasts before all have.
Factorizations::Run Factorizations::run(Mode mode) {
  elbow_broadcast* const over = communicates(mode) ? broadcast_ : alone_;
  if (mode != Mode::messages) matrix_->fill();
  elbow_taskflow* const flow =
      elbow_taskflow_new(over, communicates(mode) ? job_.rank() : 0, communicates(mode) ? job_.size() : 1, &flow_);
  if (flow == nullptr) throw std::runtime_error(elbow_taskflow_error());
  register_data(flow, mode);
  engine_->resume();
  if (engine_->progress_core() >= 0)
    check(elbow_broadcast_start(over, engine_->progress_core()), elbow_broadcast_error);
  gathered(job_, nullptr);
  busy_ns_ = 0;
  Run run;
  run.start = now_ns();
  submit(flow, mode);
  check(elbow_taskflow_wait(flow), elbow_taskflow_error);
  run.end = now_ns();
  run.busy = static_cast<double>(busy_ns_.load()) * 1e-9;
  elbow_taskflow_count(flow, &run.counters);
  bool failed = false;
  for (const json& rank : gathered(job_, failed_.exchange(false))) failed = failed || rank.get<bool>();
  if (failed && mode == Mode::all) failure_ = "the matrix is not positive definite";
  elbow_broadcast_stop(over);
  engine_->pause();
  elbow_taskflow_free(flow);
  return run;
}

// Rates of all runs together, and of each.
json Factorizations::report(Mode mode, const std::vector<Run>& runs) const {
  double work = 0;
  taskflow::enumerate(layout_.problem, [&](const taskflow::Call& call) {
    if (call.rank == job_.rank()) work += flops(call.step, layout_.block);
  });
  work *= static_cast<double>(engine_->threads()) * kMega;
  std::vector<double> seconds;
  std::vector<double> busy;
  for (const Run& run : runs) {
    seconds.push_back(run.seconds());
    busy.push_back(run.busy);
  }
  json own = {{"rank", job_.rank()},
              {"total", {{"value", mean(seconds) / kMega}, {"unit", "us"}}},
              {"too_short", mean(seconds) < minimum_sample_ns() * 1e-9},
              {"strayed", false}};
  for (const double one : seconds) own["total"]["batches"].push_back(one / kMega);
  // A rank of a small matrix may have no tasks.
  if (computes(mode) && work > 0) {
    own["comp"] = {{"rate", work / mean(busy)}, {"unit", "Mflop/s"}};
    for (const double one : busy) own["comp"]["batches"].push_back(work / one);
  }
  return own;
}

json Factorizations::phase(const std::string& name, std::size_t index, double window) {
  const Mode mode = program::mode_of(name);
  const double wanted = std::clamp(std::ceil(window / seconds_[static_cast<std::size_t>(mode)]), 1.0, kMostRuns);
  std::vector<Run> runs;
  double measured = 0;
  for (double i = 0; i < wanted; ++i) {
    runs.push_back(run(mode));
    measured += runs.back().seconds();
  }
  std::set<std::string> flags;
  if (mode == Mode::all) {
    facts_ = facts_of(runs.back());
    if (!(facts_.at("residual").get<double>() <= kLargestResidual)) flags.insert("validation_failed");
  }
  const program::Span span{runs.front().start, runs.back().end, measured};
  return program::phase_record(name, index, span, gathered(job_, report(mode, runs)), flags, failure_);
}

// Numbers of the whole job: those of one run, and what the check found.
json Factorizations::facts_of(const Run& run) {
  const elbow_taskflow_counters& own = run.counters;
  json sums = {{"tasks", 0}, {"data", 0}, {"broadcasts", 0}, {"complete", 0}, {"late", 0}, {"messages", 0}};
  double most = 0;
  double longest = 0;
  for (const json& rank : gathered(job_, {{"tasks", own.tasks},
                                          {"data", own.data},
                                          {"broadcasts", own.broadcasts},
                                          {"complete", own.complete},
                                          {"late", own.late},
                                          {"messages", own.messages},
                                          {"most", own.most},
                                          {"seconds", run.seconds()}})) {
    for (auto& [key, sum] : sums.items()) sum = sum.get<double>() + rank.at(key).get<double>();
    most = std::max(most, rank.at("most").get<double>());
    longest = std::max(longest, rank.at("seconds").get<double>());
  }
  double work = 0;
  taskflow::enumerate(layout_.problem, [&](const taskflow::Call& call) { work += flops(call.step, layout_.block); });
  json facts = sums;
  facts.erase("complete");
  facts["residual"] = matrix_->residual(job_);
  facts["most_recipients"] = most;
  facts["order"] = layout_.order();
  facts["block"] = layout_.block;
  facts["Mflop_s"] = work / longest * kMega;
  // Without broadcasts, none is complete or incomplete.
  if (const double broadcasts = sums.at("broadcasts").get<double>(); broadcasts > 0) {
    facts["complete_share"] = sums.at("complete").get<double>() / broadcasts;
  }
  return facts;
}

// Of any rank. Collective.
json Factorizations::flags() {
  return program::raised_by_any(
      job_, {{"scheduling", place_.sharing.computing}, {"shared_comm_core", place_.sharing.communicating}});
}

json Factorizations::answer(const json& request) {
  const bool failed = !failure_.empty();
  json record = program::repetition_record(
      job_, request, failure_, flags(),
      [this](const std::string& name, std::size_t index, double window) { return phase(name, index, window); });
  if (failed) return record;
  record["facts"] = facts_;
  return record;
}

json Factorizations::facts() const {
  return {{"application", fmt::format("factorizations-{}", Engine::kName)},
          {"task", task_},
          {"threads", engine_->threads()},
          {"blas", program::blas()},
          {"shared_cores", place_.sharing.cores}};
}

json Factorizations::solve() {
  const Run one = run(Mode::all);
  together(job_, [&] {
    if (!failure_.empty()) throw RequestError("task", task_, failure_, "give another matrix", "machine");
  });
  json facts = facts_of(one);
  const bool valid = facts.at("residual").get<double>() <= kLargestResidual;
  return {{"record", "solution"},
          {"application", fmt::format("factorizations-{}", Engine::kName)},
          {"task", task_},
          {"ranks", job_.size()},
          {"threads", engine_->threads()},
          {"valid", valid},
          {"facts", facts},
          {"flags", flags()}};
}

}  // namespace elbowroom::factorizations
