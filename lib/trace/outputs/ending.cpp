#include "trace/outputs/ending.hpp"

#include <csignal>
#include <initializer_list>

namespace elbowroom::trace {
namespace {

volatile std::sig_atomic_t requested = 0;

void request_end(int signal) { requested = signal; }

}  // namespace

void defer_ending_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      action = {};
      action.sa_handler = request_end;  // without SA_RESTART: a blocked write ends with EINTR
      sigaction(signal, &action, nullptr);
    }
  }
}

void check_end_requested() {
  if (requested != 0) {
    throw EndRequested(requested);
  }
}

}  // namespace elbowroom::trace
