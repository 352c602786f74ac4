// How many messages there were of each peer and tag: exact, for ever, and small also where each message has a tag of its own
// (1 bit to 2.5 B for a tag that was used once; a byte more for others). No MPI here.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace elbowroom::pmpi {

inline std::uint64_t pair_key(int first, int second) {
  return (std::uint64_t{static_cast<std::uint32_t>(first)} << 32) | static_cast<std::uint32_t>(second);
}

// Ranks and tags are small: without mixing, most keys would meet in few buckets.
struct Mixed {
  std::size_t operator()(std::uint64_t key) const {
    key *= 0x9E3779B97F4A7C15U;
    return static_cast<std::size_t>(key ^ (key >> 32));
  }
};

class Counts {
 public:
  std::uint32_t get(int peer, int tag) const;
  // `count` is 1 or more, and no less than before.
  void set(int peer, int tag, std::uint32_t count);
  std::uint32_t next(int peer, int tag) {
    const std::uint32_t count = get(peer, tag) + 1;
    set(peer, tag, count);
    return count;
  }

 private:
  // 65,536 neighbouring tags of one peer. Few of them are a list, many a bit each; counts other than 1 need a byte each.
  class Page {
   public:
    std::uint8_t get(std::uint16_t tag) const;
    void set(std::uint16_t tag, std::uint8_t count);

   private:
    void make_dense();

    std::vector<std::uint16_t> tags_;   // ascending; not used once dense
    std::vector<std::uint64_t> bits_;   // dense, while all counts are 0 or 1
    std::vector<std::uint8_t> counts_;  // of tags_ or, dense, of all tags; empty: 1
    bool dense_ = false;
  };

  static std::uint64_t page_key(int peer, int tag) {
    return pair_key(peer, static_cast<int>(static_cast<std::uint32_t>(tag) >> 16));
  }

  // NULL where there is none.
  Page* find_page(std::uint64_t key) const;

  mutable std::unordered_map<std::uint64_t, Page, Mixed> pages_;
  std::unordered_map<std::uint64_t, std::uint32_t, Mixed> large_;  // counts of 255 and more
  // The page that was used last; pages stay where they are.
  mutable std::uint64_t last_key_ = 0;
  mutable Page* last_ = nullptr;
};

}  // namespace elbowroom::pmpi
