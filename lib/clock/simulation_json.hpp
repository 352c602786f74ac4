// What the simulator of clocks is asked, and what it answers: one JSON object each.
#pragma once

#include <string>

#include "simulation.hpp"

namespace elbowroom::clock {

// Throws std::invalid_argument: which field, which value, what would do.
Plan plan_of(const std::string& request);

std::string answer_of(const Plan& plan, const Outcome& outcome);
std::string answer_of_error(const std::string& sentence);

}  // namespace elbowroom::clock
