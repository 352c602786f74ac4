#include "protocol/describe.hpp"

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "machine/machine.hpp"

namespace elbowroom {

using nlohmann::json;

json build_record() { return {{"compiler", ELBOWROOM_COMPILER}, {"flags", ELBOWROOM_FLAGS}}; }

json clock_record() {
  const ClockInfo& clock = clock_info();
  return {{"source", clock.source}, {"resolution_ns", clock.resolution_ns}, {"call_ns", clock.call_ns}};
}

json hwloc_record() {
  const Machine& machine = Machine::here();
  bool xml = true;
  try {
    machine.write_xml("/dev/null");
  } catch (const std::runtime_error&) {
    xml = false;
  }
  return {{"version", machine.hwloc_version()}, {"pci", machine.sees_pci()}, {"xml", xml}};
}

}  // namespace elbowroom
