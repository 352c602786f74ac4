// The file of a rank by which a guard finds its steps and says what is in effect in each of them. Little endian;
// src/elbowroom/guard/step_file.py maps it, too. Times are those of elbow_guard_now.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "elbowroom/guard.h"

namespace elbowroom::pmpi {

constexpr char kStepMagic[8] = {'E', 'L', 'B', 'S', 'T', 'E', 'P', 'S'};
constexpr std::uint32_t kStepVersion = 1;
constexpr std::uint32_t kPhases = 64;       // of a step; the last one is that of all others
constexpr std::uint32_t kArms = 64;         // of experiments
constexpr std::uint32_t kTables = 32;       // of numbers of threads
constexpr std::uint32_t kPlan = 4096;       // steps whose arms may be planned
constexpr std::uint32_t kKeptCalls = 8192;  // the latest calls that are kept
constexpr std::uint32_t kKeptSteps = 1024;  // the latest steps that are kept
constexpr std::size_t kStepHeaderBytes = 32768;

enum Recognised : std::uint32_t { kNotYet = 0, kByMarks = 1, kBySite = 2 };

struct StepHeader {
  char magic[8];
  std::uint32_t version;
  std::int32_t rank;
  // What the rank says.
  std::atomic<std::uint32_t> process;  // 0: it has ended MPI
  std::atomic<std::uint32_t> threads;  // of parallel regions, as the program has it; 0: no OpenMP
  std::atomic<std::uint64_t> calls;    // that were recorded
  std::atomic<std::uint64_t> steps;    // that are complete
  std::atomic<std::uint32_t> phases;   // that were seen
  std::atomic<std::uint32_t> fixed;    // how often the program set a number of threads itself
  // What the guard says.
  std::atomic<std::uint32_t> learns;      // whether calls are recorded; 1 at the begin
  std::atomic<std::uint32_t> recognised;  // how steps are; marks are recognised by the rank itself
  std::atomic<std::uint32_t> site;        // a step begins at the end of ...
  std::atomic<std::uint32_t> every;       // ... each of so many calls of this site
  std::atomic<std::uint64_t> planned;     // steps before this one have their arm in `plan`
  std::atomic<std::uint32_t> rest;        // the arm of the others
  std::atomic<std::uint32_t> leads;       // whether this rank writes the settings of an arm to the board
  std::atomic<std::uint64_t> settings[kArms][ELBOW_GUARD_SETTINGS];
  std::atomic<std::uint8_t> plan[kPlan];  // by step
  std::atomic<std::uint16_t> tables[kTables][kPhases];
};
static_assert(sizeof(StepHeader) <= kStepHeaderBytes);

struct CallRecord {
  std::uint32_t site;
  std::uint32_t reserved;
  std::uint64_t begin;
  std::uint64_t end;
};

// `seconds` outside of MPI by phase; threads of its parallel regions: `asked` 0: as the program has it; `got` 0: not seen.
struct StepRecord {
  std::uint64_t step;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint32_t arm;
  std::uint32_t reserved;
  float seconds[kPhases];
  std::uint8_t asked[kPhases];
  std::uint8_t got[kPhases];
};
static_assert(sizeof(StepRecord) == 416);

// A new file for this process, in shared memory; never unmapped. NULL, with elbow_guard_error's kind of sentence in `why`,
// where it cannot be made.
struct StepFile {
  StepHeader* header;
  CallRecord* calls;
  StepRecord* steps;
};
bool make_step_file(const std::string& path, std::int32_t rank, StepFile& made, std::string& why);

}  // namespace elbowroom::pmpi
