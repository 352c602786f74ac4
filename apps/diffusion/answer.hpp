// What a request's steps took, as the `phases` of a `repetition` record (docs/reference/protocol.md).
#pragma once

#include <nlohmann/json.hpp>

#include "diffusion/variant.hpp"

namespace elbowroom::diffusion {

// A phase, or for `apart` two, of steps that took that long; void where their result is not `valid`. Durations are in us.
// The sides of a phase: `comp` (interior), `comm` (exchange), `total` (whole steps) and `separator`.
nlohmann::json phases_of(Variant variant, const StepTimes& times, bool valid);

}  // namespace elbowroom::diffusion
