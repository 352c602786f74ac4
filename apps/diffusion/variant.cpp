#include "diffusion/variant.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/request.hpp"

namespace elbowroom::diffusion {
namespace {

constexpr std::array<std::pair<const char*, Variant>, 5> kVariants{{{"none", Variant::none},
                                                                    {"communication", Variant::communication},
                                                                    {"apart", Variant::apart},
                                                                    {"overlap", Variant::overlap},
                                                                    {"triad", Variant::triad}}};

}  // namespace

Variant variant_of(const std::string& name) {
  for (const auto& [known, variant] : kVariants) {
    if (name == known) {
      return variant;
    }
  }
  throw RequestError("variant", name, "there is no such variant", "known: none, communication, apart, overlap, triad");
}

std::string name_of(Variant variant) {
  return std::find_if(kVariants.begin(), kVariants.end(), [&](const auto& one) { return one.second == variant; })
      ->first;
}

bool computes(Variant variant) { return variant != Variant::communication; }
bool communicates(Variant variant) { return variant != Variant::none && variant != Variant::triad; }

}  // namespace elbowroom::diffusion
