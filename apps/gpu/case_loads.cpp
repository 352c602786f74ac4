#include "case_loads.hpp"

#include <algorithm>

namespace elbowroom::gpu_bench {
namespace {

Work planned_work(const Case& one, int available) {
  Work work = one.sides[0];
  work.sm_target = available - one.sides[1].sms;
  if (work.sm_target < 1) {
    throw gpu::Unavailable(
        std::to_string(one.sides[1].sms) + " SMs are to be left free, and the device has " + std::to_string(available),
        "leave fewer SMs free");
  }
  return work;
}

}  // namespace

CaseLoads::CaseLoads(Maker& maker, const Case& one, const Peaks& peaks, const MakeMessages& messages)
    : case_(one), peaks_(peaks) {
  for (const Work& work : case_.sides) {
    engines_.push_back(maker.engine(work));
    sides_.push_back(work.kind == Work::Kind::messages ? std::make_shared<MadeSide>() : maker.make(work));
    if (work.kind == Work::Kind::messages) sides_.back()->side.push_back(messages(work));
    if (work.kind == Work::Kind::sm_target || work.plan_others)
      planned_ = maker.make(planned_work(case_, maker.context().facts().sms));
  }
}

std::vector<std::size_t> CaseLoads::ordered(std::vector<std::size_t> sides) const {
  std::sort(sides.begin(), sides.end());
  const bool both = std::count(sides.begin(), sides.end(), 0U) == 1 && std::count(sides.begin(), sides.end(), 1U) == 1;
  if (case_.b_first && both) std::swap(sides[0], sides[1]);
  return sides;
}

std::vector<Load*> CaseLoads::loads() const {
  std::vector<Load*> all;
  const auto add = [&](const MadeSide& made) {
    for (const auto& load : made.side) all.push_back(load.get());
  };
  if (planned_) add(*planned_);
  for (const auto& made : sides_) add(*made);
  return all;
}

void CaseLoads::warm() {
  for (Load* const load : loads()) {
    load->clear();
    load->warm();
  }
}

std::vector<Sample> CaseLoads::run(const std::vector<std::size_t>& sides, const Timing& timing) {
  const bool planned = planned_ && std::find(sides.begin(), sides.end(), 1U) != sides.end();
  std::vector<Side*> active;
  for (const std::size_t side : sides) {
    Side& chosen = side == 0 && planned ? planned_->side : sides_[side]->side;
    if (!chosen.empty()) active.push_back(&chosen);
  }
  std::vector<Sample> measured = run_phase(active, timing);
  for (const Side* const side : active) {
    for (const auto& load : *side) {
      for (Flag& flag : load->flags()) note(std::move(flag));
    }
  }
  std::vector<Sample> samples;
  auto next = measured.begin();
  for (const std::size_t side : sides) {
    samples.push_back(runs(side) ? *next++ : Sample{});
    const std::string wrong = above_peak(case_.sides[side], samples.back().rate, unit(side), peaks_);
    if (!wrong.empty()) note({kVoid, wrong});
  }
  return samples;
}

std::vector<std::size_t> CaseLoads::of_device() const {
  std::vector<std::size_t> sides;
  for (std::size_t i = 0; i < size(); ++i) {
    const Work::Kind kind = case_.sides[i].kind;
    if (runs(i) && kind != Work::Kind::cores && kind != Work::Kind::messages) sides.push_back(i);
  }
  return sides;
}

std::string CaseLoads::kinds() const {
  std::string kinds;
  for (const std::size_t side : of_device()) {
    const Work& work = case_.sides[side];
    kinds += std::to_string(static_cast<int>(work.kind)) + " " + work.direction + " ";
  }
  return kinds;
}

void CaseLoads::note(Flag flag) {
  const auto same = [&](const Flag& other) {
    return other.name == flag.name && (other.name == kVoid || other.text == flag.text);
  };
  if (std::none_of(noted_.begin(), noted_.end(), same)) noted_.push_back(std::move(flag));
}

std::vector<Flag> CaseLoads::flags() {
  std::vector<Flag> flags = noted_;
  for (Load* const load : loads()) {
    const std::string wrong = load->check();
    if (!wrong.empty()) flags.push_back({kVoid, wrong});
  }
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    const bool meant = case_.sides[i].direction != "d2d" || case_.sides[i].engine == "batch";
    if (meant && engines_[i] == "SMs") {
      flags.push_back({kVoid, "the copy was meant for a copy engine, and SMs made it"});
    }
    if (engines_[i].rfind("unknown", 0) == 0)
      flags.push_back({"engine_unknown", "which engine copies is " + engines_[i]});
  }
  return flags;
}

std::string CaseLoads::unit(std::size_t side) const { return runs(side) ? sides_[side]->side.front()->unit() : ""; }

}  // namespace elbowroom::gpu_bench
