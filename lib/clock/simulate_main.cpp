// The simulator of clocks: reads a request from stdin, one JSON object a line, and answers each by a line.
#include <exception>
#include <iostream>
#include <string>

#include "simulation.hpp"
#include "simulation_json.hpp"

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      const elbowroom::clock::Plan plan = elbowroom::clock::plan_of(line);
      std::cout << elbowroom::clock::answer_of(plan, elbowroom::clock::simulate(plan)) << std::endl;
    } catch (const std::exception& error) {
      std::cout << elbowroom::clock::answer_of_error(error.what()) << std::endl;
      return 1;
    }
  }
  return 0;
}
