#include "caches/pattern.hpp"

namespace elbowroom {
namespace {

constexpr int process_bits = 48;                         // user space has 47, unless a program asks for more
constexpr std::uint64_t apart = std::uint64_t{1} << 40;  // between made-up regions: above every size
constexpr std::uint64_t shared_process = 65535;          // the cell is nobody's own

}  // namespace

std::uint64_t of_process(std::size_t process, std::uint64_t address) {
  return (static_cast<std::uint64_t>(process) << process_bits) | address;
}

ExchangeMemory made_up_memory(std::size_t cores, std::uint64_t message, std::uint64_t largest,
                              std::uint64_t footprint) {
  ExchangeMemory memory;
  for (std::size_t core = 0; core < cores; ++core) {
    memory.extraneous.push_back({of_process(core, apart), largest});
  }
  memory.sent = {of_process(sender_core, 2 * apart), message};
  memory.received = {of_process(receiver_core, 2 * apart), message};
  memory.sender_library = {of_process(sender_core, 3 * apart), footprint};
  memory.receiver_library = {of_process(receiver_core, 3 * apart), footprint};
  memory.cell = {of_process(shared_process, 4 * apart), message + cell_header};
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
  if (touching.fresh) {
    pattern.steps.push_back({sender_core, memory.sent, true, false});
  }
  pattern.steps.push_back({sender_core, memory.sender_library, false, true});
  pattern.steps.push_back({sender_core, memory.sent, false, true});
  pattern.steps.push_back({sender_core, memory.cell, true, true});
  pattern.steps.push_back({receiver_core, memory.receiver_library, false, true});
  pattern.steps.push_back({receiver_core, memory.cell, false, true});
  pattern.steps.push_back({receiver_core, memory.received, true, true});
  return pattern;
}

}  // namespace elbowroom
