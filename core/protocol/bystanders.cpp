#include "protocol/bystanders.hpp"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "protocol/touched_array.hpp"

namespace elbowroom {

struct Bystanders::Slot {
  Slot(int core, const std::function<void(int)>& bind) : thread(core, bind) {}

  void run(const Bystanders& orders);

  BoundThread thread;
  std::optional<TouchedArray> array;
  alignas(64) std::atomic<std::uint64_t> obeys{0};  // the order that is carried out
};

// An order is obeyed once it is certain: a sweep after the first, rest at once.
void Bystanders::Slot::run(const Bystanders& orders) {
  for (std::uint64_t current = 0; !orders.quit_.load(std::memory_order_acquire);) {
    const std::uint64_t generation = orders.generation_.load(std::memory_order_acquire);
    if (generation == current) {
      sched_yield();
      continue;
    }
    current = generation;
    const bool sweeping = orders.sweeping_;
    const std::size_t bytes = orders.bytes_;
    if (sweeping) {
      array->touch(bytes);
    }
    obeys.store(current, std::memory_order_release);
    while (sweeping && orders.generation_.load(std::memory_order_relaxed) == current) {
      array->touch(bytes);
    }
  }
}

Bystanders::Bystanders(std::function<void(int)> bind) : bind_(std::move(bind)) {}

Bystanders::~Bystanders() {
  if (started_) {
    stop();
  }
}

void Bystanders::use(const std::vector<int>& cores, std::size_t bytes, int node, bool writes) {
  for (const auto& slot : all_) {
    slot->array.reset();
  }
  used_.clear();
  for (const int core : cores) {
    auto it = std::find_if(all_.begin(), all_.end(), [core](const auto& slot) { return slot->thread.core() == core; });
    if (it == all_.end()) {
      all_.push_back(std::make_unique<Slot>(core, bind_));
      it = all_.end() - 1;
    }
    used_.push_back(it->get());
  }
  for (Slot* slot : used_) {
    slot->thread.post([slot, bytes, node, writes] { slot->array.emplace(bytes, node, writes); });
  }
  wait_for_all(used_);
}

void Bystanders::start(PhaseObserver& observer) {
  quit_.store(false);
  generation_.store(0);
  sweeping_ = false;
  started_ = true;
  for (Slot* slot : used_) {
    slot->obeys.store(0);
    slot->thread.post([this, slot, &observer] {
      observer.join();
      slot->run(*this);
      observer.leave();
    });
  }
}

void Bystanders::order(bool sweeping, std::size_t bytes) {
  sweeping_ = sweeping;
  bytes_ = bytes;
  const std::uint64_t generation = generation_.fetch_add(1, std::memory_order_release) + 1;
  for (const Slot* slot : used_) {
    while (slot->obeys.load(std::memory_order_acquire) != generation) {
      sched_yield();
    }
  }
}

void Bystanders::sweep(std::size_t bytes) { order(true, bytes); }

bool Bystanders::rest() {
  const bool swept = sweeping_;
  order(false, 0);
  return swept;
}

bool Bystanders::stop() {
  sweeping_ = false;
  quit_.store(true, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  started_ = false;
  bool holds = true;
  for (Slot* slot : used_) {
    slot->thread.wait();
    holds = holds && slot->array->holds();
  }
  return holds;
}

std::size_t Bystanders::bytes_on(int node) const {
  std::size_t bytes = 0;
  for (const auto& slot : all_) {
    bytes += slot->array && slot->array->node() == node ? slot->array->size() : 0;
  }
  return bytes;
}

std::vector<PageReport> Bystanders::pages() const {
  std::vector<PageReport> reports;
  for (const Slot* slot : used_) {
    reports.push_back(slot->array->verify());
  }
  return reports;
}

}  // namespace elbowroom
