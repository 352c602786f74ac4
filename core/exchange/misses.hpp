// Cache misses of the messages of a request with extraneous accesses.
#pragma once

#include "caches/question.hpp"
#include "exchange/extraneous.hpp"
#include "protocol/request.hpp"

namespace elbowroom {

// "misses" of the phases with accesses (`after`) and without, by the model of this host's caches; beside it, in "measured",
// what the processor counted, and in "not_measured" why each other level was not.
MissAnswer misses_of(const Request& request, const CountedMisses& counted);

}  // namespace elbowroom
