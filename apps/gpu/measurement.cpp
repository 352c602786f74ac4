#include "measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "case_loads.hpp"
#include "device_access.hpp"
#include "facts.hpp"

namespace elbowroom::gpu_bench {
namespace {

using nlohmann::json;

const char* const kSideNames[] = {"a", "b"};
constexpr double kControlled = 0.01;  // of the rate: how far a control may be from 1

json known_rate(double value) { return value < 0 ? json() : json(value); }

json sample_json(const Sample& sample, const std::string& unit) {
  json object = {{"rate", known_rate(sample.rate)}, {"unit", unit}, {"units", sample.units}};
  if (sample.p50_us >= 0) object.update({{"p50_us", sample.p50_us}, {"p99_us", sample.p99_us}});
  return object;
}

// One case: its samples, printed, and their medians.
class CaseRun {
 public:
  CaseRun(DeviceAccess& device, const Request& request, std::size_t number, const Print& print)
      : request_(request),
        case_(request.cases[number]),
        number_(number),
        device_(device),
        print_(print),
        loads_(device.maker(), case_, device.peaks()) {}

  void run() {
    if (const auto flag = device_.too_short(request_.seconds)) loads_.note(*flag);
    device_.warm_up().run(loads_, {request_.seconds, request_.patience, {}});
    for (int repetition = 0; repetition < request_.repeat; ++repetition) {
      for (const std::string& phase : phases()) run_one(phase, repetition);
    }
    summarise();
  }

 private:
  const Request& request_;
  const Case& case_;
  std::size_t number_;
  DeviceAccess& device_;
  const Print& print_;
  CaseLoads loads_;
  std::vector<double> alone_[2];
  std::vector<double> together_[2];

  // Alone, together and back (docs/design/method.md): a slow change of the machine meets all alike.
  std::vector<std::string> phases() const {
    if (loads_.size() == 1) return {"a"};
    if (!loads_.runs(1) || controls()) return {"a", "together", "together", "a"};
    return {"a", "b", "together", "together", "b", "a"};
  }

  bool controls() const { return case_.sides.back().kind == Work::Kind::control; }

  // A control takes nothing from the other side, unless the thread that submits limits it.
  void check_control() {
    if (!controls() || alone_[0].empty() || together_[0].empty()) return;
    const double kept = median(together_[0]) / median(alone_[0]);
    if (std::fabs(kept - 1) <= kControlled) return;
    loads_.note({"control", fmt::format("beside queries of events alone, side a keeps {:.3f}: the thread that submits "
                                        "limits it, or the device is not steady",
                                        kept)});
  }

  void run_one(const std::string& phase, int repetition) {
    std::vector<std::size_t> active;
    if (phase != "b") active.push_back(0);
    if (phase != "a") active.push_back(1);
    active = loads_.ordered(active);
    json line = {{"case", number_}, {"repetition", repetition}, {"phase", phase}};
    const Timing timing{request_.seconds, request_.patience,
                        [&] { line.update(reading_json(device_.reader().now())); }};
    const std::vector<Sample> samples = loads_.run(active, timing);
    for (std::size_t i = 0; i < active.size(); ++i) {
      line[kSideNames[active[i]]] = sample_json(samples[i], loads_.unit(active[i]));
      if (samples[i].rate >= 0) (phase == "together" ? together_ : alone_)[active[i]].push_back(samples[i].rate);
    }
    print_(line);
  }

  void summarise() {
    check_control();
    json noted = json::array();
    bool is_void = false;
    for (const Flag& flag : loads_.flags()) {
      const bool voids = flag.name == kVoid;
      is_void = is_void || voids;
      noted.push_back(voids ? "void: " + flag.text : flag.text);
    }
    json line = {{"case", number_}, {"name", case_.name}, {"status", is_void ? "void" : "ok"}, {"flags", noted}};
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      json side = {{"unit", loads_.unit(i)}};
      if (!loads_.engine(i).empty()) side["engine"] = loads_.engine(i);
      if (!alone_[i].empty()) side["alone"] = median(alone_[i]);
      if (!together_[i].empty()) side["together"] = median(together_[i]);
      // Of a void case there are samples, and no result.
      if (!is_void && !alone_[i].empty() && !together_[i].empty()) {
        side["kept"] = median(together_[i]) / median(alone_[i]);
      }
      line[kSideNames[i]] = side;
    }
    print_(line);
  }
};

class Measurement {
 public:
  // The facts come first: once this process has a context, it is one of the processes on the device.
  Measurement(const Request& request, const Print& print)
      : request_(request), print_(print), facts_(facts(request.device, request.libraries)), device_(request) {}

  void run() {
    print_({{"gpu", facts_}});
    for (std::size_t i = 0; i < request_.cases.size(); ++i) {
      if (device_.failure()) {
        refuse(i, *device_.failure());
      } else {
        run_case(i);
      }
    }
  }

 private:
  const Request& request_;
  const Print& print_;
  json facts_;
  DeviceAccess device_;

  void run_case(std::size_t number) {
    try {
      CaseRun(device_, request_, number, print_).run();
    } catch (const std::exception&) {
      const Failure failure = failure_of(std::current_exception());
      refuse(number, failure);
      device_.fail(failure, "case " + std::to_string(number));
    }
  }

  void refuse(std::size_t number, const Failure& failure) {
    print_({{"case", number},
            {"name", request_.cases[number].name},
            {"status", "n/a"},
            {"reason", failure.reason},
            {"hint", failure.hint}});
  }
};

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void measure(const Request& request, const Print& print) { Measurement(request, print).run(); }

}  // namespace elbowroom::gpu_bench
