// Touches memory as the cache model thinks an exchange does, on one core and in one process, so that valgrind's simulators
// can count its misses; and tells what the model counts of the same addresses. benchmarks/caches.py compares them.
//
//   cache_pattern run ROUNDS CASE...      performs each case ROUNDS times and prints addresses: of the memory, the largest
//       size, then for each case that of the return address of the functions called in a round
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

constexpr std::uint64_t kMessage = 4096;
constexpr std::uint64_t kLibrary = 8192;
constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kPage = 4096;

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
  one.touching.barrier = true;
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
  std::uint64_t bytes = kLine;
  for (const Case& one : cases) {
    bytes = std::max(bytes, one.bytes);
  }
  return bytes;
}

// Where things are from the beginning of the memory on: constants, so that a message needs no memory to know them.
constexpr std::uint64_t kSentAt = 0;
constexpr std::uint64_t kReceivedAt = kSentAt + kMessage + kPage;
constexpr std::uint64_t kCellAt = kReceivedAt + kMessage + kPage;
constexpr std::uint64_t kSenderLibraryAt = kCellAt + kMessage + 2 * kPage;
constexpr std::uint64_t kReceiverLibraryAt = kSenderLibraryAt + kLibrary + kPage;
constexpr std::uint64_t kArraysAt = kReceiverLibraryAt + kLibrary + kPage;

std::uint64_t second_array(std::uint64_t base, std::uint64_t most) {
  return base + kArraysAt + (most + 2 * kPage - 1) / kPage * kPage;
}

// The functions called in a round leave their return address at `frame`; the last of them before the message does so after
// the extraneous accesses, as a barrier would touch something.
ExchangeMemory laid_out(std::uint64_t base, std::uint64_t most, std::uint64_t frame) {
  ExchangeMemory memory;
  memory.extraneous = {{base + kArraysAt, most}, {second_array(base, most), most}};
  memory.sent = {base + kSentAt, kMessage};
  memory.received = {base + kReceivedAt, kMessage};
  memory.cell = {base + kCellAt, kMessage + kCellHeader};
  memory.sender_library = {{base + kSenderLibraryAt, kLibrary}};
  memory.receiver_library = {{base + kReceiverLibraryAt, kLibrary}};
  memory.sender_barrier = {{frame, sizeof(std::uint64_t)}};
  return memory;
}

template <bool write>
inline void touch(std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t at = address; at < address + bytes; at += kLine) {
    auto* word = reinterpret_cast<volatile std::uint64_t*>(at);
    if constexpr (write) {
      *word = at;
    } else {
      static_cast<void>(*word);
    }
  }
}

// The steps of exchange_pattern().
inline void pass_message(std::uint64_t base) {
  touch<false>(base + kSenderLibraryAt, kLibrary);
  touch<false>(base + kSentAt, kMessage);
  touch<true>(base + kCellAt, kMessage + kCellHeader);
  touch<false>(base + kReceiverLibraryAt, kLibrary);
  touch<false>(base + kCellAt, kMessage + kCellHeader);
  touch<true>(base + kReceivedAt, kMessage);
}

template <bool write>
[[gnu::noinline]] void sweep(std::uint64_t address, std::uint64_t bytes) {
  touch<write>(address, bytes);
}

std::uint64_t frame_address = 0;

}  // namespace

// Functions that valgrind is told about by their names.
extern "C" {
[[gnu::noinline]] void first_message(std::uint64_t base) { pass_message(base); }
[[gnu::noinline]] void counted_message(std::uint64_t base) { pass_message(base); }
[[gnu::noinline]] void case_done() { asm volatile(""); }
[[gnu::noinline]] void note_frame() {
  frame_address = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)) + sizeof(void*);
}
}

namespace {

// Few enough values for registers: a round touches nothing besides what it is to touch, and return addresses.
template <bool first, bool second, bool write>
[[gnu::noinline]] void perform(std::uint64_t base, std::uint64_t other, std::uint64_t bytes, std::uint64_t rounds) {
  note_frame();
  for (; rounds > 0; --rounds) {
    if constexpr (first) {
      sweep<write>(base + kArraysAt, bytes);
    }
    if constexpr (second) {
      sweep<write>(other, bytes);
    }
    rounds == 1 ? counted_message(base) : first_message(base);
  }
  case_done();
}

template <bool write>
void perform(const Case& one, std::uint64_t base, std::uint64_t most, std::uint64_t rounds) {
  const std::uint64_t other = second_array(base, most);
  if (one.touching.sender && one.touching.receiver) {
    perform<true, true, write>(base, other, one.bytes, rounds);
  } else if (one.touching.sender) {
    perform<true, false, write>(base, other, one.bytes, rounds);
  } else if (one.touching.receiver) {
    perform<false, true, write>(base, other, one.bytes, rounds);
  } else {
    perform<false, false, write>(base, other, one.bytes, rounds);
  }
}

int run(std::uint64_t rounds, const std::vector<Case>& cases) {
  const std::uint64_t most = largest(cases);
  const std::uint64_t all = (second_array(0, most) + most + kPage - 1) / kPage * kPage;
  const std::unique_ptr<void, decltype(&std::free)> arena(std::aligned_alloc(kPage, all), &std::free);
  std::memset(arena.get(), 1, all);
  const auto base = reinterpret_cast<std::uint64_t>(arena.get());
  std::vector<std::uint64_t> frames(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    one.touching.write ? perform<true>(one, base, most, rounds) : perform<false>(one, base, most, rounds);
    frames[i] = frame_address;
  }
  std::cout << base << ' ' << most;
  for (const std::uint64_t frame : frames) {
    std::cout << ' ' << frame;
  }
  std::cout << std::endl;
  return 0;
}

// D1 and LL of one core: sender and receiver go through the same caches.
HierarchyShape shape_of_arguments(const std::string& nearest, const std::string& last) {
  HierarchyShape shape;
  for (const std::string& text : {nearest, last}) {
    const auto parts = split(text, ',');
    if (parts.size() != 3 || number_in(parts[2]) != kLine) {
      throw std::invalid_argument(fmt::format("'{}' is not BYTES,WAYS,{}", text, kLine));
    }
    const std::uint64_t bytes = number_in(parts[0]);
    const std::uint64_t ways = number_in(parts[1]);
    shape.caches.push_back({static_cast<int>(shape.caches.size()) + 1, 0, bytes, ways, bytes / kLine / ways});
  }
  shape.paths = {{0, 1}, {0, 1}};
  return shape;
}

int model(const HierarchyShape& shape, std::uint64_t rounds, const std::vector<Case>& cases) {
  const auto address = [] {
    std::uint64_t number = 0;
    if (!(std::cin >> number)) {
      throw std::invalid_argument("the addresses that 'run' printed are expected on stdin");
    }
    return number;
  };
  const std::uint64_t base = address();
  const std::uint64_t most = address();
  Hierarchy followed(shape);
  for (const Case& one : cases) {
    const AccessPattern pattern = exchange_pattern(laid_out(base, most, address()), one.touching);
    const MessageMisses misses = SteadyMisses(shape, pattern).at(one.bytes);
    std::cout << misses.sender[0] + misses.receiver[0] << ' ' << misses.sender[1] + misses.receiver[1] << '\n';
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (const Sweep& sweeps : pattern.sweeps) {
        followed.access(sweeps.core, sweeps.memory.address, one.bytes, sweeps.write);
      }
      for (const Step& step : pattern.steps) {
        followed.access(step.core, step.memory.address, step.memory.bytes, step.write);
      }
    }
  }
  const auto all = [&](std::size_t place) {
    return followed.misses(kSenderCore, place) + followed.misses(kReceiverCore, place);
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
