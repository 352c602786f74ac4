// What stands at the head of a trace of Paje, and how names are written in it.
#pragma once

#include <string>
#include <string_view>

#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

// Numbers of the definitions of events.
namespace paje {
constexpr int kContainerType = 0, kStateType = 1, kEventType = 2, kVariableType = 3, kLinkType = 4, kValue = 5,
              kCreate = 6, kDestroy = 7, kPop = 8, kSetVariable = 9, kStartLink = 10, kEndLink = 11, kMessageEnd = 12,
              kGap = 13;
constexpr int kPush = 32;  // of type t: 32 + 2 t; its events: 33 + 2 t
}  // namespace paje

// Between quotes, on one line. There is no way to write a quote in it: it becomes an apostrophe; nothing becomes "-".
std::string paje_quoted(std::string_view text);
// "0.1 0.9 0.5" in quotes: neighbours in `number` are easily told apart.
std::string paje_color(std::size_t number);
// The definitions of events, types of containers and entities, and a value for each type.
std::string paje_definitions(const MergedJob& job);

}  // namespace elbowroom::trace
