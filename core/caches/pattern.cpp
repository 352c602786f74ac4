#include "caches/pattern.hpp"

#include <algorithm>

namespace elbowroom {
namespace {

constexpr int process_bits = 48;                          // user space has 47, unless a program asks for more
constexpr std::uint64_t region_distance = most_accesses;  // of made-up regions
constexpr std::uint64_t shared_process = 65535;           // the cell is nobody's own
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t spread_line = 64;
constexpr std::uint64_t spread_span = std::uint64_t{1} << 20;
constexpr std::uint64_t spread_stride = 10127;  // lines; odd, so that no line comes twice, and near the golden section

// As many bytes in lines far from each other.
std::vector<Region> spread(std::uint64_t address, std::uint64_t bytes) {
  std::vector<Region> lines;
  for (std::uint64_t begin = 0; begin < bytes; begin += spread_line) {
    const std::uint64_t place = begin / spread_line * spread_stride % (spread_span / spread_line);
    lines.push_back({address + place * spread_line, std::min(spread_line, bytes - begin)});
  }
  return lines;
}

void add(AccessPattern& pattern, std::size_t core, const std::vector<Region>& regions, bool write, bool counted) {
  for (const Region& region : regions) {
    pattern.steps.push_back({core, region, write, counted});
  }
}

}  // namespace

std::uint64_t of_process(std::size_t process, std::uint64_t address) {
  return (static_cast<std::uint64_t>(process) << process_bits) | address;
}

ExchangeMemory made_up_memory(std::size_t cores, std::uint64_t message, std::uint64_t largest,
                              const Footprint& footprint) {
  ExchangeMemory memory;
  for (std::size_t core = 0; core < cores; ++core) {
    memory.extraneous.push_back({of_process(core, region_distance), largest});
  }
  memory.sent = {of_process(sender_core, 2 * region_distance + 5 * page), message};
  memory.received = {of_process(receiver_core, 2 * region_distance + 9 * page), message};
  memory.cell = {of_process(shared_process, 2 * region_distance + 13 * page), message + cell_header};
  const std::uint64_t sender = of_process(sender_core, 3 * region_distance);
  const std::uint64_t receiver = of_process(receiver_core, 3 * region_distance);
  memory.sender_library = spread(sender, footprint.sender);
  memory.receiver_library = spread(receiver, footprint.receiver);
  memory.sender_barrier = spread(sender, footprint.sender_in_barrier);
  memory.receiver_barrier = spread(receiver, footprint.receiver_in_barrier);
  return memory;
}

AccessPattern exchange_pattern(const ExchangeMemory& memory, const Touching& touching) {
  AccessPattern pattern;
  for (std::size_t core = 0; core < memory.extraneous.size(); ++core) {
    const bool touches = core == sender_core     ? touching.sender
                         : core == receiver_core ? touching.receiver
                                                 : touching.bystanders;
    if (touches) {
      pattern.sweeps.push_back({core, memory.extraneous[core], touching.write});
    }
  }
  if (touching.barrier) {
    add(pattern, sender_core, memory.sender_barrier, false, false);
    add(pattern, receiver_core, memory.receiver_barrier, false, false);
  }
  add(pattern, sender_core, memory.sender_library, false, true);
  add(pattern, sender_core, {memory.sent}, false, true);
  add(pattern, sender_core, {memory.cell}, true, true);
  add(pattern, receiver_core, memory.receiver_library, false, true);
  add(pattern, receiver_core, {memory.cell}, false, true);
  add(pattern, receiver_core, {memory.received}, true, true);
  if (touching.fresh) {
    add(pattern, sender_core, {memory.sent}, true, false);
  }
  return pattern;
}

}  // namespace elbowroom
