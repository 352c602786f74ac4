#include "protocol/chunk_log.hpp"

#include <algorithm>

namespace elbowroom {

ChunkLog::ChunkLog(std::size_t capacity) : capacity_(std::max<std::size_t>(capacity & ~std::size_t{1}, 2)) {
  chunks_.reserve(capacity_);
}

void ChunkLog::clear() {
  chunks_.clear();
  merges_ = 0;
}

void ChunkLog::push(const Chunk& chunk) {
  if (chunks_.size() == capacity_) {
    for (std::size_t i = 0; i < capacity_ / 2; ++i) {
      const Chunk& left = chunks_[2 * i];
      const Chunk& right = chunks_[2 * i + 1];
      chunks_[i] = {left.start, right.end, left.items + right.items};
    }
    chunks_.resize(capacity_ / 2);
    ++merges_;
  }
  chunks_.push_back(chunk);
}

Throughput inside(const std::vector<Chunk>& chunks, const Window& window) {
  Throughput sum;
  for (std::size_t i = kColdChunks; i + 1 < chunks.size(); ++i) {
    if (chunks[i].start >= window.start && chunks[i].end <= window.end) {
      sum.items += chunks[i].items;
      sum.seconds += static_cast<double>(chunks[i].end - chunks[i].start) * 1e-9;
    }
  }
  return sum;
}

bool covers(const std::vector<Chunk>& chunks, const Window& window) {
  return chunks.size() > kColdChunks && chunks[kColdChunks].start <= window.start && chunks.back().end >= window.end;
}

std::optional<Window> common_window(const std::vector<const std::vector<Chunk>*>& logs) {
  std::optional<Window> common;
  for (const auto* chunks : logs) {
    if (chunks->size() < kColdChunks + 2) {
      return std::nullopt;
    }
    const Window own{(*chunks)[kColdChunks].start, (*chunks)[chunks->size() - 2].end};
    common = common ? Window{std::max(common->start, own.start), std::min(common->end, own.end)} : own;
  }
  if (common && common->end <= common->start) {
    return std::nullopt;
  }
  return common;
}

std::vector<double> rates_over_time(const std::vector<const std::vector<Chunk>*>& logs, const Window& window,
                                    std::size_t slices) {
  std::vector<double> sum(slices, 0.0);
  std::vector<bool> complete(slices, !logs.empty());
  const double width = static_cast<double>(window.end - window.start) / static_cast<double>(slices);
  for (const auto* chunks : logs) {
    std::vector<Throughput> own(slices);
    for (std::size_t i = kColdChunks; i + 1 < chunks->size(); ++i) {
      const Chunk& chunk = (*chunks)[i];
      if (chunk.start < window.start || chunk.end > window.end) {
        continue;
      }
      const double middle = static_cast<double>(chunk.start - window.start + chunk.end - window.start) / 2;
      auto& slice = own[std::min(slices - 1, static_cast<std::size_t>(middle / width))];
      slice.items += chunk.items;
      slice.seconds += static_cast<double>(chunk.end - chunk.start) * 1e-9;
    }
    for (std::size_t s = 0; s < slices; ++s) {
      sum[s] += own[s].rate();
      complete[s] = complete[s] && own[s].seconds > 0;
    }
  }
  std::vector<double> rates;
  for (std::size_t s = 0; s < slices; ++s) {
    if (complete[s]) {
      rates.push_back(sum[s]);
    }
  }
  return rates;
}

}  // namespace elbowroom
