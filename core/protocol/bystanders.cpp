#include "protocol/bystanders.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "protocol/touched_array.hpp"

namespace elbowroom {
namespace {

// An object in memory that processes made after it share.
template <typename Value>
std::shared_ptr<Value> shared_between_processes() {
  void* memory = mmap(nullptr, sizeof(Value), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  return {new (memory) Value, [](Value* value) {
            value->~Value();
            munmap(value, sizeof(Value));
          }};
}

}  // namespace

struct Bystanders::Orders {
  bool sweeping = false;                     // what is ordered, as
  std::size_t bytes = 0;                     // is how far a sweep goes
  std::atomic<std::uint64_t> generation{0};  // of orders; what it orders is written before
  std::atomic<bool> quit{false};

  // An order is obeyed once it is certain: a sweep after the first, rest at once.
  void obey(TouchedArray& array, std::atomic<std::uint64_t>& obeys) const {
    for (std::uint64_t current = 0; !quit.load(std::memory_order_acquire);) {
      const std::uint64_t wanted = generation.load(std::memory_order_acquire);
      if (wanted == current) {
        sched_yield();
        continue;
      }
      current = wanted;
      const bool now = sweeping;
      const std::size_t length = bytes;
      if (now) {
        array.touch(length);
      }
      obeys.store(current, std::memory_order_release);
      while (now && generation.load(std::memory_order_relaxed) == current) {
        array.touch(length);
      }
    }
  }
};

struct Bystanders::Thread {
  Thread(int core, const std::function<void(int)>& bind) : thread(core, bind) {}

  BoundThread thread;
  std::optional<TouchedArray> array;
  alignas(64) std::atomic<std::uint64_t> obeys{0};  // the order that is carried out
};

// Made by fork: it computes on memory of its own, and never calls the MPI that it inherited.
struct Bystanders::Process {
  struct Told {
    alignas(64) std::atomic<std::uint64_t> obeys{0};
    std::atomic<int> state{0};  // 1: its array is there, -1: it has ended with `message`
    std::array<char, 512> message{};
    bool holds = true;
    PageReport pages;  // without its text, which is in `message`
  };

  std::shared_ptr<Told> told = shared_between_processes<Told>();
  pid_t number = -1;
  int node = -1;
  std::size_t bytes = 0;

  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (number > 0) {
      kill(number, SIGKILL);
    }
    end();
  }

  void say(const std::string& text) const {
    std::strncpy(told->message.data(), text.c_str(), told->message.size() - 1);
  }

  [[noreturn]] void run(const Orders& orders, const std::function<void(int)>& bind, int core, bool writes) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      bind(core);
      TouchedArray array(bytes, node, writes);
      told->state.store(1, std::memory_order_release);
      orders.obey(array, told->obeys);
      told->holds = array.holds();
      PageReport pages = array.verify();
      say(std::exchange(pages.unknown, ""));
      told->pages = pages;
      told->state.store(-1, std::memory_order_release);
      _exit(0);
    } catch (const std::exception& error) {
      say(error.what());
      told->state.store(-1, std::memory_order_release);
      _exit(1);
    }
  }

  // False when it is gone though nothing has ended it.
  bool lives() {
    number = number > 0 && waitpid(number, nullptr, WNOHANG) == 0 ? number : -1;
    return number > 0;
  }
  void end() {
    while (number > 0 && waitpid(number, nullptr, 0) < 0 && errno == EINTR) {
    }
    number = -1;
  }
};

Bystanders::Bystanders(std::function<void(int)> bind)
    : bind_(std::move(bind)), orders_(shared_between_processes<Orders>()) {}

Bystanders::~Bystanders() {
  if (started_) {
    stop();
  }
}

void Bystanders::fork_all(const std::vector<int>& cores, std::size_t bytes, int node, bool writes) {
  orders_->quit.store(false);
  orders_->generation.store(0);
  for (const int core : cores) {
    auto& process = *processes_.emplace_back(std::make_unique<Process>());
    process.node = node;
    process.bytes = bytes;
    process.number = fork();
    if (process.number == 0) {
      process.run(*orders_, bind_, core, writes);
    }
    if (process.number < 0) {
      throw std::runtime_error(std::string("a bystander cannot be started: ") + std::strerror(errno));
    }
  }
  for (const auto& process : processes_) {
    while (process->told->state.load(std::memory_order_acquire) == 0 && process->lives()) {
      sched_yield();
    }
    if (process->told->state.load(std::memory_order_acquire) != 1) {
      throw std::runtime_error(process->told->message.data());
    }
  }
}

void Bystanders::use(const std::vector<int>& cores, std::size_t bytes, int node, bool writes, bool processes) {
  for (const auto& thread : all_) {
    thread->array.reset();
  }
  used_.clear();
  processes_.clear();
  if (processes) {
    fork_all(cores, bytes, node, writes);
    return;
  }
  for (const int core : cores) {
    auto it = std::find_if(all_.begin(), all_.end(), [core](const auto& slot) { return slot->thread.core() == core; });
    if (it == all_.end()) {
      all_.push_back(std::make_unique<Thread>(core, bind_));
      it = all_.end() - 1;
    }
    used_.push_back(it->get());
  }
  for (Thread* slot : used_) {
    slot->thread.post([slot, bytes, node, writes] { slot->array.emplace(bytes, node, writes); });
  }
  wait_for_all(used_);
}

void Bystanders::start(PhaseObserver& observer) {
  started_ = true;
  if (!processes_.empty()) {
    return;  // they rest since they are there
  }
  orders_->quit.store(false);
  orders_->generation.store(0);
  orders_->sweeping = false;
  for (Thread* slot : used_) {
    slot->obeys.store(0);
    slot->thread.post([this, slot, &observer] {
      observer.join();
      orders_->obey(*slot->array, slot->obeys);
      observer.leave();
    });
  }
}

void Bystanders::order(bool sweeping, std::size_t bytes) {
  orders_->sweeping = sweeping;
  orders_->bytes = bytes;
  const std::uint64_t generation = orders_->generation.fetch_add(1, std::memory_order_release) + 1;
  for (const Thread* slot : used_) {
    while (slot->obeys.load(std::memory_order_acquire) != generation) {
      sched_yield();
    }
  }
  for (const auto& process : processes_) {
    while (process->told->obeys.load(std::memory_order_acquire) != generation) {
      if (!process->lives()) {
        throw std::runtime_error("a bystander's process has ended");
      }
      sched_yield();
    }
  }
}

void Bystanders::sweep(std::size_t bytes) { order(true, bytes); }

bool Bystanders::rest() {
  const bool swept = orders_->sweeping;
  order(false, 0);
  return swept;
}

bool Bystanders::stop() {
  orders_->sweeping = false;
  orders_->quit.store(true, std::memory_order_release);
  orders_->generation.fetch_add(1, std::memory_order_release);
  started_ = false;
  bool holds = true;
  for (Thread* slot : used_) {
    slot->thread.wait();
    holds = holds && slot->array->holds();
  }
  for (const auto& process : processes_) {
    process->end();
    holds = holds && process->told->holds && process->told->state.load() == -1;
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
  for (const Thread* slot : used_) {
    reports.push_back(slot->array->verify());
  }
  for (const auto& process : processes_) {
    PageReport report = process->told->pages;
    report.unknown = process->told->message.data();
    reports.push_back(report);
  }
  return reports;
}

}  // namespace elbowroom
