#include "pmpi/counts.hpp"

#include <algorithm>

namespace elbowroom::pmpi {
namespace {

constexpr std::size_t kTags = 1 << 16;  // of a page
constexpr std::size_t kFew = 4096;      // as many take as much memory as a bit for each tag
constexpr std::uint8_t kLarge = 255;

// By a quarter: half of what a vector would double to is never used.
template <typename Number>
void insert(std::vector<Number>& numbers, std::size_t place, Number number) {
  if (numbers.size() == numbers.capacity()) {
    numbers.reserve(numbers.size() + numbers.size() / 4 + 4);
  }
  numbers.insert(numbers.begin() + static_cast<std::ptrdiff_t>(place), number);
}

}  // namespace

std::uint32_t Counts::get(int peer, int tag) const {
  const std::uint64_t key = page_key(peer, tag);
  if (last_ == nullptr || key != last_key_) {
    const auto page = pages_.find(key);
    if (page == pages_.end()) {
      return 0;
    }
    last_key_ = key;
    last_ = &page->second;
  }
  const std::uint8_t count = last_->get(static_cast<std::uint16_t>(tag));
  return count < kLarge ? count : large_.at(pair_key(peer, tag));
}

void Counts::set(int peer, int tag, std::uint32_t count) {
  if (count >= kLarge) {
    large_[pair_key(peer, tag)] = count;
  }
  pages_[page_key(peer, tag)].set(static_cast<std::uint16_t>(tag),
                                  static_cast<std::uint8_t>(std::min<std::uint32_t>(count, kLarge)));
}

std::uint8_t Counts::Page::get(std::uint16_t tag) const {
  if (dense_) {
    return counts_.empty() ? bits_[tag / 64U] >> (tag % 64U) & 1U : counts_[tag];
  }
  const auto place = std::lower_bound(tags_.begin(), tags_.end(), tag);
  if (place == tags_.end() || *place != tag) {
    return 0;
  }
  return counts_.empty() ? 1 : counts_[static_cast<std::size_t>(place - tags_.begin())];
}

void Counts::Page::set(std::uint16_t tag, std::uint8_t count) {
  if (!dense_) {
    const auto place = static_cast<std::size_t>(std::lower_bound(tags_.begin(), tags_.end(), tag) - tags_.begin());
    const bool is_there = place < tags_.size() && tags_[place] == tag;
    if (is_there || tags_.size() < kFew) {
      if (!is_there) {
        insert(tags_, place, tag);
        if (!counts_.empty()) {
          insert(counts_, place, count);
        }
      }
      if (counts_.empty() && count != 1) {
        counts_.assign(tags_.size(), 1);
      }
      if (!counts_.empty()) {
        counts_[place] = count;
      }
      return;
    }
    make_dense();
  }
  if (counts_.empty() && count != 1) {
    counts_.resize(kTags);
    for (std::size_t one = 0; one < kTags; ++one) {
      counts_[one] = bits_[one / 64] >> (one % 64) & 1U;
    }
    std::vector<std::uint64_t>().swap(bits_);
  }
  if (counts_.empty()) {
    bits_[tag / 64U] |= std::uint64_t{1} << (tag % 64U);
  } else {
    counts_[tag] = count;
  }
}

void Counts::Page::make_dense() {
  if (counts_.empty()) {
    bits_.resize(kTags / 64);
    for (const std::uint16_t tag : tags_) {
      bits_[tag / 64U] |= std::uint64_t{1} << (tag % 64U);
    }
  } else {
    std::vector<std::uint8_t> all(kTags);
    for (std::size_t one = 0; one < tags_.size(); ++one) {
      all[tags_[one]] = counts_[one];
    }
    counts_.swap(all);
  }
  std::vector<std::uint16_t>().swap(tags_);
  dense_ = true;
}

}  // namespace elbowroom::pmpi
