// A small model file for tests, as data that a test may change before it is read.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "elbowroom/predict.h"
#include "flow.hpp"
#include "flow_load.hpp"
#include "gpu_law.hpp"

namespace elbowroom::predict::test {

using nlohmann::json;

// Four cores on each of two sockets with one NUMA node each.
constexpr int kCores = 4;

// Made-up bandwidths of the right order: MB/s, parts of 1 and counts of cores by the ends of their names.
inline double plausible(const std::string& name) {
  const auto begins = [&](const char* with) { return name.rfind(with, 0) == 0; };
  if (begins("core_")) return 9000;
  if (begins("comm_")) return 11000;
  if (begins("floor_")) return 0.4;
  if (begins("weight_")) return 0.7;
  if (begins("cost_") || begins("remote_")) return 1.2;
  if (begins("dip_")) return 0.05;
  if (begins("rise_") || begins("excess_")) return 0.02;
  return begins("uplink") || begins("controller") ? 40000 : 30000;
}

inline json threshold_part() {
  const json side = {{"n_par_max", 2},        {"t_par_max", 40000.0}, {"n_seq_max", 4},    {"t_seq_max", 34000.0},
                     {"t_par_max2", 38000.0}, {"alpha", 0.5},         {"delta_l", 1000.0}, {"delta_r", 500.0},
                     {"b_comp_seq", 12000.0}, {"b_comm_seq", 11000.0}};
  return {
      {"local", side},
      {"remote", side},
      {"bands", {{"local", {0.1, 0.1, 0.1, 0.1}}, {"remote", {0.1, 0.1, 0.1, 0.1}}, {"other", {0.2, 0.2, 0.2, 0.2}}}},
      {"flags", json::array()}};
}

// Two regimes of messages, and runs that told of everything.
inline json load_part() {
  json names = json::array();
  json values = json::array();
  json more = json::array();
  const auto add = [&](const std::string& name, double value) {
    names.push_back(name);
    values.push_back(value);
    more.push_back(value * 1.05);
  };
  for (const LoadName& one : kLoadNames) {
    const std::string name = one.name;
    add(name, name == "peak" ? 20000 : name == "relief" ? 0.3 : name == "thread_gain" ? 1.2 : one.neutral);
  }
  add("latency_0", 3.0);
  add("speed_0", 0.8);
  add("latency_1", 5.0);
  add("speed_1", 1.0);
  return {{"names", names},
          {"values", values},
          {"low", values},
          {"high", more},
          {"draws", {values, more}},
          {"discrepancy", {0.0, 0.02, 0.03, 0.02}},
          {"measured", {"intensity", "sizes", "send", "both", "threads", "copies", "nodes"}},
          {"switches", {4096}},
          {"intensity", 0.1},
          {"intensity_high", 2.0},
          {"size_low", 64},
          {"size_high", 64000000},
          {"runs", 30}};
}

inline json flow_part() {
  json names = json::array();
  json values = json::array();
  json more = json::array();
  for (const char* name : kFlowNames) {
    names.push_back(name);
    values.push_back(plausible(name));
    more.push_back(plausible(name) * 1.1);
  }
  return {{"names", names},     {"values", values},        {"low", values},
          {"high", more},       {"draws", {values, more}}, {"discrepancy", {0.01, 0.01, 0.02, 0.03}},
          {"load", load_part()}};
}

// An accelerator whose product and triad were measured, with a link to one node.
inline json gpu_part() {
  json names = json::array();
  json values = json::array();
  json more = json::array();
  const auto add = [&](const std::string& name, double value) {
    names.push_back(name);
    values.push_back(value);
    more.push_back(value * 1.1);
  };
  for (const char* name : kGpuNames) {
    const std::string text = name;
    add(text, text == "hbm" ? 4e6 : text.rfind("sm_h", 0) == 0 || text == "engine" || text == "store" ? 2e4 : 0.9);
  }
  add("link_d2h_0", 28000);
  const json shape = {8192, 4096, 7168};
  const json at = {{"victim", "gemm"}, {"mover", "sm_idle"}, {"direction", ""},  {"sms", 8},
                   {"pace_mb_s", 0.0}, {"node", -1},         {"first", "mover"}, {"shape", shape}};
  const json product = {{"victim", "gemm"}, {"shape", shape},     {"alone", 800.0},     {"unit", "TFLOP/s"},
                        {"tiles", 1024},    {"tile", {128, 256}}, {"traffic", 410000.0}};
  const json triad = {{"victim", "triad"}, {"shape", json::array()}, {"alone", 3.9e6},  {"unit", "MB/s"},
                      {"tiles", 0},        {"tile", json::array()},  {"traffic", 3.9e6}};
  return {{"device", "made"},
          {"sms", 132},
          {"names", names},
          {"values", values},
          {"low", values},
          {"high", more},
          {"draws", {values, more}},
          {"victims", {product, triad}},
          {"measured", {{{"case", at}, {"kept", 0.9}, {"spread", 0.002}, {"law", 0.88}}}},
          {"errors", {{{"family", "gemm/sm_idle"}, {"discrepancy", 0.1}, {"sms_low", 4}, {"sms_high", 32}}}},
          {"mover_discrepancy", 0.01},
          {"unknown", {"late"}},
          {"origin", "measured"}};
}

inline json document() {
  return {{"schema", "elbowroom/model"},
          {"version", ELBOW_PREDICT_FORMAT},
          {"elbowroom", "test"},
          {"created", "2026-01-01T00:00:00+00:00"},
          {"machine",
           {{"name", "small"},
            {"cores_first_socket", kCores},
            {"numa_per_socket", 1},
            {"sockets", 2},
            {"nic_node", 0},
            {"virtual", false}}},
          {"calibration",
           {{"run", "run"},
            {"size", 64000000},
            {"n_low", 1},
            {"n_high", 3},
            {"n_other_high", 2},
            {"nodes", {0, 8}},
            {"placements", {{0, 0}, {1, 1}}},
            {"runs", 12}}},
          {"models", {{"threshold", threshold_part()}, {"robust", nullptr}, {"flow", flow_part()}}},
          {"message_size",
           {{"t0", 5.0}, {"low", 4.0}, {"high", 6.0}, {"sizes", {4096, 1000000, 64000000}}, {"misfit", 0.01}}},
          {"gpu", gpu_part()},
          {"validity", json::array()}};
}

// What elbow_predict_model_parse makes of it.
inline elbow_predict_model* parsed(const json& file, const char* model = nullptr) {
  const std::string text = file.dump();
  return elbow_predict_model_parse(text.data(), text.size(), model);
}

struct Freer {
  void operator()(elbow_predict_model* model) const { elbow_predict_model_free(model); }
};
using Model = std::unique_ptr<elbow_predict_model, Freer>;

inline Model model_of(const json& file, const char* model = nullptr) { return Model(parsed(file, model)); }

}  // namespace elbowroom::predict::test
