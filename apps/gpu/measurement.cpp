#include "measurement.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "facts.hpp"
#include "gpu/management.hpp"
#include "sides.hpp"

namespace elbowroom::gpu_bench {
namespace {

using nlohmann::json;

const char* const kSideNames[] = {"a", "b"};

json known_rate(double value) { return value < 0 ? json() : json(value); }

json sample_json(const Sample& sample, const char* unit) {
  json object = {{"rate", known_rate(sample.rate)}, {"unit", unit}, {"units", sample.units}};
  if (sample.p50_us >= 0) object.update({{"p50_us", sample.p50_us}, {"p99_us", sample.p99_us}});
  return object;
}

// The SM clock, which is read and never set; without NVML there is none.
class ClockReader {
 public:
  explicit ClockReader(std::string pci) : pci_(std::move(pci)) {
    try {
      nvml_ = std::make_unique<gpu::Management>();
    } catch (const gpu::Unavailable&) {  // the line of facts has the reason
    }
  }
  json read() const {
    const auto mhz = nvml_ ? nvml_->sm_mhz(pci_) : std::nullopt;
    return mhz ? json(*mhz) : json();
  }

 private:
  std::string pci_;
  std::unique_ptr<gpu::Management> nvml_;
};

// One case: its samples, printed, and their medians.
class CaseRun {
 public:
  CaseRun(Maker& maker, const Request& request, std::size_t number, const ClockReader& clock, const Print& print)
      : request_(request), case_(request.cases[number]), number_(number), clock_(clock), print_(print) {
    for (const Work& work : case_.sides) {
      engines_.push_back(maker.engine(work));
      sides_.push_back(maker.make(work));
    }
  }

  void run() {
    for (Side& side : sides_) {
      for (const auto& load : side) load->warm();
    }
    for (int repetition = 0; repetition < request_.repeat; ++repetition) {
      // Alone, together and back (docs/design/method.md): a slow change of the machine meets all alike.
      const std::vector<std::string> order = sides_.size() == 1
                                                 ? std::vector<std::string>{"a"}
                                                 : std::vector<std::string>{"a", "b", "together", "together", "b", "a"};
      for (const std::string& phase : order) run_one(phase, repetition);
    }
    summarise();
  }

 private:
  const Request& request_;
  const Case& case_;
  std::size_t number_;
  const ClockReader& clock_;
  const Print& print_;
  std::vector<Side> sides_;
  std::vector<std::string> engines_;
  std::vector<double> alone_[2];
  std::vector<double> together_[2];

  void run_one(const std::string& phase, int repetition) {
    std::vector<std::size_t> active;
    if (phase != "b") active.push_back(0);
    if (phase != "a") active.push_back(1);
    if (phase == "together" && case_.b_first) std::reverse(active.begin(), active.end());
    std::vector<Side*> sides;
    for (const std::size_t side : active) sides.push_back(&sides_[side]);
    json line = {{"case", number_}, {"repetition", repetition}, {"phase", phase}};
    const Timing timing{request_.seconds, request_.patience, [&] { line["sm_mhz"] = clock_.read(); }};
    const std::vector<Sample> samples = run_phase(sides, timing);
    for (std::size_t i = 0; i < active.size(); ++i) {
      line[kSideNames[active[i]]] = sample_json(samples[i], sides[i]->front()->unit());
      if (samples[i].rate >= 0) (phase == "together" ? together_ : alone_)[active[i]].push_back(samples[i].rate);
    }
    print_(line);
  }

  json flags() {
    json flags = json::array();
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      for (const auto& load : sides_[i]) {
        for (const std::string& flag : load->flags()) flags.push_back(flag);
        const std::string wrong = load->check();
        if (!wrong.empty()) flags.push_back("void: " + wrong);
      }
      const bool meant = case_.sides[i].direction != "d2d" || case_.sides[i].engine == "batch";
      if (meant && engines_[i] == "SMs") flags.push_back("void: the copy was meant for a copy engine, and SMs made it");
    }
    return flags;
  }

  void summarise() {
    const json noted = flags();
    const bool is_void = std::any_of(noted.begin(), noted.end(),
                                     [](const json& flag) { return flag.get<std::string>().rfind("void: ", 0) == 0; });
    json line = {{"case", number_}, {"name", case_.name}, {"status", is_void ? "void" : "ok"}, {"flags", noted}};
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      json side = {{"unit", sides_[i].front()->unit()}};
      if (!engines_[i].empty()) side["engine"] = engines_[i];
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
  Measurement(const Request& request, const Print& print) : request_(request), print_(print) {}

  void run() {
    print_({{"gpu", facts(request_.device, request_.libraries)}});
    open();
    for (std::size_t i = 0; i < request_.cases.size(); ++i) {
      if (failure_.empty()) {
        run_case(i);
      } else {
        refuse(i, failure_, hint_);
      }
    }
  }

 private:
  const Request& request_;
  const Print& print_;
  std::unique_ptr<gpu::Driver> driver_;
  std::unique_ptr<gpu::Context> context_;
  std::unique_ptr<Maker> maker_;
  std::string failure_;  // of all cases
  std::string hint_;

  void open() {
    try {
      driver_ = std::make_unique<gpu::Driver>();
      context_ = std::make_unique<gpu::Context>(*driver_, request_.device);
      maker_ = std::make_unique<Maker>(*context_, request_);
    } catch (const gpu::Unavailable& error) {
      failure_ = error.what();
      hint_ = error.hint();
    } catch (const gpu::GpuError& error) {
      failure_ = error.what();
      hint_ = error.code() == gpu::kDeviceUnavailable
                  ? "another process has the device, which is in exclusive mode: wait for it"
                  : "see `nvidia-smi`";
    }
  }

  void run_case(std::size_t number) {
    try {
      const ClockReader clock(context_->facts().pci);
      CaseRun(*maker_, request_, number, clock, print_).run();
    } catch (const gpu::Unavailable& error) {
      refuse(number, error.what(), error.hint());
    } catch (const gpu::GpuError& error) {
      refuse(number, error.what(), hint_for(error));
      if (error.lost()) {
        failure_ = std::string("the device was lost in case ") + std::to_string(number) + ": " + error.what();
        hint_ = "see `dmesg` and `nvidia-smi`";
      }
    } catch (const Stuck& error) {
      refuse(number, error.what(), "leave SMs free, or start the other side first");
    } catch (const std::runtime_error& error) {
      refuse(number, error.what(), "");
    }
  }

  static std::string hint_for(const gpu::GpuError& error) {
    if (error.lost()) return "see `dmesg` and `nvidia-smi`";
    if (error.code() == gpu::kOutOfMemory) return "take smaller buffers, or let no other process use the device";
    if (error.code() == gpu::kNotPermitted) return "raise the limit of locked memory (ulimit -l)";
    return "";
  }

  void refuse(std::size_t number, const std::string& reason, const std::string& hint) {
    print_({{"case", number},
            {"name", request_.cases[number].name},
            {"status", "n/a"},
            {"reason", reason},
            {"hint", hint}});
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
