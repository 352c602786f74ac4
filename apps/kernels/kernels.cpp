#include "kernels/kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "common/blas.hpp"
#include "common/phase.hpp"
#include "common/together.hpp"

namespace elbowroom::kernels {
namespace {

using nlohmann::json;
using program::averaged;
using program::gathered;
using program::mode_of;
using program::phase_record;
using program::together;

constexpr double kMega = 1e-6;
constexpr double kMostRuns = 10000;  // in a phase
constexpr double kOnItsNode = 0.99;  // of the pages, at least (docs/design/method.md, rule 5)
constexpr double kRoom = 0.9;        // of the available memory that matrices may take

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

json pages_record(const std::vector<PageReport>& reports) {
  const PageReport& first = reports.front();
  json record = {{"wanted", first.wanted}, {"page_size", first.page_size}};
  double share = 1;
  for (const PageReport& report : reports) {
    if (!report.unknown.empty()) {
      record["unknown"] = report.unknown;
      return record;
    }
    share = report.looked_at > 0 ? std::min(share, report.share) : share;
  }
  record["share"] = share;
  return record;
}

}  // namespace

// What the ranks tell of a phase, in lists of its runs.
struct Kernels::Phase {
  std::vector<double> seconds, busy, sending, bytes;
  Tally last;
  Outcome outcome;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

Kernels::Kernels(const Job& job, const program::Settings& settings) : job_(job) {
  together(job_, [&] {
    program::check_build(settings.program, Engine::kName, job_.size());
    problem_ = read_problem(settings.program);
    rows_ = rows_of(problem_, static_cast<std::size_t>(job_.size()));
    take_cores(settings);
    check_memory();
  });
  program::one_thread_each();
  together(job_, [&] { engine_ = std::make_unique<Engine>(job_, place_.seat, place_.sharing); });
  together(job_, [&] {
    algorithm_ = make_algorithm(problem_, rows_, static_cast<std::size_t>(job_.rank()), place_.comp_node,
                                place_.comm_node, *engine_);
  });
  engine_->run(Mode::computing, [this] { algorithm_->fill(); });
  warm_up();
}

Kernels::~Kernels() = default;

void Kernels::take_cores(const program::Settings& settings) {
  place_ = program::place_of(settings, job_.hosts(), static_cast<std::size_t>(job_.rank()));
  if (place_.seat.comm_cores.size() > 1) {
    throw RequestError("comm_cores", fmt::format("{}", fmt::join(place_.seat.comm_cores, ",")),
                       "one thread of a rank communicates", "name one core");
  }
}

void Kernels::check_memory() const {
  const double sharers = job_.ranks_on_host_of(job_.rank());
  const double there = kRoom * static_cast<double>(Machine::here().available_memory(place_.comp_node));
  const double own = bytes_of(problem_, rows_);
  const double needed = sharers * (own + roof_bytes(own));
  if (needed > there) {
    const double fits = static_cast<double>(problem_.order) * std::sqrt(there / needed);
    throw RequestError(
        "order", std::to_string(problem_.order),
        fmt::format("the matrix does not fit: {:.3g} GB needed on this host, {:.3g} GB there", needed * 1e-9,
                    there * 1e-9),
        fmt::format("give {:.0f} or less",
                    problem_.task == Task::cg_sparse ? fits * fits / static_cast<double>(problem_.order) : fits));
  }
}

// All of it once, then each half: pages are touched, connections made, and how long a run takes is known.
void Kernels::warm_up() {
  for (const Mode mode : {Mode::all, Mode::computing, Mode::messages}) {
    Phase phase;
    run(mode, 1, phase);
    if (mode == Mode::all) {
      outcome_ = phase.outcome;
    }
    double longest = 0;
    for (const json& seconds : gathered(job_, phase.seconds.front())) {
      longest = std::max(longest, seconds.get<double>());
    }
    seconds_[static_cast<std::size_t>(mode)] = longest;
    if (!outcome_.failure.empty()) {
      return;
    }
  }
}

// Runs from which no rank parts before all have come; no time is taken from a barrier's exit on another rank.
void Kernels::run(Mode mode, std::size_t runs, Phase& phase) {
  engine_->meter().take();
  engine_->run(mode, [&] {
    phase.start = now_ns();
    for (std::size_t i = 0; i < runs; ++i) {
      engine_->align();
      const std::int64_t start = now_ns();
      const Outcome outcome = algorithm_->run(mode == Mode::all ? problem_.iterations : outcome_.iterations);
      phase.seconds.push_back(static_cast<double>(now_ns() - start) * 1e-9);
      phase.outcome = phase.outcome.failure.empty() ? outcome : phase.outcome;
      phase.last = engine_->meter().take();
      double bytes = 0;
      for (const Send& send : phase.last.sends) {
        bytes += static_cast<double>(send.bytes);
      }
      phase.busy.push_back(phase.last.busy_s());
      phase.sending.push_back(under_way(phase.last.sends));
      phase.bytes.push_back(bytes);
    }
    phase.end = now_ns();
  });
}

// What a rank tells of its phase: rates of all runs together, and of each.
json Kernels::report(Mode mode, const Phase& phase) const {
  const double flops =
      algorithm_->counts(outcome_.iterations).flops() * static_cast<double>(engine_->threads()) * kMega;
  json own = {{"rank", job_.rank()}, {"total", {{"value", mean(phase.seconds) / kMega}, {"unit", "us"}}}};
  for (const double seconds : phase.seconds) {
    own["total"]["batches"].push_back(seconds / kMega);
  }
  if (computes(mode)) {
    own["comp"] = {{"rate", flops / mean(phase.busy)}, {"unit", "Mflop/s"}};
    for (const double busy : phase.busy) {
      own["comp"]["batches"].push_back(flops / busy);
    }
  }
  if (communicates(mode) && !phase.last.sends.empty()) {
    own["comm"] = {{"value", kMega * mean(phase.bytes) / mean(phase.sending)},
                   {"unit", "MB/s"},
                   {"messages", phase.last.sends.size() * phase.seconds.size()},
                   {"bytes", mean(phase.bytes) * static_cast<double>(phase.seconds.size())}};
    for (std::size_t i = 0; i < phase.bytes.size(); ++i) {
      own["comm"]["batches"].push_back(kMega * phase.bytes[i] / phase.sending[i]);
    }
  }
  const double least = minimum_sample_ns() * 1e-9;
  const auto brief = [&](const std::vector<double>& seconds) { return mean(seconds) < least; };
  own["too_short"] =
      brief(phase.seconds) || (computes(mode) && brief(phase.busy)) || (own.contains("comm") && brief(phase.sending));
  return own;
}

json Kernels::phase(const std::string& name, std::size_t index, double window) {
  const Mode mode = mode_of(name);
  const double runs = std::clamp(std::ceil(window / seconds_[static_cast<std::size_t>(mode)]), 1.0, kMostRuns);
  Phase phase;
  run(mode, static_cast<std::size_t>(runs), phase);
  std::set<std::string> flags;
  bool failed = false;
  if (mode == Mode::all) {
    const Checked checked = algorithm_->check(job_);
    failed = !phase.outcome.failure.empty();
    if (!checked.holds) {
      flags.insert("validation_failed");
    }
    facts_ = facts_of(checked, phase);
  }
  json own = report(mode, phase);
  own["strayed"] = engine_->meter().strayed();
  const program::Span span{phase.start, phase.end, mean(phase.seconds) * runs};
  return phase_record(name, index, span, gathered(job_, own), flags, failed ? phase.outcome.failure : "");
}

// Numbers of the whole job: counted of one run, and what the check found.
json Kernels::facts_of(const Checked& checked, const Phase& phase) {
  const Counts counts = algorithm_->counts(outcome_.iterations);
  const double flops = summed(job_, counts.flops());
  const double bytes = summed(job_, counts.bytes);
  json facts = {{"order", problem_.order},
                {"block", problem_.block},
                {"iterations", outcome_.iterations},
                {"residual", checked.residual},
                {"relative_error", checked.error},
                {"checksum", checked.checksum},
                {"flops", flops},
                {"bytes", bytes},
                {"arithmetic_intensity", flops / bytes},
                {"messages", summed(job_, static_cast<double>(phase.last.messages))},
                {"bytes_sent", summed(job_, static_cast<double>(phase.last.bytes))},
                {"product_share", summed(job_, phase.last.product_s) / summed(job_, phase.last.busy_s())}};
  // Where one rank's counters do not work, none is told.
  const double counters = summed(job_, phase.last.stalled ? 1 : 0);
  const double stalled = summed(job_, phase.last.stalled.value_or(0)) / job_.size();
  if (counters == job_.size()) {
    facts["stalled_measured"] = stalled;
  }
  if (roof_) {
    facts["stalled_modelled"] = stalled_modelled(flops / bytes, *roof_);
    facts["roof_MB_s"] = roof_->bytes_per_s * kMega;
    facts["roof_Mflop_s"] = roof_->flops_per_s * kMega;
  }
  return facts;
}

void Kernels::measure_roof() {
  if (roof_) {
    return;
  }
  const Roof own = roof_of(*engine_, bytes_of(problem_, rows_), place_.comp_node);
  roof_ = Roof{summed(job_, own.bytes_per_s), summed(job_, own.flops_per_s)};
}

// Of any rank. Collective.
json Kernels::flags() {
  const auto right_node = [](const std::vector<PageReport>& reports) {
    return std::all_of(reports.begin(), reports.end(), [](const PageReport& report) {
      return !report.unknown.empty() || report.looked_at == 0 || report.share >= kOnItsNode;
    });
  };
  const bool right = right_node(algorithm_->comp_pages()) && right_node(algorithm_->comm_pages());
  return program::raised_by_any(job_, {{"scheduling", place_.sharing.computing},
                                       {"shared_comm_core", place_.sharing.communicating},
                                       {"wrong_node", !right}});
}

json Kernels::answer(const json& request) {
  const bool failed = !outcome_.failure.empty();
  json record = program::repetition_record(job_, request, outcome_.failure, flags(),
                                           [this](const std::string& name, std::size_t index, double window) {
                                             measure_roof();
                                             return phase(name, index, window);
                                           });
  if (failed) {
    return record;
  }
  record["pages"] = {{"comp", pages_record(algorithm_->comp_pages())},
                     {"comm", pages_record(algorithm_->comm_pages())}};
  record["facts"] = facts_;
  return record;
}

json Kernels::facts() const {
  return {{"application", fmt::format("kernels-{}", Engine::kName)},
          {"task", name_of(problem_.task)},
          {"threads", engine_->threads()},
          {"blas", program::blas()},
          {"shared_cores", place_.sharing.cores}};
}

json Kernels::solve(const std::string& path) {
  Phase phase;
  run(Mode::all, 1, phase);
  together(job_, [&] {
    if (!phase.outcome.failure.empty()) {
      throw RequestError("iterations", std::to_string(problem_.iterations), phase.outcome.failure,
                         "allow more iterations, or give a matrix that is positive definite", "machine");
    }
  });
  const Checked checked = algorithm_->check(job_);
  const json facts = facts_of(checked, phase);
  const std::vector<json> ranks = gathered(job_, report(Mode::all, phase));
  const json comm = averaged(ranks, "comm", "value");
  const double seconds = largest(job_, phase.seconds.front());
  write_result(path);
  return {{"record", "solution"},
          {"application", fmt::format("kernels-{}", Engine::kName)},
          {"task", name_of(problem_.task)},
          {"ranks", job_.size()},
          {"threads", engine_->threads()},
          {"valid", checked.holds},
          {"time_us", seconds / kMega},
          {"Mflop_s", facts.at("flops").get<double>() / seconds * kMega},
          {"comp_Mflop_s", averaged(ranks, "comp", "rate").at("rate")},
          {"send_MB_s", comm.is_null() ? json() : comm.at("value")},
          {"facts", facts},
          {"flags", flags()}};
}

// Mflop/s of this rank's threads together, by the time that each spends in its loop.
double Kernels::plain_rate(double flops) {
  std::vector<double> seconds(engine_->threads());
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < seconds.size(); ++thread) {
    threads.emplace_back([&, thread] {
      Machine::here().bind_this_thread(place_.seat.comp_cores[thread]);
      const std::int64_t start = now_ns();
      for (std::size_t i = 0; i < outcome_.iterations; ++i) {
        algorithm_->plain(thread, seconds.size());
      }
      seconds[thread] = static_cast<double>(now_ns() - start) * 1e-9;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return flops / mean(seconds) * kMega;
}

json Kernels::compare(std::size_t rounds) {
  const double flops = algorithm_->counts(outcome_.iterations).product_flops;
  json own = {{"tasks", json::array()}, {"plain", json::array()}};
  for (std::size_t round = 0; round < rounds; ++round) {
    gathered(job_, nullptr);
    Phase phase;
    run(Mode::computing, 1, phase);
    own["tasks"].push_back(flops * static_cast<double>(engine_->threads()) / phase.last.product_s * kMega);
    gathered(job_, nullptr);
    own["plain"].push_back(plain_rate(flops));
  }
  return {{"record", "comparison"},         {"application", fmt::format("kernels-{}", Engine::kName)},
          {"task", name_of(problem_.task)}, {"unit", "Mflop/s"},
          {"blas", program::blas()},        {"ranks", gathered(job_, own)}};
}

// Rank by rank, so that the first needs room for one part at a time.
void Kernels::write_result(const std::string& path) const {
  if (path.empty()) {
    return;
  }
  std::vector<double> part = algorithm_->result();
  auto size = static_cast<std::uint64_t>(part.size());
  if (job_.rank() != 0) {
    MPI_Send(&size, 1, MPI_UINT64_T, 0, 0, job_.headers());
    MPI_Send(part.data(), static_cast<int>(size), MPI_DOUBLE, 0, 0, job_.headers());
    return;
  }
  std::ofstream file(path, std::ios::binary);
  for (int rank = 0; rank < job_.size(); ++rank) {
    if (rank > 0) {
      MPI_Recv(&size, 1, MPI_UINT64_T, rank, 0, job_.headers(), MPI_STATUS_IGNORE);
      part.resize(size);
      MPI_Recv(part.data(), static_cast<int>(size), MPI_DOUBLE, rank, 0, job_.headers(), MPI_STATUS_IGNORE);
    }
    file.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(size * sizeof(double)));
  }
  if (!file.flush()) {
    throw std::runtime_error("the result cannot be written to " + path);
  }
}

}  // namespace elbowroom::kernels
