#include "model_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "elbowroom/predict.h"
#include "flow.hpp"

namespace elbowroom::predict {
namespace {

using nlohmann::json;

constexpr const char* schema = "elbowroom/model";
constexpr const char* mend = "; fit it again: elbowroom fit RUN -o M.json";

// Far beyond any machine, so that a damaged number is found before memory is asked for.
constexpr int most_cores = 4096;
constexpr int most_nodes = 4096;
constexpr std::size_t most_draws = 4096;
constexpr std::size_t most_bytes = std::size_t{64} << 20;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw FileError(EBADMSG, where + ": " + what + mend);
}

// A value of the document and where it stands, for messages.
class Place {
 public:
  Place(const json& value, std::string path) : value_(value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const json& value() const { return value_; }

  // Null counts as missing: optional fields are written as null.
  bool has(const char* key) const { return value_.is_object() && value_.contains(key) && !value_.at(key).is_null(); }

  Place at(const char* key) const {
    const std::string path = path_.empty() ? key : path_ + "." + key;
    if (!value_.is_object()) {
      refuse(path_.empty() ? "the file" : path_, "is no object");
    }
    if (!has(key)) {
      refuse(path, "is missing");
    }
    return {value_.at(key), path};
  }

  std::vector<Place> list() const {
    if (!value_.is_array()) {
      refuse(path_, "is no list");
    }
    std::vector<Place> found;
    found.reserve(value_.size());
    for (std::size_t i = 0; i < value_.size(); ++i) {
      found.emplace_back(value_[i], path_ + "[" + std::to_string(i) + "]");
    }
    return found;
  }

  double number() const {
    if (!value_.is_number()) {
      refuse(path_, "is no number");
    }
    const double found = value_.get<double>();
    if (!std::isfinite(found)) {
      refuse(path_, "is not finite");
    }
    return found;
  }

  int whole(int least, int most) const {
    const double found = number();
    if (found != std::floor(found) || found < least || found > most) {
      refuse(path_, "is no whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return static_cast<int>(found);
  }

  std::string text() const {
    if (!value_.is_string()) {
      refuse(path_, "is no text");
    }
    return value_.get<std::string>();
  }

 private:
  const json& value_;
  std::string path_;
};

json parse(std::string_view text) {
  try {
    return json::parse(text.begin(), text.end());
  } catch (const json::parse_error& error) {
    throw FileError(EBADMSG, std::string("the file is no JSON (byte ") + std::to_string(error.byte) + ")" + mend);
  } catch (const json::out_of_range&) {
    throw FileError(EBADMSG, std::string("the file holds a number that is too large") + mend);
  }
}

void check_version(const Place& root) {
  if (!root.has("schema") || !root.value().at("schema").is_string() || root.at("schema").text() != schema) {
    throw FileError(EBADMSG, std::string("the file is no model of elbowroom (schema ") + schema + ")" + mend);
  }
  const int version = root.at("version").whole(1, std::numeric_limits<int>::max());
  if (version > ELBOW_PREDICT_FORMAT) {
    const bool told = root.has("elbowroom") && root.value().at("elbowroom").is_string();
    const std::string writer = told ? "elbowroom " + root.at("elbowroom").text() : "a newer release";
    throw FileError(ENOTSUP, "the file is of " + std::string(schema) + " version " + std::to_string(version) +
                                 ", written by " + writer + ", and this library reads up to version " +
                                 std::to_string(ELBOW_PREDICT_FORMAT) + "; use the library of that release");
  }
}

Shape read_shape(const Place& machine) {
  Shape shape;
  shape.name = machine.at("name").text();
  shape.cores_first_socket = machine.at("cores_first_socket").whole(1, most_cores);
  shape.numa_per_socket = machine.at("numa_per_socket").whole(1, most_nodes);
  shape.sockets = machine.has("sockets") ? machine.at("sockets").whole(1, most_nodes) : 2;
  if (machine.has("virtual")) {
    const Place found = machine.at("virtual");
    if (!found.value().is_boolean()) {
      refuse(found.path(), "is neither true nor false");
    }
    shape.is_virtual = found.value().get<bool>();
  }
  if (shape.nodes() > most_nodes) {
    refuse("machine", "has more than " + std::to_string(most_nodes) + " NUMA nodes");
  }
  return shape;
}

Calibration read_calibration(const Place& place, const Shape& machine) {
  Calibration found;
  found.n_low = place.at("n_low").whole(0, most_cores);
  found.n_high = place.at("n_high").whole(0, most_cores);
  found.n_other_high = place.has("n_other_high") ? place.at("n_other_high").whole(0, most_cores) : 0;
  if (place.has("placements")) {
    for (const Place& pair : place.at("placements").list()) {
      const std::vector<Place> nodes = pair.list();
      if (nodes.size() != 2) {
        refuse(pair.path(), "is no pair of nodes");
      }
      found.comp_seen[nodes[0].whole(0, most_nodes) < machine.numa_per_socket ? 1 : 0] = true;
      found.comm_seen[nodes[1].whole(0, most_nodes) < machine.numa_per_socket ? 1 : 0] = true;
    }
  }
  if (place.has("nodes")) {
    for (const Place& node : place.at("nodes").list()) {
      found.nodes.push_back(node.whole(0, std::numeric_limits<int>::max()));
    }
  }
  return found;
}

Parameters read_parameters(const Place& place) {
  Parameters found;
  found.n_par_max = place.at("n_par_max").whole(0, most_cores);
  found.t_par_max = place.at("t_par_max").number();
  found.n_seq_max = place.at("n_seq_max").whole(0, most_cores);
  found.t_seq_max = place.at("t_seq_max").number();
  found.t_par_max2 = place.at("t_par_max2").number();
  found.alpha = place.at("alpha").number();
  found.delta_l = place.at("delta_l").number();
  found.delta_r = place.at("delta_r").number();
  found.b_comp_seq = place.at("b_comp_seq").number();
  found.b_comm_seq = place.at("b_comm_seq").number();
  return found;
}

Streams read_streams(const Place& place) {
  const std::vector<Place> values = place.list();
  if (values.size() != stream_count) {
    refuse(place.path(), "has not four numbers");
  }
  Streams found{};
  for (int i = 0; i < stream_count; ++i) {
    found[i] = values[i].number();
    if (found[i] < 0) {
      refuse(values[i].path(), "is negative");
    }
  }
  return found;
}

ThresholdPart read_threshold(const Place& place) {
  ThresholdPart found;
  if (place.has("local")) {
    found.local = read_parameters(place.at("local"));
  }
  if (place.has("remote")) {
    found.remote = read_parameters(place.at("remote"));
  }
  const auto bands = [&](const char* where) -> std::optional<Streams> {
    if (!place.has("bands") || !place.at("bands").has(where)) {
      return std::nullopt;
    }
    return read_streams(place.at("bands").at(where));
  };
  found.local_bands = bands("local");
  found.remote_bands = bands("remote");
  found.other_bands = bands("other");
  if (!found.local_bands && !found.remote_bands && !found.other_bands) {
    refuse(place.path() + ".bands", "tells no intervals");
  }
  return found;
}

// Where each parameter that flow.hpp knows stands in the file's lists.
std::vector<std::size_t> places_of_names(const Place& names) {
  const std::vector<Place> listed = names.list();
  std::vector<std::size_t> places;
  for (const char* wanted : flow_names) {
    std::size_t place = 0;
    while (place < listed.size() && listed[place].text() != wanted) {
      ++place;
    }
    if (place == listed.size()) {
      refuse(names.path(), std::string("lacks ") + wanted);
    }
    places.push_back(place);
  }
  return places;
}

FlowPart read_flow(const Place& place) {
  const std::vector<std::size_t> order = places_of_names(place.at("names"));
  const std::size_t count = place.at("names").value().size();
  FlowPart found;
  const auto add = [&](const Place& row) {
    const std::vector<Place> values = row.list();
    if (values.size() != count) {
      refuse(row.path(), std::to_string(values.size()) + " numbers for " + std::to_string(count) + " parameters");
    }
    std::vector<double> numbers;
    for (const Place& value : values) {
      numbers.push_back(value.number());
    }
    std::vector<double> ordered;
    for (const std::size_t from : order) {
      ordered.push_back(numbers[from]);
    }
    found.vectors.push_back(std::move(ordered));
  };
  add(place.at("values"));
  if (place.has("draws")) {
    const std::vector<Place> draws = place.at("draws").list();
    if (draws.size() > most_draws) {
      refuse(place.path() + ".draws", "are more than " + std::to_string(most_draws));
    }
    for (const Place& draw : draws) {
      add(draw);
    }
  }
  if (place.has("discrepancy")) {
    found.discrepancy = read_streams(place.at("discrepancy"));
  }
  return found;
}

MessageSize read_sizes(const Place& place) {
  MessageSize found;
  found.t0 = place.at("t0").number();
  const std::vector<Place> sizes = place.at("sizes").list();
  if (sizes.empty()) {
    refuse(place.path() + ".sizes", "is empty");
  }
  found.smallest = sizes.front().number();
  for (const Place& size : sizes) {
    found.smallest = std::min(found.smallest, size.number());
    found.largest = std::max(found.largest, size.number());
  }
  return found;
}

}  // namespace

ModelFile read_model(std::string_view text) {
  const json document = parse(text);
  const Place root(document, "");
  check_version(root);
  ModelFile found;
  found.machine = read_shape(root.at("machine"));
  found.calibration = read_calibration(root.at("calibration"), found.machine);
  found.message_size = root.at("calibration").at("size").number();
  if (found.message_size <= 0) {
    refuse("calibration.size", "is not above 0");
  }
  if (root.has("message_size")) {
    found.sizes = read_sizes(root.at("message_size"));
  }
  const Place models = root.at("models");
  if (models.has("threshold")) {
    found.threshold = read_threshold(models.at("threshold"));
  }
  if (models.has("robust")) {
    found.robust = read_threshold(models.at("robust"));
  }
  if (models.has("flow")) {
    found.flow = read_flow(models.at("flow"));
  }
  return found;
}

ModelFile at_size(const ModelFile& file, double size) {
  ModelFile found = file;
  if (size == file.message_size) {
    return found;
  }
  if (!file.sizes) {
    throw FileError(ENOTSUP,
                    "the model of " + file.machine.name +
                        " knows messages of one size only; measure three sizes or more in one run and fit that");
  }
  const auto change = [&](double& bandwidth) {
    const double rest = file.message_size / bandwidth - file.sizes->t0;
    if (!(rest >= 0)) {
      throw FileError(EDOM, "the model of " + file.machine.name + " has no bandwidth for messages of that size" + mend);
    }
    bandwidth = size / (file.sizes->t0 + rest * (size / file.message_size));
  };
  for (std::optional<ThresholdPart>* part : {&found.threshold, &found.robust}) {
    if (!part->has_value()) {
      continue;
    }
    for (std::optional<Parameters>* side : {&(*part)->local, &(*part)->remote}) {
      if (side->has_value()) {
        change((*side)->b_comm_seq);
      }
    }
  }
  if (found.flow) {
    for (std::vector<double>& vector : found.flow->vectors) {
      change(vector[flow_index("comm_first")]);
      change(vector[flow_index("comm_second")]);
    }
  }
  found.message_size = size;
  found.beyond_sizes = size < file.sizes->smallest || size > file.sizes->largest;
  return found;
}

std::string read_text(const std::string& path) {
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const auto fail = [&](int code, const std::string& why) {
    throw FileError(code, "'" + path + "' cannot be read: " + why);
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
    if (text.size() > most_bytes) {
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
