// gpu-bench: copies and kernels of an accelerator beside each other and beside computing cores (docs/reference/gpu-bench.md).
//   gpu-bench facts [FOLDER ...]   what there is, as one JSON document; the folders are searched for NVRTC and cuBLASLt
//   gpu-bench measure              a request on standard input, a line for each sample on standard output
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "facts.hpp"
#include "machine/machine.hpp"
#include "measurement.hpp"
#include "request.hpp"

namespace {

using namespace elbowroom::gpu_bench;

void print(const nlohmann::json& line) { std::cout << line.dump() << std::endl; }

int measure_input() {
  std::string text;
  std::getline(std::cin, text);
  const Request request = parse_request(text);
  if (request.core >= 0) elbowroom::Machine::here().bind_this_thread(request.core);
  measure(request, print);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (!words.empty() && words[0] == "facts") {
      print(facts(0, {words.begin() + 1, words.end()}));
      return 0;
    }
    if (words.size() == 1 && words[0] == "measure") return measure_input();
    print({{"error", "usage: gpu-bench facts [FOLDER ...], or gpu-bench measure with a request on standard input"}});
    return 2;
  } catch (const WrongRequest& error) {
    print({{"error", error.what()}});
    return 2;
  } catch (const std::exception& error) {
    print({{"error", error.what()}});
    return 1;
  }
}
