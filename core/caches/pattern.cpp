#include "caches/pattern.hpp"

#include <algorithm>

namespace elbowroom {
namespace {

constexpr int kProcessBits = 48;                          // user space has 47, unless a program asks for more
constexpr std::uint64_t kRegionDistance = kMostAccesses;  // of made-up regions
constexpr std::uint64_t kSharedProcess = 65535;           // the cell is nobody's own
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kSpreadLine = 64;
constexpr std::uint64_t kSpreadSpan = std::uint64_t{1} << 20;
constexpr std::uint64_t kSpreadStride = 10127;  // lines; odd, so that no line comes twice, and near the golden section

// As many bytes in lines far from each other.
std::vector<Region> spread(std::uint64_t address, std::uint64_t bytes) {
  std::vector<Region> lines;
  for (std::uint64_t begin = 0; begin < bytes; begin += kSpreadLine) {
    const std::uint64_t place = begin / kSpreadLine * kSpreadStride % (kSpreadSpan / kSpreadLine);
    lines.push_back({address + place * kSpreadLine, std::min(kSpreadLine, bytes - begin)});
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
  return (static_cast<std::uint64_t>(process) << kProcessBits) | address;
}

ExchangeMemory synthetic_memory(std::size_t cores, std::uint64_t message, std::uint64_t largest,
                                const Footprint& footprint) {
  ExchangeMemory memory;
  for (std::size_t core = 0; core < cores; ++core) {
    memory.extraneous.push_back({of_process(core, kRegionDistance), largest});
  }
  memory.sent = {of_process(kSenderCore, 2 * kRegionDistance + 5 * kPageBytes), message};
  memory.received = {of_process(kReceiverCore, 2 * kRegionDistance + 9 * kPageBytes), message};
  memory.cell = {of_process(kSharedProcess, 2 * kRegionDistance + 13 * kPageBytes), message + kCellHeader};
  const std::uint64_t sender = of_process(kSenderCore, 3 * kRegionDistance);
  const std::uint64_t receiver = of_process(kReceiverCore, 3 * kRegionDistance);
  memory.sender_library = spread(sender, footprint.sender);
  memory.receiver_library = spread(receiver, footprint.receiver);
  memory.sender_barrier = spread(sender, footprint.sender_in_barrier);
  memory.receiver_barrier = spread(receiver, footprint.receiver_in_barrier);
  return memory;
}

AccessPattern exchange_pattern(const ExchangeMemory& memory, const Touching& touching) {
  AccessPattern pattern;
  for (std::size_t core = 0; core < memory.extraneous.size(); ++core) {
    const bool touches = core == kSenderCore     ? touching.sender
                         : core == kReceiverCore ? touching.receiver
                                                 : touching.bystanders;
    if (touches) {
      pattern.sweeps.push_back({core, memory.extraneous[core], touching.write});
    }
  }
  if (touching.barrier) {
    add(pattern, kSenderCore, memory.sender_barrier, false, false);
    add(pattern, kReceiverCore, memory.receiver_barrier, false, false);
  }
  add(pattern, kSenderCore, memory.sender_library, false, true);
  add(pattern, kSenderCore, {memory.sent}, false, true);
  add(pattern, kSenderCore, {memory.cell}, true, true);
  add(pattern, kReceiverCore, memory.receiver_library, false, true);
  add(pattern, kReceiverCore, {memory.cell}, false, true);
  add(pattern, kReceiverCore, {memory.received}, true, true);
  if (touching.fresh) {
    add(pattern, kSenderCore, {memory.sent}, true, false);
  }
  return pattern;
}

}  // namespace elbowroom
