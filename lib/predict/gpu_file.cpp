#include "gpu_file.hpp"

#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>

#include "flow_file.hpp"
#include "place.hpp"

namespace elbowroom::predict {
namespace {

constexpr int kMost = std::numeric_limits<int>::max();
constexpr int kMostSms = 1 << 20;
constexpr const char* kLinkPrefix = "link_";

template <std::size_t N>
int index_of(const std::array<const char*, N>& words, const std::string& word) {
  for (std::size_t k = 0; k < N; ++k) {
    if (word == words[k]) {
      return static_cast<int>(k);
    }
  }
  return -1;
}

ProductShape read_product(const Place& place) {
  ProductShape shape{};
  const std::vector<Place> numbers = place.list();
  if (numbers.empty()) {
    return shape;
  }
  if (numbers.size() != shape.size()) {
    refuse(place.path(), "is no shape m, n, k");
  }
  for (std::size_t k = 0; k < shape.size(); ++k) {
    shape[k] = numbers[k].whole(1, kMost);
  }
  return shape;
}

std::vector<GpuLink> read_links(const Place& place, std::vector<Wanted>& wanted) {
  std::vector<GpuLink> links;
  for (const Place& entry : place.at("names").list()) {
    const std::string name = entry.text();
    const std::size_t last = name.rfind('_');
    const std::size_t begin = std::string(kLinkPrefix).size();
    if (name.rfind(kLinkPrefix, 0) != 0 || last == std::string::npos || last <= begin) {
      continue;
    }
    GpuLink link{name.substr(begin, last - begin), -1, wanted.size()};
    const std::string node = name.substr(last + 1);
    if (node != "-1") {
      if (node.empty() || node.size() > 6 || node.find_first_not_of("0123456789") != std::string::npos) {
        refuse(entry.path(), "names no NUMA node");
      }
      link.node = std::stoi(node);
    }
    wanted.push_back({name, std::nullopt});
    links.push_back(std::move(link));
  }
  return links;
}

GpuVictim read_victim(const Place& place) {
  GpuVictim result;
  result.victim = index_of(kGpuVictims, place.at("victim").text());
  result.shape = read_product(place.at("shape"));
  result.alone = place.at("alone").number();
  result.tiles = place.at("tiles").whole(0, kMost);
  result.traffic = place.at("traffic").number();
  const std::vector<Place> tile = place.at("tile").list();
  for (std::size_t k = 0; k < result.tile.size() && tile.size() == result.tile.size(); ++k) {
    result.tile[k] = tile[k].whole(1, kMost);
  }
  return result;
}

GpuMeasured read_measured(const Place& place) {
  const Place at = place.at("case");
  GpuMeasured result;
  result.at.victim = index_of(kGpuVictims, at.at("victim").text());
  result.at.mover = index_of(kGpuMovers, at.at("mover").text());
  result.at.direction = index_of(kGpuDirections, at.at("direction").text());
  result.at.sms = at.at("sms").whole(0, kMost);
  result.at.node = at.at("node").whole(-1, kMost);
  result.at.victim_first = at.at("first").text() == "victim";
  result.at.pace = at.at("pace_mb_s").number();
  result.at.shape = read_product(at.at("shape"));
  result.kept = place.at("kept").number();
  result.spread = place.at("spread").number();
  return result;
}

GpuFamily read_family(const Place& place) {
  return {place.at("family").text(), place.at("discrepancy").number(), place.at("sms_low").whole(0, kMost),
          place.at("sms_high").whole(0, kMost)};
}

}  // namespace

GpuPart read_gpu(std::string_view text) {
  const Json document(text);
  const Place root = document.root();
  check_version(root);
  if (!root.has("gpu")) {
    throw Refusal(ENOTSUP, "the model has no accelerator; measure one and fit it: elbowroom run gpu-overlap");
  }
  const Place place = root.at("gpu");
  GpuPart part;
  part.device = place.at("device").text();
  part.sms = place.at("sms").whole(2, kMostSms);
  std::vector<Wanted> wanted;
  for (const char* name : kGpuNames) {
    wanted.push_back({name, std::nullopt});
  }
  part.links = read_links(place, wanted);
  part.vectors = read_vectors(place, wanted);
  for (const Place& entry : place.at("victims").list()) {
    part.victims.push_back(read_victim(entry));
  }
  for (const Place& entry : place.at("measured").list()) {
    part.measured.push_back(read_measured(entry));
  }
  for (const Place& entry : place.at("errors").list()) {
    part.families.push_back(read_family(entry));
  }
  part.mover_discrepancy = place.at("mover_discrepancy").number();
  part.order_known = true;
  for (const Place& entry : place.at("unknown").list()) {
    part.order_known = part.order_known && entry.text() != "late";
  }
  part.is_virtual = place.at("origin").text() == "virtual";
  return part;
}

std::string family_of(const GpuCase& at) {
  const std::string mover = kGpuMovers[static_cast<std::size_t>(at.mover)];
  std::string name = std::string(kGpuVictims[static_cast<std::size_t>(at.victim)]) + "/" + mover;
  if (at.direction > 0 && (mover == "copy" || mover == "sm_copy")) {
    name += std::string("/") + kGpuDirections[static_cast<std::size_t>(at.direction)];
  }
  return name;
}

}  // namespace elbowroom::predict
