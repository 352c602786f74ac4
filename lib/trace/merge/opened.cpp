#include "trace/merge/opened.hpp"

#include <algorithm>
#include <fstream>
#include <limits>

#include "trace/merge/alike.hpp"
#include "trace/merge/open_messages.hpp"
#include "trace/merge/type_table.hpp"
#include "trace/outputs/ending.hpp"

namespace elbowroom::trace {
namespace {

constexpr std::size_t kSurveyWindow = 1U << 14;
// Ranks without files that a trace may have for each one that has, and besides: a name or a header may claim any number.
constexpr int kMostMissing = 64;
constexpr int kMissingAnyway = 1 << 16;
constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();

std::string in_words(int rank) { return "rank " + std::to_string(rank); }

std::string bytes_between(const std::string& path, std::uint64_t begin, std::uint64_t end) {
  std::string bytes(static_cast<std::size_t>(end - begin), '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(begin));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

class Opener {
 public:
  explicit Opener(const std::string& directory)
      : files_(find_files(directory)), opened_(std::make_unique<OpenedTrace>()) {}

  std::unique_ptr<OpenedTrace> open() {
    opened_->directory = files_.directory;
    opened_->damage = std::move(files_.damage);
    opened_->job.job = files_.job;
    opened_->job.warnings = std::move(files_.warnings);
    opened_->job.size = static_cast<std::uint32_t>(files_.ranks);
    const int ranks = ranks_to_open();
    for (int rank = 0; rank < ranks; ++rank) {
      add_rank(rank);
    }
    if (ranks < files_.ranks) {
      warn(in_words(ranks) + " of " + std::to_string(files_.ranks) +
           " and all after it are missing: they have no files here");
    }
    types_.move_into(opened_->job);
    for (const int number : types_.unknown()) {
      warn("type " + std::to_string(number) + " is unknown: no file describes it; its events are shown as such");
    }
    align();
    warn_of_damage();
    opened_->has_one_ended = balance_ != 0;
    opened_->job.warnings = without_alike(opened_->job.warnings);
    return std::move(opened_);
  }

 private:
  void warn(const std::string& sentence) { opened_->job.warnings.push_back(sentence); }

  // Up to the last one that has files.
  int ranks_to_open() const {
    const int ranks = files_.by_rank.rbegin()->first + 1;
    const auto there = static_cast<std::int64_t>(files_.by_rank.size());
    if (ranks - there > kMissingAnyway + kMostMissing * there) {
      throw Refused("trace '" + files_.directory + "': has files of " + in_words(ranks - 1) + ", and of " +
                    std::to_string(there) +
                    " ranks in all; copy those of the others, or remove what is no file of the trace");
    }
    return ranks;
  }

  void add_rank(int number) {
    MergedRank merged;
    merged.rank = number;
    OpenedRank own;
    const auto entry = files_.by_rank.find(number);
    if (entry == files_.by_rank.end() || (entry->second.rings.empty() && !entry->second.has_lines)) {
      merged.there = false;
      warn(in_words(number) + " of " + std::to_string(files_.ranks) + " is missing: it has no files here");
    } else {
      add_files(entry->second, merged, own);
    }
    opened_->job.ranks.push_back(std::move(merged));
    opened_->ranks.push_back(std::move(own));
  }

  void add_files(const RankFiles& files, MergedRank& merged, OpenedRank& own) {
    const RankLines& lines = files.lines;
    const bool alone = files_.ranks == 1;
    own.times = RankTimes(lines.syncs, alone);
    own.end = lines.end;
    own.killed = lines.begun && !lines.end && !lines.finalised;
    HostClock clock = lines.clock;
    if (!files.rings.empty()) {
      const RingHeader& header = files.rings.begin()->second.front().layout.header;
      merged.host = header.host;
      merged.pid = header.pid;
      clock = lines.begun ? clock : clock_of(header);
    }
    merged.ended = !lines.begun || lines.end.has_value();
    merged.pid = lines.begun ? lines.pid : merged.pid;
    merged.counter = clock.counter;
    merged.start_ticks = clock.start_ticks;
    merged.start_ns = clock.start_ns;
    merged.scale = clock.scale;
    merged.syncs = own.times.syncs();
    merged.turns = own.times.turns();
    used_.assign(1, false);
    for (const auto& [thread, parts] : files.rings) {
      add_thread(parts, lines.begun ? &lines.clock : nullptr, own);
    }
    own.types = types_.add(lines, used_);
    number_texts(own);
    check_end(merged.rank, own);
    warn_of_clock(merged.rank, own, alone);
  }

  static HostClock clock_of(const RingHeader& header) {
    return {header.counter == 1, header.start_ticks, header.start_ns, header.scale};
  }

  void use(std::uint16_t type) {
    if (type >= used_.size()) {
      used_.resize(static_cast<std::size_t>(type) + 1, false);
    }
    used_[type] = true;
  }

  // The thread's clock; `told` is that of the rank's first line.
  HostClock agreed_clock(const RingFile& ring, const HostClock* first_line_clock) {
    const HostClock own = clock_of(ring.layout.header);
    const bool same = first_line_clock == nullptr ||
                      (first_line_clock->counter == own.counter && first_line_clock->scale == own.scale &&
                       first_line_clock->start_ticks == own.start_ticks && first_line_clock->start_ns == own.start_ns);
    if (!same) {
      opened_->damage.push_back(
          {ring.name, "its header names another clock than its process's first line, which is used"});
    }
    return same ? own : *first_line_clock;
  }

  void add_thread(const std::vector<RingFile>& parts, const HostClock* first_line_clock, const OpenedRank& rank) {
    const RingHeader& header = parts.front().layout.header;
    ThreadSource source;
    MergedThread merged;
    for (const RingFile& ring : parts) {
      source.parts.push_back({ring.layout.header, ring.path, ring.layout.runs});
      merged.recorded = std::max(merged.recorded, ring.layout.header.ring.recorded);
    }
    source.name = parts.front().name;
    source.clock = agreed_clock(parts.front(), first_line_clock);
    source.stamps = stamps_of(source.clock, rank.end ? rank.end->end_ns : 0);
    source.overwritten = header.policy == ELBOW_TRACE_OVERWRITE;
    survey(source);
    merged.rank = static_cast<std::uint32_t>(opened_->job.ranks.size());
    merged.thread = header.thread;
    merged.tid = header.tid;
    merged.name = header.name;
    merged.recorded = std::max(merged.recorded, source.read);
    merged.kept = source.read;
    merged.lost = merged.recorded - merged.kept;
    for (const RingFile& ring : parts) {
      merged.damage += damage_of(ring.name, merged.damage.empty());
      add_texts(ring);
    }
    opened_->job.threads.push_back(std::move(merged));
    opened_->threads.push_back(std::move(source));
  }

  std::string damage_of(const std::string& name, bool first) const {
    std::string first_line_clock;
    for (const Damage& damage : opened_->damage) {
      if (damage.file == name) {
        first_line_clock += (first_line_clock.empty() && first ? "" : "; ") + damage.what;
      }
    }
    return first_line_clock;
  }

  // Reads all events once.
  void survey(ThreadSource& source) {
    RingEvents events(source.parts, source.stamps, kSurveyWindow);
    bool first = true;
    for (auto block = events.next(); !block.empty(); block = events.next()) {
      check_end_requested();
      source.first_stamp = first ? block.front().time : source.first_stamp;
      source.last_stamp = block.back().time;
      first = false;
      for (const elbow_trace_slot& slot : block) {
        if (slot.kind == ELBOW_TRACE_LOST) {
          source.marked += slot.first;
        } else {
          ++source.read;
          use(slot.type);
          balance(slot);
        }
      }
    }
    if (!events.damage().empty()) {
      opened_->damage.push_back({source.name, events.damage()});
    }
  }

  // Each message that has both ends adds its hash and takes it off again, in whatever order.
  void balance(const elbow_trace_slot& slot) {
    const bool sent = slot.kind == ELBOW_TRACE_SEND;
    if (sent || slot.kind == ELBOW_TRACE_RECEIVE) {
      const auto rank = static_cast<std::uint32_t>(opened_->job.ranks.size());
      const std::uint64_t hash = hash_of(message_key(sent, rank, slot.first, slot.small, slot.second));
      balance_ += sent ? hash : 0 - hash;
    }
  }

  void add_texts(const RingFile& ring) {
    if (ring.layout.text_end == ring.layout.text_at) {
      return;
    }
    const auto thread = static_cast<std::uint32_t>(opened_->job.threads.size());
    opened_->texts.push_back(bytes_between(ring.path, ring.layout.text_at, ring.layout.text_end));
    const std::string& bytes = opened_->texts.back();
    std::string damage;
    for (const Text& text : read_texts(std::as_bytes(std::span(bytes.data(), bytes.size())), damage)) {
      use(text.type);
      opened_->job.texts.push_back({thread, text.type, text.key, text.text});
    }
    if (!damage.empty()) {
      opened_->damage.push_back({ring.name, damage});
    }
  }

  // The rank's texts have its own numbers of types until all are known.
  void number_texts(const OpenedRank& own) {
    for (; numbered_ < opened_->job.texts.size(); ++numbered_) {
      MergedText& text = opened_->job.texts[numbered_];
      text.type = own.types[text.type];
    }
  }

  // What the process said when it ended, beside what its files hold.
  void check_end(int rank, const OpenedRank& own) {
    std::uint64_t recorded = 0;
    std::uint64_t kept = 0;
    for (const MergedThread& thread : opened_->job.threads) {
      const bool of_rank = thread.rank == opened_->job.ranks.size();
      recorded += of_rank ? thread.recorded : 0;
      kept += of_rank ? thread.kept : 0;
    }
    if (own.end && (own.end->recorded != recorded || own.end->kept != kept)) {
      warn(in_words(rank) + " reported at its end that it kept " + std::to_string(own.end->kept) + " of " +
           std::to_string(own.end->recorded) + " events; its files hold " + std::to_string(kept) + " of " +
           std::to_string(recorded));
    }
    if (own.end && own.end->texts_lost > 0) {
      warn(in_words(rank) + " lost " + std::to_string(own.end->texts_lost) +
           " descriptive records: give more text bytes a thread");
    }
  }

  void warn_of_clock(int rank, const OpenedRank& own, bool alone) {
    const clock::CorrectionFlags& flags = own.times.correction().flags();
    const std::string who = in_words(rank);
    if (own.times.unsynced()) {
      warn(who + " has no sync point: its times have no known relation to those of other ranks");
    } else if (flags.single && !alone) {
      warn(who + " has only one sync point: its times drift from those of other ranks before and after it");
    }
    if (flags.backwards) {
      warn(who + "'s sync points contradict each other: a clock went back between two of them");
    }
    if (flags.steps > 0) {
      warn(who + "'s clock jumped between sync points " + std::to_string(flags.steps) +
           " times; times in between are wrong by up to that jump");
    }
    if (flags.jumped > 0) {
      warn(who + "'s clock jumped while " + std::to_string(flags.jumped) + " of its sync points were taken");
    }
    if (flags.unlocated > 0) {
      warn(who + "'s clock jumps so often that not all jumps are located: all of its times may be wrong by " +
           std::to_string(flags.unlocated) + " ns, the largest jump seen, and their errors include it");
    }
    if (flags.rejected > 0) {
      warn(who + ": " + std::to_string(flags.rejected) +
           " sync points were left out, as they contradict their neighbours");
    }
    const auto foreign = std::count_if(own.times.syncs().begin(), own.times.syncs().end(),
                                       [](const MergedSync& sync) { return !sync.used; });
    if (foreign > flags.rejected && !flags.backwards) {
      warn(who + ": " + std::to_string(foreign - flags.rejected) +
           " sync points are of another clock than its events', and are not used");
    }
  }

  std::int64_t first_time(std::size_t thread) const { return time_at(thread, opened_->threads[thread].first_stamp); }

  std::int64_t time_at(std::size_t thread, std::uint64_t stamp) const {
    const RankTimes& times = opened_->ranks[opened_->job.threads[thread].rank].times;
    return times.at(times.local(opened_->threads[thread].clock, stamp)).time;
  }

  bool has_events(std::size_t thread) const { return opened_->threads[thread].last_stamp > 0; }

  // Ranks of other hosts without a sync point would be years apart: their first event is moved to the job's first one.
  void align() {
    std::vector<std::int64_t> first(opened_->ranks.size(), kLatest);
    for (std::size_t i = 0; i < opened_->threads.size(); ++i) {
      if (has_events(i)) {
        const std::uint32_t rank = opened_->job.threads[i].rank;
        first[rank] = std::min(first[rank], first_time(i));
      }
    }
    const std::size_t anchor = anchor_of(first);
    std::int64_t start = kLatest;
    for (std::size_t i = 0; i < first.size(); ++i) {
      start = related(i, anchor) ? std::min(start, first[i]) : start;
    }
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (first[i] != kLatest && !related(i, anchor)) {
        opened_->ranks[i].times.shift(start - first[i]);
        warn(in_words(static_cast<int>(i)) + "'s first event was moved to the beginning of the trace");
      }
    }
    opened_->job.start = start == kLatest ? 0 : start;
    for (std::size_t i = 0; i < opened_->threads.size(); ++i) {
      if (has_events(i)) {
        opened_->job.duration =
            std::max(opened_->job.duration, time_at(i, opened_->threads[i].last_stamp) - opened_->job.start);
      }
    }
  }

  // The rank that times refer to: the first one whose clock was compared, else the first one.
  std::size_t anchor_of(const std::vector<std::int64_t>& first) const {
    std::size_t anchor = first.size();
    for (std::size_t i = first.size(); i-- > 0;) {
      const bool better =
          anchor == first.size() || !opened_->ranks[i].times.unsynced() || opened_->ranks[anchor].times.unsynced();
      anchor = first[i] != kLatest && better ? i : anchor;
    }
    return anchor;
  }

  bool related(std::size_t rank, std::size_t anchor) const {
    return anchor == opened_->ranks.size() || !opened_->ranks[rank].times.unsynced() ||
           opened_->job.ranks[rank].host == opened_->job.ranks[anchor].host;
  }

  void warn_of_damage() {
    for (const Damage& damage : opened_->damage) {
      warn(damage.file + ": " + damage.what);
    }
  }

  TraceFiles files_;
  std::unique_ptr<OpenedTrace> opened_;
  TypeTable types_;
  std::vector<bool> used_;    // types of the rank that is read
  std::size_t numbered_ = 0;  // texts
  std::uint64_t balance_ = 0;
};

}  // namespace

std::unique_ptr<OpenedTrace> open_trace(const std::string& directory) { return Opener(directory).open(); }

std::size_t window_of(std::size_t threads) {
  constexpr std::size_t kAll = 1U << 20;  // events: 32 MiB, and as much again for their times
  return std::clamp<std::size_t>(kAll / std::max<std::size_t>(threads, 1), 128, 1U << 14);
}

}  // namespace elbowroom::trace
