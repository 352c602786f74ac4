// Operations that are not complete yet, and persistent ones, by their requests. No MPI here: handles are numbers.
//
// An operation has two handles where those of Fortran are other numbers, which only MPI can turn into those of C, and only
// before the operation is complete. A call of Fortran that completes some of a thousand requests has no time for that.
//
// MPI may give the handle of an operation to another one as soon as the first is complete: with several threads, before the
// thread that completed it has looked it up. Both are then there with one key. A thread that waits for a request finds the
// latest operation that was there when its call began: later ones had their handle from the completion of that one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "pmpi/matching.hpp"

namespace elbowroom::pmpi {

enum class Language { c, fortran };

// A handle of one of the two; `key` is not 0.
struct Handle {
  Language language;
  std::uintptr_t key;
};

template <typename Operation>
class OperationTable {
 public:
  struct Entry {
    std::uint64_t moment = 0;
    bool used = false;
    std::array<std::uintptr_t, 2> keys{};  // by language; 0: none
    std::array<Entry*, 2> next{};          // of the same bucket, later ones first
    Operation operation;
  };

  // The time of the table: how many operations were added so far. It and whether there are any may be read without the lock
  // for operations whose requests this thread knows.
  std::uint64_t moment() const { return added_.load(std::memory_order_relaxed); }
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  // The latest operation with this handle that was added up to `moment`; NULL where there is none.
  Entry* find(Handle handle, std::uint64_t moment) {
    const auto which = static_cast<std::size_t>(handle.language);
    if (empty()) {
      return nullptr;
    }
    Entry* entry = buckets_[which][bucket(handle.key)];
    while (entry != nullptr && (entry->keys[which] != handle.key || entry->moment > moment)) {
      entry = entry->next[which];
    }
    return entry;
  }
  Entry* find(Handle handle) { return find(handle, moment()); }

  // An entry for an operation that is about to be posted: no call finds it before it is added. To be added or released.
  Entry& make() {
    if (free_ == nullptr) {
      free_ = &entries_.emplace_back();
    }
    return *std::exchange(free_, free_->next[0]);
  }

  void add(Entry& entry, std::uintptr_t c, std::uintptr_t fortran = 0) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == buckets_[0].size()) {
      grow();
    }
    count_.store(count + 1, std::memory_order_relaxed);
    added_.store(moment() + 1, std::memory_order_relaxed);
    entry.moment = moment();
    entry.used = true;
    entry.keys = {c, 0};
    link<0>(entry);
    name(entry, fortran);
  }

  // The operation's handle in Fortran, where it has one.
  void name(Entry& entry, std::uintptr_t fortran) {
    if (fortran != 0 && entry.keys[1] == 0) {
      entry.keys[1] = fortran;
      link<1>(entry);
    }
  }

  // No call finds it any more; it stays as it is until it is released.
  void unlink(Entry& entry) {
    unlink<0>(entry);
    if (entry.keys[1] != 0) {
      unlink<1>(entry);
    }
    count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  void release(Entry& entry) {
    std::destroy_at(&entry.operation);
    std::construct_at(&entry.operation);
    entry.used = false;
    entry.next[0] = std::exchange(free_, &entry);
  }
  Operation remove(Entry& entry) {
    unlink(entry);
    Operation operation = std::move(entry.operation);
    release(entry);
    return operation;
  }

  template <typename Visit>
  void for_each(Visit visit) {
    for (Entry& entry : entries_) {
      if (entry.used) {
        visit(entry.operation);
      }
    }
  }

 private:
  std::size_t bucket(std::uintptr_t key) const { return Mixed{}(key) & (buckets_[0].size() - 1); }
  template <std::size_t which>
  void link(Entry& entry) {
    Entry** place = &buckets_[which][bucket(entry.keys[which])];
    while (*place != nullptr && (*place)->moment > entry.moment) {
      place = &(*place)->next[which];
    }
    entry.next[which] = std::exchange(*place, &entry);
  }
  template <std::size_t which>
  void unlink(Entry& entry) {
    Entry** place = &buckets_[which][bucket(entry.keys[which])];
    while (*place != &entry) {
      place = &(*place)->next[which];
    }
    *place = entry.next[which];
  }
  void grow() {
    const std::size_t size = buckets_[0].empty() ? 64 : 2 * buckets_[0].size();
    std::array<std::vector<Entry*>, 2> larger{std::vector<Entry*>(size), std::vector<Entry*>(size)};
    const auto before = std::exchange(buckets_, std::move(larger));
    relink<0>(before[0]);
    relink<1>(before[1]);
  }
  template <std::size_t which>
  void relink(const std::vector<Entry*>& before) {
    for (Entry* entry : before) {
      while (entry != nullptr) {
        Entry* const next = entry->next[which];
        link<which>(*entry);
        entry = next;
      }
    }
  }

  std::deque<Entry> entries_;
  std::array<std::vector<Entry*>, 2> buckets_;  // a power of two of them, as many of both
  Entry* free_ = nullptr;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> added_{0};
};

}  // namespace elbowroom::pmpi
