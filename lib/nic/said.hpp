// What this library says on the standard error of its process; without memory of its own, so that it may be called anywhere.
#pragma once

#include <string_view>

namespace elbowroom::nic {

// One line, with the name of the library in front.
void say(std::string_view sentence);

// A process that shall be limited and is not would measure something else: it ends.
[[noreturn]] void give_up(std::string_view sentence, int code = 1);

}  // namespace elbowroom::nic
