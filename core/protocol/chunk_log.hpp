// What one computing thread did and when: the log from which rates inside a window are taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace elbowroom {

struct Chunk {
  std::int64_t start;  // ns
  std::int64_t end;    // ns
  std::uint64_t items;
};

struct Window {
  std::int64_t start;  // ns
  std::int64_t end;    // ns
  double seconds() const { return static_cast<double>(end - start) * 1e-9; }
};

// Preallocated, never reallocates while a thread computes: when it is full, neighbours are merged two by two.
class ChunkLog {
 public:
  explicit ChunkLog(std::size_t capacity);

  void clear();
  void push(const Chunk& chunk);
  const std::vector<Chunk>& chunks() const { return chunks_; }
  // How many times neighbours were merged since clear(): chunks pushed later should be twice as long each time.
  int merges() const { return merges_; }

 private:
  std::size_t capacity_;
  std::vector<Chunk> chunks_;
  int merges_ = 0;
};

// Number of first chunks of a phase that are never counted (cold caches, turbo ramp).
inline constexpr std::size_t kColdChunks = 2;

struct Throughput {
  std::uint64_t items = 0;
  double seconds = 0;  // of the chunks counted, not of the window
  double rate() const { return seconds > 0 ? static_cast<double>(items) / seconds : 0; }
};

// Items and time of the chunks wholly inside the window, without the cold ones and without the last of the log.
Throughput inside(const std::vector<Chunk>& chunks, const Window& window);

// True when the thread computed during the whole window: it began (cold chunks over) before it and ended after it.
bool covers(const std::vector<Chunk>& chunks, const Window& window);

// The part of time during which all threads were warm and computing; nothing when there is none.
std::optional<Window> common_window(const std::vector<const std::vector<Chunk>*>& logs);

// Sum over threads of items/s in `slices` equal parts of the window, chunks counted where their middle lies; slices in
// which some thread ended no chunk are left out.
std::vector<double> rates_over_time(const std::vector<const std::vector<Chunk>*>& logs, const Window& window,
                                    std::size_t slices);

}  // namespace elbowroom
