#include "exchange/leader.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>

#include "base/clock.hpp"
#include "exchange/misses.hpp"
#include "exchange/operation.hpp"
#include "kernels/kernel.hpp"
#include "observe/tracing.hpp"
#include "protocol/describe.hpp"
#include "protocol/record.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr int kProtocolVersion = 1;
constexpr double kChunkMargin = 1e-3;  // s: the chunk that the end of the window cuts is not counted

json error_record(const json& request, const RequestError& error) {
  json record = error_fields(error);
  record["record"] = "error";
  record["point"] = request.is_object() ? request.value("point", json("")) : json("");
  return record;
}

std::string reason_for(const std::string& status, const std::set<std::string>& flags) {
  if (status == "not_stable") {
    return "no steady window inside the limit";
  }
  std::string reason;
  for (const std::string& flag : flags) {
    if (status == "failed" && voids(flag)) {
      reason += (reason.empty() ? "a rule of measuring was broken: " : ", ") + flag;
    }
  }
  return reason;
}

// A setting that did not stay as it was set voids all that was measured; what could not be set back is said.
void void_if_changed(json& record, const json& released) {
  if (const json& changed = released.at("changed"); !changed.empty()) {
    record["status"] = "failed";
    record["flags"].push_back("settings_changed");
    record["reason"] = "a setting did not stay as it was set: " + changed.front().get<std::string>();
    for (json& phase : record["phases"]) {
      phase["status"] = "void";
      phase["flags"].push_back("settings_changed");
    }
  }
  if (const json& left = released.at("left"); !left.empty()) {
    record["not_restored"] = left;
  }
}

}  // namespace

Leader::Leader(const Job& job) : job_(job), station_(job), clock_(job.control()) {}

// Between repetitions, so that nothing that is timed waits for it.
void Leader::synchronise() {
  if (tracing()) {
    job_.send_to_others({{"order", "synchronise"}});
    clock_.synchronise();
  }
}

void Leader::serve(LineSource& requests, std::ostream& answers) {
  answers << hello().dump() << std::endl;
  while (answers.good()) {
    const std::optional<std::string> line = requests.next();
    if (!line) {
      break;
    }
    if (line->find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    const json reply = answer(*line);
    if (reply.is_null()) {
      break;
    }
    answers << reply.dump() << std::endl;
  }
  synchronise();
  job_.send_to_others({{"order", "quit"}});
}

json Leader::hello() const {
  json mpi = job_.mpi_facts();
  mpi["persistent_collectives"] = has_persistent_collectives();
  return {{"record", "hello"},       {"protocol", kProtocolVersion}, {"version", ELBOWROOM_VERSION},
          {"ranks", job_.ranks()},   {"mpi", std::move(mpi)},        {"hwloc", hwloc_record()},
          {"clock", clock_record()}, {"kernels", kernels_record()},  {"build", build_record()}};
}

// One line of answer; null when the request was to quit. What goes wrong before anything is measured is an answer; what
// goes wrong while measuring leaves the ranks in different places, so it is left to end the job.
json Leader::answer(const std::string& line) {
  const json object = json::parse(line, nullptr, false);
  Request request;
  try {
    if (!object.is_object()) {
      throw RequestError("", line.substr(0, 80), "a request is one JSON object on one line",
                         "see docs/reference/protocol.md");
    }
    const json op = object.value("op", json());
    if (op == "quit") {
      return nullptr;
    }
    if (op != "measure") {
      throw RequestError("op", op.is_string() ? op.get<std::string>() : op.dump(), "there is no such request",
                         "known: measure, quit");
    }
    request = read_request(object);
    station_.check(request);
    check_job(request, job_.hosts());
    prepare_all(object, request);
    hold_all(request);
  } catch (const RequestError& error) {
    return error_record(object, error);
  } catch (const std::exception& error) {
    return error_record(object,
                        RequestError("", "", error.what(), "check the machine, then repeat the request", "machine"));
  }
  json record = measured(request);
  if (!request.settings.empty()) {
    void_if_changed(record, release_all());
  }
  return record;
}

json Leader::measured(const Request& request) {
  synchronise();
  trace_point(++repetitions_, request.point);
  const TracedSpan span(traced(Traced::repetition), repetitions_);
  json arrays;
  json record = assemble(request, measure(request, arrays));
  if (!arrays.is_null()) {
    record["overlap"] = std::move(arrays);
  }
  return record;
}

// Every host holds the settings before anything is measured; where one refuses, none does.
void Leader::hold_all(const Request& request) {
  if (request.settings.empty()) {
    return;
  }
  job_.send_to_others({{"order", "hold"}});
  std::exception_ptr own;
  try {
    keeper_.hold(request.settings);
  } catch (...) {
    own = std::current_exception();
  }
  try {
    agree(own);
  } catch (...) {
    release_all();
    throw;
  }
}

// {"changed": [sentences], "left": [sentences]} of all hosts; empty lists when every host is as it was.
json Leader::release_all() {
  job_.send_to_others({{"order", "release"}});
  json all = {{"changed", json::array()}, {"left", json::array()}};
  for (int rank = 0; rank < job_.size(); ++rank) {
    const json reply = rank == 0 ? keeper_.release() : job_.receive(rank);
    for (const char* what : {"changed", "left"}) {
      if (reply.contains(what)) {
        const std::string sentence = reply.at(what);
        all[what].push_back("host " + job_.hosts()[static_cast<std::size_t>(rank)] + ": " + sentence);
      }
    }
  }
  return all;
}

// The phases; `arrays` is what does not belong to any one of them.
json Leader::measure(const Request& request, json& arrays) {
  if (request.extraneous) {
    return extraneous(request);
  }
  if (request.overlap) {
    return overlap(arrays);
  }
  json phases = json::array();
  for (std::size_t i = 0; i < request.sequence.size(); ++i) {
    phases.push_back(phase(request, request.sequence[i], static_cast<int>(i)));
  }
  return phases;
}

// Messages without accesses (B) and with them (AB) are of one window, in turn: both phases have its beginning and its end,
// and what was observed in it.
json Leader::extraneous(const Request& request) {
  job_.send_to_others({{"order", "extraneous"}});
  station_.begin_phase();
  const std::int64_t start = now_ns();
  const ExtraneousReport report = station_.lead_extraneous();
  const std::int64_t end = now_ns();
  station_.end_phase();
  std::set<std::string> window_flags;
  const json observed = station_.observed(window_flags);
  const json followed = job_.receive(1);
  for (const json& flag : followed.at("flags")) {
    window_flags.insert(flag.get<std::string>());
  }
  const MissAnswer misses = misses_of(request, report.misses);
  json phases = json::array();
  for (std::size_t kind = 0; kind < report.kinds.size(); ++kind) {
    const OneWayReport& own = report.kinds[kind];
    std::set<std::string> flags = own.flags;
    flags.insert(window_flags.begin(), window_flags.end());
    json comm = one_way_record(own.times, request.size);
    comm["late"] = own.late;
    comm["clocks"] = clocks_record(report.clocks);
    phases.push_back({{"phase", name_of(request.sequence[kind])},
                      {"index", kind},
                      {"start_ns", start},
                      {"end_ns", end},
                      {"measured_s", own.seconds},
                      {"status", phase_status(true, flags)},
                      {"flags", flags},
                      {"comm", std::move(comm)},
                      {"misses", kind == 0 ? misses.without : misses.after},
                      {"observed", observed}});
  }
  return phases;
}

// Iterations of all kinds are measured in turn: all phases have the beginning and the end of the repetition, and what was
// observed in it.
json Leader::overlap(json& arrays) {
  job_.send_to_others({{"order", "overlap"}});
  station_.begin_phase();
  const std::int64_t start = now_ns();
  const OverlapReport report = station_.run_overlap();
  const std::int64_t end = now_ns();
  station_.end_phase();
  std::set<std::string> flags;
  const json observed = station_.observed(flags);
  for (int rank = 1; rank < job_.size(); ++rank) {
    for (const json& flag : job_.receive(rank).at("flags")) {
      flags.insert(flag.get<std::string>());
    }
  }
  if (!report.holds) {
    flags.insert("validation_failed");
  }
  arrays = overlap_record(report.visits, report.clock_bound);
  json phases = overlap_phases(report.visits, minimum_sample_ns() * 1e-9, flags);
  for (json& phase : phases) {
    phase["index"] = &phase - &phases.front();
    phase["start_ns"] = start;
    phase["end_ns"] = end;
    phase["observed"] = observed;
  }
  return phases;
}

// Nothing starts before every rank has found its part of the request possible, and is ready.
void Leader::prepare_all(const json& object, const Request& request) {
  job_.send_to_others({{"order", "check"}, {"request", object}});
  agree(nullptr);
  job_.send_to_others({{"order", "prepare"}});
  std::exception_ptr own;
  try {
    station_.prepare(request);
  } catch (...) {
    own = std::current_exception();
  }
  agree(own);
}

// Hears what the others found, all of them, and throws what this rank or the first of them could not do.
void Leader::agree(const std::exception_ptr& own) {
  std::optional<RequestError> failure;
  for (int rank = 1; rank < job_.size(); ++rank) {
    const json reply = job_.receive(rank);
    if (!failure && reply.contains("error")) {
      failure = error_of_rank(reply.at("error"), rank, job_.hosts()[static_cast<std::size_t>(rank)]);
    }
  }
  if (own) {
    std::rethrow_exception(own);
  }
  if (failure) {
    throw *failure;
  }
}

// Starts the computing threads of this rank and waits until those of all ranks run: the hand-shake
// (docs/design/method.md, rule 1).
bool Leader::start_all_computing(const Request& request) {
  station_.start_computing();
  const bool steady = station_.wait_until_computing();
  for (int rank = 1; rank < job_.size(); ++rank) {
    if (rank_computes(request, rank)) {
      job_.receive(rank);
    }
  }
  return steady;
}

bool Leader::peers_compute(const Request& request) const { return job_.size() > 1 && rank_computes(request, 1); }

// The window begins with the first steady chunks of all threads; where other ranks compute too, when all of them run.
Window Leader::computation_alone(const Request& request, bool& steady) {
  steady = start_all_computing(request);
  Window window{steady ? station_.steady_since() : station_.warm_since(), 0};
  double length = steady ? request.window : std::max(request.window, request.steady_limit);
  if (peers_compute(request)) {
    job_.send_to_others({{"order", "go"}});
    window.start = now_ns();
  }
  const double elapsed = static_cast<double>(now_ns() - window.start) * 1e-9;
  sleep_for(std::max(0.0, length + kChunkMargin - elapsed));
  window.end = now_ns();
  if (peers_compute(request)) {
    job_.send_to_others({{"order", "stop"}});
  }
  station_.stop_computing();
  return window;
}

// Communication alone or together with computations, which outlive it.
Window Leader::communication(const Request& request, Phase phase, bool& steady) {
  const bool together = phase == Phase::together;
  const bool stop_early = request.fault == "early_stop";
  if (together) {
    steady = start_all_computing(request);
    job_.send_to_others({{"order", "go"}});
    if (stop_early) {
      station_.stop_computing();
    }
  }
  station_.lead_exchange();
  steady = steady && station_.exchanged().steady;
  if (together && peers_compute(request)) {
    job_.send_to_others({{"order", "stop"}});
  }
  if (together && !stop_early) {
    station_.stop_computing();
  }
  return station_.exchanged().window;
}

json Leader::phase(const Request& request, Phase phase, int index) {
  job_.send_to_others({{"order", "phase"}, {"phase", static_cast<int>(phase)}, {"index", index}});
  const TracedSpan span(traced_phase(phase), static_cast<std::uint64_t>(index));
  station_.begin_phase();
  json record = {{"phase", name_of(phase)}, {"index", index}, {"start_ns", now_ns()}};
  bool steady = true;
  Window window{now_ns(), 0};
  if (phase == Phase::computation) {
    window = computation_alone(request, steady);
  } else if (phase == Phase::sleep) {
    sleep_for(request.window);
    window.end = now_ns();
  } else {
    window = communication(request, phase, steady);
  }
  record["end_ns"] = now_ns();
  station_.end_phase();
  record["measured_s"] = window.seconds();
  return finish(phase, window, steady, std::move(record));
}

// Adds what this rank saw and what the others report.
json Leader::finish(Phase phase, const Window& window, bool steady, json record) {
  std::set<std::string> flags;
  json own = {{"rank", 0}};
  if (computes(phase)) {
    own["comp"] = record["comp"] = station_.computed(window, flags);
  }
  if (communicates(phase)) {
    own["comm"] = record["comm"] = station_.communicated(flags);
  }
  record["observed"] = station_.observed(flags);
  json ranks = json::array({own});
  bool more = false;
  for (int rank = 1; rank < job_.size(); ++rank) {
    json report = job_.receive(rank);
    steady = steady && report.at("steady").get<bool>();
    for (const json& flag : report.at("flags")) {
      flags.insert(flag.get<std::string>());
    }
    more = more || report.contains("comp") || rank > 1;
    report.erase("steady");
    report.erase("flags");
    ranks.push_back(report);
  }
  if (more) {
    record["ranks"] = ranks;
  }
  record["flags"] = flags;
  record["status"] = phase_status(steady, flags);
  return record;
}

json Leader::assemble(const Request& request, json phases) {
  std::set<std::string> flags = station_.request_flags();
  std::set<std::string> page_flags;
  json record = {{"record", "repetition"}, {"point", request.point}, {"repetition", request.repetition}};
  record["pages"] = station_.pages(page_flags);
  job_.send_to_others({{"order", "pages"}});
  for (int rank = 1; rank < job_.size(); ++rank) {
    const json reply = job_.receive(rank);
    for (const json& flag : reply.value("flags", json::array())) {
      (flag == "wrong_node" ? page_flags : flags).insert(flag.get<std::string>());
    }
  }
  if (shares_communication_core(request, job_.hosts())) {
    flags.insert("shared_comm_core");
  }
  if (shares_computing_core(request, job_.hosts())) {
    flags.insert("scheduling");
  }
  if (frequency_moved(phases, station_.placement())) {
    flags.insert("frequency_moved");
  }
  flags.insert(page_flags.begin(), page_flags.end());
  std::string status = "ok";
  bool validated = true;
  for (json& phase : phases) {
    std::set<std::string> own = phase.at("flags");
    own.insert(page_flags.begin(), page_flags.end());
    if (!page_flags.empty() && phase.at("phase") != "S") {
      phase["flags"] = own;
      phase["status"] = "void";
    }
    flags.insert(own.begin(), own.end());
    validated = validated && !own.contains("validation_failed");
    const std::string phase_status = phase.at("status");
    status = phase_status == "void" ? "failed" : phase_status == "not_stable" && status == "ok" ? "not_stable" : status;
  }
  record["status"] = status;
  record["reason"] = reason_for(status, flags);
  record["flags"] = flags;
  record["validated"] = validated;
  if (const KernelInfo* kernel = find_kernel(request.kernel)) {
    record["bytes"] = bytes_record(*kernel, request.cursor);
  }
  record["phases"] = phases;
  return record;
}

}  // namespace elbowroom
