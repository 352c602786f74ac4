#include "test_programs.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <random>

#include "broadcast/test_loopback.hpp"
#include "process.hpp"

namespace elbowroom::taskflow {
namespace {

std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
  return bits ^ (bits >> 31);
}

void fill(std::byte* memory, std::size_t size, std::uint64_t seed) {
  for (std::size_t at = 0; at < size; ++at) memory[at] = static_cast<std::byte>(mixed(seed + at / 8) >> (8 * (at % 8)));
}

std::uint64_t digest(const std::byte* memory, std::size_t size) {
  std::uint64_t bits = size;
  for (std::size_t at = 0; at < size; ++at) bits = (bits ^ static_cast<std::uint64_t>(memory[at])) * 0x100000001B3U;
  return bits;
}

constexpr int kStuck = 50;  // rounds in which nothing happens

struct Argument {
  const Program* program;
  std::size_t number;
};

// What is written depends on all that is read, byte by byte.
void compute(void* const* buffers, const void* argument) {
  Argument own{};
  std::memcpy(&own, argument, sizeof own);
  const ProgramTask& task = own.program->tasks[own.number];
  std::uint64_t seed = own.number + 1;
  for (std::size_t i = 0; i < task.uses.size(); ++i) {
    if (task.uses[i].mode == Mode::kWrite) continue;
    seed = mixed(seed ^ digest(static_cast<std::byte*>(buffers[i]), own.program->data[task.uses[i].data].size));
  }
  for (std::size_t i = 0; i < task.uses.size(); ++i) {
    if (task.uses[i].mode == Mode::kRead) continue;
    fill(static_cast<std::byte*>(buffers[i]), own.program->data[task.uses[i].data].size, seed + 1000 * i);
  }
}

using Contents = std::vector<std::vector<std::byte>>;

Contents initial(const Program& program) {
  Contents contents;
  for (const ProgramData& data : program.data) {
    contents.emplace_back(data.size);
    fill(contents.back().data(), data.size, contents.size());
  }
  return contents;
}

Contents in_sequence(const Program& program) {
  Contents contents = initial(program);
  for (std::size_t number = 0; number < program.tasks.size(); ++number) {
    std::vector<void*> buffers;
    for (const Use& use : program.tasks[number].uses) buffers.push_back(contents[use.data].data());
    const Argument argument{&program, number};
    compute(buffers.data(), &argument);
  }
  return contents;
}

class CountedMemory : public Memory {
 public:
  std::byte* allocate(std::size_t size) override {
    ++copies;
    return Memory::allocate(size);
  }
  void free(std::byte* memory) override {
    --copies;
    Memory::free(memory);
  }

  int copies = 0;
};

class Runner : public Process {
 public:
  Runner(const Program& program, broadcast::Transport& transport, CountedMemory& memory)
      : Process(transport, program.transport, program.way, program.settings, memory),
        memory_(memory),
        program_(program),
        contents_(initial(program)) {
    for (std::size_t data = 0; data < program.data.size(); ++data) {
      graph().add(contents_[data].data(), program.data[data].size, program.data[data].owner);
    }
  }

  void run(Task& task) override { ready_.push_back(&task); }

  bool may_submit() {
    if (next_ == program_.tasks.size()) return false;
    return program_.window == 0 || graph().live() < program_.window;
  }
  bool may_compute() const { return !ready_.empty(); }

  // A full window must not keep back what others wait for; where nothing goes on, more is submitted than it allows.
  void submit_or_close(bool stuck) {
    if (may_submit() || (stuck && next_ < program_.tasks.size())) {
      submit();
    } else {
      graph().close();
    }
  }

  void submit() {
    const ProgramTask& task = program_.tasks[next_];
    if (task.expected > 0) graph().expect(task.uses.front().data, task.expected);
    const Argument argument{&program_, next_++};
    graph().submit(compute, std::as_bytes(std::span(&argument, 1)), task.uses, task.priority, task.rank);
  }

  void compute_one(std::size_t choice) {
    const auto chosen = ready_.begin() + static_cast<std::ptrdiff_t>(choice % ready_.size());
    Task& task = **chosen;
    ready_.erase(chosen);
    task.kernel(task.buffers.data(), task.argument.data());
    graph().finish(task);
  }

  bool over() { return next_ == program_.tasks.size() && graph().idle() && engine().idle(); }

  // What is wrong at the end; empty where nothing is.
  std::string fault(const Contents& expected, int rank) {
    for (std::size_t data = 0; data < expected.size(); ++data) {
      if (program_.data[data].owner == rank && contents_[data] != expected[data]) {
        return "data " + std::to_string(data) + " have other contents than in sequence";
      }
    }
    for (Data data = 0; data < program_.data.size(); ++data) graph().flush(data);
    return memory_.copies == 0 ? "" : std::to_string(memory_.copies) + " copies are left";
  }

 private:
  CountedMemory& memory_;
  const Program& program_;
  Contents contents_;
  std::size_t next_ = 0;
  std::deque<Task*> ready_;
};

}  // namespace

std::optional<std::string> run(const Program& program) {
  broadcast::LoopbackNetwork network(program.ranks, program.seed);
  std::deque<CountedMemory> memories;
  std::vector<std::unique_ptr<Runner>> runners;
  for (int rank = 0; rank < program.ranks; ++rank) {
    runners.push_back(std::make_unique<Runner>(program, network.endpoint(rank), memories.emplace_back()));
  }
  std::mt19937_64 random(program.seed);
  // Submitting, computing and messages take turns by chance, until nothing happens for long.
  for (int quiet = 0; quiet < 100; ++quiet) {
    for (const auto& runner : runners) {
      if (random() % 2 == 0) runner->submit_or_close(quiet > kStuck);
      if (runner->may_compute() && random() % 2 == 0) runner->compute_one(random());
      if (runner->progress() || runner->may_submit() || runner->may_compute()) quiet = 0;
    }
    if (const int rank = network.step(); rank >= 0) {
      runners[static_cast<std::size_t>(rank)]->progress();
      quiet = 0;
    }
  }
  const Contents expected = in_sequence(program);
  for (int rank = 0; rank < program.ranks; ++rank) {
    Runner& runner = *runners[static_cast<std::size_t>(rank)];
    const std::string fault = runner.over() ? runner.fault(expected, rank) : "does not come to an end";
    if (!fault.empty()) return "rank " + std::to_string(rank) + ": " + fault;
  }
  return std::nullopt;
}

Program random_program(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  Program program;
  program.seed = seed;
  program.ranks = 1 + static_cast<int>(below(7));
  program.window = below(3) == 0 ? 0 : 1 + below(6);
  program.settings.broadcasts = below(4) != 0;
  program.settings.early = below(4) != 0;
  program.settings.hold = below(2) == 0 ? 0 : 1 + below(8);
  program.transport.inline_limit = below(2) == 0 ? 64 : 4096;
  program.transport.late = static_cast<broadcast::Late>(below(3));
  program.way.segment = below(2) == 0 ? 0 : 100 + below(4000);
  program.way.two_trees = below(4) == 0;
  if (!program.way.two_trees) {
    constexpr const char* kTrees[] = {"flat", "chain", "binary", "binomial", "delegate-binary"};
    program.way.tree = broadcast::parse_tree(kTrees[below(5)]);
  }
  const std::size_t count = 1 + below(6);
  for (std::size_t i = 0; i < count; ++i) {
    program.data.push_back(
        {below(2) == 0 ? 8 : 1 + below(8000), static_cast<int>(below(static_cast<std::size_t>(program.ranks)))});
  }
  const std::size_t tasks = 1 + below(40);
  for (std::size_t i = 0; i < tasks; ++i) {
    ProgramTask task;
    std::vector<Data> all;
    for (Data data = 0; data < count; ++data) all.push_back(data);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(1 + below(std::min<std::size_t>(count, 3)));
    for (const Data data : all) {
      // Reads are frequent: they make broadcasts.
      constexpr Mode kModes[] = {Mode::kRead, Mode::kRead, Mode::kRead, Mode::kWrite, Mode::kReadWrite};
      task.uses.push_back({data, kModes[below(5)]});
    }
    task.priority = static_cast<int>(below(4));
    task.rank = static_cast<int>(below(static_cast<std::size_t>(program.ranks)));
    task.expected = below(8) == 0 ? 1 + below(4) : 0;
    program.tasks.push_back(std::move(task));
  }
  return program;
}

Program shrunk(Program program) {
  for (std::size_t i = 0; i < program.tasks.size();) {
    Program smaller = program;
    smaller.tasks.erase(smaller.tasks.begin() + static_cast<std::ptrdiff_t>(i));
    if (run(smaller)) {
      program = std::move(smaller);
    } else {
      ++i;
    }
  }
  return program;
}

std::string describe(const Program& program) {
  std::string text = "seed " + std::to_string(program.seed) + ", " + std::to_string(program.ranks) + " ranks, window " +
                     std::to_string(program.window) + "\n";
  for (std::size_t data = 0; data < program.data.size(); ++data) {
    text += "data " + std::to_string(data) + ": " + std::to_string(program.data[data].size) + " B on rank " +
            std::to_string(program.data[data].owner) + "\n";
  }
  for (const ProgramTask& task : program.tasks) {
    text += "task on rank " + std::to_string(task.rank) + ":";
    for (const Use& use : task.uses) {
      constexpr const char* kNames[] = {"", " reads ", " writes ", " changes "};
      text += kNames[static_cast<std::size_t>(use.mode)] + std::to_string(use.data);
    }
    if (task.expected > 0) text += ", " + std::to_string(task.expected) + " recipients announced";
    text += "\n";
  }
  return text;
}

}  // namespace elbowroom::taskflow
