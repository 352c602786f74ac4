#include "diffusion/solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "diffusion/together.hpp"
#include "exchange/several_threads.hpp"
#include "kernels/kernel.hpp"
#include "protocol/describe.hpp"

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;

constexpr double kMargin = 0.9;       // of the longest stable time step
constexpr double kConserved = 1e-12;  // relative drift of the integral, rounding of a million steps included
constexpr int kProtocol = 1;
constexpr auto kFailed = "validation_failed";
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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

std::size_t fewest_comm_cores(const Config& config, int ranks) {
  std::size_t fewest = config.placement(0).comm_cores.size();
  for (int rank = 1; rank < ranks; ++rank) {
    fewest = std::min(fewest, config.placement(rank).comm_cores.size());
  }
  return fewest;
}

}  // namespace

Solver::Solver(const Job& job, const Config& config)
    : job_(job), config_(config), mesh_(config.cubes), medium_(mesh_, config.kappa) {
  together(job_, [this] { take_cores(); });
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
  halo_->connect(job_.messages(), static_cast<int>(fewest_comm_cores(config_, job_.size())));
}

Solver::~Solver() = default;

void Solver::take_cores() {
  for (const auto& [rank, placement] : config_.placements) {
    if (rank >= job_.size()) {
      throw RequestError("placements.rank", std::to_string(rank), fmt::format("rank {} does not exist", rank),
                         fmt::format("ranks here: 0-{}", job_.size() - 1));
    }
  }
  const Placement& own = config_.placement(job_.rank());
  seat_ = program::take_seat(own, job_.hosts()[static_cast<std::size_t>(job_.rank())], config_.scheduling);
  std::vector<Seat> seats;
  for (int rank = 0; rank < job_.size(); ++rank) {
    seats.push_back(program::seat_as_named(config_.placement(rank), job_.hosts()[static_cast<std::size_t>(rank)]));
  }
  sharing_ = program::sharing_of(seats, static_cast<std::size_t>(job_.rank()));
  if (sharing_.computing && !config_.scheduling) {
    throw RequestError("comp_cores", fmt::format("{}", fmt::join(sharing_.cores, ",")),
                       "a core would run a computing thread beside another thread",
                       "give each rank cores of its own (placements), or \"scheduling\": true to measure that");
  }
  comp_node_ = program::node_of("comp_node", own.comp_node, seat_.comp_cores.front());
  comm_node_ = program::node_of("comm_node", own.comm_node, seat_.comm_cores.front());
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
  block_ = std::make_unique<Block>(mesh_, medium_, make_part(mesh_, part_of_, job_.rank(), config_.order), comp_node_);
  part_of_ = {};
  halo_ = std::make_unique<Halo>(block_->part(), comm_node_, sharing_.waiting);
  crew_ = std::make_unique<Crew>(seat_.comp_cores, seat_.comm_cores, sharing_.computing, sharing_.communicating,
                                 [](int core) { Machine::here().bind_this_thread(core); });
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
  const std::size_t most = fewest_comm_cores(config_, job_.size());
  if (static_cast<std::size_t>(steps.comm_threads) > most) {
    throw RequestError("comm_threads", std::to_string(steps.comm_threads),
                       fmt::format("a rank has {} communication core(s)", most),
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
  const double volume = mesh_.length(0) * mesh_.length(1) * mesh_.length(2);
  return std::abs(now - initial_) <= kConserved * volume;
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

json Solver::run(const Steps& steps) {
  if (steps.variant == Variant::triad && !triad_) {
    together(job_, [this] {
      const double bytes = kCellBytes * static_cast<double>(block_->part().cells);
      triad_ = std::make_unique<Triad>(bytes, crew_->computing(), comp_node_);
      crew_->each([this](std::size_t thread) { triad_->fill(thread); });
    });
  }
  const StepTimes own = go(steps);
  const json flags = flags_of(!config_.check || valid(steps), too_short(own, job_.size() == 1));
  MPI_Comm comm = job_.headers();
  std::uint64_t own_sum = steps.variant == Variant::triad ? 0 : block_->checksum(steps.warmup + steps.steps);
  std::uint64_t checksum = 0;
  MPI_Reduce(&own_sum, &checksum, 1, MPI_UINT64_T, MPI_SUM, 0, comm);
  const double bytes = summed(steps.variant == Variant::triad ? triad_->bytes() : step_bytes(), comm);
  json answer = {{"record", "steps"},
                 {"variant", name_of(steps.variant)},
                 {"comm_threads", steps.comm_threads},
                 {"steps", steps.steps},
                 {"warmup", steps.warmup},
                 {"step_s", largest(own.step, comm)},
                 {"separator_s", largest(own.separator, comm)},
                 {"interior_s", largest(own.interior, comm)},
                 {"exchange_s", largest(own.exchange, comm)},
                 {"all_s", largest({own.all}, comm).front()},
                 {"bytes", computes(steps.variant) ? bytes : 0},
                 {"validated", config_.check},
                 {"valid", std::find(flags.begin(), flags.end(), kFailed) == flags.end()},
                 {"checksum", fmt::format("{:016x}", checksum)},
                 {"flags", flags}};
  return job_.rank() == 0 ? answer : json();
}

// Flags of any rank are the answer's.
json Solver::flags_of(bool holds, bool brief) const {
  const std::array<std::pair<const char*, bool>, 5> own{{{kFailed, !holds},
                                                         {"too_short", brief},
                                                         {"migrated", crew_->migrated()},
                                                         {"scheduling", sharing_.computing},
                                                         {"shared_comm_core", sharing_.communicating}}};
  json flags = json::array();
  for (const auto& [flag, raised] : own) {
    int any = raised ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, job_.headers());
    if (any != 0) {
      flags.push_back(flag);
    }
  }
  return flags;
}

json Solver::solve(double time) {
  const double longest = kMargin * longest_step(mesh_, medium_);
  const auto count = static_cast<std::int64_t>(std::ceil(time / config_.dt.value_or(longest)));
  together(job_, [&] {
    if (count > kMostSteps) {
      throw RequestError("time", fmt::format("{}", time), fmt::format("this takes {} steps", count),
                         fmt::format("give a time of {:.6g} or less", static_cast<double>(kMostSteps) * longest));
    }
    fill(time / static_cast<double>(count));
  });
  const Steps steps{Variant::overlap, 1, count, 0};
  const StepTimes own = go(steps);
  const json flags = flags_of(valid(steps), too_short(own, job_.size() == 1));
  const Block::Error error = block_->error(count, time);
  const double squares = summed(error.squares, job_.headers());
  const double volume = mesh_.length(0) * mesh_.length(1) * mesh_.length(2);
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

json Solver::facts() const {
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
          {"host", seat_.host},
          {"cells", part.cells},
          {"separator_cells", part.separator_cells},
          {"halo_cells", part.ghosts.size()},
          {"sent_bytes", static_cast<std::size_t>(part.cells_sent()) * sizeof(double)},
          {"messages", part.links.size()},
          {"neighbours", neighbours},
          {"step_bytes", step_bytes()},
          {"comp_cores", seat_.comp_cores},
          {"comm_cores", seat_.comm_cores},
          {"bound", !crew_->migrated()},
          {"comp_node", comp_node_},
          {"comm_node", comm_node_},
          {"pages_on_node", share},
          {"shared_cores", sharing_.cores}};
}

json Solver::hello() {
  crew_->look();
  if (job_.rank() != 0) {
    job_.send(0, facts());
    return {};
  }
  json parts = {facts()};
  for (int rank = 1; rank < job_.size(); ++rank) {
    parts.push_back(job_.receive(rank));
  }
  std::uint64_t sent = 0;
  for (const json& part : parts) {
    sent += part.at("sent_bytes").get<std::uint64_t>();
  }
  return {{"record", "hello"},
          {"protocol", kProtocol},
          {"application", "diffusion"},
          {"version", ELBOWROOM_VERSION},
          {"cells", mesh_.cells()},
          {"cubes", mesh_.cubes()},
          {"kappa", medium_.kappas()},
          {"dt", dt_},
          {"partitioner", name_of(config_.partitioner)},
          {"reorder", name_of(config_.order)},
          {"halo_bytes", sent},
          {"cell_bytes", kCellBytes},
          {"cell_flops", kCellFlops},
          {"parts", parts},
          {"ranks", job_.ranks()},
          {"mpi", job_.mpi_facts()},
          {"hwloc", hwloc_record()},
          {"clock", clock_record()},
          {"vectors", vector_target()}};
}

}  // namespace elbowroom::diffusion
