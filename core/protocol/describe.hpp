// What the probe says of itself and of the machine, in the words of docs/reference/protocol.md.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace elbowroom {

nlohmann::json kernels_record();  // the table of kernels
nlohmann::json build_record();    // compiler, flags
nlohmann::json clock_record();    // source, resolution_ns, call_ns
nlohmann::json hwloc_record();    // version, pci, xml of the library loaded at run time

}  // namespace elbowroom
