#include "protocol/describe.hpp"

#include "kernels/kernel.hpp"
#include "machine/machine.hpp"
#include "observe/clock.hpp"

namespace elbowroom {

using nlohmann::json;

json kernels_record() {
  json table = json::array();
  for (const KernelInfo& kernel : kernels()) {
    table.push_back({{"name", kernel.name},
                     {"description", kernel.description},
                     {"unit", kernel.rate_unit},
                     {"flops", kernel.flops},
                     {"bytes_read", kernel.bytes_read},
                     {"bytes_written", kernel.bytes_written},
                     {"bus_bytes", kernel.bus_bytes},
                     {"arrays", kernel.arrays},
                     {"non_temporal", kernel.non_temporal},
                     {"uses_cursor", kernel.uses_cursor},
                     {"cache_resident", kernel.cache_resident}});
  }
  return table;
}

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
