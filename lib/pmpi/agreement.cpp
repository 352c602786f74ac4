#include "pmpi/trace/agreement.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

namespace elbowroom::pmpi {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kDecisionTag = 31643;
// How long the leader waits for signs of ranks that leave none, as far as it can tell: MPI_Init need not synchronise, and
// directories of network file systems are cached.
constexpr milliseconds kSettling{2000};
constexpr milliseconds kPatience{30000};
constexpr milliseconds kLook{100};  // between two looks at the decision
constexpr std::size_t kReserveBytes = 256U << 10;
constexpr std::size_t kReserveBytesOfRank = 64;
constexpr const char* kEnd = "end";

// Whole or not at all for those who read it, and only where there is no such file: 0, or errno.
int create(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) {
    return errno;
  }
  const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int code = whole ? 0 : ENOSPC;
  close(file);
  return code;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// `ranks 2, 5 and 7`; of many the first ones and their number.
std::string named(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return ranks.size() > kMost ? text + " and " + std::to_string(ranks.size() - kMost) + " more" : text;
}

void say(const std::string& sentence) { std::fprintf(stderr, "elbowroom: %s\n", sentence.c_str()); }

}  // namespace

Agreement::Agreement(std::string folder, int rank, int ranks)
    : folder_(std::move(folder) + "/agreement"), rank_(rank), ranks_(ranks) {}

bool Agreement::announce(const std::string& refusal) {
  reserve_.resize(kReserveBytes + static_cast<std::size_t>(ranks_) * kReserveBytesOfRank);
  std::error_code failed;
  fs::create_directories(folder_, failed);
  const std::string own = std::to_string(rank_);
  const int code = refusal.empty() ? create(path(own + ".ready"), "") : create(path(own + ".refused"), refusal);
  leads_ = code == 0 && create(path("leader"), own + "\n" + kEnd) == 0;
  return code == 0;
}

std::vector<int> Agreement::members() {
  std::vector<char>().swap(reserve_);
  int leader = rank_;
  for (const auto deadline = steady_clock::now() + kPatience; !leads_;) {
    std::istringstream words(text_of(path("leader")));
    std::string end;
    if ((words >> leader >> end && end == kEnd) || steady_clock::now() > deadline) {
      break;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  if (leads_) {
    lead();
  } else {
    await(leader);
  }
  unlink(path(std::to_string(rank_) + ".ready").c_str());
  return decision_.records ? decision_.informed : std::vector<int>();
}

void Agreement::refuse() {
  if (leads_) {
    lead();
  }
}

Agreement::Signs Agreement::signs() const {
  Signs result;
  // Not std::filesystem: where it has no memory to open a folder, libstdc++ ends the program.
  const std::unique_ptr<DIR, int (*)(DIR*)> open_folder(opendir(folder_.c_str()), closedir);
  while (const dirent* entry = open_folder == nullptr ? nullptr : readdir(open_folder.get())) {
    const std::string name = entry->d_name;
    int rank = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
    const std::string kind = error == std::errc() ? std::string(end) : "";
    if (rank >= 0 && rank < ranks_ && kind == ".ready") {
      result.ready.push_back(rank);
    } else if (rank >= 0 && rank < ranks_ && kind == ".refused") {
      result.refused.push_back(rank);
    }
  }
  std::sort(result.ready.begin(), result.ready.end());
  std::sort(result.refused.begin(), result.refused.end());
  return result;
}

Agreement::Signs Agreement::settled_signs() const {
  const auto deadline = steady_clock::now() + kSettling;
  auto pause = milliseconds(2);
  Signs result = signs();
  while (static_cast<int>(result.ready.size() + result.refused.size()) < ranks_ && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLook);
    result = signs();
  }
  return result;
}

void Agreement::explain(const Signs& all) const {
  if (!all.refused.empty()) {
    const std::string first = std::to_string(all.refused.front());
    const std::string others =
        all.refused.size() > 1 ? " (" + std::to_string(all.refused.size()) + " ranks cannot)" : "";
    say("the job is not traced: rank " + first + " cannot record" + others + ": " + text_of(path(first + ".refused")));
    return;
  }
  std::vector<int> silent;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!std::binary_search(all.ready.begin(), all.ready.end(), rank)) {
      silent.push_back(rank);
    }
  }
  if (!silent.empty()) {
    say("the trace lacks " + named(silent) +
        ": linked statically, started without LD_PRELOAD, on a host without the tracer's library, or unable to write "
        "to the trace's directory");
  }
}

void Agreement::lead() {
  const Signs all = settled_signs();
  const Decision decision{all.refused.empty(), all.ready};
  if (!write(decision)) {
    read(decision_);
    return;
  }
  decision_ = decision;
  explain(all);
  std::vector<int> message(1, decision.records ? 1 : 0);
  if (static_cast<int>(decision.informed.size()) < ranks_) {
    message.insert(message.end(), decision.informed.begin(), decision.informed.end());
  }
  for (const int rank : decision.informed) {
    if (rank != rank_) {
      PMPI_Send(message.data(), static_cast<int>(message.size()), MPI_INT, rank, kDecisionTag, MPI_COMM_WORLD);
    }
  }
}

void Agreement::await(int leader) {
  const auto begun = steady_clock::now();
  auto next_look = begun;
  bool informed = false;
  auto pause = std::chrono::microseconds(20);
  for (;;) {
    int there = 0;
    MPI_Status status;
    PMPI_Iprobe(leader, kDecisionTag, MPI_COMM_WORLD, &there, &status);
    if (there != 0) {
      int count = 0;
      PMPI_Get_count(&status, MPI_INT, &count);
      std::vector<int> message(static_cast<std::size_t>(count));
      PMPI_Recv(message.data(), count, MPI_INT, leader, kDecisionTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      decision_ = {message[0] == 1, {message.begin() + 1, message.end()}};
      for (int rank = 0; count == 1 && rank < ranks_; ++rank) {
        decision_.informed.push_back(rank);
      }
      return;
    }
    const auto now = steady_clock::now();
    if (!informed && now >= next_look) {
      next_look = now + kLook;
      Decision decision;
      if (read(decision)) {
        informed = std::binary_search(decision.informed.begin(), decision.informed.end(), rank_);
        if (!informed) {
          return;  // with that of the constructor: nobody records, as far as this process is concerned
        }
      } else if (now - begun > kPatience && write({})) {
        say("the job is not traced: rank " + std::to_string(rank_) + " waited " +
            std::to_string(kPatience.count() / 1000) + " s for rank " + std::to_string(leader) + " to say who records");
        return;
      }
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(2000));
  }
}

bool Agreement::write(const Decision& decision) const {
  std::ostringstream text;
  text << (decision.records ? "record\n" : "do not record\n");
  for (const int rank : decision.informed) {
    text << rank << ' ';
  }
  text << '\n' << kEnd;
  return create(path("decision"), text.str()) == 0;
}

// False where there is none yet.
bool Agreement::read(Decision& decision) const {
  std::istringstream text(text_of(path("decision")));
  std::string first;
  std::getline(text, first);
  Decision result{first == "record", {}};
  for (int rank = 0; text >> rank;) {
    result.informed.push_back(rank);
  }
  text.clear();
  std::string end;
  if (!(text >> end) || end != kEnd) {
    return false;
  }
  decision = result;
  return true;
}

}  // namespace elbowroom::pmpi
