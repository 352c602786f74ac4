#include "model_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>

#include "elbowroom/predict.h"
#include "flow.hpp"
#include "flow_file.hpp"
#include "place.hpp"

namespace elbowroom::predict {
namespace {

constexpr const char* kSchema = "elbowroom/model";

// Far beyond any machine, so that a damaged number is found before memory is asked for.
constexpr int kMostCores = 4096;
constexpr int kMostNodes = 4096;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

}  // namespace

void check_version(const Place& root) {
  if (!root.has_text("schema") || root.at("schema").text() != kSchema) {
    throw Refusal(EBADMSG, std::string("the file is not a model of elbowroom (schema ") + kSchema + ")" + kHint);
  }
  const int version = root.at("version").whole(1, std::numeric_limits<int>::max());
  if (version > ELBOW_PREDICT_FORMAT) {
    const std::string writer =
        root.has_text("elbowroom") ? "elbowroom " + root.at("elbowroom").text() : "a newer release";
    throw Refusal(ENOTSUP, "the file is of " + std::string(kSchema) + " version " + std::to_string(version) +
                               ", written by " + writer + ", and this library reads up to version " +
                               std::to_string(ELBOW_PREDICT_FORMAT) + "; use the library of that release");
  }
}

namespace {

Shape read_shape(const Place& machine) {
  Shape shape;
  shape.name = machine.at("name").text();
  shape.cores_first_socket = machine.at("cores_first_socket").whole(1, kMostCores);
  shape.numa_per_socket = machine.at("numa_per_socket").whole(1, kMostNodes);
  shape.sockets = machine.has("sockets") ? machine.at("sockets").whole(1, kMostNodes) : 2;
  shape.is_virtual = machine.has("virtual") && machine.at("virtual").yes();
  if (shape.nodes() > kMostNodes) {
    refuse("machine", "has more than " + std::to_string(kMostNodes) + " NUMA nodes");
  }
  if (machine.has("layout")) {
    throw Refusal(ENOTSUP, "the sockets of " + shape.name +
                               " are not alike, and this library knows equal ones; use the Python interface");
  }
  return shape;
}

Calibration read_calibration(const Place& place, const Shape& machine) {
  Calibration result;
  result.n_low = place.at("n_low").whole(0, kMostCores);
  result.n_high = place.at("n_high").whole(0, kMostCores);
  result.n_other_high = place.has("n_other_high") ? place.at("n_other_high").whole(0, kMostCores) : 0;
  if (place.has("placements")) {
    for (const Place& pair : place.at("placements").list()) {
      const std::vector<Place> nodes = pair.list();
      if (nodes.size() != 2) {
        refuse(pair.path(), "is not a pair of nodes");
      }
      result.comp_measured[nodes[0].whole(0, kMostNodes) < machine.numa_per_socket ? 1 : 0] = true;
      result.comm_measured[nodes[1].whole(0, kMostNodes) < machine.numa_per_socket ? 1 : 0] = true;
    }
  }
  if (place.has("nodes")) {
    for (const Place& node : place.at("nodes").list()) {
      result.nodes.push_back(node.whole(0, std::numeric_limits<int>::max()));
    }
  }
  return result;
}

Parameters read_parameters(const Place& place) {
  Parameters result;
  result.n_par_max = place.at("n_par_max").whole(0, kMostCores);
  result.t_par_max = place.at("t_par_max").number();
  result.n_seq_max = place.at("n_seq_max").whole(0, kMostCores);
  result.t_seq_max = place.at("t_seq_max").number();
  result.t_par_max2 = place.at("t_par_max2").number();
  result.alpha = place.at("alpha").number();
  result.delta_l = place.at("delta_l").number();
  result.delta_r = place.at("delta_r").number();
  result.b_comp_seq = place.at("b_comp_seq").number();
  result.b_comm_seq = place.at("b_comm_seq").number();
  return result;
}

ThresholdPart read_threshold(const Place& place) {
  ThresholdPart result;
  if (place.has("local")) {
    result.local = read_parameters(place.at("local"));
  }
  if (place.has("remote")) {
    result.remote = read_parameters(place.at("remote"));
  }
  const auto bands = [&](const char* where) -> std::optional<Streams> {
    if (!place.has("bands") || !place.at("bands").has(where)) {
      return std::nullopt;
    }
    return read_streams(place.at("bands").at(where));
  };
  result.local_bands = bands("local");
  result.remote_bands = bands("remote");
  result.other_bands = bands("other");
  if (!result.local_bands && !result.remote_bands && !result.other_bands) {
    refuse(place.path() + ".bands", "has no intervals");
  }
  return result;
}

MessageSize read_sizes(const Place& place) {
  MessageSize result;
  result.t0 = place.at("t0").number();
  result.low = place.at("low").number();
  result.high = place.at("high").number();
  const std::vector<Place> sizes = place.at("sizes").list();
  if (sizes.empty()) {
    refuse(place.path() + ".sizes", "is empty");
  }
  result.smallest = sizes.front().number();
  for (const Place& size : sizes) {
    result.smallest = std::min(result.smallest, size.number());
    result.largest = std::max(result.largest, size.number());
  }
  return result;
}

}  // namespace

ModelFile read_model(std::string_view text) {
  const Json document(text);
  const Place root = document.root();
  check_version(root);
  const Place parts = root.at("models");
  if (root.has("gpu") && !parts.has("threshold") && !parts.has("robust") && !parts.has("flow")) {
    throw Refusal(ENOTSUP, "only an accelerator is in the file; load it with elbow_predict_gpu_load");
  }
  ModelFile result;
  result.machine = read_shape(root.at("machine"));
  if (root.has("node_factors")) {
    throw Refusal(ENOTSUP, "the NUMA nodes of a socket of " + result.machine.name +
                               " are not alike, and this library takes them as equal; use the Python interface");
  }
  result.calibration = read_calibration(root.at("calibration"), result.machine);
  result.message_size = root.at("calibration").at("size").number();
  if (result.message_size <= 0) {
    refuse("calibration.size", "is not above 0");
  }
  if (root.has("message_size")) {
    result.sizes = read_sizes(root.at("message_size"));
  }
  const Place models = root.at("models");
  if (models.has("threshold")) {
    result.threshold = read_threshold(models.at("threshold"));
  }
  if (models.has("robust")) {
    result.robust = read_threshold(models.at("robust"));
  }
  if (models.has("flow")) {
    result.flow = read_flow(models.at("flow"));
  }
  return result;
}

double bandwidth_at_size(const ModelFile& file, double bandwidth, double size) {
  if (size == file.message_size) {
    return bandwidth;
  }
  if (!file.sizes) {
    throw Refusal(ENOTSUP, "the model of " + file.machine.name +
                               " knows messages of one size only; measure three sizes or more in one run and fit that");
  }
  const double rest = file.message_size / bandwidth - file.sizes->t0;
  if (!(rest >= 0)) {
    throw Refusal(EDOM, "the model of " + file.machine.name + " has no bandwidth for messages of that size" + kHint);
  }
  return size / (file.sizes->t0 + rest * (size / file.message_size));
}

std::string read_text(const std::string& path) {
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const auto fail = [&](int code, const std::string& why) {
    throw Refusal(code, "'" + path + "' cannot be read: " + why);
  };
  const std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "rbe"));
  if (!file) {
    const int code = errno;
    fail(code, std::strerror(code));
  }
  std::string text;
  std::array<char, 65536> part{};
  for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), file.get())) > 0;) {
    text.append(part.data(), got);
    if (text.size() > kMostBytes) {
      fail(EFBIG, "it is too large to be a model");
    }
  }
  if (std::ferror(file.get()) != 0) {
    const int code = errno != 0 ? errno : EIO;
    fail(code, std::strerror(code));
  }
  return text;
}

}  // namespace elbowroom::predict
