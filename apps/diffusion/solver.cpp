#include "diffusion/solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "common/together.hpp"
#include "diffusion/answer.hpp"
#include "exchange/several_threads.hpp"
#include "kernels/kernel.hpp"

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;
using program::together;

constexpr double kMargin = 0.9;       // of the longest stable time step
constexpr double kConserved = 1e-12;  // relative drift of the integral, rounding of a million steps included
constexpr auto kFailed = "validation_failed";
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Of all ranks, on rank 0.
std::vector<double> largest(const std::vector<double>& own, MPI_Comm comm) {
  std::vector<double> all(own.size());
  MPI_Reduce(own.data(), all.data(), static_cast<int>(own.size()), MPI_DOUBLE, MPI_MAX, 0, comm);
  return all;
}

double summed(double own, MPI_Comm comm) {
  double all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, comm);
  return all;
}

// Whether the interior, or the exchange of ranks that are not alone, usually takes less than the clock can tell
// (docs/design/method.md, rule 6).
bool too_short(const StepTimes& times, bool alone) {
  const auto brief = [](std::vector<double> seconds) {
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return !seconds.empty() && *middle * 1e9 < minimum_sample_ns();
  };
  return brief(times.interior) || (!alone && brief(times.exchange));
}

}  // namespace

Solver::Solver(const Job& job, const program::Settings& settings)
    : job_(job),
      config_(read_config(settings.program)),
      mesh_(config_.mesh.empty() ? Mesh(config_.cubes) : Mesh::from_file(config_.mesh)),
      medium_(mesh_, config_.kappa) {
  together(job_, [&] {
    check_ranks(settings);
    place_ = program::place_of(settings, job_.hosts(), static_cast<std::size_t>(job_.rank()));
  });
  partition_cells();
  const double longest = longest_step(mesh_, medium_);
  together(job_, [&] {
    if (config_.dt.value_or(0) > longest) {
      throw RequestError("dt", fmt::format("{}", *config_.dt), "explicit time steps this long are unstable",
                         fmt::format("give {:.6g} or less, or leave it out", longest));
    }
    build(config_.dt.value_or(kMargin * longest));
  });
  initial_ = summed(block_->integral(0), job_.headers());
  comm_threads_ = static_cast<int>(place_.seat.comm_cores.size());
  MPI_Allreduce(MPI_IN_PLACE, &comm_threads_, 1, MPI_INT, MPI_MIN, job_.headers());
  halo_->connect(job_.messages(), comm_threads_);
  crew_->look();
  parts_ = program::gathered(job_, own_part());
}

Solver::~Solver() = default;

void Solver::check_ranks(const program::Settings& settings) const {
  for (const auto& [rank, placement] : settings.placements) {
    if (rank >= job_.size()) {
      throw RequestError("placements.rank", std::to_string(rank), fmt::format("rank {} does not exist", rank),
                         fmt::format("ranks here: 0-{}", job_.size() - 1));
    }
  }
}

void Solver::partition_cells() {
  together(job_, [this] {
    if (job_.rank() == 0) {
      part_of_ = partition(mesh_, job_.size(), config_.partitioner);
    }
    part_of_.resize(static_cast<std::size_t>(mesh_.cells()));
  });
  MPI_Bcast(part_of_.data(), static_cast<int>(mesh_.cells()), MPI_INT32_T, 0, job_.headers());
}

void Solver::build(double dt) {
  block_ =
      std::make_unique<Block>(mesh_, medium_, make_part(mesh_, part_of_, job_.rank(), config_.order), place_.comp_node);
  part_of_ = {};
  halo_ = std::make_unique<Halo>(block_->part(), place_.comm_node, place_.sharing.waiting);
  crew_ =
      std::make_unique<Crew>(place_.seat.comp_cores, place_.seat.comm_cores, place_.sharing.computing,
                             place_.sharing.communicating, [](int core) { Machine::here().bind_this_thread(core); });
  diffusion_ = std::make_unique<Diffusion>(*block_, crew_->computing());
  fill(dt);
  crew_->each([this](std::size_t thread) { diffusion_->begin(thread); });
}

void Solver::fill(double dt) {
  dt_ = dt;
  const std::vector<std::int32_t> place = places(mesh_, block_->part());
  crew_->each([&](std::size_t thread) { diffusion_->fill(thread, place, dt); });
}

void Solver::check(const Steps& steps) const {
  if (!communicates(steps.variant)) {
    return;
  }
  if (steps.comm_threads > comm_threads_) {
    throw RequestError("comm_threads", std::to_string(steps.comm_threads),
                       fmt::format("a rank has {} communication core(s)", comm_threads_),
                       "name more comm_cores, or ask for fewer");
  }
  check_several_threads(job_, "comm_threads", static_cast<std::size_t>(steps.comm_threads));
}

// Ghosts that an exchange must bring are not numbers before: a value that does not come is seen.
StepTimes Solver::go(const Steps& steps) {
  crew_->each([this](std::size_t thread) { diffusion_->begin(thread); });
  const Part& part = block_->part();
  if (communicates(steps.variant)) {
    std::fill(block_->field(1) + part.own(), block_->field(1) + part.all(), kNan);
  }
  if (steps.variant == Variant::communication) {
    std::fill(block_->field(0) + part.own(), block_->field(0) + part.all(), kNan);
  }
  Work& work = steps.variant == Variant::triad ? static_cast<Work&>(*triad_) : *diffusion_;
  return crew_->run(
      steps, work, [this](std::int64_t step) { return block_->field(step); }, *halo_, job_.messages());
}

bool Solver::conserved(std::int64_t step) const {
  const double now = summed(block_->integral(step), job_.headers());
  return std::abs(now - initial_) <= kConserved * mesh_.volume();
}

// What this rank has of others is what they have, bit by bit: exchanged once more, by one thread.
bool Solver::ghosts_hold(std::int64_t step) {
  double* field = block_->field(step);
  const Part& part = block_->part();
  const std::vector<double> before(field + part.own(), field + part.all());
  std::fill(field + part.own(), field + part.all(), kNan);
  halo_->exchange(field, 0, 1);
  return std::equal(before.begin(), before.end(), field + part.own());
}

bool Solver::valid(const Steps& steps) {
  if (steps.variant == Variant::triad) {
    return triad_->valid();
  }
  const std::int64_t last = steps.warmup + steps.steps;
  bool holds = steps.variant == Variant::communication ? block_->error(0, 0).largest == 0 : block_->follows(last);
  if (communicates(steps.variant)) {
    holds = ghosts_hold(last) && holds;
    holds = conserved(last) && holds;
  }
  return holds;
}

void Solver::fill_triad() {
  const double bytes = kCellBytes * static_cast<double>(block_->part().cells);
  triad_ = std::make_unique<Triad>(bytes, crew_->computing(), place_.comp_node);
  crew_->each([this](std::size_t thread) { triad_->fill(thread); });
}

json Solver::answer(const json& request) {
  Steps steps;
  together(job_, [&] {
    steps = read_steps(request);
    check(steps);
    if (steps.variant == Variant::triad && !triad_) {
      fill_triad();
    }
  });
  const bool triad = steps.variant == Variant::triad;
  const StepTimes own = go(steps);
  const json flags = flags_of(!config_.check || valid(steps), too_short(own, job_.size() == 1));
  MPI_Comm comm = job_.headers();
  std::uint64_t checksum = triad ? 0 : block_->checksum(steps.warmup + steps.steps);
  MPI_Allreduce(MPI_IN_PLACE, &checksum, 1, MPI_UINT64_T, MPI_SUM, comm);
  const double bytes = summed(triad ? triad_->bytes() : step_bytes(), comm);
  const StepTimes slowest{largest(own.step, comm), largest(own.separator, comm), largest(own.interior, comm),
                          largest(own.exchange, comm), largest({own.all}, comm).front()};
  const bool holds = std::find(flags.begin(), flags.end(), kFailed) == flags.end();
  return {{"record", "repetition"},
          {"point", steps.point},
          {"repetition", steps.repetition},
          {"status", holds ? "ok" : "failed"},
          {"reason", holds ? "" : "the result is wrong: see the flags of the phases"},
          {"flags", flags},
          {"validated", config_.check && holds},
          {"facts", step_facts()},
          {"phases", phases_of(steps.variant, slowest, holds)},
          {"all_s", slowest.all},
          {"moved_bytes", computes(steps.variant) ? bytes : 0},
          {"checksum", fmt::format("{:016x}", checksum)}};
}

// Flags of any rank are the answer's.
json Solver::flags_of(bool holds, bool brief) const {
  return program::raised_by_any(job_, {{kFailed, !holds},
                                       {"too_short", brief},
                                       {"migrated", crew_->migrated()},
                                       {"scheduling", place_.sharing.computing},
                                       {"shared_comm_core", place_.sharing.communicating}});
}

json Solver::solve(double time) {
  together(job_, [&] {
    if (!mesh_.regular()) {
      throw RequestError("mesh", config_.mesh, "the exact solution is that of a box", "leave out the mesh");
    }
  });
  const double longest = kMargin * longest_step(mesh_, medium_);
  const auto count = static_cast<std::int64_t>(std::ceil(time / config_.dt.value_or(longest)));
  together(job_, [&] {
    if (count > kMostSteps) {
      throw RequestError("time", fmt::format("{}", time), fmt::format("this takes {} steps", count),
                         fmt::format("give a time of {:.6g} or less", static_cast<double>(kMostSteps) * longest));
    }
    fill(time / static_cast<double>(count));
  });
  const Steps steps{Variant::overlap, 1, count, 0, {}, 0};
  const StepTimes own = go(steps);
  const json flags = flags_of(valid(steps), too_short(own, job_.size() == 1));
  const Block::Error error = block_->error(count, time);
  const double squares = summed(error.squares, job_.headers());
  const double volume = mesh_.volume();
  const json answer = {{"record", "solution"},
                       {"cells", mesh_.cells()},
                       {"edge", mesh_.edge()},
                       {"steps", count},
                       {"dt", dt_},
                       {"time", time},
                       {"decay", medium_.decay()},
                       {"error_l2", std::sqrt(squares / volume)},
                       {"error_max", largest({error.largest}, job_.headers()).front()},
                       {"integral", summed(block_->integral(count), job_.headers())},
                       {"all_s", largest({own.all}, job_.headers()).front()},
                       {"flags", flags}};
  return job_.rank() == 0 ? answer : json();
}

// Rows and both values of each cell, and the ghosts' values: what a step cannot do without.
double Solver::step_bytes() const {
  const Part& part = block_->part();
  return kCellBytes * static_cast<double>(part.cells) + sizeof(double) * static_cast<double>(part.ghosts.size());
}

json Solver::own_part() const {
  const Part& part = block_->part();
  json neighbours = json::array();
  for (const Link& link : part.links) {
    neighbours.push_back({{"rank", link.rank},
                          {"sent_bytes", link.send.size() * sizeof(double)},
                          {"received_bytes", static_cast<std::size_t>(link.ghosts) * sizeof(double)}});
  }
  const PageReport pages = block_->pages();
  json share = pages.unknown.empty() ? json(pages.share) : json();
  return {{"rank", part.rank},
          {"host", place_.seat.host},
          {"cells", part.cells},
          {"separator_cells", part.separator_cells},
          {"halo_cells", part.ghosts.size()},
          {"sent_bytes", static_cast<std::size_t>(part.cells_sent()) * sizeof(double)},
          {"messages", part.links.size()},
          {"neighbours", neighbours},
          {"step_bytes", step_bytes()},
          {"comp_cores", place_.seat.comp_cores},
          {"comm_cores", place_.seat.comm_cores},
          {"bound", !crew_->migrated()},
          {"comp_node", place_.comp_node},
          {"comm_node", place_.comm_node},
          {"pages_on_node", share},
          {"shared_cores", place_.sharing.cores}};
}

// Per step: bytes and operations of the largest part; bytes sent by all parts, on average and by the busiest one; the largest
// message, bytes; the most messages of a part.
json Solver::step_facts() const {
  double cells = 0, step_bytes = 0, total = 0, sent = 0, messages = 0, message = 0;
  for (const json& part : parts_) {
    const auto of = [&part](const char* key) { return part.at(key).get<double>(); };
    cells = std::max(cells, of("cells"));
    step_bytes = std::max(step_bytes, of("step_bytes"));
    total += of("sent_bytes");
    sent = std::max(sent, of("sent_bytes"));
    messages = std::max(messages, of("messages"));
    for (const json& link : part.at("neighbours")) {
      message = std::max(message, link.at("sent_bytes").get<double>());
    }
  }
  return {{"cells", mesh_.cells()},
          {"step_bytes", step_bytes},
          {"step_flops", cells * kCellFlops},
          {"total_bytes", total},
          {"average_bytes", total / static_cast<double>(parts_.size())},
          {"largest_bytes", sent},
          {"largest_message", message},
          {"messages", messages}};
}

json Solver::facts() const {
  std::uint64_t sent = 0;
  for (const json& part : parts_) {
    sent += part.at("sent_bytes").get<std::uint64_t>();
  }
  return {{"application", "diffusion"},
          {"cells", mesh_.cells()},
          {"cubes", mesh_.cubes()},
          {"kappa", medium_.kappas()},
          {"dt", dt_},
          {"partitioner", name_of(config_.partitioner)},
          {"reorder", name_of(config_.order)},
          {"halo_bytes", sent},
          {"cell_bytes", kCellBytes},
          {"cell_flops", kCellFlops},
          {"parts", parts_},
          {"vectors", vector_target()}};
}

}  // namespace elbowroom::diffusion
