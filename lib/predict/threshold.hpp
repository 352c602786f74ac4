// The threshold model (thesis of P. Swartvagher, 2022, chapter 6). docs/reference/models.md describes what its default mode
// repairs, and why.
#pragma once

#include <vector>

#include "model_file.hpp"

namespace elbowroom::predict {

// Bandwidths for one number of computing cores, and whether they differ from the equations as published.
struct ThresholdAnswer {
  Streams streams{};
  bool repaired = false;
};

// Where data is: beside the computing cores or not, and both in one node or not.
struct Sides {
  bool comp_local;
  bool comm_local;
  bool same_node;
};

// For n = 0 to `cores`; empty where the model was fitted without such accesses.
std::vector<ThresholdAnswer> threshold_curve(const ThresholdPart& model, const Sides& sides, int cores);

}  // namespace elbowroom::predict
