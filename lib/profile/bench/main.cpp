// network-bench: what n senders of a node get together, to another node and within the node. Rank 0 reads one JSON document,
// a line of standard input, and prints one (docs/reference/profile-quantities.md).
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "mpi_document.hpp"
#include "senders.hpp"

namespace {

using namespace elbowroom::network_bench;
using nlohmann::json;

struct Request {
  std::vector<Case> cases;
  int repeat = 5;
  double seconds = 0.1;  // of each measurement
  int exchanges = 200;   // for the latency
};

Request read(const std::string& text) {
  constexpr std::size_t kMost = std::size_t{1} << 30U;  // bytes: counts are int
  const json document = json::parse(text);
  Request request;
  request.repeat = document.value("repeat", request.repeat);
  request.seconds = document.value("seconds", request.seconds);
  if (request.repeat < 1 || request.seconds <= 0) throw std::runtime_error("repeat and seconds must be above 0");
  for (const json& object : document.at("cases")) {
    Case one;
    one.size = object.at("size");
    one.senders = object.at("senders");
    one.inside = object.value("inside", false);
    one.both = object.value("both", false);
    if (one.size < 1 || one.size > kMost || one.senders < 1) throw std::runtime_error("size or senders out of range");
    request.cases.push_back(one);
  }
  return request;
}

// All cases take turns, repetition by repetition. A case without enough ranks has no bandwidth.
json measure(const Request& request) {
  const Nodes nodes = find_nodes();
  std::vector<std::vector<double>> bandwidths(request.cases.size());
  for (int round = 0; round < request.repeat; ++round) {
    for (std::size_t i = 0; i < request.cases.size(); ++i) {
      const std::vector<Pair> pairs = pairs_of(nodes, request.cases[i]);
      if (!pairs.empty()) bandwidths[i].push_back(measure_bandwidth(pairs, request.cases[i], request.seconds));
    }
  }
  const double latency = measure_latency(nodes, request.exchanges);
  return {{"nodes", nodes.count},
          {"ranks", {nodes.first.size(), nodes.second.size()}},
          {"bandwidths", bandwidths},
          {"latency", latency < 0 ? json() : json(latency)}};
}

}  // namespace

int main(int argc, char** argv) {
  return elbowroom::answer_document(argc, argv, [](const std::string& text) { return measure(read(text)); });
}
