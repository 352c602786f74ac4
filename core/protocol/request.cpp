#include "protocol/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/kernel.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

template <typename Value>
using Names = std::vector<std::pair<std::string, Value>>;

const Names<Phase> kPhases = {
    {"A", Phase::computation}, {"B", Phase::communication}, {"AB", Phase::together}, {"S", Phase::sleep}};
const Names<Pattern> kPatterns = {{"pingpong", Pattern::pingpong},
                                  {"receive", Pattern::receive},
                                  {"bidirectional", Pattern::bidirectional},
                                  {"ring", Pattern::ring}};
const Names<Who> kWhos = {{"none", Who::none},
                          {"sender", Who::sender},
                          {"receiver", Who::receiver},
                          {"both", Who::both},
                          {"bystanders", Who::bystanders}};
const Names<Timing> kTimings = {{"one-way", Timing::one_way},
                                {"recv", Timing::receive},
                                {"send", Timing::send},
                                {"recv-cpu", Timing::receive_cpu},
                                {"send-cpu", Timing::send_cpu}};
const Names<Form> kForms = {
    {"blocking", Form::blocking}, {"nonblocking", Form::nonblocking}, {"persistent", Form::persistent}};
const Names<Progress> kProgresses = {
    {"none", Progress::none}, {"test", Progress::test}, {"thread", Progress::thread}, {"library", Progress::library}};
const Names<Reuse> kReuses = {{"same", Reuse::same}, {"rotate", Reuse::rotate}, {"off-cache", Reuse::off_cache}};

template <typename Value>
std::string list_of(const Names<Value>& names) {
  std::string all;
  for (const auto& [name, value] : names) {
    all += fmt::format("{}{}", all.empty() ? "" : ", ", name);
  }
  return all;
}

template <typename Value>
Value named(const Names<Value>& names, const std::string& field, const std::string& text) {
  for (const auto& [name, value] : names) {
    if (name == text) {
      return value;
    }
  }
  throw RequestError(field, text, fmt::format("there is no {} '{}'", field, text), "known: " + list_of(names));
}

template <typename Value>
std::string name_in(const Names<Value>& names, Value wanted) {
  for (const auto& [name, value] : names) {
    if (value == wanted) {
      return name;
    }
  }
  return "";
}

constexpr double kMostDue = 250000;  // messages of one phase, 20 bytes of JSON each

std::string shown(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// Reads object[field] into `out` when it is there; the type must fit exactly.
class Reader {
 public:
  explicit Reader(const json& object, std::string prefix = "") : object_(object), prefix_(std::move(prefix)) {}

  const json* find(const char* field) const {
    const auto it = object_.find(field);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void text(const char* field, std::string& out) const {
    if (const json* value = find(field)) {
      require(value->is_string(), field, *value, "text");
      out = value->get<std::string>();
    }
  }
  template <typename Integer>
  void integer(const char* field, Integer& out) const {
    if (const json* value = find(field)) {
      require(value->is_number_integer(), field, *value, "a whole number");
      const bool fits =
          value->is_number_unsigned()
              ? value->get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<Integer>::max())
              : value->get<std::int64_t>() >= static_cast<std::int64_t>(std::numeric_limits<Integer>::min());
      require(fits, field, *value, "a number of usual magnitude");
      out = value->get<Integer>();
    }
  }
  void positive(const char* field, double& out) const {
    if (const json* value = find(field)) {
      require(value->is_number() && value->get<double>() > 0 && std::isfinite(value->get<double>()), field, *value,
              "a positive number");
      out = value->get<double>();
    }
  }
  void truth(const char* field, bool& out) const {
    if (const json* value = find(field)) {
      require(value->is_boolean(), field, *value, "true or false");
      out = value->get<bool>();
    }
  }
  void cores(const char* field, std::vector<int>& out) const {
    if (const json* value = find(field)) {
      require(value->is_array(), field, *value, "a list of core numbers");
      out.clear();
      for (const json& core : *value) {
        require(core.is_number_integer(), field, core, "a list of core numbers");
        out.push_back(core.get<int>());
      }
    }
  }
  void require(bool ok, const char* field, const json& value, const char* wanted) const {
    if (!ok) {
      throw RequestError(prefix_ + field, shown(value), fmt::format("{}{} must be {}", prefix_, field, wanted),
                         fmt::format("give {}", wanted));
    }
  }

 private:
  const json& object_;
  std::string prefix_;
};

void read_placement(const Reader& reader, Placement& placement) {
  reader.cores("comp_cores", placement.comp_cores);
  reader.cores("comm_cores", placement.comm_cores);
  reader.integer("comp_node", placement.comp_node);
  reader.integer("comm_node", placement.comm_node);
}

void read_sequence(const Reader& reader, Request& request) {
  const json* sequence = reader.find("sequence");
  if (sequence == nullptr || !sequence->is_array() || sequence->empty()) {
    throw RequestError("sequence", sequence == nullptr ? "" : shown(*sequence), "sequence must name at least one phase",
                       "known: " + list_of(kPhases));
  }
  for (const json& phase : *sequence) {
    request.sequence.push_back(named(kPhases, "sequence", shown(phase)));
  }
}

void read_placements(const json& list, Request& request) {
  Reader(json::object()).require(list.is_array(), "placements", list, "a list of placements");
  for (const json& entry : list) {
    Reader(json::object())
        .require(entry.is_object() && entry.contains("rank"), "placements", entry, "a list of objects with a rank");
    const Reader reader(entry, "placements.");
    int rank = -1;
    reader.integer("rank", rank);
    Placement placement = request.first;
    read_placement(reader, placement);
    request.placements.emplace_back(rank, placement);
  }
}

void read_protocol(const Reader& reader, Request& request) {
  reader.positive("window", request.window);
  reader.positive("period", request.period);
  if (const json* steady = reader.find("steady")) {
    reader.require(steady->is_object(), "steady", *steady, "an object");
    const Reader inner(*steady, "steady.");
    std::int64_t window = static_cast<std::int64_t>(request.steady_window);
    inner.integer("window", window);
    inner.require(window >= 2 && window <= 1000, "window", window, "between 2 and 1000");
    request.steady_window = static_cast<std::size_t>(window);
    inner.positive("cov", request.steady_cov);
    inner.positive("limit", request.steady_limit);
  }
  if (const json* observe = reader.find("observe")) {
    reader.require(observe->is_array(), "observe", *observe, "a list of names");
    for (const json& name : *observe) {
      request.observe.push_back(shown(name));
    }
  }
  reader.truth("scheduling", request.scheduling);
  reader.text("fault", request.fault);
  reader.require(request.fault.empty() || request.fault == "message" || request.fault == "early_stop" ||
                     request.fault == "late" || request.fault == "counters",
                 "fault", request.fault, "message, early_stop, late or counters");
}

void read_settings(const Reader& outer, Request& request) {
  const json* object = outer.find("settings");
  if (object == nullptr) {
    return;
  }
  outer.require(object->is_object(), "settings", *object, "an object");
  const Reader reader(*object, "settings.");
  const json* keeper = reader.find("keeper");
  const bool words = keeper != nullptr && keeper->is_array() && !keeper->empty() &&
                     std::all_of(keeper->begin(), keeper->end(), [](const json& word) { return word.is_string(); });
  reader.require(words, "keeper", keeper == nullptr ? json() : *keeper, "the words of a command");
  std::int64_t khz = 0;
  reader.integer("core_khz", khz);
  reader.integer("uncore_khz", khz);
  bool turbo = false;
  reader.truth("turbo", turbo);
  std::string governor;
  reader.text("governor", governor);
  request.settings = object->dump();
}

void read_extraneous(const Reader& outer, Request& request) {
  const json* object = outer.find("extraneous");
  if (object == nullptr) {
    return;
  }
  outer.require(object->is_object(), "extraneous", *object, "an object");
  const Reader reader(*object, "extraneous.");
  Extraneous& extraneous = request.extraneous.emplace();
  std::string name = "none";
  reader.text("who", name);
  extraneous.who = named(kWhos, "extraneous.who", name);
  reader.text("access", name = "write");
  extraneous.writes = named<bool>({{"read", false}, {"write", true}}, "extraneous.access", name);
  reader.text("data", name = "same");
  extraneous.different = named<bool>({{"same", false}, {"different", true}}, "extraneous.data", name);
  reader.integer("first", extraneous.first);
  reader.integer("step", extraneous.step);
  reader.integer("count", extraneous.count);
  reader.integer("exchanges", extraneous.exchanges);
  reader.truth("barrier", extraneous.barrier);
  reader.text("timing", name = "one-way");
  extraneous.timing = named(kTimings, "extraneous.timing", name);
  reader.text("bystanders", name = "threads");
  extraneous.processes = named<bool>({{"threads", false}, {"processes", true}}, "extraneous.bystanders", name);
}

Names<Operation> operations() {
  Names<Operation> names;
  for (int number = 0; number <= static_cast<int>(Operation::barrier); ++number) {
    names.emplace_back(name_of(static_cast<Operation>(number)), static_cast<Operation>(number));
  }
  return names;
}

void read_overlap(const Reader& outer, Request& request) {
  const json* object = outer.find("overlap");
  if (object == nullptr) {
    return;
  }
  outer.require(object->is_object(), "overlap", *object, "an object");
  const Reader reader(*object, "overlap.");
  Overlap& overlap = request.overlap.emplace();
  std::string name;
  reader.text("operation", name);
  overlap.operation = named(operations(), "overlap.operation", name);
  reader.text("form", name = "nonblocking");
  overlap.form = named(kForms, "overlap.form", name);
  reader.text("progress", name = "none");
  overlap.progress = named(kProgresses, "overlap.progress", name);
  reader.integer("neighbours", overlap.neighbours);
  reader.positive("period", overlap.period);
  reader.cores("progress_cores", overlap.progress_cores);
  reader.positive("ratio", overlap.ratio);
  reader.integer("iterations", overlap.iterations);
  if (const json* late = reader.find("late")) {
    reader.require(late->is_object(), "late", *late, "an object");
    const Reader inner(*late, "overlap.late.");
    inner.integer("rank", overlap.late_rank);
    inner.positive("seconds", overlap.late_seconds);
  }
}

void check_computation(const Request& request) {
  const bool wanted = std::any_of(request.sequence.begin(), request.sequence.end(), computes);
  if (request.kernel == "none") {
    if (wanted && !request.extraneous) {
      throw RequestError("kernel", "none", "kernel none computes nothing, but the sequence asks for computation",
                         "leave A and AB out of the sequence, or name a kernel");
    }
    return;
  }
  if (find_kernel(request.kernel) == nullptr) {
    std::string known;
    for (const KernelInfo& kernel : kernels()) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", kernel.name);
    }
    throw RequestError("kernel", request.kernel, fmt::format("there is no kernel '{}'", request.kernel),
                       "known: " + known);
  }
  if (request.cursor < 1) {
    throw RequestError("cursor", fmt::format("{}", request.cursor), "cursor must be at least 1", "give 1 or more");
  }
  const bool register_only = find_kernel(request.kernel)->arrays == 0;
  if (wanted && !register_only && request.working_set < 4096) {
    throw RequestError("working_set", fmt::format("{}", request.working_set),
                       "the working set is too small for the arrays of a computing core", "give at least 4096 bytes");
  }
}

void check_communication(const Request& request) {
  if (std::none_of(request.sequence.begin(), request.sequence.end(), communicates)) {
    return;
  }
  const bool empty = request.overlap && request.overlap->operation == Operation::barrier;
  if (request.size <= 0 && !empty) {
    throw RequestError("size", fmt::format("{}", request.size), "a message has at least one byte",
                       "give a size of 1 or more");
  }
  if (request.size > std::numeric_limits<int>::max()) {
    throw RequestError("size", fmt::format("{}", request.size), "MPI counts the bytes of one message with an int",
                       fmt::format("give at most {}", std::numeric_limits<int>::max()));
  }
  if (request.latency && request.pattern != Pattern::pingpong) {
    throw RequestError("metric", "latency", "only pingpong makes round trips, so only it has a latency",
                       "ask for bandwidth, or for the pattern pingpong");
  }
}

void check_period(const Request& request) {
  if (request.period == 0) {
    return;
  }
  const std::string value = fmt::format("{}", request.period);
  if (request.pattern != Pattern::pingpong || !request.latency || request.extraneous) {
    throw RequestError("period", value, "only the round trips of a pingpong are due at fixed times",
                       "ask for the pattern pingpong and the metric latency, or leave the period out");
  }
  if (request.window / request.period > kMostDue) {
    throw RequestError(
        "period", value,
        fmt::format("a window of {} s has more than {} messages, and each is kept", request.window, kMostDue),
        fmt::format("give at least {} s, or a shorter window and more repetitions", request.window / kMostDue));
  }
}

}  // namespace

std::string name_of(Phase phase) { return name_in(kPhases, phase); }
std::string name_of(Pattern pattern) { return name_in(kPatterns, pattern); }
std::string name_of(Reuse reuse) { return name_in(kReuses, reuse); }

bool computes(Phase phase) { return phase == Phase::computation || phase == Phase::together; }
bool communicates(Phase phase) { return phase == Phase::communication || phase == Phase::together; }

Request read_request(const json& object) {
  const Reader reader(object);
  Request request;
  reader.text("point", request.point);
  reader.integer("repetition", request.repetition);
  read_sequence(reader, request);
  reader.text("kernel", request.kernel);
  reader.integer("cursor", request.cursor);
  read_placement(reader, request.first);
  reader.cores("peer_cores", request.peer_cores);
  reader.integer("working_set", request.working_set);
  reader.integer("size", request.size);
  reader.integer("hosts", request.hosts);
  std::string name = "first";
  reader.text("computing_ranks", name);
  request.all_compute = named<bool>({{"first", false}, {"all", true}}, "computing_ranks", name);
  reader.text("pattern", name = "pingpong");
  request.pattern = named(kPatterns, "pattern", name);
  reader.text("reuse", name = "same");
  request.reuse = named(kReuses, "reuse", name);
  reader.text("metric", name = "bandwidth");
  request.latency = named<bool>({{"latency", true}, {"bandwidth", false}}, "metric", name);
  read_protocol(reader, request);
  read_extraneous(reader, request);
  read_overlap(reader, request);
  read_settings(reader, request);
  if (const json* list = reader.find("placements")) {
    read_placements(*list, request);
  }
  check_request(request);
  return request;
}

void check_request(const Request& request) {
  check_computation(request);
  check_communication(request);
  check_extraneous(request);
  check_period(request);
  check_overlap(request);
}

}  // namespace elbowroom
