#include <nlohmann/json.hpp>

#include "kernels/kernel.hpp"
#include "protocol/describe.hpp"

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
                     {"cache_resident", kernel.cache_resident},
                     {"shared_cache", kernel.shared_cache},
                     {"pool", kernel.pool}});
  }
  return table;
}

}  // namespace elbowroom
