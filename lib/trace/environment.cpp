#include "trace/environment.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "trace/refusal.hpp"

namespace elbowroom::trace {
namespace {

using Variable = std::function<const char*(const char*)>;

// Variables that are set to nothing are not set: that is how a shell takes one back.
std::optional<std::string> value_of(const Variable& variable, const char* name) {
  const char* value = variable(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

// A whole number of 0 to `most`.
std::optional<std::uint64_t> number_of(const Variable& variable, const char* name, std::uint64_t most,
                                       const char* what) {
  const auto value = value_of(variable, name);
  if (!value) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  const char* const end = value->data() + value->size();
  const auto [stopped, failed] = std::from_chars(value->data(), end, number);
  if (failed != std::errc() || stopped != end || number > most) {
    throw Refusal(EINVAL, std::string(name) + " '" + value->substr(0, 100) + "': is not a " + what +
                              "; give a whole number, 0 to " + std::to_string(most));
  }
  return number;
}

int policy_of(const Variable& variable) {
  constexpr const char* kName = "ELBOW_TRACE_POLICY";
  constexpr std::array<const char*, 5> kNames = {"stop", "overwrite", "drain", "grow", "flush"};
  const std::string wanted = value_of(variable, kName).value_or("stop");
  for (std::size_t policy = 0; policy < kNames.size(); ++policy) {
    if (wanted == kNames[policy]) {
      return static_cast<int>(policy);
    }
  }
  throw Refusal(EINVAL, std::string(kName) + " '" + wanted.substr(0, 100) +
                            "': there is no such policy; stop, overwrite, drain, grow or flush");
}

struct Place {
  int rank = 0;
  int ranks = 1;
};

// Launchers set these for each process; a job script of Slurm sets its own for everything below it, so it comes last.
struct Launcher {
  const char* rank;
  const char* ranks;
};
constexpr Launcher kLaunchers[] = {{"ELBOW_TRACE_RANK", "ELBOW_TRACE_RANKS"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"PMIX_RANK", "SLURM_NTASKS"},
                                   {"SLURM_PROCID", "SLURM_NTASKS"}};

Place place_of(const Variable& variable) {
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
  for (const auto& [rank_name, ranks_name] : kLaunchers) {
    const auto rank = number_of(variable, rank_name, kMost, "rank");
    if (!rank) {
      continue;
    }
    auto ranks = number_of(variable, "ELBOW_TRACE_RANKS", kMost, "number of ranks");
    ranks = ranks ? ranks : number_of(variable, ranks_name, kMost, "number of ranks");
    const std::string rank_text = std::string(rank_name) + " " + std::to_string(*rank);
    if (!ranks) {
      throw Refusal(EINVAL, rank_text + ": the number of ranks is unknown; set ELBOW_TRACE_RANKS");
    }
    if (*rank >= *ranks) {
      throw Refusal(EINVAL, rank_text + " of " + std::to_string(*ranks) +
                                " ranks: there is no such rank; ranks are 0 to ranks - 1 (set ELBOW_TRACE_RANK and "
                                "ELBOW_TRACE_RANKS where a launcher's variables are left over)");
    }
    return {static_cast<int>(*rank), static_cast<int>(*ranks)};
  }
  const auto ranks = number_of(variable, "ELBOW_TRACE_RANKS", kMost, "number of ranks");
  if (ranks && *ranks != 1) {
    throw Refusal(EINVAL, "ELBOW_TRACE_RANKS " + std::to_string(*ranks) +
                              ": the rank of this process is unknown; set ELBOW_TRACE_RANK");
  }
  return {};
}

const char* text_or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

Environment::Environment(const Variable& variable) {
  constexpr const char* kDirectory = "ELBOW_TRACE_DIRECTORY";
  directory_ = value_of(variable, kDirectory).value_or("");
  if (directory_.empty()) {
    throw Refusal(EINVAL, std::string(kDirectory) +
                              ": is not set; start the program with `elbowroom trace record`, or name a folder");
  }
  memory_ = value_of(variable, "ELBOW_TRACE_MEMORY").value_or("");
  categories_ = value_of(variable, "ELBOW_TRACE_CATEGORIES").value_or("");
  without_ = value_of(variable, "ELBOW_TRACE_WITHOUT").value_or("");
  const auto core = number_of(variable, "ELBOW_TRACE_CORE", std::numeric_limits<int>::max(), "core");
  core_ = core ? std::to_string(*core) : "";
  constexpr std::uint64_t kMostBytes = 1ULL << 46;
  const Place place = place_of(variable);
  settings_.directory = directory_.c_str();
  settings_.memory = text_or_null(memory_);
  settings_.categories = text_or_null(categories_);
  settings_.without = text_or_null(without_);
  settings_.core = text_or_null(core_);
  settings_.bytes = number_of(variable, "ELBOW_TRACE_BYTES", kMostBytes, "number of bytes").value_or(0);
  settings_.text_bytes = number_of(variable, "ELBOW_TRACE_TEXT_BYTES", kMostBytes, "number of bytes").value_or(0);
  settings_.job = number_of(variable, "ELBOW_TRACE_JOB", ~0ULL, "number of a job").value_or(0);
  settings_.policy = policy_of(variable);
  settings_.flush_at = number_of(variable, "ELBOW_TRACE_FLUSH_AT", ~0ULL, "number of events").value_or(0);
  settings_.rank = place.rank;
  settings_.ranks = place.ranks;
}

}  // namespace elbowroom::trace
