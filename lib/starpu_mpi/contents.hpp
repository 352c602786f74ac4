// The bytes of a StarPU handle in main memory. The handle must be acquired there meanwhile.
#pragma once

#include <starpu.h>

#include <cstddef>
#include <span>
#include <vector>

namespace elbowroom::starpu_mpi {

class Contents {
 public:
  // Throws std::invalid_argument for an interface that is not a variable, a vector, a matrix or a block.
  explicit Contents(starpu_data_handle_t handle);

  // Whether these bytes are a copy, since those of the handle have gaps (a tile of a matrix).
  bool copied() const { return copied_; }
  std::span<std::byte> bytes() { return bytes_; }
  void copy_out();   // of the handle
  void copy_back();  // into the handle

 private:
  template <typename Copy>
  void each_row(const Copy& copy);

  std::byte* first_ = nullptr;
  std::size_t row_ = 0;  // bytes
  std::size_t rows_ = 1, planes_ = 1;
  std::size_t between_rows_ = 0, between_planes_ = 0;
  bool copied_ = false;
  std::vector<std::byte> copy_;
  std::span<std::byte> bytes_;
};

}  // namespace elbowroom::starpu_mpi
