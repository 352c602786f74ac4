#include "exchange/cluster.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/request_error.hpp"
#include "exchange/cluster_node.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr int kProtocolVersion = 1;
constexpr double kPatience = 60;  // s in which all nodes answer, unless the request says

// What a rank does for an order: {"values": [...]}, or {"error": sentence}.
json carry_out(ClusterNode& node, const json& order) {
  try {
    const std::string what = order.at("order");
    if (what == "alone") {
      return {{"values", node.alone(order.at("seconds"))}};
    }
    if (what == "pair") {
      return {{"values", node.pair(order.at("partner"), order.at("size"), order.at("seconds"))}};
    }
    return {{"values", node.train(order.at("barriers"))}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

class ClusterLeader {
 public:
  ClusterLeader(const Job& job, std::size_t working_set) : job_(job), node_(job, working_set) {}

  json hello() {
    json facts = ClusterNode::facts();
    json record = {{"record", "hello"},
                   {"protocol", kProtocolVersion},
                   {"version", ELBOWROOM_VERSION},
                   {"ranks", job_.ranks()},
                   {"mpi", job_.mpi_facts()},
                   {"quantities", ClusterNode::quantities()},
                   {"facts", {{"0", std::move(facts)}}}};
    std::map<int, json> orders;
    for (int rank = 1; rank < job_.size(); ++rank) {
      orders[rank] = {{"order", "facts"}};
    }
    json all = collect(orders, kPatience);
    record["facts"].update(all["values"]);
    record["silent"] = all["silent"];
    record["bytes"] = all["bytes"];
    return record;
  }

  // Null when the request was to quit.
  json answer(const std::string& line) {
    const json request = json::parse(line, nullptr, false);
    try {
      if (!request.is_object()) {
        throw RequestError("", line.substr(0, 80), "a request is one JSON object on one line",
                           "see docs/reference/protocol.md");
      }
      const std::string op = request.value("op", "");
      if (op == "quit") {
        return nullptr;
      }
      json record = collect(orders_of(op, request), request.value("patience", kPatience));
      record["record"] = op;
      return record;
    } catch (const RequestError& error) {
      json record = error_fields(error);
      record["record"] = "error";
      return record;
    } catch (const json::exception& error) {
      return {{"record", "error"},           {"kind", "usage"},         {"field", "request"},
              {"value", line.substr(0, 80)}, {"message", error.what()}, {"hint", "see docs/reference/protocol.md"}};
    }
  }

 private:
  // The order of each rank that takes part.
  std::map<int, json> orders_of(const std::string& op, const json& request) const {
    std::map<int, json> orders;
    if (op == "alone") {
      for (const int rank : request.at("ranks")) {
        orders[checked(rank)] = {{"order", "alone"}, {"seconds", request.at("seconds")}};
      }
    } else if (op == "pairs") {
      for (const std::vector<int> pair : request.at("pairs")) {
        if (pair.size() != 2 || pair[0] == pair[1] || orders.contains(pair[0]) || orders.contains(pair[1])) {
          throw RequestError("pairs", json(pair).dump(), "is no pair of ranks, or one of them has another partner",
                             "give each rank one partner");
        }
        for (std::size_t i = 0; i < 2; ++i) {
          orders[checked(pair[i])] = {{"order", "pair"},
                                      {"partner", checked(pair[1 - i])},
                                      {"size", request.at("size")},
                                      {"seconds", request.at("seconds")}};
        }
      }
    } else if (op == "train") {
      for (int rank = 0; rank < job_.size(); ++rank) {
        orders[rank] = {{"order", "train"}, {"barriers", request.at("barriers")}};
      }
    } else {
      throw RequestError("op", op, "there is no such request", "known: alone, pairs, train, quit");
    }
    return orders;
  }

  int checked(int rank) const {
    if (rank < 0 || rank >= job_.size()) {
      throw RequestError("ranks", std::to_string(rank), "there is no such rank",
                         "ranks are 0 to " + std::to_string(job_.size() - 1));
    }
    return rank;
  }

  // Sends the orders, does this rank's own part, and hears the others until `patience` seconds have passed.
  json collect(const std::map<int, json>& orders, double patience) {
    json record = {{"values", json::object()}, {"errors", json::object()}, {"silent", json::array()}};
    std::vector<int> waiting;
    for (const auto& [rank, order] : orders) {
      if (rank != 0) {
        job_.send(rank, order);
        waiting.push_back(rank);
      }
    }
    const std::int64_t begun = now_ns();
    std::size_t bytes = 0;
    const auto keep = [&](int rank, const json& reply) {
      const char* const kind = reply.contains("values") ? "values" : "errors";
      record[kind][std::to_string(rank)] = reply.contains("values") ? reply["values"] : reply["error"];
    };
    if (orders.contains(0)) {
      keep(0, carry_out(node_, orders.at(0)));
    }
    while (!waiting.empty() && static_cast<double>(now_ns() - begun) * 1e-9 < patience) {
      std::erase_if(waiting, [&](int rank) {
        const std::optional<json> reply = job_.try_receive(rank);
        if (reply) {
          bytes += reply->dump().size();
          keep(rank, *reply);
        }
        return reply.has_value();
      });
      sleep_for(kPollInterval);
    }
    record["silent"] = waiting;
    record["bytes"] = bytes;
    return record;
  }

  const Job& job_;
  ClusterNode node_;
};

}  // namespace

void lead_cluster(const Job& job, std::size_t working_set, LineSource& requests, std::ostream& answers) {
  ClusterLeader leader(job, working_set);
  answers << leader.hello().dump() << std::endl;
  while (answers.good()) {
    const std::optional<std::string> line = requests.next();
    if (!line) {
      break;
    }
    const json reply = leader.answer(*line);
    if (reply.is_null()) {
      break;
    }
    answers << reply.dump() << std::endl;
  }
  job.send_to_others({{"order", "quit"}});
}

void follow_cluster(const Job& job, std::size_t working_set) {
  ClusterNode node(job, working_set);
  for (;;) {
    const json order = job.receive(0);
    const std::string what = order.at("order");
    if (what == "quit") {
      return;
    }
    job.send(0, what == "facts" ? json{{"values", ClusterNode::facts()}} : carry_out(node, order));
  }
}

}  // namespace elbowroom
