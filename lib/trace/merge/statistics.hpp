// Counts events while they are merged.
//
// Thesis of P. Swartvagher (2022), figures 3.5 (events by type), 3.6 (by time), 3.7 (by both).
#pragma once

#include <cstdint>
#include <vector>

#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

struct TypeCounts {
  std::uint64_t events = 0;
  std::uint64_t begins = 0;
  std::uint64_t ends = 0;
  std::uint64_t total_ns = 0;  // from begin to end, of those with both
  std::uint64_t whole = 0;     // those with both
  std::uint64_t longest_ns = 0;
  std::uint64_t bytes = 0;  // of messages' ends, or of the field of that name: of each begin, else of each event
  std::vector<std::uint64_t> bins;
};

class Statistics {
 public:
  // `bins` 0: none.
  Statistics(const MergedJob& job, std::int64_t duration, std::size_t bins);

  void see(const MergedEvent& event);

  std::int64_t bin_ns() const { return bin_ns_; }
  const std::vector<TypeCounts>& types() const { return types_; }
  // Events of a rank by category.
  std::uint64_t events(std::size_t rank, std::size_t category) const { return by_rank_[rank * categories_ + category]; }

 private:
  struct Begun {
    std::uint32_t type;
    std::int64_t time;
  };
  void begin(const MergedEvent& event, TypeCounts& counts);
  void end(const MergedEvent& event, TypeCounts& counts);
  std::uint64_t bytes_of(const MergedEvent& event) const;

  const MergedJob& job_;
  std::int64_t bin_ns_ = 0;
  std::size_t bins_;
  std::size_t categories_;
  std::vector<TypeCounts> types_;
  std::vector<int> bytes_field_;  // of each type: which of its three; -1: none
  std::vector<std::uint64_t> by_rank_;
  std::vector<std::vector<Begun>> begun_;  // by thread
};

}  // namespace elbowroom::trace
