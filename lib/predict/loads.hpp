// Any load, by whichever model answers; `elbowroom predict` refuses and flags the same loads.
#pragma once

#include "answers.hpp"
#include "elbowroom/predict.h"

namespace elbowroom::predict {

// Throws Refusal: EINVAL for what the machine, or no machine, has; ENOTSUP for what the model has no runs for; EDOM where
// it was fitted without such accesses. Then `prediction` is as it was.
void answer_load(const Answers& answers, const elbow_predict_load& load, elbow_predict_load_result& prediction);

}  // namespace elbowroom::predict
