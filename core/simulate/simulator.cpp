// The simulator: reads requests from stdin, one JSON object a line, and answers each of their experiments by a line.
#include <chrono>
#include <exception>
#include <iostream>
#include <string>

#include "simulate/request.hpp"
#include "simulate/simulation.hpp"

namespace {

using namespace elbowroom::simulate;

void answer(const Request& request) {
  for (const Experiment& experiment : request.experiments) {
    const auto begin = std::chrono::steady_clock::now();
    const Result result = simulate(request.node, experiment);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::cout << encoded(experiment, result, took.count()) << '\n';
  }
  std::cout.flush();
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      answer(decoded(line));
    } catch (const std::exception& error) {
      std::cout << encoded_error(error.what()) << std::endl;
      return 1;
    }
  }
  return 0;
}
