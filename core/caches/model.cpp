#include "caches/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <stdexcept>

namespace elbowroom {
namespace {

// Lines of first, first + 1, ... that are in `set`.
std::uint64_t lines_in_set(const Lines& lines, std::uint64_t set, std::uint64_t sets) {
  const std::uint64_t offset = (set + sets - lines.first % sets) % sets;
  return lines.count > offset ? (lines.count - offset - 1) / sets + 1 : 0;
}

bool overlap(const Region& one, const Region& other, std::uint64_t line) {
  const Lines a = lines_of(one.address, one.bytes, line);
  const Lines b = lines_of(other.address, other.bytes, line);
  return a.count > 0 && b.count > 0 && a.first < b.first + b.count && b.first < a.first + a.count;
}

void check_apart(const AccessPattern& pattern, std::uint64_t line) {
  for (std::size_t i = 0; i < pattern.sweeps.size(); ++i) {
    const Region& own = pattern.sweeps[i].memory;
    const bool shared = std::any_of(pattern.sweeps.begin(), pattern.sweeps.begin() + static_cast<std::ptrdiff_t>(i),
                                    [&](const Sweep& other) { return overlap(own, other.memory, line); });
    const bool touched = std::any_of(pattern.steps.begin(), pattern.steps.end(),
                                     [&](const Step& step) { return overlap(own, step.memory, line); });
    if (shared || touched) {
      throw std::invalid_argument("extraneous accesses share lines with each other or with the message");
    }
  }
}

}  // namespace

SteadyMisses::SteadyMisses(HierarchyShape shape, const AccessPattern& pattern)
    : shape_(std::move(shape)), sweeps_(pattern.sweeps), users_(shape_.caches.size()) {
  check_apart(pattern, shape_.line);
  for (const Step& step : pattern.steps) {
    add_step(step);
  }
  for (std::size_t core = 0; core < shape_.paths.size(); ++core) {
    const auto& path = shape_.paths[core];
    for (std::size_t place = 0; place < path.size(); ++place) {
      users_[path[place]].push_back({core, place});
    }
    nested_.push_back(std::adjacent_find(path.begin(), path.end(), [&](std::size_t nearer, std::size_t farther) {
                        return shape_.caches[farther].sets % shape_.caches[nearer].sets != 0;
                      }) == path.end());
  }
  order_.resize(shape_.caches.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return shape_.caches[a].level < shape_.caches[b].level; });
  make_groups();
}

void SteadyMisses::add_step(const Step& step) {
  const Lines lines = lines_of(step.memory.address, step.memory.bytes, shape_.line);
  for (std::uint64_t line = lines.first; line < lines.first + lines.count; ++line) {
    uses_.push_back({step.core, line, step.write, step.counted, true});
    missed_.emplace_back(shape_.paths[step.core].size(), 0);
  }
}

// A set's events: uses through the cache, and writes that do not go through it but take a line away.
void SteadyMisses::make_groups() {
  groups_.resize(shape_.caches.size());
  for (std::size_t cache = 0; cache < shape_.caches.size(); ++cache) {
    std::map<std::uint64_t, Group> by_set;
    for (std::size_t index = 0; index < uses_.size(); ++index) {
      const Use& use = uses_[index];
      const auto& path = shape_.paths[use.core];
      const bool through = std::find(path.begin(), path.end(), cache) != path.end();
      if (through || use.write) {
        const std::uint64_t set = use.line % shape_.caches[cache].sets;
        by_set[set].set = set;
        by_set[set].events.push_back({index, use.line, !through, false});
      }
    }
    for (auto& [set, group] : by_set) {
      groups_[cache].push_back(std::move(group));
    }
  }
}

void SteadyMisses::decide(std::size_t cache, Group& group) {
  here_.clear();
  std::copy_if(group.events.begin(), group.events.end(), std::back_inserter(here_),
               [&](const Event& event) { return event.taken || uses_[event.use].reaches; });
  group.distinct = 0;
  for (auto event = here_.begin(); event != here_.end(); ++event) {
    const bool again = std::any_of(here_.begin(), event,
                                   [&](const Event& other) { return !other.taken && other.line == event->line; });
    group.distinct += event->taken || again ? 0 : 1;
  }
  if (group.distinct == 0) {
    return;
  }
  const std::uint64_t sweeps = sweeping(cache, group.set);
  for (std::size_t i = 0; i < here_.size(); ++i) {
    here_[i].missed = !here_[i].taken && misses(i, sweeps, shape_.caches[cache].ways);
  }
  for (const Event& event : here_) {
    if (!event.taken) {
      const auto& path = shape_.paths[uses_[event.use].core];
      const auto place = std::find(path.begin(), path.end(), cache) - path.begin();
      missed_[event.use][static_cast<std::size_t>(place)] = event.missed ? 1 : 0;
      uses_[event.use].reaches = event.missed;
    }
  }
}

// A use misses when its line was taken away since it was used last, or when as many others as there are ways were in the
// set at once since then. `sweeps` lines come in where a round begins.
bool SteadyMisses::misses(std::size_t event, std::uint64_t sweeps, std::uint64_t ways) {
  const std::uint64_t line = here_[event].line;
  std::size_t last = event;
  do {
    last = last == 0 ? here_.size() - 1 : last - 1;
  } while (here_[last].line != line);
  if (here_[last].taken) {
    return true;
  }
  others_.clear();
  std::uint64_t swept = 0;
  for (std::size_t i = last;;) {
    ++i;
    if (i == here_.size()) {
      i = 0;
      swept = sweeps;
    }
    if (others_.size() + swept >= ways) {
      return true;
    }
    if (i == event) {
      return false;
    }
    const auto entry = std::find(others_.begin(), others_.end(), here_[i].line);
    if (here_[i].taken && entry != others_.end()) {
      others_.erase(entry);
    } else if (!here_[i].taken && entry == others_.end()) {
      others_.push_back(here_[i].line);
    }
  }
}

// Lines of extraneous accesses that come into a set, up to one more than its ways: further ones make no difference.
std::uint64_t SteadyMisses::sweeping(std::size_t cache, std::uint64_t set) const {
  const std::uint64_t most = shape_.caches[cache].ways + 1;
  std::uint64_t count = 0;
  for (const Sweep& sweep : sweeps_) {
    for (const User& user : users_[cache]) {
      if (user.core == sweep.core && count < most) {
        count += sweeping_of(sweep, user.place, set, most - count);
      }
    }
  }
  return std::min(count, most);
}

std::uint64_t SteadyMisses::sweeping_of(const Sweep& sweep, std::size_t place, std::uint64_t set,
                                        std::uint64_t enough) const {
  const auto& path = shape_.paths[sweep.core];
  const std::uint64_t sets = shape_.caches[path[place]].sets;
  const Lines lines = lines_of(sweep.memory.address, bytes_, shape_.line);
  const std::uint64_t count = lines_in_set(lines, set, sets);
  if (count == 0 || place == 0) {
    return count;
  }
  if (nested_[sweep.core]) {  // then all lines of this set are in one set of each nearer cache
    return sweep_reaches(sweep.core, place, set) ? count : 0;
  }
  std::uint64_t result = 0;
  std::uint64_t line = lines.first + (set + sets - lines.first % sets) % sets;
  for (std::uint64_t i = 0; i < count && result < enough; ++i, line += sets) {
    result += sweep_reaches(sweep.core, place, line) ? 1 : 0;
  }
  return result;
}

bool SteadyMisses::sweep_reaches(std::size_t core, std::size_t place, std::uint64_t line) const {
  const auto& path = shape_.paths[core];
  for (std::size_t nearer = 0; nearer < place; ++nearer) {
    if (!sweep_misses(path[nearer], line % shape_.caches[path[nearer]].sets)) {
      return false;
    }
  }
  return true;
}

bool SteadyMisses::sweep_misses(std::size_t cache, std::uint64_t set) const {
  const auto& groups = groups_[cache];
  const auto group = std::lower_bound(groups.begin(), groups.end(), set,
                                      [](const Group& one, std::uint64_t wanted) { return one.set < wanted; });
  const std::uint64_t others = group == groups.end() || group->set != set ? 0 : group->distinct;
  return sweeping(cache, set) + others > shape_.caches[cache].ways;
}

MessageMisses SteadyMisses::at(std::uint64_t bytes) {
  for (const Sweep& sweep : sweeps_) {
    if (bytes > sweep.memory.bytes) {
      throw std::invalid_argument(
          fmt::format("{} B of extraneous accesses in an array of {} B", bytes, sweep.memory.bytes));
    }
  }
  bytes_ = bytes;
  for (std::size_t use = 0; use < uses_.size(); ++use) {
    uses_[use].reaches = true;
    std::fill(missed_[use].begin(), missed_[use].end(), 0);
  }
  for (const std::size_t cache : order_) {
    for (Group& group : groups_[cache]) {
      decide(cache, group);
    }
  }
  MessageMisses misses{std::vector<std::uint64_t>(shape_.paths[kSenderCore].size()),
                       std::vector<std::uint64_t>(shape_.paths[kReceiverCore].size())};
  for (std::size_t use = 0; use < uses_.size(); ++use) {
    auto& side = uses_[use].core == kSenderCore ? misses.sender : misses.receiver;
    for (std::size_t place = 0; uses_[use].counted && place < side.size(); ++place) {
      side[place] += static_cast<std::uint64_t>(missed_[use][place]);
    }
  }
  return misses;
}

MessageMisses simulated_misses(const HierarchyShape& shape, const AccessPattern& pattern, std::uint64_t bytes,
                               int rounds) {
  Hierarchy caches(shape);
  MessageMisses misses{std::vector<std::uint64_t>(shape.paths[kSenderCore].size()),
                       std::vector<std::uint64_t>(shape.paths[kReceiverCore].size())};
  for (int round = 1; round <= rounds; ++round) {
    for (const Sweep& sweep : pattern.sweeps) {
      caches.access(sweep.core, sweep.memory.address, bytes, sweep.write);
    }
    for (const Step& step : pattern.steps) {
      caches.reset_counts();
      caches.access(step.core, step.memory.address, step.memory.bytes, step.write);
      auto& side = step.core == kSenderCore ? misses.sender : misses.receiver;
      for (std::size_t place = 0; round == rounds && step.counted && place < side.size(); ++place) {
        side[place] += caches.misses(step.core, place);
      }
    }
  }
  return misses;
}

}  // namespace elbowroom
