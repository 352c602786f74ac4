// Operations that are not complete yet, and persistent ones, by their requests. No MPI here: handles are numbers.
//
// MPI may give the handle of an operation to another one as soon as the first is complete: with several threads, before the
// thread that completed it has looked it up. Both are then there with one key. A thread that waits for a request finds the
// latest operation that was there when its call began: later ones had their handle from the completion of that one.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "pmpi/matching.hpp"

namespace elbowroom::pmpi {

template <typename Operation>
class OperationTable {
 public:
  struct Entry {
    std::uintptr_t key = 0;
    std::uint64_t moment = 0;
    Entry* next = nullptr;  // of the same bucket, later ones first
    bool used = false;
    Operation operation;
  };

  // The time of the table: how many operations were added so far. It and whether there are any may be read without the lock
  // for operations whose requests this thread knows.
  std::uint64_t moment() const { return added_.load(std::memory_order_relaxed); }
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  // The latest operation with this key that was added up to `moment`; NULL where there is none.
  Entry* find(std::uintptr_t key, std::uint64_t moment) {
    if (empty()) {
      return nullptr;
    }
    Entry* entry = buckets_[bucket(key)];
    while (entry != nullptr && (entry->key != key || entry->moment > moment)) {
      entry = entry->next;
    }
    return entry;
  }
  Entry* find(std::uintptr_t key) { return find(key, moment()); }

  Operation& add(std::uintptr_t key, Operation operation) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == buckets_.size()) {
      grow();
    }
    if (free_ == nullptr) {
      free_ = &entries_.emplace_back();
    }
    Entry& entry = *std::exchange(free_, free_->next);
    count_.store(count + 1, std::memory_order_relaxed);
    added_.store(moment() + 1, std::memory_order_relaxed);
    entry.operation = std::move(operation);
    entry.key = key;
    entry.moment = moment();
    entry.used = true;
    link(entry);
    return entry.operation;
  }

  // No call finds it any more; it stays as it is until it is released.
  void unlink(Entry* entry) {
    Entry** place = &buckets_[bucket(entry->key)];
    while (*place != entry) {
      place = &(*place)->next;
    }
    *place = entry->next;
    count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  void release(Entry* entry) {
    entry->operation = Operation{};
    entry->used = false;
    entry->next = std::exchange(free_, entry);
  }
  Operation remove(Entry* entry) {
    unlink(entry);
    Operation operation = std::move(entry->operation);
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
  std::size_t bucket(std::uintptr_t key) const { return Mixed{}(key) & (buckets_.size() - 1); }
  void link(Entry& entry) {
    Entry*& first = buckets_[bucket(entry.key)];
    entry.next = std::exchange(first, &entry);
  }
  void grow() {
    const std::size_t size = buckets_.size();
    std::vector<Entry*> before(size == 0 ? 64 : 2 * size);
    before.swap(buckets_);
    // Of one bucket become two, each in the order that it had.
    for (std::size_t i = 0; i < size; ++i) {
      Entry** ends[] = {&buckets_[i], &buckets_[i + size]};
      for (Entry* entry = before[i]; entry != nullptr;) {
        Entry* const next = std::exchange(entry->next, nullptr);
        Entry**& end = ends[bucket(entry->key) == i ? 0 : 1];
        *end = entry;
        end = &entry->next;
        entry = next;
      }
    }
  }

  std::deque<Entry> entries_;
  std::vector<Entry*> buckets_;  // a power of two of them
  Entry* free_ = nullptr;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> added_{0};
};

}  // namespace elbowroom::pmpi
