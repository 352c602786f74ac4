// Cache misses of the messages of a request with extraneous accesses.
#pragma once

#include "caches/question.hpp"
#include "protocol/request.hpp"

namespace elbowroom {

// "misses" of the phases with accesses (`after`) and without, by the model of this host's caches.
MissAnswer misses_of(const Request& request);

}  // namespace elbowroom
