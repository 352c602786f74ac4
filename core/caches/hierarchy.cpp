#include "caches/hierarchy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace elbowroom {
namespace {

// Where hwloc knows no associativity: what most processors of the last ten years have.
constexpr std::uint64_t kAssumedWaysNearest = 8;
constexpr std::uint64_t kAssumedWaysBeyond = 16;
constexpr std::uint64_t kAssumedLine = 64;

CacheShape complete(const CacheInfo& info, std::uint64_t line, std::vector<std::string>& assumptions) {
  const std::uint64_t lines = std::max<std::uint64_t>(info.bytes / line, 1);
  const std::string name = fmt::format("L{} {}", info.level, info.number);
  CacheShape shape{info.level, info.number, info.bytes, 1, 1};
  if (info.associativity == 0) {
    shape.ways = std::min(info.level == 1 ? kAssumedWaysNearest : kAssumedWaysBeyond, lines);
    assumptions.push_back(fmt::format("{}: {} ways, since hwloc knows no associativity", name, shape.ways));
  } else {
    shape.ways = info.associativity < 0 ? lines : static_cast<std::uint64_t>(info.associativity);
  }
  shape.sets = std::max<std::uint64_t>(lines / shape.ways, 1);
  if (shape.sets * shape.ways * line != info.bytes) {
    assumptions.push_back(
        fmt::format("{}: {} sets of {} ways, since {} B are not whole sets", name, shape.sets, shape.ways, info.bytes));
  }
  if (info.line != 0 && info.line != line) {
    assumptions.push_back(fmt::format("{}: lines of {} B as the nearest cache has, not {} B", name, line, info.line));
  }
  return shape;
}

}  // namespace

HierarchyShape shape_of(const std::vector<std::vector<CacheInfo>>& cores) {
  HierarchyShape shape;
  if (cores.empty() || std::any_of(cores.begin(), cores.end(), [](const auto& own) { return own.empty(); })) {
    throw std::invalid_argument("hwloc reports no data cache of a core");
  }
  shape.line = cores.front().front().line;
  if (shape.line == 0) {
    shape.line = kAssumedLine;
    shape.assumptions.push_back(fmt::format("lines of {} B, since hwloc knows no size", kAssumedLine));
  }
  for (const auto& own : cores) {
    auto& path = shape.paths.emplace_back();
    for (const CacheInfo& info : own) {
      auto entry = std::find_if(shape.caches.begin(), shape.caches.end(), [&](const CacheShape& cache) {
        return cache.level == info.level && cache.number == info.number;
      });
      if (entry == shape.caches.end()) {
        shape.caches.push_back(complete(info, shape.line, shape.assumptions));
        entry = shape.caches.end() - 1;
      }
      path.push_back(static_cast<std::size_t>(entry - shape.caches.begin()));
    }
  }
  return shape;
}

Lines lines_of(std::uint64_t address, std::uint64_t bytes, std::uint64_t line) {
  const std::uint64_t first = address / line;
  return {first, bytes == 0 ? 0 : (address + bytes - 1) / line - first + 1};
}

Hierarchy::Hierarchy(HierarchyShape shape) : shape_(std::move(shape)), sets_(shape_.caches.size()) { reset_counts(); }

void Hierarchy::reset_counts() {
  misses_.clear();
  for (const auto& path : shape_.paths) {
    misses_.emplace_back(path.size(), 0);
  }
}

void Hierarchy::access(std::size_t core, std::uint64_t address, std::uint64_t bytes, bool write) {
  const auto& path = shape_.paths[core];
  const Lines lines = lines_of(address, bytes, shape_.line);
  for (std::uint64_t line = lines.first; line < lines.first + lines.count; ++line) {
    for (std::size_t place = 0; place < path.size() && !touch(path[place], line); ++place) {
      ++misses_[core][place];
    }
    if (write) {
      invalidate(core, line);
    }
  }
}

// Whether the line was there; it is the most recently used afterwards.
bool Hierarchy::touch(std::size_t cache, std::uint64_t line) {
  const CacheShape& shape = shape_.caches[cache];
  Set& set = sets_[cache][line % shape.sets];
  const auto entry = std::find(set.begin(), set.end(), line);
  const bool hit = entry != set.end();
  if (hit) {
    std::rotate(set.begin(), entry, entry + 1);
  } else {
    if (set.size() == shape.ways) {
      set.pop_back();
    }
    set.insert(set.begin(), line);
  }
  return hit;
}

void Hierarchy::invalidate(std::size_t core, std::uint64_t line) {
  const auto& path = shape_.paths[core];
  for (std::size_t cache = 0; cache < shape_.caches.size(); ++cache) {
    if (std::find(path.begin(), path.end(), cache) == path.end()) {
      Set& set = sets_[cache][line % shape_.caches[cache].sets];
      set.erase(std::remove(set.begin(), set.end(), line), set.end());
    }
  }
}

}  // namespace elbowroom
