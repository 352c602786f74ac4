// What the stand-in's other libraries need of its driver.
#pragma once

#include <string>

#include "gpu/driver.hpp"
#include "gpu/stand_in/settings.hpp"

namespace elbowroom::stand_in {

// Puts a kernel into a stream: those that hold SMs by their arguments, others by their planted time over `gain`.
__attribute__((visibility("default"))) gpu::Result put_kernel(const std::string& name, int blocks, double gain,
                                                              void** arguments, gpu::StreamHandle stream);
__attribute__((visibility("default"))) const Settings& settings();

}  // namespace elbowroom::stand_in
