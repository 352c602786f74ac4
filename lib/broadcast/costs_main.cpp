// broadcast-costs: what the cost model says of broadcasts. Reads one JSON object from stdin: the network {latency,
// overhead, bandwidth, forwarding}, and `cases` of {tree, segment, window, size, recipients}, where the tree may be "auto",
// and a window of 0 is the default one. Prints a list with the way that was taken and its times in s; and, with
// `edges`: true, the messages of the tree as [from, to, depth, step] (tree.hpp).
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "ways.hpp"

namespace {

using namespace elbowroom::broadcast;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

json messages(const Tree& tree, std::size_t recipients) {
  json list = json::array();
  for (const Edge& edge : edges(tree, recipients)) list.push_back({edge.from, edge.to, edge.depth, edge.step});
  return list;
}

json answer(const Network& network, const json& given, bool with_edges) {
  Settings settings;
  if (given.at("window") != 0) settings.window = given.at("window");
  const auto size = given.at("size").get<std::size_t>();
  const auto recipients = given.at("recipients").get<std::size_t>();
  const auto tree = given.at("tree").get<std::string>();
  const auto begun = Clock::now();
  const Way way = tree == "auto" ? best_way(network, settings, size, recipients)
                                 : parse_way(tree, given.at("segment").get<std::size_t>());
  const std::chrono::duration<double> choosing = Clock::now() - begun;
  const Cost found = cost(network, settings, way, size, recipients);
  const std::chrono::duration<double> all = Clock::now() - begun;
  json edges = with_edges ? messages(way.tree, recipients) : json::array();
  return {{"tree", format_way(way)},      {"edges", std::move(edges)},
          {"segment", way.segment},       {"received", found.received},
          {"released", found.released},   {"forwarded", found.forwarded},
          {"choosing", choosing.count()}, {"predicting", (all - choosing).count()}};
}

}  // namespace

int main() {
  try {
    const json given = json::parse(std::cin);
    const json& parameters = given.at("network");
    const Network network{parameters.at("latency"), parameters.at("overhead"), parameters.at("bandwidth"),
                          parameters.at("forwarding")};
    json answers = json::array();
    for (const json& one : given.at("cases")) answers.push_back(answer(network, one, given.value("edges", false)));
    std::cout << answers.dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "broadcast-costs: " << error.what() << '\n';
    return 1;
  }
}
