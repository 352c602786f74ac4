// A value of a model file and where it stands, for messages.
#pragma once

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model_file.hpp"

namespace elbowroom::predict {

using nlohmann::json;

constexpr const char* mend = "; fit it again: elbowroom fit RUN -o M.json";

[[noreturn]] inline void refuse(const std::string& where, const std::string& what) {
  throw Refusal(EBADMSG, where + ": " + what + mend);
}

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

inline Streams read_streams(const Place& place) {
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

}  // namespace elbowroom::predict
