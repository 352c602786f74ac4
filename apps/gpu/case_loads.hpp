// The sides of a case, made once and run in any combination.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "peaks.hpp"
#include "phases.hpp"
#include "request.hpp"
#include "sides.hpp"

namespace elbowroom::gpu_bench {

inline constexpr const char* kVoid = "void";

class CaseLoads {
 public:
  // Makes messages, which only a program with MPI can.
  using MakeMessages = std::function<std::unique_ptr<Load>(const Work&)>;

  // Throws as Maker::make(); Unavailable for SMs that a product cannot leave free.
  CaseLoads(Maker& maker, const Case& one, const Peaks& peaks, const MakeMessages& messages = {});

  std::size_t size() const { return sides_.size(); }
  // Whether the side runs anything: SMs that side a is planned without do not.
  bool runs(std::size_t side) const { return !sides_[side]->side.empty(); }
  // All sides of a phase, in the order in which they start.
  std::vector<std::size_t> ordered(std::vector<std::size_t> sides) const;
  void warm();
  // Sides that use the device, and what they run, for WarmUp.
  std::vector<std::size_t> of_device() const;
  std::string kinds() const;
  // These sides at once, in the order in which they start; a sample for each, without a rate where the side has none.
  std::vector<Sample> run(const std::vector<std::size_t>& sides, const Timing& timing);
  void note(Flag flag);
  // What was noted in all phases so far; those that void the case are named kVoid.
  std::vector<Flag> flags();
  std::string unit(std::size_t side) const;
  const std::string& engine(std::size_t side) const { return engines_[side]; }

 private:
  Case case_;
  const Peaks& peaks_;
  std::vector<std::shared_ptr<MadeSide>> sides_;
  std::vector<std::string> engines_;
  std::shared_ptr<MadeSide> planned_;  // side a, planned for the SMs that side b leaves; null for most
  std::vector<Flag> noted_;
  std::vector<Load*> loads() const;
};

}  // namespace elbowroom::gpu_bench
