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

// The first of ascending tags that is not below `tag`: near where it is if they are spread evenly, as a search from the middle
// misses the cache at each step.
std::size_t place_of(const std::vector<std::uint16_t>& tags, std::uint16_t tag) {
  std::size_t low = 0;
  std::size_t high = tags.size();
  const std::size_t guess = high * tag / kTags;
  for (std::size_t step = 16; step < high; step *= 4) {
    const std::size_t from = guess > step ? guess - step : 0;
    const std::size_t to = guess + step;
    if ((from == 0 || tags[from - 1] < tag) && (to >= high || tags[to] >= tag)) {
      low = from;
      high = to < high ? to : high;
      break;
    }
  }
  const auto begin = tags.begin();
  return static_cast<std::size_t>(
      std::lower_bound(begin + static_cast<std::ptrdiff_t>(low), begin + static_cast<std::ptrdiff_t>(high), tag) -
      begin);
}

}  // namespace

Counts::Page* Counts::find_page(std::uint64_t key) const {
  if (last_ == nullptr || key != last_key_) {
    const auto page = pages_.find(key);
    if (page == pages_.end()) {
      return nullptr;
    }
    last_key_ = key;
    last_ = &page->second;
  }
  return last_;
}

std::uint32_t Counts::get(int peer, int tag) const {
  const Page* const page = find_page(page_key(peer, tag));
  if (page == nullptr) {
    return 0;
  }
  const std::uint8_t count = page->get(static_cast<std::uint16_t>(tag));
  return count < kLarge ? count : large_.at(pair_key(peer, tag));
}

void Counts::set(int peer, int tag, std::uint32_t count) {
  if (count >= kLarge) {
    large_[pair_key(peer, tag)] = count;
  }
  const std::uint64_t key = page_key(peer, tag);
  Page* const known = find_page(key);
  Page& page = known != nullptr ? *known : pages_[key];
  page.set(static_cast<std::uint16_t>(tag), static_cast<std::uint8_t>(std::min<std::uint32_t>(count, kLarge)));
}

std::uint8_t Counts::Page::get(std::uint16_t tag) const {
  if (dense_) {
    return counts_.empty() ? bits_[tag / 64U] >> (tag % 64U) & 1U : counts_[tag];
  }
  const std::size_t place = place_of(tags_, tag);
  if (place == tags_.size() || tags_[place] != tag) {
    return 0;
  }
  return counts_.empty() ? 1 : counts_[place];
}

void Counts::Page::set(std::uint16_t tag, std::uint8_t count) {
  if (!dense_) {
    const std::size_t place = place_of(tags_, tag);
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
