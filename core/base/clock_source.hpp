// Whether the processor's counter can be the clock.
#pragma once

#include <string>
#include <string_view>

namespace elbowroom {

// Empty when the counter (TSC, cntvct_el0) is invariant and the kernel itself keeps time with it, else the reason
// against it. The texts are /proc/cpuinfo and the name of the kernel's clock source.
std::string counter_refusal_in(std::string_view cpuinfo, std::string_view clocksource, std::string_view architecture);
std::string counter_refusal();

}  // namespace elbowroom
