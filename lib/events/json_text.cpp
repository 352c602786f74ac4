#include "events/json_text.hpp"

namespace elbowroom::events {

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      result += '\\';
      result += letter;
    } else if (static_cast<unsigned char>(letter) < 0x20) {
      constexpr char kDigits[] = "0123456789abcdef";
      result += "\\u00";
      result += kDigits[(letter >> 4) & 15];
      result += kDigits[letter & 15];
    } else {
      result += letter;
    }
  }
  return result + '"';
}

std::string list(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items) {
    (text += text.size() > 1 ? "," : "") += item;
  }
  return text + "]";
}

}  // namespace elbowroom::events
