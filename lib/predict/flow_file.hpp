// models.flow of a model file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model_file.hpp"
#include "place.hpp"

namespace elbowroom::predict {

// A parameter, and what it is where the file does not name it; without that it must.
struct Wanted {
  std::string name;
  std::optional<double> otherwise;
};

// The rows `values` and `draws`, ordered as `wanted`. Other parameters are passed over. Throws Refusal (EBADMSG), as
// everything here.
std::vector<std::vector<double>> read_vectors(const Place& place, const std::vector<Wanted>& wanted);

FlowPart read_flow(const Place& place);

}  // namespace elbowroom::predict
