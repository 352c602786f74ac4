#include "protocol/touched_array.hpp"

#include "kernels/accesses.hpp"

namespace elbowroom {

TouchedArray::TouchedArray(std::size_t bytes, int node, bool writes)
    : bytes_(bytes), writes_(writes), arena_(bytes == 0 ? 1 : bytes, node), touched_(bytes) {
  write_elements(arena_.data(), bytes, value_);
}

void TouchedArray::touch(std::size_t bytes) {
  touched_ = bytes;
  if (writes_) {
    write_elements(arena_.data(), bytes, ++value_);
  } else if (read_elements(arena_.data(), bytes) != sum_of_elements(bytes, value_)) {
    read_right_ = false;
  }
}

bool TouchedArray::holds() const {
  return read_right_ && read_elements(arena_.data(), touched_) == sum_of_elements(touched_, value_);
}

}  // namespace elbowroom
