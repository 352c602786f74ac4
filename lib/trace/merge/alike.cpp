#include "trace/merge/alike.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

namespace elbowroom::trace {
namespace {

constexpr std::size_t kMostRanges = 8;  // that are named

bool is_digit(char character) { return character >= '0' && character <= '9'; }

// The sentence with # for each number.
std::string kind_of(std::string_view sentence) {
  std::string kind;
  for (const char character : sentence) {
    if (!is_digit(character)) {
      kind += character;
    } else if (kind.empty() || kind.back() != '#') {
      kind += '#';
    }
  }
  return kind;
}

// The number of "rank 12 ..." and of "rank-00012...: ..."; -1: the sentence is not of a rank.
int rank_of(std::string_view sentence) {
  if (!sentence.starts_with("rank ") && !sentence.starts_with("rank-")) {
    return -1;
  }
  int rank = -1;
  std::from_chars(sentence.data() + 5, sentence.data() + sentence.size(), rank);
  return rank;
}

std::string ranges(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text;
  std::size_t named = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i, ++named) {
    const std::size_t from = i;
    while (i + 1 < ranks.size() && ranks[i + 1] == ranks[i] + 1) {
      ++i;
    }
    text += text.empty() ? "" : ", ";
    if (named == kMostRanges) {
      text += "...";
      break;
    }
    text += std::to_string(ranks[from]) + (i > from ? "-" + std::to_string(ranks[i]) : "");
  }
  return (ranks.size() > 1 ? "ranks " : "rank ") + text;
}

struct Kind {
  std::string first;
  std::vector<int> others;  // ranks
  std::size_t more = 0;     // sentences
};

}  // namespace

std::vector<std::string> without_alike(const std::vector<std::string>& sentences) {
  std::map<std::string, std::size_t> places;
  std::vector<Kind> kinds;
  for (const std::string& sentence : sentences) {
    const auto [entry, fresh] = places.emplace(kind_of(sentence), kinds.size());
    if (fresh) {
      kinds.push_back({sentence, {}, 0});
      continue;
    }
    Kind& kind = kinds[entry->second];
    ++kind.more;
    const int rank = rank_of(sentence);
    if (rank >= 0 && rank != rank_of(kind.first)) {
      kind.others.push_back(rank);
    }
  }
  std::vector<std::string> shortened;
  for (const Kind& kind : kinds) {
    const std::string also = kind.others.empty() ? std::to_string(kind.more) + " more like it" : ranges(kind.others);
    shortened.push_back(kind.first + (kind.more > 0 ? " (also " + also + ")" : ""));
  }
  return shortened;
}

}  // namespace elbowroom::trace
