// All nodes of a cluster, one rank on each: rank 0 reads requests (docs/reference/protocol.md, "Clusters") and answers for all.
#pragma once

#include <cstddef>
#include <iosfwd>

#include "exchange/job.hpp"
#include "protocol/line_source.hpp"

namespace elbowroom {

// `working_set`: as of ClusterNode.
void lead_cluster(const Job& job, std::size_t working_set, LineSource& requests, std::ostream& answers);
void follow_cluster(const Job& job, std::size_t working_set);

}  // namespace elbowroom
