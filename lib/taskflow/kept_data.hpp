// Data that an executor keeps: which handle belongs to which memory of a graph. A block of memory has one handle as long as it is
// used, for all versions of the data in it.
#pragma once

#include <memory>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "elbowroom/taskflow.h"
#include "graph.hpp"

namespace elbowroom::taskflow {

class KeptData : public Memory {
 public:
  KeptData(const elbow_taskflow_handles& functions, void* state) : functions_(functions), state_(state) {}
  ~KeptData() override {
    for (const auto& [memory, one] : handles_) functions_.remove(state_, one.handle, one.own ? 1 : 0);
  }

  // Memory of the program.
  void add(void* memory, std::size_t size) { add(memory, size, true); }

  // Copies of other processes' data.
  std::byte* allocate(std::size_t size) override {
    std::byte* const memory = Memory::allocate(size);
    add(memory, size, false);
    return memory;
  }
  void free(std::byte* memory) override {
    functions_.remove(state_, handles_.extract(memory).mapped().handle, 0);
    Memory::free(memory);
  }

  int run(const Task& task, void (*body)(void*, void* const*), void (*over)(void*), void* argument) {
    std::vector<void*> handles;
    std::vector<int> modes;
    for (void* const buffer : task.buffers) handles.push_back(handles_.at(buffer).handle);
    for (const Mode mode : task.modes) modes.push_back(static_cast<int>(mode));
    return functions_.run(state_, task.priority, body, over, argument, handles.data(), modes.data(), modes.size());
  }

  void acquire(void* memory, int mode) {
    if (functions_.acquire(state_, handles_.at(memory).handle, mode) == 0) return;
    throw std::runtime_error("executor: does not give data back for a message; see what it says of itself");
  }
  void release(void* memory) { functions_.release(state_, handles_.at(memory).handle); }

  // No task runs: the program may read and write its memory until the next submission.
  void bring_home() {
    for (const auto& [memory, one] : handles_) {
      if (!one.own) continue;
      acquire(memory, ELBOW_TASKFLOW_READ_WRITE);
      release(memory);
    }
  }

 private:
  struct Kept {
    void* handle;
    bool own;  // of the program, not a copy
  };

  void add(void* memory, std::size_t size, bool own) {
    void* const handle = functions_.add(state_, memory, size);
    if (handle == nullptr) throw std::runtime_error("executor: takes no data; see what it says of itself");
    handles_[memory] = {handle, own};
  }

  elbow_taskflow_handles functions_;
  void* state_;
  std::unordered_map<void*, Kept> handles_;
};

}  // namespace elbowroom::taskflow
