// taskflow-simulator: a factorization on a simulated cluster, by the same task graphs and broadcasts as on a real one; its
// kernels take given times. Prints one JSON object.
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <queue>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bounds.hpp"
#include "broadcast/flow_transport.hpp"
#include "broadcast/ways.hpp"
#include "factorization.hpp"
#include "process.hpp"

namespace {

using namespace elbowroom;
using namespace elbowroom::taskflow;

struct Options {
  Problem problem;
  Costs costs;
  bool bounds = false;
  std::string tree = "binomial";
  std::size_t segment = 0;  // bytes
  Settings flow;
};

broadcast::Way way_of(const Options& options) {
  return options.flow.broadcasts ? broadcast::parse_way(options.tree, options.segment)
                                 : broadcast::Way{{}, options.segment, false};
}

struct Outcome {
  double seconds = 0;
  double busy = 0;  // s of all workers together
  Counters counters;
};

// All processes may have the same addresses: only small data are read and written.
class NoMemory : public Memory {
 public:
  explicit NoMemory(std::size_t size)
      : start_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (start_ == MAP_FAILED) throw std::bad_alloc();
  }
  std::byte* start() const { return static_cast<std::byte*>(start_); }
  std::byte* allocate(std::size_t) override { return start(); }
  void free(std::byte*) override {}

 private:
  void* start_;
};

// A process whose tasks occupy a worker for the time of their step.
class SimulatedProcess : public Process {
 public:
  SimulatedProcess(broadcast::FlowNetwork& network, broadcast::FlowTransport& transport, const Options& options,
                   const broadcast::Way& way, NoMemory& memory)
      : Process(transport, {}, way, options.flow, memory),
        network_(network),
        rank_(transport.rank()),
        options_(options),
        free_(options.costs.workers) {}

  void run(Task& task) override { ready_.emplace(task.priority, -static_cast<std::int64_t>(++count_), &task); }

  void submit(const Call& call) {
    graph().submit(nullptr, std::as_bytes(std::span(&call.step, 1)), call.used(), call.priority, call.rank);
  }

  // Does all that can be done now.
  void advance() {
    bool any = true;
    while (any) {
      any = progress();
      for (; !running_.empty() && -running_.top().first <= network_.now(); any = true) {
        Task& task = *running_.top().second;
        running_.pop();
        ++free_;
        graph().finish(task);
      }
    }
    for (; free_ > 0 && !ready_.empty(); --free_) {
      Task* const task = std::get<Task*>(ready_.top());
      ready_.pop();
      const double seconds = options_.costs.times[static_cast<std::size_t>(task->argument.front())];
      running_.emplace(-(network_.now() + seconds), task);
      network_.wake(network_.now() + seconds, rank_);
      busy_ += seconds;
    }
  }

  double busy() const { return busy_; }

 private:
  broadcast::FlowNetwork& network_;
  int rank_;
  const Options& options_;
  std::size_t free_;
  std::uint64_t count_ = 0;
  double busy_ = 0;                                                  // s that workers computed
  std::priority_queue<std::tuple<int, std::int64_t, Task*>> ready_;  // by priority, then the first one
  std::priority_queue<std::pair<double, Task*>> running_;            // by the time when they end, negated
};

// All processes of a factorization. A task is submitted to those that it concerns: its own, the owners of its data, and those
// that have copies of what it writes. To the others, it would change nothing.
class Simulation {
 public:
  explicit Simulation(const Options& options)
      : options_(options),
        memory_(std::max(options.costs.tile, options.costs.factor)),
        network_(options.costs.network, options.problem.grid.size()) {
    const broadcast::Way way = way_of(options);
    const Problem& problem = options.problem;
    for (Data data = 0; data < problem.data(); ++data) owners_.push_back(problem.owner(data));
    holders_.resize(owners_.size());
    for (int rank = 0; rank < problem.grid.size(); ++rank) {
      auto& transport = transports_.emplace_back(std::make_unique<broadcast::FlowTransport>(network_, rank));
      processes_.push_back(std::make_unique<SimulatedProcess>(network_, *transport, options, way, memory_));
      for (Data data = 0; data < problem.data(); ++data) {
        const std::size_t size = problem.is_factor(data) ? options.costs.factor : options.costs.tile;
        processes_.back()->graph().add(memory_.start(), size, owners_[data]);
      }
    }
  }

  Outcome run() {
    enumerate(options_.problem, [this](const Call& call) { submit(call); });
    for (const auto& process : processes_) {
      process->graph().close();
      process->advance();
    }
    Outcome outcome;
    for (int rank = network_.next(); rank >= 0; rank = network_.next()) {
      SimulatedProcess& process = *processes_[static_cast<std::size_t>(rank)];
      const bool idle = process.graph().idle();
      process.advance();
      if (!idle) outcome.seconds = network_.now();
    }
    for (const auto& process : processes_) add(*process, outcome);
    return outcome;
  }

 private:
  void submit(const Call& call) {
    concerned_.assign(1, call.rank);
    for (const auto& [data, mode] : call.used()) {
      concerned_.push_back(owners_[data]);
      std::vector<int>& holders = holders_[data];
      if (mode != Mode::kRead) concerned_.insert(concerned_.end(), holders.begin(), holders.end());
      if (mode != Mode::kRead) holders.clear();
      if (std::find(holders.begin(), holders.end(), call.rank) == holders.end()) holders.push_back(call.rank);
    }
    std::sort(concerned_.begin(), concerned_.end());
    concerned_.erase(std::unique(concerned_.begin(), concerned_.end()), concerned_.end());
    for (const int rank : concerned_) processes_[static_cast<std::size_t>(rank)]->submit(call);
  }

  static void add(SimulatedProcess& process, Outcome& outcome) {
    if (!process.graph().idle()) throw std::logic_error("tasks that never run are left");
    outcome.busy += process.busy();
    const Counters& own = process.graph().counters();
    outcome.counters.tasks += own.tasks;
    outcome.counters.data += own.data;
    outcome.counters.broadcasts += own.broadcasts;
    outcome.counters.complete += own.complete;
    outcome.counters.messages += own.messages;
    outcome.counters.most = std::max(outcome.counters.most, own.most);
  }

  const Options& options_;
  NoMemory memory_;
  broadcast::FlowNetwork network_;
  std::vector<std::unique_ptr<broadcast::FlowTransport>> transports_;
  std::vector<std::unique_ptr<SimulatedProcess>> processes_;
  std::vector<int> owners_;                // by data
  std::vector<std::vector<int>> holders_;  // by data: ranks that used the present version
  std::vector<int> concerned_;
};

nlohmann::json bound(Options& options) {
  if (options.segment != 0) throw std::invalid_argument("--segment: bounds are those of messages without segments");
  if (options.flow.broadcasts) options.costs.tree = way_of(options).tree;
  const Bounds bounds = find_bounds(options.problem, options.costs);
  return {{"work", bounds.work},
          {"links", bounds.links},
          {"path", bounds.path},
          {"schedule", find_schedule(options.problem, options.costs)}};
}

nlohmann::json simulate(const Options& options) {
  const Outcome outcome = Simulation(options).run();
  const double capacity =
      outcome.seconds * static_cast<double>(options.costs.workers) * static_cast<double>(options.problem.grid.size());
  return {{"seconds", outcome.seconds},
          {"busy", outcome.busy / capacity},
          {"tasks", outcome.counters.tasks},
          {"data", outcome.counters.data},
          {"broadcasts", outcome.counters.broadcasts},
          {"complete", outcome.counters.complete},
          {"messages", outcome.counters.messages},
          {"most_recipients", outcome.counters.most}};
}

void add_options(CLI::App& app, Options& options, std::string& task) {
  app.add_option("--task", task)->required()->check(CLI::IsMember({"cholesky", "qr"}));
  app.add_option("--rows", options.problem.rows)->required();
  app.add_option("--columns", options.problem.columns)->required();
  app.add_option("--grid-rows", options.problem.grid.rows)->required();
  app.add_option("--grid-columns", options.problem.grid.columns)->required();
  app.add_option("--tile", options.costs.tile)->required();
  app.add_option("--factor", options.costs.factor);
  app.add_option("--workers", options.costs.workers)->required();
  app.add_option("--times", options.costs.times)->required()->delimiter(',')->expected(kSteps);
  app.add_option("--bandwidth", options.costs.network.bandwidth)->required();
  app.add_option("--latency", options.costs.network.latency)->required();
  app.add_option("--overhead", options.costs.network.overhead)->required();
  app.add_option("--sharing", options.costs.network.sharing)->check(CLI::PositiveNumber);
  app.add_option("--tree", options.tree);
  app.add_option("--segment", options.segment);
  app.add_flag("--bounds", options.bounds, "the least times of workers, links and chains only");
  app.add_flag("!--no-broadcasts", options.flow.broadcasts);
  app.add_flag("!--no-priorities", options.problem.priorities);
  app.add_flag("!--wait-released", options.flow.early);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A factorization on a simulated cluster.");
  Options options;
  std::string task;
  add_options(app, options, task);
  CLI11_PARSE(app, argc, argv);
  options.problem.factorization = task == "qr" ? Factorization::kQr : Factorization::kCholesky;
  try {
    std::cout << (options.bounds ? bound(options) : simulate(options)).dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cout << nlohmann::json{{"error", error.what()}}.dump() << '\n';
    return 2;
  }
}
