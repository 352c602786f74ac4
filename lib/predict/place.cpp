#include "place.hpp"

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

namespace elbowroom::predict {

using nlohmann::json;

void refuse(const std::string& where, const std::string& what) { throw Refusal(EBADMSG, where + ": " + what + kHint); }

bool Place::has(const char* key) const {
  return value_->is_object() && value_->contains(key) && !value_->at(key).is_null();
}

bool Place::has_text(const char* key) const { return has(key) && value_->at(key).is_string(); }

Place Place::at(const char* key) const {
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (!value_->is_object()) {
    refuse(path_.empty() ? "the file" : path_, "is not an object");
  }
  if (!has(key)) {
    refuse(path, "is missing");
  }
  return {value_->at(key), path};
}

std::vector<Place> Place::list() const {
  if (!value_->is_array()) {
    refuse(path_, "is not a list");
  }
  std::vector<Place> result;
  result.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    result.emplace_back((*value_)[i], path_ + "[" + std::to_string(i) + "]");
  }
  return result;
}

double Place::number() const {
  if (!value_->is_number()) {
    refuse(path_, "is not a number");
  }
  const double result = value_->get<double>();
  if (!std::isfinite(result)) {
    refuse(path_, "is not finite");
  }
  return result;
}

int Place::whole(int least, int most) const {
  const double result = number();
  if (result != std::floor(result) || result < least || result > most) {
    refuse(path_, "is not a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return static_cast<int>(result);
}

std::string Place::text() const {
  if (!value_->is_string()) {
    refuse(path_, "is not text");
  }
  return value_->get<std::string>();
}

bool Place::yes() const {
  if (!value_->is_boolean()) {
    refuse(path_, "is neither true nor false");
  }
  return value_->get<bool>();
}

Json::~Json() = default;

Place Json::root() const { return {*value_, ""}; }

Json::Json(std::string_view text) {
  try {
    value_ = std::make_unique<json>(json::parse(text.begin(), text.end()));
  } catch (const json::parse_error& error) {
    throw Refusal(EBADMSG, std::string("the file is not JSON (byte ") + std::to_string(error.byte) + ")" + kHint);
  } catch (const json::out_of_range&) {
    throw Refusal(EBADMSG, std::string("the file holds a number that is too large") + kHint);
  }
}

Streams read_streams(const Place& place) {
  const std::vector<Place> values = place.list();
  if (values.size() != kStreamCount) {
    refuse(place.path(), "has not four numbers");
  }
  Streams result{};
  for (int i = 0; i < kStreamCount; ++i) {
    result[i] = values[i].number();
    if (result[i] < 0) {
      refuse(values[i].path(), "is negative");
    }
  }
  return result;
}

}  // namespace elbowroom::predict
