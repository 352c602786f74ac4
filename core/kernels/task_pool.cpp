#include "kernels/task_pool.hpp"

#include <algorithm>
#include <utility>

namespace elbowroom {

void Backoff::wait() {
  for (std::uint32_t i = 0; i < next_; ++i) asm volatile("nop");
  next_ = std::min(most_, next_ > most_ / 2 ? most_ : next_ * 2);
}

void TaskPool::push(std::shared_ptr<Task> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
}

std::shared_ptr<Task> TaskPool::poll(Seat& seat) {
  std::unique_lock lock(mutex_);
  if (paused_) {
    ++seat.waits;
    resumed_.wait_for(lock, kPausedWait, [this] { return !paused_; });
    if (paused_) return nullptr;
  }
  ++seat.polls;
  return front();
}

std::shared_ptr<Task> TaskPool::take() {
  const std::lock_guard lock(mutex_);
  return front();
}

std::shared_ptr<Task> TaskPool::front() {
  if (tasks_.empty()) return nullptr;
  std::shared_ptr<Task> task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

void TaskPool::pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}

void TaskPool::resume() {
  {
    const std::lock_guard lock(mutex_);
    paused_ = false;
  }
  resumed_.notify_all();
}

}  // namespace elbowroom
