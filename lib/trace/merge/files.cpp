#include "trace/merge/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

namespace elbowroom::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLines = 64U << 20;  // bytes of a file of lines

// The first `most` bytes of a file, and how large it is; `error` is errno.
struct Front {
  std::string bytes;
  std::uint64_t size = 0;
  int error = 0;
};

Front read_front(const std::string& path, std::size_t most) {
  Front front;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    front.error = file < 0 || errno != 0 ? errno : EINVAL;
    front.error = front.error == 0 ? EINVAL : front.error;
    if (file >= 0) {
      close(file);
    }
    return front;
  }
  front.size = static_cast<std::uint64_t>(status.st_size);
  front.bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(front.size, most)));
  std::size_t done = 0;
  while (done < front.bytes.size()) {
    const ssize_t now = read(file, front.bytes.data() + done, front.bytes.size() - done);
    if (now < 0 && errno == EINTR) {
      continue;
    }
    if (now <= 0) {
      break;
    }
    done += static_cast<std::size_t>(now);
  }
  front.bytes.resize(done);
  close(file);
  return front;
}

// The number between `front` and `back` of a name.
std::optional<int> number_in(std::string_view name, std::string_view front, std::string_view back) {
  if (!name.starts_with(front) || !name.ends_with(back) || name.size() <= front.size() + back.size()) {
    return {};
  }
  const std::string_view digits = name.substr(front.size(), name.size() - front.size() - back.size());
  int number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end == digits.data() + digits.size() && number >= 0 && number < kMostRanks &&
                 digits[0] != '-'
             ? std::optional<int>(number)
             : std::nullopt;
}

[[noreturn]] void no_trace(const std::string& directory, const std::string& why) {
  throw Refused("trace '" + directory + "': " + why + "; name the folder that a trace was recorded into");
}

std::vector<std::string> names_in(const std::string& directory) {
  std::error_code failed;
  const fs::file_status status = fs::status(directory, failed);
  if (!fs::exists(status)) {
    no_trace(directory, "there is no such folder");
  }
  if (!fs::is_directory(status)) {
    no_trace(directory, "is a file, and a trace is a folder");
  }
  std::vector<std::string> names;
  fs::directory_iterator entries(directory, failed);
  if (failed) {
    no_trace(directory, "cannot be read (" + failed.message() + ")");
  }
  for (const fs::directory_entry& entry : entries) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Takes the events out that another file has, which are those before that number.
void leave_out_before(std::uint64_t number, RingLayout& layout) {
  std::uint64_t left_out = 0;
  for (RingRun& run : layout.runs) {
    const std::uint64_t both = number > run.number ? std::min(number - run.number, run.count) : 0;
    run.place += both * sizeof(elbow_trace_slot);
    run.number += both;
    run.count -= both;
    left_out += both;
  }
  layout.kept -= std::min(layout.kept, left_out);
}

class Finder {
 public:
  explicit Finder(const std::string& directory) { files_.directory = directory; }

  TraceFiles find() {
    const std::vector<std::string> names = names_in(files_.directory);
    for (const std::string& name : names) {
      add_lines(name);
    }
    for (const std::string& name : names) {
      add_ring_of_folder(name);
    }
    name_other_jobs(names);
    if (files_.by_rank.empty()) {
      no_trace(files_.directory, "has no files of a trace (rank-00000.jsonl, rank-00000.thread-00000.ring)");
    }
    for (auto& [rank, files] : files_.by_rank) {
      if (files.has_lines && !files.lines.end && files.lines.begun) {
        recover(rank, files);
      }
    }
    warn_of_steered_clocks();
    files_.job = job_.value_or(0);
    files_.ranks = std::max(ranks_.value_or(0), files_.by_rank.rbegin()->first + 1);
    return std::move(files_);
  }

 private:
  void warn_of_steered_clocks() {
    const auto steered = std::count_if(files_.by_rank.begin(), files_.by_rank.end(),
                                       [](const auto& rank) { return rank.second.lines.clock.steered; });
    if (steered > 0) {
      files_.warnings.push_back("times of " + std::to_string(steered) + (steered == 1 ? " rank" : " ranks") +
                                " are CLOCK_MONOTONIC's, whose rate NTP changes: use them for comparisons only");
    }
  }

  // Jobs of one directory are read one at a time.
  void name_other_jobs(const std::vector<std::string>& names) {
    std::string others;
    for (const std::string& name : names) {
      std::error_code ignored;
      if (number_in(name, "job-", "") && fs::is_directory(path(name), ignored)) {
        others += (others.empty() ? "" : ", ") + path(name);
      }
    }
    if (!others.empty() && files_.by_rank.empty()) {
      throw Refused("trace '" + files_.directory + "': holds several jobs; name one of " + others);
    }
    if (!others.empty()) {
      files_.warnings.push_back("this is the first of several jobs; the others are in " + others);
    }
  }

  std::string path(const std::string& name) const { return files_.directory + "/" + name; }

  void cannot_read(const std::string& name, int error) {
    files_.damage.push_back({name, std::string("cannot be read (") + std::strerror(error) + ")"});
  }

  void add_lines(const std::string& name) {
    const std::optional<int> rank = number_in(name, "rank-", ".jsonl");
    if (!rank) {
      return;
    }
    RankFiles& files = files_.by_rank[*rank];
    const Front front = read_front(path(name), kMostLines);
    if (front.error != 0) {
      cannot_read(name, front.error);
      return;
    }
    files.has_lines = true;
    files.lines = read_lines(front.bytes, path(name));
    if (front.size > kMostLines) {
      files_.damage.push_back({name, "is longer than any such file; its first 64 MiB were read"});
    }
    if (!files.lines.damage.empty()) {
      files_.damage.push_back({name, files.lines.damage});
    }
    if (files.lines.begun && files.lines.rank != *rank) {
      files_.damage.push_back({name, "is of rank " + std::to_string(files.lines.rank) + " by its first line"});
    }
    if (files.lines.begun) {
      same_job(name, files.lines.job, files.lines.ranks);
    }
  }

  void same_job(const std::string& name, std::uint64_t job, int ranks) {
    if (!job_) {
      job_ = job;
      ranks_ = ranks;
      first_name_ = name;
    }
    const std::string both =
        "trace '" + files_.directory + "': has files of different jobs: " + first_name_ + " is of job ";
    if (*job_ != job) {
      throw Refused(both + std::to_string(*job_) + " and " + name + " of job " + std::to_string(job) +
                    "; keep those of one job");
    }
    if (*ranks_ != ranks) {
      throw Refused(both + std::to_string(job) + " with " + std::to_string(*ranks_) + " ranks and " + name + " with " +
                    std::to_string(ranks) + "; keep those of one job");
    }
  }

  void add_ring_of_folder(const std::string& name) {
    const std::size_t dot = name.find('.');
    const std::optional<int> rank =
        dot == std::string::npos ? std::nullopt : number_in(name.substr(0, dot), "rank-", "");
    const std::optional<int> thread =
        dot == std::string::npos ? std::nullopt : number_in(name.substr(dot), ".thread-", ".ring");
    if (rank && thread) {
      add_ring(*rank, *thread, path(name), name);
    }
  }

  // `name` is what a person is told.
  void add_ring(int rank, int thread, const std::string& path, const std::string& name) {
    RankFiles& files = files_.by_rank[rank];
    const Front front = read_front(path, kHeaderBytes);
    if (front.error != 0) {
      cannot_read(name, front.error);
      return;
    }
    RingFile ring{path, name, {}};
    const auto bytes = std::as_bytes(std::span(front.bytes.data(), front.bytes.size()));
    const bool read = read_layout(bytes, front.size, ring.layout);
    if (!ring.layout.damage.empty()) {
      files_.damage.push_back({name, ring.layout.damage});
    }
    if (!read) {
      return;
    }
    const RingHeader& header = ring.layout.header;
    if (header.rank != rank || header.thread != thread || header.ranks <= rank || header.ranks > kMostRanks) {
      files_.damage.push_back({name, "is thread " + std::to_string(header.thread) + " of rank " +
                                         std::to_string(header.rank) + " of " + std::to_string(header.ranks) +
                                         " by its header"});
      return;
    }
    same_job(name, header.job, header.ranks);
    std::vector<RingFile>& parts = files.rings[thread];
    if (!parts.empty()) {
      leave_out_before(parts.front().layout.header.drained, ring.layout);
    }
    parts.push_back(std::move(ring));
  }

  // What is in the folder in memory that the first line names, or in a copy of it, besides the files of the directory.
  std::size_t recover_from(const fs::path& folder, int rank, RankFiles& files) {
    std::size_t recovered = 0;
    std::error_code failed;
    fs::directory_iterator entries(folder, failed);
    for (const fs::directory_entry& entry : failed ? fs::directory_iterator() : entries) {
      const std::string name = entry.path().filename().string();
      const std::optional<int> thread = number_in(name, "thread-", ".ring");
      const auto known = thread ? files.rings.find(*thread) : files.rings.end();
      const bool whole =
          known != files.rings.end() && (known->second.size() > 1 || known->second.front().layout.header.ended == 1);
      if (thread && !whole) {
        add_ring(rank, *thread, entry.path().string(), entry.path().string());
        ++recovered;
      }
    }
    return recovered;
  }

  void recover(int rank, RankFiles& files) {
    const fs::path memory(files.lines.memory);
    std::size_t recovered = recover_from(memory, rank, files);
    recovered += recover_from(fs::path(files_.directory) / memory.filename(), rank, files);
    const bool unended = std::any_of(files.rings.begin(), files.rings.end(), [](const auto& ring) {
      return ring.second.size() == 1 && ring.second.front().layout.header.in_order == 1 &&
             ring.second.front().layout.header.ended == 0;
    });
    std::string what = "rank " + std::to_string(rank) +
                       (files.lines.finalised ? " ended after MPI_Finalize without its exit handlers"
                                              : " was killed before its trace was stopped");
    if (recovered > 0) {
      what += "; " + std::to_string(recovered) + " of its threads were recovered from memory";
    } else if (files.rings.empty() || unended) {
      what += ", and its rings are not here; copy " + memory.string() + " of its host into " + files_.directory;
    }
    files_.warnings.push_back(what);
  }

  TraceFiles files_;
  std::optional<std::uint64_t> job_;
  std::optional<int> ranks_;
  std::string first_name_;
};

}  // namespace

TraceFiles find_files(const std::string& directory) { return Finder(directory).find(); }

}  // namespace elbowroom::trace
