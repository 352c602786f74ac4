#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace elbowroom::events {

std::string in_quotes(std::string_view text);
std::string list(const std::vector<std::string>& items);

}  // namespace elbowroom::events
