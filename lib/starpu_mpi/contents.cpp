#include "contents.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

namespace elbowroom::starpu_mpi {
namespace {

template <typename Interface>
const Interface& in_main_memory(starpu_data_handle_t handle) {
  return *static_cast<const Interface*>(starpu_data_get_interface_on_node(handle, STARPU_MAIN_RAM));
}

std::byte* address(std::uintptr_t pointer) { return reinterpret_cast<std::byte*>(pointer); }

}  // namespace

Contents::Contents(starpu_data_handle_t handle) {
  const auto id = starpu_data_get_interface_id(handle);
  if (id == STARPU_VARIABLE_INTERFACE_ID) {
    const auto& one = in_main_memory<starpu_variable_interface>(handle);
    first_ = address(one.ptr);
    row_ = one.elemsize;
  } else if (id == STARPU_VECTOR_INTERFACE_ID) {
    const auto& vector = in_main_memory<starpu_vector_interface>(handle);
    first_ = address(vector.ptr);
    row_ = vector.nx * vector.elemsize;
  } else if (id == STARPU_MATRIX_INTERFACE_ID) {
    const auto& matrix = in_main_memory<starpu_matrix_interface>(handle);
    first_ = address(matrix.ptr);
    row_ = matrix.nx * matrix.elemsize;
    rows_ = matrix.ny;
    between_rows_ = matrix.ld * matrix.elemsize;
  } else if (id == STARPU_BLOCK_INTERFACE_ID) {
    const auto& block = in_main_memory<starpu_block_interface>(handle);
    first_ = address(block.ptr);
    row_ = block.nx * block.elemsize;
    rows_ = block.ny;
    planes_ = block.nz;
    between_rows_ = block.ldy * block.elemsize;
    between_planes_ = block.ldz * block.elemsize;
  } else {
    throw std::invalid_argument("interface " + std::to_string(id) +
                                " of the data: cannot be sent; register a variable, a vector, a matrix or a block");
  }
  copied_ = (rows_ > 1 && between_rows_ != row_) || (planes_ > 1 && between_planes_ != rows_ * row_);
  const std::size_t size = row_ * rows_ * planes_;
  if (copied_) copy_.resize(size);
  bytes_ = copied_ ? std::span(copy_) : std::span(first_, size);
}

template <typename Copy>
void Contents::each_row(const Copy& copy) {
  std::byte* at = bytes_.data();
  for (std::size_t plane = 0; plane < planes_; ++plane) {
    for (std::size_t row = 0; row < rows_; ++row, at += row_) {
      copy(at, first_ + plane * between_planes_ + row * between_rows_);
    }
  }
}

void Contents::copy_out() {
  if (copied_) each_row([this](std::byte* here, const std::byte* there) { std::memcpy(here, there, row_); });
}

void Contents::copy_back() {
  if (copied_) each_row([this](const std::byte* here, std::byte* there) { std::memcpy(there, here, row_); });
}

}  // namespace elbowroom::starpu_mpi
