#include "request.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/kernel.hpp"

namespace elbowroom::gpu_bench {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

std::string listed(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void allow(const json& object, const std::string& where, const Names& keys) {
  if (!object.is_object()) throw WrongRequest(where + " is no object");
  for (const auto& [key, value] : object.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      throw WrongRequest(where + " has no key " + key + "; it takes " + listed(keys));
    }
  }
}

template <class Value>
void read(const json& object, const std::string& where, const char* key, Value& value) {
  if (!object.contains(key)) return;
  try {
    value = object.at(key).get<Value>();
  } catch (const json::exception&) {
    throw WrongRequest(where + ": " + key + " is of the wrong type");
  }
}

void read_size(const json& object, const std::string& where, const char* key, std::size_t& value) {
  const auto given = object.find(key);
  if (given == object.end()) return;
  if (!given->is_number_unsigned() || *given == 0U)
    throw WrongRequest(where + ": " + key + " must be a number above 0");
  value = *given;
}

void require(bool right, const std::string& sentence) {
  if (!right) throw WrongRequest(sentence);
}

void one_of(const std::string& where, const char* key, const std::string& value, const Names& values) {
  require(std::find(values.begin(), values.end(), value) != values.end(),
          where + ": " + key + " " + value + " is not one of " + listed(values));
}

struct KindKeys {
  Work::Kind kind;
  Names keys;
};

const std::map<std::string, KindKeys>& kinds() {
  static const std::map<std::string, KindKeys> kKinds = {
      {"copy", {Work::Kind::copy, {"kind", "direction", "engine", "bytes", "node"}}},
      {"cores", {Work::Kind::cores, {"kind", "kernel", "cores", "bytes", "node", "cursor"}}},
      {"triad", {Work::Kind::triad, {"kind", "bytes"}}},
      {"gemm", {Work::Kind::gemm, {"kind", "m", "n", "k", "sm_target"}}},
      {"chain", {Work::Kind::chain, {"kind", "launches"}}},
      {"sm_copy",
       {Work::Kind::sm_copy, {"kind", "sms", "direction", "bytes", "pace_mb_s", "node", "pairs", "plan_others"}}},
      {"sm_idle", {Work::Kind::sm_idle, {"kind", "sms", "pairs", "plan_others"}}},
      {"sm_target", {Work::Kind::sm_target, {"kind", "sms"}}},
      {"control", {Work::Kind::control, {"kind"}}},
      {"messages", {Work::Kind::messages, {"kind", "bytes", "latency", "core", "peer_core"}}},
  };
  return kKinds;
}

void check_values(const Work& work, const std::string& where) {
  const bool sm_copy = work.kind == Work::Kind::sm_copy;
  one_of(where, "direction", work.direction, sm_copy ? Names{"hbm", "host"} : Names{"h2d", "d2h", "both", "d2d"});
  one_of(where, "engine", work.engine, {"batch", "plain"});
  require(work.sms >= 1, where + ": sms must be above 0");
  require(!work.pairs || work.sms % 2 == 0, where + ": pairs hold an even number of sms");
  require(work.sm_target >= 0, where + ": sm_target must not be below 0");
  require(work.launches >= 1, where + ": launches must be above 0");
  require(work.pace_mb_s >= 0, where + ": pace_mb_s must not be below 0");
  require(work.node >= -1, where + ": node must not be below 0");
  require(work.kind != Work::Kind::cores || !work.cores.empty(), where + ": cores must name at least one core");
  require(work.cursor >= 1, where + ": cursor must be above 0");
  require(find_kernel(work.kernel) != nullptr, where + ": there is no kernel " + work.kernel);
  std::vector<int> sorted = work.cores;
  std::sort(sorted.begin(), sorted.end());
  require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), where + ": a core is named twice");
}

Work read_work(const json& object, const std::string& where) {
  require(object.is_object(), where + " is no object");
  std::string name;
  read(object, where, "kind", name);
  Names names;
  for (const auto& [known, unused] : kinds()) names.push_back(known);
  one_of(where, "kind", name, names);
  const KindKeys& kind = kinds().at(name);
  allow(object, where, kind.keys);
  Work work;
  work.kind = kind.kind;
  if (work.kind == Work::Kind::sm_copy) work.direction = "hbm";
  read_size(object, where, "bytes", work.bytes);
  read(object, where, "direction", work.direction);
  read(object, where, "engine", work.engine);
  read(object, where, "node", work.node);
  read(object, where, "kernel", work.kernel);
  read(object, where, "cores", work.cores);
  read(object, where, "cursor", work.cursor);
  read(object, where, "sms", work.sms);
  read(object, where, "pairs", work.pairs);
  read(object, where, "plan_others", work.plan_others);
  read(object, where, "pace_mb_s", work.pace_mb_s);
  read_size(object, where, "m", work.m);
  read_size(object, where, "n", work.n);
  read_size(object, where, "k", work.k);
  read(object, where, "sm_target", work.sm_target);
  read(object, where, "launches", work.launches);
  read(object, where, "latency", work.latency);
  read(object, where, "core", work.core);
  read(object, where, "peer_core", work.peer_core);
  check_values(work, where);
  return work;
}

// No core computes twice, and none that computes submits or sends.
void check_cores(const Case& one, const std::string& where, int submitting) {
  std::vector<int> cores;
  for (const Work& work : one.sides) cores.insert(cores.end(), work.cores.begin(), work.cores.end());
  const auto computes = [&](int core) { return std::find(cores.begin(), cores.end(), core) != cores.end(); };
  require(!computes(submitting), where + ": core " + std::to_string(submitting) + " submits, and cannot compute");
  for (const Work& work : one.sides) {
    for (const int core : {work.core, work.peer_core}) {
      require(!computes(core), where + ": core " + std::to_string(core) + " communicates, and cannot compute");
    }
  }
  std::sort(cores.begin(), cores.end());
  require(std::adjacent_find(cores.begin(), cores.end()) == cores.end(), where + ": both sides compute on one core");
}

// sm_target and plan_others are about side a, and messages are one stream.
void check_sides(const Case& one, const std::string& where) {
  std::size_t messages = 0;
  for (std::size_t i = 0; i < one.sides.size(); ++i) {
    const Work::Kind kind = one.sides[i].kind;
    messages += kind == Work::Kind::messages ? 1 : 0;
    const bool planned = i == 1 && one.sides[0].kind == Work::Kind::gemm;
    require(kind != Work::Kind::sm_target || planned, where + ": sm_target is side b of a gemm");
    require(!one.sides[i].plan_others || planned, where + ": plan_others is of side b of a gemm");
  }
  require(messages <= 1, where + ": messages are one side at most");
}

}  // namespace

Case read_case(const json& object, const std::string& where, int submitting) {
  allow(object, where, {"name", "a", "b", "c", "first"});
  Case one;
  one.name = where;
  read(object, where, "name", one.name);
  require(object.contains("a"), where + " has no side a");
  require(object.contains("b") || !object.contains("c"), where + " has a side c, and no side b");
  for (const char* const side : {"a", "b", "c"}) {
    if (object.contains(side)) one.sides.push_back(read_work(object.at(side), where + ", side " + side));
  }
  std::string first = "a";
  read(object, where, "first", first);
  one_of(where, "first", first, {"a", "b"});
  one.b_first = first == "b" && one.sides.size() > 1;
  check_sides(one, where);
  check_cores(one, where, submitting);
  return one;
}

Request parse_request(const std::string& text) {
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) throw WrongRequest("the request is no JSON");
  const std::string where = "the request";
  allow(document, where, {"device", "repeat", "seconds", "patience", "core", "libraries", "cases"});
  Request request;
  read(document, where, "device", request.device);
  read(document, where, "repeat", request.repeat);
  read(document, where, "seconds", request.seconds);
  read(document, where, "patience", request.patience);
  read(document, where, "core", request.core);
  read(document, where, "libraries", request.libraries);
  require(request.repeat >= 1, "repeat must be above 0");
  require(request.seconds > 0 && request.patience > 0, "seconds and patience must be above 0");
  require(document.contains("cases") && document.at("cases").is_array() && !document.at("cases").empty(),
          "the request has no cases");
  for (const json& object : document.at("cases")) {
    const std::string name = "case " + std::to_string(request.cases.size());
    request.cases.push_back(read_case(object, name, request.core));
    const Case& one = request.cases.back();
    const auto sends = [](const Work& work) { return work.kind == Work::Kind::messages; };
    require(one.sides.size() < 3 && std::none_of(one.sides.begin(), one.sides.end(), sends),
            name + ": messages need gpu-streams, which runs with MPI");
  }
  return request;
}

}  // namespace elbowroom::gpu_bench
