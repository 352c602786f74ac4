#include "pmpi/agreement.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>

#include "pmpi/nodes.hpp"

namespace elbowroom::pmpi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The longest time between two looks at the folder, and more for each rank: all look at one file server.
constexpr milliseconds kLook{100};
constexpr microseconds kLookOfRank{10};
constexpr milliseconds kFresh{20};  // what was looked for later than this may be hidden by a cache
constexpr std::size_t kReserveBytes = 256U << 10;
constexpr std::size_t kReserveBytesOfRank = 256;
constexpr const char* kEnd = "end";
constexpr const char* kSigns[] = {"ready", "absent", "refused"};

// Whole or not at all for those who read it, and only where there is no such file: 0, or errno.
int create(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) {
    return errno;
  }
  const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int code = whole ? 0 : ENOSPC;
  close(file);
  if (!whole) {
    unlink(path.c_str());
  }
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

std::string name_of(int rank, Sign sign, const std::string& node) {
  return std::to_string(rank) + "." + kSigns[static_cast<int>(sign)] + "." + node;
}

// Pauses that become longer, up to one that depends on how many look.
class Pauses {
 public:
  explicit Pauses(int ranks) : most_(kLook + kLookOfRank * ranks) {}
  // Whether caches may hide what was created meanwhile.
  bool pause() {
    std::this_thread::sleep_for(next_);
    const bool long_ago = next_ > kFresh;
    next_ = std::min<microseconds>(2 * next_, most_);
    return long_ago;
  }

 private:
  microseconds most_;
  microseconds next_{500};
};

}  // namespace

Agreement::Agreement(std::string folder, int rank, int ranks, Words words, Limits limits)
    : folder_(std::move(folder)), rank_(rank), ranks_(ranks), words_(words), limits_(limits) {}

bool Agreement::announce(Sign sign, const std::string& reason) {
  reserve_.resize(kReserveBytes + static_cast<std::size_t>(ranks_) * kReserveBytesOfRank);
  mkdir(folder_.c_str(), 0777);
  own_ = name_of(rank_, sign, node_name());
  const int code = create(path(own_), reason);
  leads_ = code == 0 && create(path("leader"), std::to_string(rank_) + "\n" + kEnd) == 0;
  return code == 0;
}

Decision Agreement::decide() {
  std::vector<char>().swap(reserve_);
  Decision decision = leads_ ? lead(settled_signs(), -1) : await();
  unlink(path(own_).c_str());
  return decision;
}

void Agreement::lead_if_first() {
  std::vector<char>().swap(reserve_);
  if (leads_) {
    lead(settled_signs(), -1);
  }
}

Agreement::Signs Agreement::signs() const {
  Signs result;
  result.hosts.resize(static_cast<std::size_t>(ranks_));
  // Not std::filesystem: where it has no memory to open a folder, libstdc++ ends the program.
  const std::unique_ptr<DIR, int (*)(DIR*)> open_folder(opendir(folder_.c_str()), closedir);
  std::vector<int>* const lists[] = {&result.ready, &result.absent, &result.refused};
  while (const dirent* entry = open_folder == nullptr ? nullptr : readdir(open_folder.get())) {
    const std::string name = entry->d_name;
    int rank = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
    const std::string rest = error == std::errc() ? std::string(end) : "";
    for (std::size_t i = 0; i < std::size(kSigns); ++i) {
      const std::string front = std::string(".") + kSigns[i] + ".";
      if (rank >= 0 && rank < ranks_ && rest.starts_with(front)) {
        lists[i]->push_back(rank);
        result.hosts[static_cast<std::size_t>(rank)] = rest.substr(front.size());
      }
    }
  }
  for (std::vector<int>* const list : lists) {
    std::sort(list->begin(), list->end());
  }
  return result;
}

Agreement::Signs Agreement::settled_signs() const {
  const auto deadline = steady_clock::now() + limits_.settling;
  Pauses pauses(ranks_);
  Signs result = signs();
  while (static_cast<int>(result.ready.size() + result.absent.size() + result.refused.size()) < ranks_ &&
         steady_clock::now() < deadline) {
    if (pauses.pause()) {
      refresh();
    }
    result = signs();
  }
  return result;
}

void Agreement::say_missing(const std::vector<int>& ranks, const std::string& why) const {
  say("the " + std::string(words_.recording) + " lacks " + named(ranks) + ": " + why);
}

void Agreement::explain(const Signs& all) const {
  const auto reason = [&](int rank, Sign sign) {
    return text_of(path(name_of(rank, sign, all.hosts[static_cast<std::size_t>(rank)])));
  };
  if (!all.refused.empty()) {
    const int first = all.refused.front();
    const std::string others =
        all.refused.size() > 1 ? " (" + std::to_string(all.refused.size()) + " ranks cannot)" : "";
    say("the job is not " + std::string(words_.recorded) + ": rank " + std::to_string(first) + " cannot record" +
        others + ": " + reason(first, Sign::refused));
    return;
  }
  if (!all.absent.empty()) {
    say_missing(all.absent, reason(all.absent.front(), Sign::absent));
  }
  std::vector<int> silent;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (all.hosts[static_cast<std::size_t>(rank)].empty()) {
      silent.push_back(rank);
    }
  }
  if (!silent.empty()) {
    say_missing(silent,
                "linked statically, started without LD_PRELOAD, on a host without elbowroom's library, unable to write "
                "to the " +
                    std::string(words_.recording) +
                    "'s folder, or seconds later than others at MPI_Init (with MPI sessions: at its first "
                    "communicator, or it has none)");
  }
}

Decision Agreement::lead(const Signs& all, int without) const {
  Decision decision{all.refused.empty(), all.ready, nodes_of_names(all.hosts)};
  std::erase(decision.members, without);
  if (write(decision)) {
    explain(all);
    return decision;
  }
  // Another process was quicker, or the file system is full.
  decision = {};
  const auto deadline = steady_clock::now() + limits_.patience;
  while (!read(decision) && steady_clock::now() < deadline) {
    refresh();
    std::this_thread::sleep_for(kLook);
  }
  return decision;
}

int Agreement::leader() const {
  std::istringstream words(text_of(path("leader")));
  int rank = -1;
  words >> rank;
  return rank;
}

Decision Agreement::await() const {
  const auto deadline = steady_clock::now() + limits_.patience;
  Pauses pauses(ranks_);
  Decision decision;
  while (!read(decision)) {
    if (steady_clock::now() > deadline) {
      return lead(signs(), leader());
    }
    if (pauses.pause()) {
      refresh();
    }
  }
  return decision;
}

void Agreement::refresh() const {
  const std::string own = path("look-" + std::to_string(rank_));
  create(own, "");
  unlink(own.c_str());
}

// The node of each rank; with a + before it, the rank records.
bool Agreement::write(const Decision& decision) const {
  std::ostringstream text;
  text << (decision.records ? "record\n" : "do not record\n");
  for (int rank = 0; rank < ranks_; ++rank) {
    const bool records = std::binary_search(decision.members.begin(), decision.members.end(), rank);
    text << (records ? "+" : "") << decision.nodes[static_cast<std::size_t>(rank)] << ' ';
  }
  text << '\n' << kEnd;
  return create(path("decision"), text.str()) == 0;
}

// False where there is none yet.
bool Agreement::read(Decision& decision) const {
  std::istringstream text(text_of(path("decision")));
  std::string first;
  std::getline(text, first);
  Decision result{first == "record", {}, {}};
  std::string word;
  while (text >> word && word != kEnd) {
    const bool records = word.starts_with("+");
    if (records) {
      result.members.push_back(static_cast<int>(result.nodes.size()));
    }
    std::int32_t node = 0;
    std::from_chars(word.data() + (records ? 1 : 0), word.data() + word.size(), node);
    result.nodes.push_back(node);
  }
  if (word != kEnd) {
    return false;
  }
  // Of another job, where nothing tells jobs apart.
  result.records = result.records && static_cast<int>(result.nodes.size()) == ranks_;
  decision = result;
  return true;
}

}  // namespace elbowroom::pmpi
