// Requests and answers as JSON. A request is one line {"node": {...}, "experiments": [...]}; docs/reference/simulator.md
// says what is in them. Each experiment is answered by one line, in order; what cannot be simulated by {"error":
// "..."}.
#pragma once

#include <string>
#include <vector>

#include "simulate/node.hpp"

namespace elbowroom::simulate {

struct Request {
  Node node;
  std::vector<Experiment> experiments;
};

// Throws std::invalid_argument with field, value and what is wrong.
Request decoded(const std::string& line);

// `seconds`: how long it took to simulate.
std::string encoded(const Experiment& experiment, const Result& result, double seconds);

std::string encoded_error(const std::string& message);

}  // namespace elbowroom::simulate
