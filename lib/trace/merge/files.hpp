// Which files a trace consists of.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/merge/ranks.hpp"
#include "trace/reader.hpp"

namespace elbowroom::trace {

struct RingFile {
  std::string path;
  std::string name;  // for a person: as in the folder, or the whole path where it is elsewhere
  RingLayout layout;
};

// Something that is wrong with a file, named for a person.
struct Damage {
  std::string file;
  std::string what;
};

struct RankFiles {
  RankLines lines;
  bool has_lines = false;
  std::map<int, std::vector<RingFile>>
      rings;  // by thread; two where what a killed process had not yet written is in memory
};

struct TraceFiles {
  std::string directory;
  std::uint64_t job = 0;
  int ranks = 0;                     // of the job
  std::map<int, RankFiles> by_rank;  // those that are there
  std::vector<Damage> damage;
  std::vector<std::string> warnings;
};

// Looks for the files of a trace, also for rings that a killed process left in memory, and reads their first words. Raises
// Refused where it is not a folder of a trace, cannot be read, or has files of different jobs or of another version.
TraceFiles find_files(const std::string& directory);

}  // namespace elbowroom::trace
