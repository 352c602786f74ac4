// gpu-streams: copies and kernels of an accelerator beside each other, computing cores and MPI messages, as the program of
// a run (docs/reference/gpu-bench.md).
//   gpu-streams facts [FOLDER ...]           what there is, as gpu-bench prints it; MPI is not started
//   gpu-streams measure --config FILE        answers requests on standard input; one rank, or two where there are messages
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "case_loads.hpp"
#include "common/serve.hpp"
#include "common/together.hpp"
#include "device_access.hpp"
#include "facts.hpp"
#include "messages.hpp"
#include "protocol/pool.hpp"

namespace elbowroom::gpu_bench {
namespace {

// The program that answers runs (docs/reference/protocol.md): cases of gpu-bench, a repetition at a time, with MPI
// messages as one of their sides.
class Streams final : public program::Program {
 public:
  // `libraries`: folders with NVRTC and cuBLASLt. A device that is not there is no error: every answer says so.
  Streams(const Job& job, const program::Settings& settings, std::vector<std::string> libraries);
  ~Streams() override;

  nlohmann::json facts() const override;
  nlohmann::json answer(const nlohmann::json& request) override;

 private:
  struct Asked;
  class Repetition;

  const Job& job_;
  Request request_;  // of the device: its number, libraries
  BoundThread submitting_;
  std::unique_ptr<DeviceAccess> device_;  // used by the submitting thread only; null on other ranks
  nlohmann::json facts_;

  void submit(const std::function<void()>& task);
  nlohmann::json measured(const Asked& asked, Messages* messages);
};

using nlohmann::json;
using program::read;

constexpr const char* kWrongNode = "wrong_node";
constexpr double kPatience = 10;  // s until a load that does not get on is given up

// How results call the streams of a case of three.
const std::map<Work::Kind, const char*>& stream_names() {
  static const std::map<Work::Kind, const char*> kNames = {
      {Work::Kind::cores, "cores"}, {Work::Kind::copy, "copies"}, {Work::Kind::messages, "messages"}};
  return kNames;
}

std::vector<std::size_t> sides_of(const std::string& phase) {
  std::vector<std::size_t> sides;
  for (const char letter : phase) sides.push_back(static_cast<std::size_t>(letter - 'A'));
  return sides;
}

json value_json(double value, const std::string& unit) { return {{"value", value}, {"unit", unit}}; }

bool sends(const Case& one, const std::vector<std::size_t>& sides) {
  return std::any_of(sides.begin(), sides.end(),
                     [&](std::size_t side) { return one.sides[side].kind == Work::Kind::messages; });
}

struct Streams::Asked {
  std::string point;
  std::int64_t repetition = 0;
  std::vector<std::string> sequence;
  double window = 0.1;
  int core = -1;  // of the thread that submits
  Case one;

  explicit Asked(const json& request) {
    program::check_keys(request, "request", {"op", "point", "repetition", "sequence", "window", "core", "case"});
    point = read(request, "point", point);
    repetition = read(request, "repetition", repetition);
    sequence = read(request, "sequence", sequence);
    window = read(request, "window", window);
    core = read(request, "core", core);
    if (!(window > 0)) throw RequestError("window", json(window).dump(), "must be above 0", "give seconds");
    try {
      one = read_case(request.value("case", json()), "the case", core);
    } catch (const WrongRequest& error) {
      throw RequestError("case", "", error.what(), "see docs/reference/gpu-bench.md");
    }
    for (const std::string& phase : sequence) check_phase(phase);
  }

  const Work* messages() const {
    const auto found = std::find_if(one.sides.begin(), one.sides.end(),
                                    [](const Work& work) { return work.kind == Work::Kind::messages; });
    return found == one.sides.end() ? nullptr : &*found;
  }

  // Whether the thread that submits and the ends of messages share a core of one host.
  bool shares_core(bool one_host) const {
    const Work* const work = messages();
    if (work == nullptr || work->core < 0) return false;
    return core == work->core || (one_host && (core == work->peer_core || work->core == work->peer_core));
  }

 private:
  void check_phase(const std::string& phase) const {
    const char last = static_cast<char>('A' + one.sides.size() - 1);
    const bool right = !phase.empty() && std::is_sorted(phase.begin(), phase.end(), std::less_equal<>()) &&
                       phase.front() >= 'A' && phase.back() <= last;
    if (!right)
      throw RequestError("sequence", phase, "is no phase of this case", "A, B, AB ...: sides that run at once");
  }
};

// One answer: the phases of a sequence, on rank 0.
class Streams::Repetition {
 public:
  Repetition(Streams& program, const Asked& asked, Messages* messages)
      : program_(program), asked_(asked), messages_(messages) {
    const auto with_mpi = [&](const Work&) { return messages_->load(); };
    program_.submit([&] {
      if (asked_.core >= 0) Machine::here().bind_this_thread(asked_.core);
      DeviceAccess& device = *program_.device_;
      auto loads = std::make_unique<CaseLoads>(device.maker(), asked_.one, device.peaks(), with_mpi);
      if (const auto flag = device.too_short(asked_.window)) loads->note(*flag);
      device.warm_up().run(*loads, {asked_.window, kPatience, {}});
      loads_ = std::move(loads);
    });
  }

  // The loads are of the thread that submits.
  ~Repetition() {
    program_.submit([&] { loads_.reset(); });
  }
  Repetition(const Repetition&) = delete;
  Repetition& operator=(const Repetition&) = delete;

  json phase(const std::string& name, std::size_t index) {
    std::vector<std::size_t> sides = loads_->ordered(sides_of(name));
    const bool with_messages = messages_ != nullptr && sends(asked_.one, sides);
    gpu::DeviceReading reading;
    const Timing timing{asked_.window, kPatience, [&] { reading = program_.device_->reader().now(); }};
    std::vector<Sample> samples;
    const std::int64_t start = now_ns();
    if (with_messages) program_.job_.send(1, true);
    program_.submitting_.post([&] {
      const Release release{with_messages ? messages_ : nullptr};
      samples = loads_->run(sides, timing);
    });
    if (with_messages) messages_->lead();
    program_.submitting_.wait();
    json record = {{"phase", name},
                   {"index", index},
                   {"start_ns", start},
                   {"end_ns", now_ns()},
                   {"measured_s", asked_.window},
                   {"status", "ok"},
                   {"flags", json::array()}};
    for (std::size_t i = 0; i < sides.size(); ++i) add_side(record, name, sides[i], samples[i]);
    add_reading(record, name, reading);
    return record;
  }

  std::vector<Flag> flags() {
    std::vector<Flag> flags;
    program_.submit([&] { flags = loads_->flags(); });
    return flags;
  }

 private:
  struct Release {
    Messages* messages;
    ~Release() {
      if (messages != nullptr) messages->release();
    }
  };

  Streams& program_;
  const Asked& asked_;
  Messages* messages_;
  std::unique_ptr<CaseLoads> loads_;

  // A side of two is `comp` or `comm`; those of three are streams, too.
  void add_side(json& record, const std::string& phase, std::size_t side, const Sample& sample) {
    const Work::Kind kind = asked_.one.sides[side].kind;
    const bool chain = kind == Work::Kind::chain;
    const double value = chain ? sample.p50_us : sample.rate;
    if (value < 0) return;
    const std::string unit = chain ? "us" : loads_->unit(side);
    if (chain) record["streams"]["p99"] = value_json(sample.p99_us, unit);
    const auto stream = stream_names().find(kind);
    if (asked_.one.sides.size() > 2 && stream != stream_names().end()) {
      record["streams"][stream->second] = value_json(value, unit);
    }
    if (phase.find('C') != std::string::npos || side > 1) return;
    record[side == 0 ? "comp" : "comm"] = {
        {side == 0 ? "rate" : "value", value}, {"unit", unit}, {"batches", json::array()}};
  }

  // Clock and power while the device's first side runs: computing cores of the host say nothing about them.
  void add_reading(json& record, const std::string& phase, const gpu::DeviceReading& reading) {
    const char first = asked_.one.sides[0].kind == Work::Kind::cores ? 'B' : 'A';
    if (phase.find(first) == std::string::npos) return;
    if (reading.sm_mhz) record["streams"]["sm_clock"] = value_json(*reading.sm_mhz, "MHz");
    if (reading.power_w) record["streams"]["power"] = value_json(*reading.power_w, "W");
    for (const std::string& reason : reading.throttle.value_or(std::vector<std::string>{})) {
      record["flags"].push_back("throttled:" + reason);
    }
  }
};

Streams::Streams(const Job& job, const program::Settings& settings, std::vector<std::string> libraries)
    : job_(job), submitting_(-1, [](int) {}) {
  program::check_keys(settings.program, "program", {"name", "ranks"});
  program::check_build(settings.program, "", job.size());
  request_.libraries = std::move(libraries);
  if (job_.rank() != 0) return;
  submit([&] {
    // First, while this process has no context, by which it would be one of the processes on the device.
    facts_ = gpu_bench::facts(request_.device, request_.libraries);
    device_ = std::make_unique<DeviceAccess>(request_);
  });
}

Streams::~Streams() {
  if (device_) submit([&] { device_.reset(); });
}

void Streams::submit(const std::function<void()>& task) {
  submitting_.post(task);
  submitting_.wait();
}

json Streams::facts() const { return {{"application", "gpu-streams"}, {"gpu", facts_}}; }

json Streams::measured(const Asked& asked, Messages* messages) {
  json record = {{"record", "repetition"},  {"point", asked.point},   {"repetition", asked.repetition},
                 {"status", "ok"},          {"reason", ""},           {"flags", json::array()},
                 {"phases", json::array()}, {"facts", json::object()}};
  if (facts_.value("stand_in", false)) record["flags"].push_back("stand_in");
  if (asked.shares_core(job_.size() > 1 && job_.same_host(1))) record["flags"].push_back("shared_comm_core");
  const auto fail = [&](const std::string& reason, const std::string& hint) {
    record["status"] = "failed";
    record["reason"] = hint.empty() ? reason : reason + "; " + hint;
  };
  if (device_->failure()) {
    fail(device_->failure()->reason, device_->failure()->hint);
    return record;
  }
  record["facts"] = {{"sms", device_->maker().context().facts().sms}};
  try {
    Repetition repetition(*this, asked, messages);
    for (const std::string& phase : asked.sequence) {
      record["phases"].push_back(repetition.phase(phase, record["phases"].size()));
    }
    for (const Flag& flag : repetition.flags()) {
      if (flag.name != kVoid) record["flags"].push_back(flag.name);
      if (flag.name != kVoid && flag.name != kWrongNode) continue;
      fail(flag.text, "");
      for (json& phase : record["phases"]) phase["status"] = "void";
    }
  } catch (const std::exception&) {
    const Failure failure = failure_of(std::current_exception());
    record["phases"] = json::array();
    fail(failure.reason, failure.hint);
    device_->fail(failure, asked.point);
  }
  return record;
}

json Streams::answer(const json& request) {
  const Asked asked(request);
  const Work* const work = asked.messages();
  if (work == nullptr) return job_.rank() == 0 ? measured(asked, nullptr) : json();
  if (job_.size() < 2) throw RequestError("ranks", "1", "messages need two ranks", "start two");
  std::unique_ptr<Messages> messages;
  std::unique_ptr<MessageLane> lane;
  program::together(job_, [&] {
    if (job_.rank() == 0) messages = std::make_unique<Messages>(job_, *work, asked.window);
    if (job_.rank() == 1) lane = std::make_unique<MessageLane>(job_, work->bytes, work->peer_core);
  });
  if (job_.rank() == 0) {
    json record = measured(asked, messages.get());
    job_.send(1, false);
    return record;
  }
  while (job_.rank() == 1 && job_.receive(0).get<bool>()) follow_messages(job_, lane->lane());
  return {};
}

int measure(int argc, char** argv, const std::string& config, const std::vector<std::string>& libraries) {
  return program::with_ranks("gpu-streams", argc, argv, "funneled", [&](const Job& job) {
    return program::serve(job, config, [&](const Job& all, const program::Settings& settings) {
      return std::make_unique<Streams>(all, settings, libraries);
    });
  });
}

}  // namespace
}  // namespace elbowroom::gpu_bench

int main(int argc, char** argv) {
  using namespace elbowroom;
  CLI::App app("copies and kernels of an accelerator beside each other, computing cores and messages");
  app.set_version_flag("--version", ELBOWROOM_VERSION);
  app.require_subcommand(1);
  std::string config;
  std::vector<std::string> libraries;
  auto* facts = app.add_subcommand("facts", "prints what there is as JSON");
  facts->add_option("folders", libraries, "with NVRTC and cuBLASLt");
  auto* measuring = app.add_subcommand("measure", "answers requests on stdin; start it as one or two MPI ranks");
  measuring->add_option("--config", config, "JSON file: program and ranks")->required();
  measuring->add_option("--library", libraries, "folder with NVRTC and cuBLASLt; may be repeated");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (*facts) {
    std::cout << gpu_bench::facts(0, libraries).dump() << std::endl;
    return 0;
  }
  return gpu_bench::measure(argc, argv, config, libraries);
}
