#include "nic/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <system_error>

#include "nic/next.hpp"

namespace elbowroom::nic {
namespace {

std::atomic<Process*> g_process{nullptr};

void say(const std::string& sentence) {
  const std::string line = "elbow_nic: " + sentence + "\n";
  if (next().write(STDERR_FILENO, line.data(), line.size()) < 0) {
    return;  // nobody reads it
  }
}

void forked() {
  if (Process* const process = g_process) {
    process->sockets.begin(process->settings.node);
    process->transfers.forget();
  }
}

// A process that shall be limited and is not would measure something else: it ends.
__attribute__((constructor)) void start() {
  Settings settings = read_settings(getenv);
  if (!settings.error.empty()) {
    say("error: " + settings.error);
    _exit(2);
  }
  if (settings.name.empty()) {
    return;
  }
  auto* const process = new Process;
  process->settings = settings;
  try {
    process->board.attach(settings.name, settings.nic);
    process->settings.nic = process->board.nic();
    process->transfers.open(process->settings);
  } catch (const std::system_error& error) {
    say(std::string("error: ") + error.what());
    _exit(1);
  }
  if (process->settings.nic.bandwidth != settings.nic.bandwidth) {
    say("warning: " + settings.name + " is in use with " + std::to_string(process->settings.nic.bandwidth) +
        " bytes/s; ELBOW_NIC_BANDWIDTH of rank " + std::to_string(settings.rank) + " is ignored");
  }
  process->sockets.begin(settings.node);
  pthread_atfork(nullptr, nullptr, forked);
  g_process = process;
}

// Not freed: other threads may be in a call.
__attribute__((destructor)) void stop() {
  if (Process* const process = g_process.exchange(nullptr)) {
    process->sockets.end();
    process->board.detach();
  }
}

}  // namespace

Process* limited() { return g_process.load(std::memory_order_acquire); }

}  // namespace elbowroom::nic
