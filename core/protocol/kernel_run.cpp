#include "protocol/kernel_run.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "machine/machine.hpp"
#include "protocol/record.hpp"
#include "protocol/worker_cache.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

Site site_here() {
  const Machine& machine = Machine::here();
  Site site;
  for (const CoreInfo& core : machine.cores()) {
    site.cores.push_back({core.number, core.pus, core.allowed});
  }
  for (const NodeInfo& node : machine.nodes()) {
    site.nodes.push_back({node.number, static_cast<std::int64_t>(machine.available_memory(node.number))});
  }
  return site;
}

void sleep_seconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(std::max(seconds, 0.0)));
}

json one_repetition(const Request& request, ComputingPool& pool, const std::vector<CachedWorker*>& workers) {
  std::vector<ComputingJob*> jobs;
  for (CachedWorker* worker : workers) {
    jobs.push_back(&worker->job);
  }
  const std::int64_t begun = now_ns();
  pool.start(jobs, {request.steady_window, request.steady_cov}, nullptr);
  const auto waited = [&] { return static_cast<double>(now_ns() - begun) * 1e-9; };
  while (pool.steady_since() == 0 && (pool.warm_since() == 0 || waited() < request.steady_limit)) {
    sleep_seconds(200e-6);
  }
  const bool steady = pool.steady_since() != 0;
  Window window{steady ? pool.steady_since() : pool.warm_since(), 0};
  sleep_seconds(request.window - static_cast<double>(now_ns() - window.start) * 1e-9);
  window.end = now_ns();
  const std::vector<ComputingReport> reports = pool.stop();
  std::set<std::string> flags;
  json record = computation_record(reports, window, *find_kernel(request.kernel), request.cursor, flags);
  record["flags"] = flags;
  record["status"] = phase_status(steady, flags);
  record["measured_s"] = window.seconds();
  return record;
}

}  // namespace

void run_kernel_alone(const Request& request, int repeat, std::ostream& out) {
  Request whole = request;
  whole.sequence = {Phase::computation};
  check_request(whole);
  check_placement(whole, whole.first, true, site_here(), 1);
  ComputingPool pool([](int core) { Machine::here().bind_this_thread(core); });
  pool.use(whole.first.comp_cores);
  const KernelInfo& kernel = *find_kernel(whole.kernel);
  std::vector<WorkerKey> keys;
  for (const int core : whole.first.comp_cores) {
    const std::size_t bytes = kernel.arrays == 0 ? 0 : static_cast<std::size_t>(whole.working_set);
    keys.push_back({whole.kernel, kernel.uses_cursor ? whole.cursor : 1, bytes, core, whole.first.comp_node});
  }
  WorkerCache cache(0);
  const std::vector<CachedWorker*> workers = cache.get(keys, pool);
  for (int i = 0; i < repeat; ++i) {
    json record = one_repetition(whole, pool, workers);
    record["kernel"] = whole.kernel;
    record["repetition"] = i;
    record["bytes"] = bytes_record(kernel, whole.cursor);
    out << record.dump() << std::endl;
  }
}

}  // namespace elbowroom
