#include "base/system_files.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace elbowroom {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto clean = trimmed(text);
  const auto [end, error] = std::from_chars(clean.data(), clean.data() + clean.size(), value);
  if (error != std::errc() || end != clean.data() + clean.size()) {
    return std::nullopt;
  }
  return value;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t", at)) != std::string_view::npos) {
    const auto end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// Calls `use` with every line.
template <typename Use>
void for_each_line(std::string_view text, Use use) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return std::nullopt;
  }
  std::ostringstream content;
  content << file.rdbuf();
  // Some files of sysfs open but cannot be read (a NIC without a link has no speed): nothing arrives.
  if (file.bad() || content.fail()) {
    return std::nullopt;
  }
  const auto text = content.str();
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

std::optional<std::int64_t> read_number(const std::string& path) {
  const auto text = read_text(path);
  return text ? number_in<std::int64_t>(*text) : std::nullopt;
}

std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string link_name(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(path, error);
  return error ? std::string() : target.filename().string();
}

std::vector<int> parse_cpu_list(std::string_view text) {
  std::set<int> numbers;
  auto rest = trimmed(text);
  const auto refuse = [&] { return std::invalid_argument("not a list of numbers like 0-3,8: " + std::string(text)); };
  while (!rest.empty()) {
    const auto end = std::min(rest.find(','), rest.size());
    const auto part = rest.substr(0, end);
    const auto dash = part.find('-');
    const auto first = number_in<int>(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_in<int>(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first) {
      throw refuse();
    }
    for (int number = *first; number <= *last; ++number) {
      numbers.insert(number);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {numbers.begin(), numbers.end()};
}

std::string format_cpu_list(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    text += text.empty() ? "" : ",";
    text += std::to_string(numbers[first]);
    if (last > first) {
      text += '-';
      text += std::to_string(numbers[last]);
    }
    first = last + 1;
  }
  return text;
}

std::map<std::string, std::uint64_t> parse_meminfo(std::string_view text) {
  std::map<std::string, std::uint64_t> values;
  for_each_line(text, [&](std::string_view line) {
    auto words = words_of(line);
    if (words.size() > 2 && words[0] == "Node") {
      words.erase(words.begin(), words.begin() + 2);
    }
    if (words.size() < 2 || words[0].back() != ':') {
      return;
    }
    if (const auto value = number_in<std::uint64_t>(words[1])) {
      const bool kibibytes = words.size() > 2 && words[2] == "kB";
      values[std::string(words[0].substr(0, words[0].size() - 1))] = *value * (kibibytes ? 1024 : 1);
    }
  });
  return values;
}

std::map<std::string, std::string> parse_cpuinfo(std::string_view text) {
  std::map<std::string, std::string> values;
  for_each_line(text, [&](std::string_view line) {
    const auto colon = line.find(':');
    if (colon != std::string_view::npos) {
      values.emplace(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
    }
  });
  return values;
}

std::optional<LoadAverage> parse_loadavg(std::string_view text) {
  const auto words = words_of(trimmed(text));
  if (words.size() < 4) {
    return std::nullopt;
  }
  const auto slash = words[3].find('/');
  if (slash == std::string_view::npos) {
    return std::nullopt;
  }
  const auto one = number_in<double>(words[0]);
  const auto five = number_in<double>(words[1]);
  const auto fifteen = number_in<double>(words[2]);
  const auto running = number_in<int>(words[3].substr(0, slash));
  const auto tasks = number_in<int>(words[3].substr(slash + 1));
  if (!one || !five || !fifteen || !running || !tasks) {
    return std::nullopt;
  }
  return LoadAverage{*one, *five, *fifteen, *running, *tasks};
}

std::map<int, double> parse_steal(std::string_view stat, double ticks_per_second) {
  constexpr std::size_t kStealColumn = 8;  // after the name: user nice system idle iowait irq softirq steal (proc(5))
  std::map<int, double> steal;
  for_each_line(stat, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.size() <= kStealColumn || !words[0].starts_with("cpu")) {
      return;
    }
    const auto number = number_in<int>(words[0].substr(3));
    const auto ticks = number_in<double>(words[kStealColumn]);
    if (number && ticks) {
      steal[*number] = *ticks / ticks_per_second;
    }
  });
  return steal;
}

std::map<int, std::uint64_t> parse_interrupts(std::string_view text) {
  std::vector<int> columns;  // only units that are online have one
  std::map<int, std::uint64_t> totals;
  for_each_line(text, [&](std::string_view line) {
    const auto words = words_of(line);
    if (columns.empty()) {
      for (const auto word : words) {
        if (const auto number = word.starts_with("CPU") ? number_in<int>(word.substr(3)) : std::nullopt) {
          columns.push_back(*number);
          totals[*number] = 0;
        }
      }
      return;
    }
    // "ERR:" and "MIS:" have one column for the whole machine.
    if (words.size() <= columns.size()) {
      return;
    }
    std::vector<std::uint64_t> counts;
    for (std::size_t index = 0; index < columns.size(); ++index) {
      const auto count = number_in<std::uint64_t>(words[index + 1]);
      if (!count) {
        return;
      }
      counts.push_back(*count);
    }
    for (std::size_t index = 0; index < columns.size(); ++index) {
      totals[columns[index]] += counts[index];
    }
  });
  return totals;
}

}  // namespace elbowroom
