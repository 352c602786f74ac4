#include "nic/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <string>

#include "nic/said.hpp"

namespace elbowroom::nic {
namespace {

std::atomic<Process*> g_process{nullptr};

void forked() {
  if (Process* const process = g_process) {
    process->number = getpid();
    process->board.attach_again();
    process->sockets.begin(process->settings.node);
    process->transfers.forget();
  }
}

__attribute__((constructor)) void start() {
  Settings settings = read_settings(getenv);
  if (!settings.error.empty()) {
    give_up(settings.error, 2);
  }
  if (settings.name.empty()) {
    return;
  }
  auto* const process = new Process;
  process->number = getpid();
  process->settings = settings;
  try {
    process->board.attach(settings.name, settings.nic);
    process->settings.nic = process->board.nic();
    process->transfers.open(process->settings);
  } catch (const std::exception& error) {
    give_up(error.what());
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
  if (Process* const process = limited()) {
    g_process = nullptr;
    process->sockets.end();
    process->board.detach();
  }
}

}  // namespace

Process* limited() {
  Process* const process = g_process.load(std::memory_order_acquire);
  return process == nullptr || process->number == getpid() ? process : nullptr;
}

}  // namespace elbowroom::nic
