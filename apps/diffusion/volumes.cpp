#include "diffusion/volumes.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;

constexpr auto kValue = static_cast<std::int64_t>(sizeof(double));

std::int64_t sent_by(const RankVolume& rank) {
  std::int64_t bytes = 0;
  for (const auto& [other, message] : rank.sent) {
    bytes += message;
  }
  return bytes;
}

json each_record(const std::vector<RankVolume>& ranks) {
  json all = json::array();
  for (const RankVolume& rank : ranks) {
    json sent = json::array();
    for (const auto& [other, message] : rank.sent) {
      sent.push_back({other, message});
    }
    all.push_back({{"cells", rank.cells}, {"separator_cells", rank.separator_cells}, {"sent", sent}});
  }
  return all;
}

}  // namespace

std::vector<RankVolume> rank_volumes(const Mesh& mesh, const std::vector<std::int32_t>& part, int parts) {
  std::vector<RankVolume> ranks(static_cast<std::size_t>(parts));
  std::vector<std::map<int, std::int64_t>> sent(ranks.size());
  for (CellId cell = 0; cell < mesh.cells(); ++cell) {
    const std::int32_t own = part[static_cast<std::size_t>(cell)];
    // A value goes once to each rank that has a neighbour of the cell.
    std::array<int, kFaces> others{};
    std::size_t count = 0;
    for (const CellId neighbour : mesh.neighbours(cell)) {
      const std::int32_t owner = neighbour == kWall ? own : part[static_cast<std::size_t>(neighbour)];
      const auto end = others.begin() + static_cast<std::ptrdiff_t>(count);
      if (owner != own && std::find(others.begin(), end, owner) == end) {
        others[count++] = owner;
        sent[static_cast<std::size_t>(own)][owner] += kValue;
      }
    }
    RankVolume& rank = ranks[static_cast<std::size_t>(own)];
    ++rank.cells;
    rank.separator_cells += count > 0 ? 1 : 0;
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].sent.assign(sent[rank].begin(), sent[rank].end());
  }
  return ranks;
}

json volume_record(const std::vector<RankVolume>& ranks, bool each) {
  std::int64_t cells = 0;
  std::int64_t most_cells = 0;
  std::int64_t separator = 0;
  std::int64_t most_separator = 0;
  std::int64_t total = 0;
  std::int64_t most = 0;
  std::int64_t largest = 0;
  std::size_t messages = 0;
  std::size_t most_messages = 0;
  for (const RankVolume& rank : ranks) {
    const std::int64_t bytes = sent_by(rank);
    cells += rank.cells;
    most_cells = std::max(most_cells, rank.cells);
    separator += rank.separator_cells;
    most_separator = std::max(most_separator, rank.separator_cells);
    total += bytes;
    most = std::max(most, bytes);
    messages += rank.sent.size();
    most_messages = std::max(most_messages, rank.sent.size());
    for (const auto& [other, message] : rank.sent) {
      largest = std::max(largest, message);
    }
  }
  const auto parts = static_cast<double>(ranks.size());
  json record = {{"parts", ranks.size()},
                 {"cells", cells},
                 {"cells_largest", most_cells},
                 {"imbalance", static_cast<double>(most_cells) * parts / static_cast<double>(cells)},
                 {"separator_cells_average", static_cast<double>(separator) / parts},
                 {"separator_cells_largest", most_separator},
                 {"sent_total", total},
                 {"sent_average", static_cast<double>(total) / parts},
                 {"sent_largest", most},
                 {"message_largest", largest},
                 {"messages_average", static_cast<double>(messages) / parts},
                 {"messages_largest", most_messages}};
  if (each) {
    record["ranks"] = each_record(ranks);
  }
  return record;
}

}  // namespace elbowroom::diffusion
