// taskflow-simulator: a factorization on a simulated cluster, by the same task graphs and broadcasts as on a real one; its
// kernels take given times. Prints one JSON object.
#include <sys/mman.h>
#include <xbt/log.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "broadcast/platform.hpp"
#include "broadcast/simulated_transport.hpp"
#include "broadcast/ways.hpp"
#include "factorization.hpp"
#include "process.hpp"

namespace {

using namespace elbowroom;
using namespace elbowroom::taskflow;
namespace s4u = simgrid::s4u;

struct Options {
  Problem problem;
  std::size_t tile = 0;    // bytes
  std::size_t factor = 0;  // bytes of a T
  std::size_t workers = 1;
  std::vector<double> times;  // s, by step
  broadcast::PlatformRequest platform;
  double overhead = 0;  // s of a process for each message
  std::string tree = "binomial";
  std::size_t segment = 0;  // bytes
  Settings flow;
};

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
  SimulatedProcess(broadcast::SimulatedTransport& transport, const Options& options, const broadcast::Way& way,
                   NoMemory& memory)
      : Process(transport, {}, way, options.flow, memory),
        transport_(transport),
        options_(options),
        free_(options.workers) {
    const Problem& problem = options.problem;
    for (Data data = 0; data < problem.data(); ++data) {
      graph().add(memory.start(), problem.is_factor(data) ? options.factor : options.tile, problem.owner(data));
    }
  }

  void run(Task& task) override { ready_.emplace(task.priority, -static_cast<std::int64_t>(++count_), &task); }

  void submit_all() {
    enumerate(options_.problem, [this](const Call& call) {
      graph().submit(nullptr, std::as_bytes(std::span(&call.step, 1)), call.used(), call.priority, call.rank);
    });
    graph().close();
  }

  // Until all is over; returns the time that workers computed.
  double work() {
    double busy = 0;
    while (!graph().idle()) {
      const bool any = progress();
      const double now = transport_.now();
      while (!running_.empty() && -running_.top().first <= now) {
        Task& task = *running_.top().second;
        running_.pop();
        ++free_;
        graph().finish(task);
      }
      for (; free_ > 0 && !ready_.empty(); --free_) {
        Task* const task = std::get<Task*>(ready_.top());
        ready_.pop();
        const double seconds = options_.times[static_cast<std::size_t>(task->argument.front())];
        running_.emplace(-(now + seconds), task);
        busy += seconds;
      }
      if (!any && !graph().idle()) transport_.wait(running_.empty() ? -1 : -running_.top().first);
    }
    return busy;
  }

 private:
  broadcast::SimulatedTransport& transport_;
  const Options& options_;
  std::size_t free_;
  std::uint64_t count_ = 0;
  std::priority_queue<std::tuple<int, std::int64_t, Task*>> ready_;  // by priority, then the first one
  std::priority_queue<std::pair<double, Task*>> running_;            // by the time when they end, negated
};

void run_process(int rank, const Options& options, const broadcast::Way& way, NoMemory& memory, Outcome& outcome) {
  broadcast::SimulatedTransport transport(rank, options.problem.grid.size(), options.overhead);
  SimulatedProcess process(transport, options, way, memory);
  process.submit_all();
  outcome.busy += process.work();
  outcome.seconds = std::max(outcome.seconds, transport.now());
  const Counters& own = process.graph().counters();
  outcome.counters.tasks += own.tasks;
  outcome.counters.data += own.data;
  outcome.counters.broadcasts += own.broadcasts;
  outcome.counters.complete += own.complete;
  outcome.counters.messages += own.messages;
  outcome.counters.most = std::max(outcome.counters.most, own.most);
}

nlohmann::json simulate(s4u::Engine& engine, const Options& options) {
  const broadcast::Platform platform = broadcast::build_platform(engine, options.platform);
  const broadcast::Way way = options.flow.broadcasts ? broadcast::parse_way(options.tree, options.segment)
                                                     : broadcast::Way{{}, options.segment, false};
  NoMemory memory(std::max(options.tile, options.factor));
  Outcome outcome;
  for (int rank = 0; rank < options.problem.grid.size(); ++rank) {
    s4u::Actor::create("rank-" + std::to_string(rank), platform.hosts[static_cast<std::size_t>(rank)],
                       [&, rank] { run_process(rank, options, way, memory, outcome); });
  }
  engine.run();
  const double capacity =
      outcome.seconds * static_cast<double>(options.workers) * static_cast<double>(options.problem.grid.size());
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
  app.add_option("--tile", options.tile)->required();
  app.add_option("--factor", options.factor);
  app.add_option("--workers", options.workers)->required();
  app.add_option("--times", options.times)->required()->delimiter(',')->expected(kSteps);
  app.add_option("--bandwidth", options.platform.bandwidth)->required();
  app.add_option("--latency", options.platform.latency)->required();
  app.add_option("--overhead", options.overhead);
  app.add_option("--tree", options.tree);
  app.add_option("--segment", options.segment);
  app.add_flag("!--no-broadcasts", options.flow.broadcasts);
  app.add_flag("!--no-priorities", options.problem.priorities);
  app.add_flag("!--wait-released", options.flow.early);
}

}  // namespace

int main(int argc, char** argv) {
  xbt_log_control_set("root.thresh:warning");
  s4u::Engine engine(&argc, argv);
  broadcast::set_network_model();
  CLI::App app("A factorization on a simulated cluster.");
  Options options;
  std::string task;
  add_options(app, options, task);
  CLI11_PARSE(app, argc, argv);
  options.problem.factorization = task == "qr" ? Factorization::kQr : Factorization::kCholesky;
  options.platform.nodes = options.problem.grid.size();
  try {
    std::cout << simulate(engine, options).dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cout << nlohmann::json{{"error", error.what()}}.dump() << '\n';
    return 2;
  }
}
