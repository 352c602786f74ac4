// What cannot be done, and the errno that says of which kind.
#pragma once

#include "c_interface.hpp"

namespace elbowroom::trace {

using c_interface::Refusal;

}  // namespace elbowroom::trace
