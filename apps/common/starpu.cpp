#include "common/starpu.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwloc.h>
#include <sched.h>
#include <starpu.h>
#include <starpu_mpi.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/clock.hpp"
#include "base/request_error.hpp"
#include "exchange/job.hpp"
#include "starpu_mpi/node_start.hpp"

namespace elbowroom::program {
namespace {

using nlohmann::json;

constexpr double kFallsAsleep = 2;     // s, at most
constexpr unsigned kLeastBackoff = 1;  // nops: StarPU's default

std::string file_of(int thread, const char* name) { return fmt::format("/proc/self/task/{}/{}", thread, name); }

std::set<int> own_threads() {
  std::set<int> result;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    result.insert(std::stoi(entry.path().filename().string()));
  }
  return result;
}

std::string name_of(int thread) {
  std::string name;
  std::getline(std::ifstream(file_of(thread, "comm")) >> std::ws, name);
  return name;
}

std::vector<int> cores_of(int thread) {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(static_cast<pid_t>(thread), sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) {
        cores.push_back(cpu);
      }
    }
  }
  return cores;
}

bool asleep(int thread) {
  std::string text;
  std::getline(std::ifstream(file_of(thread, "stat")), text);
  const std::size_t state = text.rfind(") ");
  return state != std::string::npos && text[state + 2] == 'S';
}

Ran ran(int thread) {
  Ran sum;
  std::ifstream(file_of(thread, "schedstat")) >> sum.on_core >> sum.waiting;
  return sum;
}

// StarPU counts processing units in hwloc's order, not in the operating system's.
unsigned logical_number(int core) {
  hwloc_topology_t topology = nullptr;
  hwloc_topology_init(&topology);
  hwloc_topology_load(topology);
  const hwloc_obj_t unit = hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(core));
  const int number = unit == nullptr ? -1 : static_cast<int>(unit->logical_index);
  hwloc_topology_destroy(topology);
  if (number < 0) {
    throw RequestError("comp_cores", std::to_string(core), "hwloc knows no such core", "choose another", "machine");
  }
  return static_cast<unsigned>(number);
}

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

// StarPU warns of a name that it does not know, and takes another scheduler.
void check_scheduler(const std::string& name) {
  std::vector<std::string> known;
  for (starpu_sched_policy** one = starpu_sched_get_predefined_policies(); *one != nullptr; ++one) {
    known.emplace_back((*one)->policy_name);
  }
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw RequestError("scheduler", name, fmt::format("StarPU {} has no such scheduler", Starpu::version()),
                       fmt::format("known: {}", fmt::join(known, ", ")));
  }
}

}  // namespace

Starpu::Starpu(const StarpuThreads& threads) : threads_(threads) {
  const std::set<int> before = own_threads();
  start();
  try {
    find_threads(before);
    pause();
  } catch (...) {
    starpu_mpi_shutdown();
    throw;
  }
}

Starpu::~Starpu() {
  resume();
  starpu_mpi_shutdown();
}

void Starpu::start() {
  const std::vector<int> cores = threads_.worker_cores.empty() ? std::vector{threads_.mpi_core} : threads_.worker_cores;
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.precedence_over_environment_variables = 1;
  conf.ncpus = static_cast<int>(cores.size());
  conf.ncuda = 0;
  conf.nopencl = 0;
  conf.catch_signals = 0;
  conf.use_explicit_workers_bindid = 1;
  if (!threads_.scheduler.empty()) {
    check_scheduler(threads_.scheduler);
    conf.sched_policy_name = threads_.scheduler.c_str();
  }
  std::string numbers;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    conf.workers_bindid[i] = logical_number(cores[i]);
    numbers += fmt::format("{}{}", i == 0 ? "" : " ", conf.workers_bindid[i]);
  }
  // What only the environment can say, and what it might say otherwise.
  set("STARPU_WORKERS_CPUID", numbers);
  set("STARPU_NCPU", std::to_string(cores.size()));
  set("STARPU_MPI_THREAD_CPUID", std::to_string(logical_number(threads_.mpi_core)));
  unsetenv("STARPU_MPI_NOBIND");
  unsetenv("STARPU_WORKERS_NOBIND");
  unsetenv("STARPU_MAIN_THREAD_BIND");
  setenv("STARPU_SILENT", "1", 0);  // it warns of the worker that sleeps beside the communication thread
  if (threads_.backoff) {
    conf.driver_spinning_backoff_min = kLeastBackoff;
    conf.driver_spinning_backoff_max = *threads_.backoff;
    set("STARPU_BACKOFF_MIN", std::to_string(kLeastBackoff));
    set("STARPU_BACKOFF_MAX", std::to_string(*threads_.backoff));
  }
  const int failed = start_on_nodes(
      MPI_COMM_WORLD, [&conf] { return starpu_mpi_init_conf(nullptr, nullptr, 0, MPI_COMM_WORLD, &conf); });
  if (failed != 0) {
    throw RequestError("starpu", version(), fmt::format("does not start ({})", failed),
                       "look at what it says on stderr: unset STARPU_SILENT", "machine");
  }
}

void Starpu::find_threads(const std::set<int>& before) {
  const std::vector<int> idle = {threads_.mpi_core};
  const std::vector<int>& wanted = threads_.worker_cores.empty() ? idle : threads_.worker_cores;
  for (const int thread : own_threads()) {
    if (before.contains(thread)) {
      continue;
    }
    const std::vector<int> cores = cores_of(thread);
    const bool communicates = name_of(thread) == "MPI";
    communicates ? mpi_id_ = thread : (worker_ids_.push_back(thread), 0);
    const std::size_t number = worker_ids_.size() - 1;
    const int core = communicates ? threads_.mpi_core : number < wanted.size() ? wanted[number] : -1;
    if (cores != std::vector{core}) {
      throw RequestError("starpu", name_of(thread),
                         fmt::format("this thread of StarPU is bound to {} cores, the first {}, and not to core {}",
                                     cores.size(), cores.empty() ? -1 : cores.front(), core),
                         "unset variables STARPU_* and HWLOC_*, or choose other cores", "machine");
    }
  }
  if (mpi_id_ == 0 || worker_ids_.size() != wanted.size()) {
    throw RequestError("starpu", version(), "its threads were not found", "unset variables STARPU_*", "machine");
  }
}

void Starpu::resume() {
  if (paused_) {
    starpu_resume();
    paused_ = false;
  }
}

void Starpu::pause() {
  if (!paused_) {
    starpu_pause();
    paused_ = true;
  }
  const std::int64_t begun = now_ns();
  for (const int worker : worker_ids_) {
    while (!asleep(worker)) {
      if (static_cast<double>(now_ns() - begun) * 1e-9 > kFallsAsleep) {
        throw RequestError("starpu", name_of(worker), "a paused worker does not sleep", "try again", "machine");
      }
      sleep_for(kPollInterval);
    }
  }
}

Ran Starpu::workers_ran() const {
  Ran sum;
  for (const int worker : worker_ids_) {
    const Ran one = ran(worker);
    sum.on_core += one.on_core;
    sum.waiting += one.waiting;
  }
  return sum;
}

json Starpu::threads() const {
  json all = {{{"name", name_of(mpi_id_)}, {"cores", cores_of(mpi_id_)}, {"role", "communication"}}};
  for (const int worker : worker_ids_) {
    all.push_back({{"name", name_of(worker)}, {"cores", cores_of(worker)}, {"role", "worker"}});
  }
  return all;
}

std::string Starpu::version() {
  int major = 0, minor = 0, release = 0;
  starpu_get_version(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace elbowroom::program
