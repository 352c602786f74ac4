// Text of outputs that are lines: numbers without a locale, times without a rounding.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace elbowroom::trace {

class Line {
 public:
  Line& operator<<(std::string_view text) {
    text_ += text;
    return *this;
  }
  Line& operator<<(char one) {
    text_ += one;
    return *this;
  }
  template <std::integral Number>
  requires(!std::same_as<Number, char> && !std::same_as<Number, bool>) Line& operator<<(Number number) {
    char digits[24];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
    text_.append(digits, static_cast<std::size_t>(end - digits));
    return *this;
  }

  // ns as a decimal number of a unit of 10^`digits` ns: all digits, so that nothing is rounded.
  template <int digits>
  Line& decimal(std::int64_t ns) {
    std::uint64_t unit = 1;
    for (int i = 0; i < digits; ++i) {
      unit *= 10;
    }
    const std::uint64_t size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
    if (ns < 0) {
      text_ += '-';
    }
    *this << size / unit << '.';
    char part[digits];
    std::uint64_t rest = size % unit;
    for (int i = digits; i-- > 0; rest /= 10) {
      part[i] = static_cast<char>('0' + rest % 10);
    }
    text_.append(part, digits);
    return *this;
  }

  std::string_view text() const { return text_; }
  bool empty() const { return text_.empty(); }
  void clear() { text_.clear(); }

 private:
  std::string text_;
};

}  // namespace elbowroom::trace
