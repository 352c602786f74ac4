// A value of a model file and where it stands, for messages.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model_file.hpp"

namespace elbowroom::predict {

constexpr const char* kHint = "; fit it again: elbowroom fit RUN -o M.json";

// Throws Refusal (EBADMSG), as everything here.
[[noreturn]] void refuse(const std::string& where, const std::string& what);

class Place {
 public:
  Place(const nlohmann::json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // Null counts as missing: optional fields are written as null.
  bool has(const char* key) const;
  bool has_text(const char* key) const;
  Place at(const char* key) const;
  std::vector<Place> list() const;
  double number() const;
  int whole(int least, int most) const;
  std::string text() const;
  bool yes() const;

 private:
  const nlohmann::json* value_;
  std::string path_;
};

// A file's content while it is read.
class Json {
 public:
  explicit Json(std::string_view text);
  ~Json();
  Json(const Json&) = delete;
  Json& operator=(const Json&) = delete;

  Place root() const;

 private:
  std::unique_ptr<nlohmann::json> value_;
};

// Throws Refusal unless a file is of elbowroom/model and of a version that this library reads.
void check_version(const Place& root);

// Four numbers, none below 0.
Streams read_streams(const Place& place);

}  // namespace elbowroom::predict
