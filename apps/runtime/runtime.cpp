// runtime: messages through a task runtime and through MPI (README.md).
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "common/command_line.hpp"
#include "common/cores.hpp"
#include "common/serve.hpp"
#include "common/sharing.hpp"
#include "common/starpu.hpp"
#include "common/together.hpp"
#include "runtime/pingpong.hpp"

namespace elbowroom::runtime {
namespace {

// The program: StarPU started once with its threads in place, then phases as they are asked for.
enum class Task { overhead, polling };

// Where the threads of one rank are. The calling thread passes messages by MPI on the core of the communication thread; it
// waits for StarPU's asleep, on a core of its own where there is one (`comm_cores[1]`), as the paper has it (section 5.1).
struct Seats {
  int mpi_core = 0;
  int waiting_core = 0;
  std::vector<int> worker_cores;
  int data_node = 0;
  int comm_node = 0;
};

class Runtime : public program::Program {
 public:
  // Refuses threads that would share a core. Collective; throws RequestError on all ranks alike.
  Runtime(const Job& job, const program::Settings& settings);

  nlohmann::json facts() const override;
  nlohmann::json answer(const nlohmann::json& request) override;

 private:
  struct PointRequest;
  static PointRequest read_point(const nlohmann::json& request);
  nlohmann::json phase(const PointRequest& request, const std::string& name, int index);
  nlohmann::json observations(const Measured& rates, bool polling, const program::Ran& before, double phase_ns) const;
  void use(std::size_t size);
  void bind(int core);

  const Job& job_;
  Task task_;
  Seats seats_;
  bool polls_ = false;           // in phase AB
  std::set<std::string> flags_;  // of where the threads are
  std::optional<program::Starpu> starpu_;
  nlohmann::json threads_;  // of all ranks
  int bound_ = -1;
  std::optional<Message> message_;
};

using nlohmann::json;
using program::BusyThread;
using program::read;
using program::Settings;

// A polling worker sleeps in no window (docs/design/method.md, rule 1).
constexpr double kAwake = 0.95;
constexpr double kOnItsNode = 0.99;

Task task_of(const json& program) {
  const json task = program.value("task", json());
  if (task == "overhead") {
    return Task::overhead;
  }
  if (task != "polling") {
    throw RequestError("task", task.is_string() ? task.get<std::string>() : task.dump(), "there is no such task",
                       "known: overhead, polling");
  }
  return Task::polling;
}

// Nops between two polls, at most; 0: the workers stay paused. Nothing is said where it is StarPU's own.
std::optional<unsigned> backoff_of(const json& program) {
  const json backoff = program.value("backoff", json());
  if (backoff.is_null()) {
    return std::nullopt;
  }
  if (!backoff.is_number_unsigned()) {
    throw RequestError("backoff", backoff.dump(), "is not a number of nops", "0 (paused), 2, 32, 10000");
  }
  return backoff.get<unsigned>();
}

Seats seats_of(const Job& job, const Settings& settings, Task task) {
  const Placement own = settings.placement(job.rank(), job.same_host(job.rank()));
  if (own.comm_cores.empty()) {
    throw RequestError("comm_cores", "[]", "no core for communications", "name at least one");
  }
  const int core = own.comm_cores.front();
  Seats seats{core,
              core,
              {},
              program::node_of("comp_node", own.comp_node, core),
              program::node_of("comm_node", own.comm_node, core)};
  if (task == Task::overhead && own.comm_cores.size() > 1) {
    seats.waiting_core = own.comm_cores[1];
  }
  // As in the probe, computing cores are of the first rank of a host where placements do not say otherwise.
  const bool has_workers = job.rank() == 0 || !job.same_host(job.rank()) || !settings.placements.empty();
  if (has_workers) {
    seats.worker_cores = own.comp_cores;
  }
  return seats;
}

std::vector<BusyThread> busy(const Seats& seats, Task task) {
  // By MPI a thread waits inside the library, which may be told to yield; StarPU's communication thread polls.
  std::vector<BusyThread> threads = {{"the communication thread", seats.mpi_core, "comm_cores", task == Task::polling}};
  if (seats.waiting_core != seats.mpi_core) {
    threads.push_back({"the waiting thread", seats.waiting_core, "comm_cores"});
  }
  for (const int core : seats.worker_cores) {
    threads.push_back({"a polling worker", core, "comp_cores"});
  }
  return threads;
}

json pages_record(const PageReport& report) {
  json record = {{"wanted", report.wanted}, {"page_size", report.page_size}, {"huge_share", report.huge_share}};
  report.unknown.empty() ? record["share"] = report.share : record["unknown"] = report.unknown;
  return record;
}

struct Runtime::PointRequest {
  std::string point;
  std::int64_t repetition = 0;
  std::vector<std::string> sequence;
  std::size_t size = 0;
  bool latency = true;
  Window window;
};

void check_phases(const std::vector<std::string>& sequence) {
  for (const std::string& phase : sequence) {
    if (phase != "B" && phase != "AB") {
      throw RequestError("sequence", phase, "is not a phase of this program", "B by MPI alone, AB with StarPU");
    }
  }
}

// Half the round trip in us, or what it carries in MB/s; of all batches, and of each.
json messages_record(const Measured& rates, std::size_t size, bool latency) {
  const auto value = [&](double half_round_trip) {
    return latency ? half_round_trip : static_cast<double>(size) / half_round_trip;
  };
  json batches = json::array();
  for (const program::Batch& batch : rates.batches.measured) {
    batches.push_back(value(static_cast<double>(batch.took_ns) * 1e-3 / 2 / static_cast<double>(batch.count)));
  }
  return {{"value", value(rates.half_round_trip())},
          {"unit", latency ? "us" : "MB/s"},
          {"batches", batches},
          {"messages", rates.batches.count()},
          {"bytes", rates.batches.count() * static_cast<std::int64_t>(size)}};
}

Runtime::Runtime(const Job& job, const Settings& settings) : job_(job), task_(task_of(settings.program)) {
  program::together(job_, [&] {
    seats_ = seats_of(job_, settings, task_);
    if (job_.size() != 2) {
      throw RequestError("ranks", std::to_string(job_.size()), "a ping-pong is between two ranks", "start two");
    }
    if (task_ == Task::polling && job_.rank() == 0 && seats_.worker_cores.empty()) {
      throw RequestError("comp_cores", "[]", "no core is left for a polling worker", "name at least one");
    }
  });
  if (program::place(job_, busy(seats_, task_), settings.scheduling)) {
    flags_.insert(settings.scheduling ? "scheduling" : "shared_comm_core");
  }
  const std::optional<unsigned> backoff = backoff_of(settings.program);
  polls_ = backoff != 0u && !seats_.worker_cores.empty();
  program::together(job_, [&] {
    starpu_.emplace(program::StarpuThreads{seats_.mpi_core, seats_.worker_cores, polls_ ? backoff : std::nullopt,
                                           read(settings.program, "scheduler", std::string())});
  });
  threads_ = json::array();
  json own = starpu_->threads();
  own.push_back({{"name", "main"}, {"cores", {seats_.mpi_core, seats_.waiting_core}}, {"role", "messages"}});
  int rank = 0;
  for (const json& threads : program::gathered(job_, own)) {
    threads_.push_back({{"rank", rank++}, {"threads", threads}});
  }
}

json Runtime::facts() const {
  return {{"starpu", {{"version", program::Starpu::version()}, {"threads", threads_}}},
          {"task", task_ == Task::overhead ? "overhead" : "polling"}};
}

void Runtime::bind(int core) {
  if (bound_ != core) {
    Machine::here().bind_this_thread(core);
    bound_ = core;
  }
}

// The message of that size, on the data's node; kept while the size is the same.
void Runtime::use(std::size_t size) {
  if (!message_ || message_->size() != size) {
    bind(seats_.mpi_core);
    message_.reset();
    message_.emplace(size, seats_.data_node);
  }
}

Runtime::PointRequest Runtime::read_point(const json& request) {
  PointRequest point_request;
  point_request.point = read(request, "point", std::string());
  point_request.repetition = read(request, "repetition", std::int64_t{0});
  point_request.sequence = read(request, "sequence", std::vector<std::string>{"B", "AB", "AB", "B"});
  check_phases(point_request.sequence);
  const auto size = read(request, "size", std::int64_t{0});
  if (size < 1 || size > std::numeric_limits<int>::max()) {
    throw RequestError("size", std::to_string(size), "is not a size of a message", "from 1 B to 2 GiB");
  }
  point_request.size = static_cast<std::size_t>(size);
  point_request.latency = read(request, "metric", std::string("latency")) == "latency";
  point_request.window.batches = program::read_window(request);
  point_request.window.corrupt = read(request, "fault", std::string()) == "message";
  return point_request;
}

json Runtime::answer(const json& request) {
  PointRequest point_request;
  program::together(job_, [&] {
    point_request = read_point(request);
    use(point_request.size);
  });
  json phases = json::array();
  std::string status = "ok";
  for (const std::string& name : point_request.sequence) {
    phases.push_back(phase(point_request, name, static_cast<int>(phases.size())));
    const std::string one = phases.back().at("status");
    status = one == "void" ? "failed" : one == "not_stable" && status == "ok" ? one : status;
  }
  const bool validated = std::none_of(phases.begin(), phases.end(), [](const json& one) {
    return one.at("flags").get<std::set<std::string>>().contains("validation_failed");
  });
  const char* reason = status == "failed"       ? "a rule of measuring was broken: see the flags of the phases"
                       : status == "not_stable" ? "no steady window inside the limit"
                                                : "";
  return {{"record", "repetition"},
          {"point", point_request.point},
          {"repetition", point_request.repetition},
          {"status", status},
          {"reason", reason},
          {"flags", flags_},
          {"validated", validated},
          {"pages", {{"comm", pages_record(message_->pages())}}},
          {"phases", phases}};
}

// What this rank saw of a phase beside its messages: flags, and how long its polling workers were awake.
json Runtime::observations(const Measured& rates, bool polling, const program::Ran& before, double phase_ns) const {
  std::set<std::string> flags;
  json record = {{"observed", json::object()}};
  if (!rates.valid) {
    flags.insert("validation_failed");
  }
  if (sched_getcpu() != bound_) {
    flags.insert("migrated");
  }
  const PageReport pages = message_->pages();
  if (pages.unknown.empty() && pages.share < kOnItsNode) {
    flags.insert("wrong_node");
  }
  if (starpu_->workers() > 0) {
    // Of the phase, and of all workers: 1 when each was on its core, or waited for it, all the time.
    const program::Ran after = starpu_->workers_ran();
    const double all = phase_ns * static_cast<double>(starpu_->workers());
    const double ran = (after.on_core - before.on_core) / all;
    const double ready = ran + (after.waiting - before.waiting) / all;
    record["observed"]["workers_ran"] = ran;
    if (polling ? ready < kAwake : ready > 1 - kAwake) {
      flags.insert("not_overlapped");
    }
  }
  record["flags"] = flags;
  return record;
}

json Runtime::phase(const PointRequest& point_request, const std::string& name, int index) {
  const bool over_starpu = name == "AB" && task_ == Task::overhead;
  const bool polling = name == "AB" && polls_;
  bind(over_starpu ? seats_.waiting_core : seats_.mpi_core);
  polling ? starpu_->resume() : starpu_->pause();
  program::gathered(job_, nullptr);  // so that nobody measures before the workers of all ranks poll, or sleep
  const program::Ran before = starpu_->workers_ran();
  const std::int64_t start = now_ns();
  Measured rates;
  rates.valid = true;  // rank 0 finds out
  {
    const std::unique_ptr<Path> path = over_starpu ? by_starpu(job_, *message_) : by_mpi(job_, *message_);
    job_.rank() == 0 ? void(rates = lead(job_, *path, point_request.window))
                     : follow(job_, *path, point_request.window);
  }
  const std::int64_t end = now_ns();
  json record = {{"phase", name},
                 {"index", index},
                 {"start_ns", start},
                 {"end_ns", end},
                 {"measured_s", rates.batches.seconds()},
                 {"status", rates.batches.steady ? "ok" : "not_stable"}};
  std::set<std::string> flags;
  for (const json& rank :
       program::gathered(job_, observations(rates, polling, before, static_cast<double>(end - start)))) {
    flags.merge(rank.at("flags").get<std::set<std::string>>());
    record.emplace("observed", rank.at("observed"));  // rank 0's
  }
  record["flags"] = flags;
  if (flags.contains("validation_failed") || flags.contains("wrong_node") || flags.contains("not_overlapped")) {
    record["status"] = "void";
  }
  if (job_.rank() == 0) {
    record["comm"] = messages_record(rates, point_request.size, point_request.latency);
  }
  return record;
}

}  // namespace
}  // namespace elbowroom::runtime

int main(int argc, char** argv) {
  using namespace elbowroom;
  program::CommandLine line("messages through StarPU-MPI and through MPI, in the same processes, threads and memory",
                            "two MPI ranks", "task, cores, nodes");
  line.accept_threads("multiple");
  if (const auto code = line.parse(argc, argv)) return *code;
  // StarPU's communication thread and this one both call MPI; both ways of a message are measured at this level.
  return program::with_ranks("runtime", argc, argv, "multiple",
                             [&](const Job& job) { return line.serve<runtime::Runtime>(job); });
}
