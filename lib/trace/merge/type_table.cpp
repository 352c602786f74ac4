#include "trace/merge/type_table.hpp"

#include <algorithm>

namespace elbowroom::trace {
namespace {

constexpr int kRecordersCategory = 63;

std::string category_name(const RankLines& lines, int number) {
  if (number == kRecordersCategory) {
    return "trace";
  }
  const auto entry = lines.categories.find(number);
  return entry == lines.categories.end() ? "category " + std::to_string(number) + " (unknown)" : entry->second;
}

}  // namespace

std::uint32_t TypeTable::category(const std::string& name) {
  const auto [entry, fresh] = category_numbers_.emplace(name, static_cast<std::uint32_t>(categories_.size()));
  if (fresh) {
    categories_.push_back(name);
  }
  return entry->second;
}

std::uint32_t TypeTable::type(const MergedType& wanted) {
  std::string key = wanted.name + '\0' + std::to_string(wanted.category);
  for (const std::string& field : wanted.fields) {
    key += '\0' + field;
  }
  const auto [entry, fresh] = type_numbers_.emplace(key, static_cast<std::uint32_t>(types_.size()));
  if (fresh) {
    types_.push_back(wanted);
  }
  return entry->second;
}

std::vector<std::uint32_t> TypeTable::add(const RankLines& lines, const std::vector<bool>& used) {
  std::vector<std::uint32_t> merged(used.size(), kNoType);
  for (const auto& [number, type_line] : lines.types) {
    const std::uint32_t own =
        type({type_line.name, category(category_name(lines, type_line.category)), type_line.fields});
    merged.resize(std::max(merged.size(), static_cast<std::size_t>(number) + 1), kNoType);
    merged[static_cast<std::size_t>(number)] = own;
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    const int number = static_cast<int>(i);
    if (used[i] && !lines.types.contains(number)) {
      merged[i] = type({"type " + std::to_string(i) + " (unknown)", category("unknown"), {}});
      unknown_.push_back(number);
    }
  }
  return merged;
}

void TypeTable::move_into(MergedJob& job) {
  job.categories = std::move(categories_);
  job.types = std::move(types_);
}

}  // namespace elbowroom::trace
