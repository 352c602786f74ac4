// models.flow of a model file.
#pragma once

#include "model_file.hpp"
#include "place.hpp"

namespace elbowroom::predict {

// Throws Refusal (EBADMSG).
FlowPart read_flow(const Place& place);

}  // namespace elbowroom::predict
