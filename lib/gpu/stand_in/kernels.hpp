// What the stand-in's other libraries need of its driver.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gpu/driver.hpp"
#include "gpu/stand_in/settings.hpp"

namespace elbowroom::stand_in {

#define ELBOW_SHARED __attribute__((visibility("default")))

struct Kernel {
  std::string name;
  int blocks = 1;
  double gain = 1;             // of its planted rate
  bool prefers_shared = true;  // memory of an SM, not cache
  std::function<void(double now, double done_s)> finish;
};

// D = A B, column-major BF16: computed where it is read.
struct Product {
  gpu::DevicePointer a, b, d;
  std::uint64_t m, n, k;
};

// Puts a kernel into a stream: those that hold SMs by their arguments, others by their planted time.
ELBOW_SHARED gpu::Result put_kernel(Kernel kernel, void** arguments, gpu::StreamHandle stream);
ELBOW_SHARED void finish_product(const Product& product);
ELBOW_SHARED const Settings& settings();

// A new device, where nothing uses this one or others are planted: the library stays loaded from test to test.
ELBOW_SHARED void refresh();
ELBOW_SHARED bool has_context();  // of this process
ELBOW_SHARED double pace();       // of clocks and link, up to 1

}  // namespace elbowroom::stand_in
