// The file of lines that says of a process what its rings do not: rank-00003.jsonl.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace elbowroom::trace {

// A number, a string or null as JSON. Refusal: it is a name that is not UTF-8.
std::string json_text(const nlohmann::json& value);

// An object of JSON, put together piece by piece. Not an object of nlohmann-json: where there is no memory for one of those,
// its constructors end the process, as they may not throw. Only its strings and numbers are used.
class Line {
 public:
  Line() = default;
  explicit Line(const char* record) { add("record", record); }

  template <typename Value>
  Line& add(const char* name, const Value& value) {
    return add_json(name, json_text(value));
  }
  Line& add_json(const char* name, const std::string& json);
  std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

// An array of JSON: what `item(i)` returns for i of 0 to count - 1.
template <typename Item>
std::string json_array(std::size_t count, Item item) {
  std::string all = "[";
  for (std::size_t i = 0; i < count; ++i) {
    all += i > 0 ? "," : "";
    all += item(i);
  }
  return all + "]";
}

// Appended with one system call, so that what was said before a process is killed can be read after it; all of it or nothing.
// `first` begins the file anew. Refusal: it cannot be written.
void append_text(const std::string& path, const std::string& text, bool first = false);

}  // namespace elbowroom::trace
