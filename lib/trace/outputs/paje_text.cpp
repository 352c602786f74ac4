#include "trace/outputs/paje_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

#include "trace/outputs/line.hpp"
#include "trace/outputs/titles.hpp"

namespace elbowroom::trace {
namespace {

struct Field {
  std::string name;
  const char* type;
};

void define(std::string& text, const char* event, int number, const std::vector<Field>& fields) {
  text += "%EventDef " + std::string(event) + " " + std::to_string(number) + "\n";
  for (const Field& field : fields) {
    text += "% " + field.name + " " + field.type + "\n";
  }
  text += "%EndEventDef\n";
}

void define_common(std::string& text) {
  using namespace paje;
  const Field alias{"Alias", "string"}, type{"Type", "string"}, name{"Name", "string"}, color{"Color", "color"},
      time{"Time", "date"}, container{"Container", "string"}, value{"Value", "string"}, key{"Key", "string"};
  define(text, "PajeDefineContainerType", kContainerType, {alias, type, name});
  define(text, "PajeDefineStateType", kStateType, {alias, type, name});
  define(text, "PajeDefineEventType", kEventType, {alias, type, name});
  define(text, "PajeDefineVariableType", kVariableType, {alias, type, name, color});
  define(text, "PajeDefineLinkType", kLinkType,
         {alias, type, {"StartContainerType", "string"}, {"EndContainerType", "string"}, name});
  define(text, "PajeDefineEntityValue", kValue, {alias, type, name, color});
  define(text, "PajeCreateContainer", kCreate, {time, alias, type, container, name});
  define(text, "PajeDestroyContainer", kDestroy, {time, type, name});
  define(text, "PajePopState", kPop, {time, type, container});
  define(text, "PajeSetVariable", kSetVariable, {time, type, container, {"Value", "double"}});
  define(text, "PajeStartLink", kStartLink,
         {time, type, container, {"StartContainer", "string"}, value, key, {"Bytes", "string"}});
  define(text, "PajeEndLink", kEndLink, {time, type, container, {"EndContainer", "string"}, value, key});
  define(text, "PajeNewEvent", kMessageEnd,
         {time,
          type,
          container,
          value,
          {"Direction", "string"},
          {"Peer", "string"},
          {"Communicator", "string"},
          {"Tag", "string"},
          {"Bytes", "string"},
          {"Message", "string"},
          {"Error_ns", "string"},
          {"Flags", "string"}});
  define(text, "PajeNewEvent", kGap, {time, type, container, value, {"Begin", "string"}, {"Lost", "string"}});
}

// A name of a field: a word, none of Paje's own, and no other field's.
std::string word(const std::string& name, const std::vector<Field>& others) {
  std::string one;
  for (const char c : name) {
    one += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  const auto taken = [&] {
    return std::any_of(others.begin(), others.end(), [&](const Field& other) { return other.name == one; });
  };
  constexpr std::string_view kOwn[] = {"Time", "Type", "Container", "Value", "Alias", "Name", "Color", "Key"};
  while (std::find(std::begin(kOwn), std::end(kOwn), one) != std::end(kOwn) || taken()) {
    one += '_';
  }
  return one;
}

void define_of_type(std::string& text, const MergedType& type, int number) {
  const std::vector<Field> common = {
      {"Time", "date"}, {"Type", "string"}, {"Container", "string"}, {"Value", "string"}};
  const std::vector<Field> last = {{"Error_ns", "string"}, {"Flags", "string"}};
  for (const bool state : {true, false}) {
    std::vector<Field> fields = common;
    if (state) {
      fields.push_back({"Event_type", "string"});
    }
    for (const std::string& name : type.fields) {
      if (!name.empty()) {
        std::vector<Field> others = fields;
        others.insert(others.end(), last.begin(), last.end());
        fields.push_back({word(name, others), "string"});
      }
    }
    fields.insert(fields.end(), last.begin(), last.end());
    define(text, state ? "PajePushState" : "PajeNewEvent", number + (state ? 0 : 1), fields);
  }
}

}  // namespace

std::string paje_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : valid_utf8(text.empty() ? "-" : text)) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    quoted += c == '"' ? '\'' : control ? ' ' : c;
  }
  return quoted + '"';
}

std::string paje_color(std::size_t number) {
  // Hues by the golden ratio: each is far from those before.
  const double hue = std::fmod(static_cast<double>(number % 100000) * 0.618034, 1.0) * 6;
  Line color;
  color << '"';
  for (const int shift : {0, 2, 4}) {
    const double away = std::fmod(hue + shift, 6.0);
    const double share = std::clamp(std::min(away, 4 - away), 0.0, 1.0);
    color << (shift == 0 ? "0." : " 0.") << 20 + static_cast<int>(share * 70);
  }
  color << '"';
  return std::string(color.text());
}

std::string paje_definitions(const MergedJob& job) {
  std::string text;
  define_common(text);
  for (std::size_t i = 0; i < job.types.size(); ++i) {
    define_of_type(text, job.types[i], paje::kPush + 2 * static_cast<int>(i));
  }
  text +=
      "0 J 0 \"job\"\n"
      "0 R J \"rank\"\n"
      "0 T R \"thread\"\n"
      "1 S T \"state\"\n"
      "2 E T \"event\"\n"
      "2 P T \"end of a message\"\n"
      "2 L T \"lost\"\n"
      "4 M J T T \"message\"\n"
      "5 m M \"message\" \"0.9 0.9 0.2\"\n"
      "5 lost L \"lost\" \"0.9 0.1 0.1\"\n"
      "5 busy L \"recorder at work\" \"0.9 0.5 0.1\"\n";
  Line values;
  for (std::size_t i = 0; i < job.types.size(); ++i) {
    const std::string name = paje_quoted(job.types[i].name) + " " + paje_color(i);
    for (const auto& [prefix, of] : {std::pair{'s', 'S'}, {'e', 'E'}, {'p', 'P'}}) {
      values << paje::kValue << ' ' << prefix << i << ' ' << of << ' ' << name << '\n';
    }
  }
  return text + std::string(values.text());
}

}  // namespace elbowroom::trace
