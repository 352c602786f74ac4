// Touches memory as the cache model thinks an exchange does, on one core and in one process, so that valgrind's simulators
// can count its misses; and tells what the model counts of the same addresses. benchmarks/caches.py compares them.
//
//   cache_pattern run ROUNDS CASE...      prints addresses (base, largest size), then performs each case ROUNDS times
//   cache_pattern model D1 LL ROUNDS CASE... <ADDRESSES      prints misses of D1 and LL: of one message of each case in the
//       steady state, then of all accesses of `run` from empty caches; D1 and LL: BYTES,WAYS,LINE
//   CASE: WHO:ACCESS:BYTES, as sender:write:65536
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "caches/model.hpp"

using namespace elbowroom;

namespace {

constexpr std::uint64_t message = 4096;
constexpr std::uint64_t library = 8192;
constexpr std::uint64_t line = 64;
constexpr std::uint64_t page = 4096;

struct Case {
  Touching touching;
  std::uint64_t bytes = 0;
};

std::uint64_t number_in(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::invalid_argument(fmt::format("'{}' is not a number", text));
  }
  return number;
}

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == mark) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

Case read_case(const std::string& text) {
  const auto parts = split(text, ':');
  if (parts.size() != 3) {
    throw std::invalid_argument(fmt::format("'{}' is not WHO:ACCESS:BYTES", text));
  }
  Case one;
  one.touching.sender = parts[0] == "sender" || parts[0] == "both";
  one.touching.receiver = parts[0] == "receiver" || parts[0] == "both";
  one.touching.write = parts[1] == "write";
  one.bytes = number_in(parts[2]);
  return one;
}

std::vector<Case> read_cases(int argc, char** argv, int first) {
  std::vector<Case> cases;
  for (int i = first; i < argc; ++i) {
    cases.push_back(read_case(argv[i]));
  }
  return cases;
}

std::uint64_t largest(const std::vector<Case>& cases) {
  std::uint64_t bytes = line;
  for (const Case& one : cases) {
    bytes = std::max(bytes, one.bytes);
  }
  return bytes;
}

// Regions one after the other, each on pages of its own.
ExchangeMemory laid_out(std::uint64_t base, std::uint64_t largest_bytes) {
  const auto place = [&base](std::uint64_t bytes) {
    const Region region{base, bytes};
    base += (bytes + 2 * page - 1) / page * page;
    return region;
  };
  ExchangeMemory memory;
  memory.extraneous = {place(largest_bytes), place(largest_bytes)};
  memory.sent = place(message);
  memory.received = place(message);
  memory.cell = place(message + cell_header);
  memory.sender_library = {place(library)};
  memory.receiver_library = {place(library)};
  return memory;
}

inline void touch(const Region& region, std::uint64_t bytes, bool write) {
  auto* at = reinterpret_cast<volatile std::uint64_t*>(region.address);
  for (std::uint64_t i = 0; i < bytes; i += line, at += line / sizeof *at) {
    if (write) {
      *at = i;
    } else {
      static_cast<void>(*at);
    }
  }
}

inline void steps_of(const AccessPattern& pattern) {
  for (const Step& step : pattern.steps) {
    touch(step.memory, step.memory.bytes, step.write);
  }
}

}  // namespace

// Functions that valgrind is told about by their names.
extern "C" {
[[gnu::noinline]] void first_messages(const AccessPattern* pattern) { steps_of(*pattern); }
[[gnu::noinline]] void counted_message(const AccessPattern* pattern) { steps_of(*pattern); }
[[gnu::noinline]] void case_done() { asm volatile(""); }
}

namespace {

int run(std::uint64_t rounds, const std::vector<Case>& cases) {
  const std::uint64_t most = largest(cases);
  const std::uint64_t all = 2 * most + 3 * message + 2 * library + 64 * page;
  const std::unique_ptr<void, decltype(&std::free)> arena(std::aligned_alloc(page, (all + page - 1) / page * page),
                                                          &std::free);
  std::memset(arena.get(), 1, all);
  const auto base = reinterpret_cast<std::uint64_t>(arena.get());
  std::cout << base << ' ' << most << std::endl;
  const ExchangeMemory memory = laid_out(base, most);
  for (const Case& one : cases) {
    const AccessPattern pattern = exchange_pattern(memory, one.touching);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      for (const Sweep& sweep : pattern.sweeps) {
        touch(sweep.memory, one.bytes, sweep.write);
      }
      round == rounds ? counted_message(&pattern) : first_messages(&pattern);
    }
    case_done();
  }
  return 0;
}

// D1 and LL of one core: sender and receiver go through the same caches.
HierarchyShape shape_of_arguments(const std::string& nearest, const std::string& last) {
  HierarchyShape shape;
  for (const std::string& text : {nearest, last}) {
    const auto parts = split(text, ',');
    if (parts.size() != 3 || number_in(parts[2]) != line) {
      throw std::invalid_argument(fmt::format("'{}' is not BYTES,WAYS,{}", text, line));
    }
    const std::uint64_t bytes = number_in(parts[0]);
    const std::uint64_t ways = number_in(parts[1]);
    shape.caches.push_back({static_cast<int>(shape.caches.size()) + 1, 0, bytes, ways, bytes / line / ways});
  }
  shape.paths = {{0, 1}, {0, 1}};
  return shape;
}

int model(const HierarchyShape& shape, std::uint64_t rounds, const std::vector<Case>& cases) {
  std::uint64_t base = 0;
  std::uint64_t most = 0;
  if (!(std::cin >> base >> most)) {
    throw std::invalid_argument("the addresses that 'run' printed are expected on stdin");
  }
  const ExchangeMemory memory = laid_out(base, most);
  Hierarchy followed(shape);
  for (const Case& one : cases) {
    const AccessPattern pattern = exchange_pattern(memory, one.touching);
    const MessageMisses misses = SteadyMisses(shape, pattern).at(one.bytes);
    std::cout << misses.sender[0] + misses.receiver[0] << ' ' << misses.sender[1] + misses.receiver[1] << '\n';
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (const Sweep& sweep : pattern.sweeps) {
        followed.access(sweep.core, sweep.memory.address, one.bytes, sweep.write);
      }
      for (const Step& step : pattern.steps) {
        followed.access(step.core, step.memory.address, step.memory.bytes, step.write);
      }
    }
  }
  const auto all = [&](std::size_t place) {
    return followed.misses(sender_core, place) + followed.misses(receiver_core, place);
  };
  std::cout << all(0) << ' ' << all(1) << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "run" && argc > 3) {
      return run(number_in(argv[2]), read_cases(argc, argv, 3));
    }
    if (what == "model" && argc > 5) {
      return model(shape_of_arguments(argv[2], argv[3]), number_in(argv[4]), read_cases(argc, argv, 5));
    }
    std::cerr << "cache_pattern: run ROUNDS CASE... | model D1 LL ROUNDS CASE...\n";
  } catch (const std::exception& error) {
    std::cerr << fmt::format("cache_pattern: {}\n", error.what());
  }
  return 2;
}
