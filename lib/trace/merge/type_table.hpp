// Types and categories of all processes in one numbering.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/merge/ranks.hpp"
#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

// Stands for a number that neither a line nor an event has told of.
constexpr std::uint32_t kNoType = ~0U;

class TypeTable {
 public:
  // Adds those of a process; `used` are the numbers that its events and records have. The merged number of
  // each, or kNoType.
  std::vector<std::uint32_t> add(const RankLines& lines, const std::vector<bool>& used);

  // Numbers of types that were used and not told.
  const std::vector<int>& unknown() const { return unknown_; }
  void move_into(MergedJob& job);

 private:
  std::uint32_t category(const std::string& name);
  std::uint32_t type(const MergedType& wanted);

  std::map<std::string, std::uint32_t> category_numbers_;
  std::map<std::string, std::uint32_t> type_numbers_;
  std::vector<std::string> categories_;
  std::vector<MergedType> types_;
  std::vector<int> unknown_;
};

}  // namespace elbowroom::trace
