// The library's own thread, of the policies that have one: it looks after the rings again and again, until it is stopped.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "trace/refusal.hpp"

namespace elbowroom::trace {

// The system has no thread for a helper.
struct NoThread : Refusal {
  explicit NoThread(int error);
};

class Helper {
 public:
  // `work` says whether there was any: then it is called again sooner; it throws nothing. `core`: a core's number, or NULL.
  // Refusal where there is no such core, NoThread.
  Helper(std::function<bool()> work, const char* core);
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // While it is held it sleeps, and does not wake at all.
  void hold(bool held);

 private:
  void run();
  void stop();

  std::function<bool()> work_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  bool held_ = false;
  std::thread thread_;
};

}  // namespace elbowroom::trace
