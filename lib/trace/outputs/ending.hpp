// Signals that ask the program to end: what is half-written is removed first.
#pragma once

#include <exception>

namespace elbowroom::trace {

class EndRequested : public std::exception {
 public:
  explicit EndRequested(int signal) : signal_(signal) {}
  int signal() const { return signal_; }
  const char* what() const noexcept override { return "ended by a signal"; }

 private:
  int signal_;
};

// From here on SIGINT, SIGTERM and SIGHUP (unless they are ignored) only set a flag, and end a call that blocks.
void defer_ending_signals();
// Throws EndRequested once such a signal has come.
void check_end_requested();

}  // namespace elbowroom::trace
