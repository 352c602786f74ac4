// The rest of what a call sends: buffers, cut to what was granted and without what was sent.
#pragma once

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace elbowroom::nic {

class Pieces {
 public:
  // At most IOV_MAX buffers, as for the call.
  Pieces(const iovec* buffers, std::size_t count) : rest_(buffers), count_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      left_ += buffers[i].iov_len;
    }
  }

  std::size_t left() const { return left_; }

  // The buffers of the next `bytes`; valid until the next call.
  const iovec* first(std::size_t bytes, std::size_t& count) {
    count = 0;
    std::size_t skip = done_;
    for (std::size_t i = 0; i < count_ && bytes > 0; ++i) {
      const std::size_t from = std::min(skip, rest_[i].iov_len);
      const std::size_t length = std::min(bytes, rest_[i].iov_len - from);
      skip -= from;
      if (length > 0) {
        cut_[count++] = {static_cast<char*>(rest_[i].iov_base) + from, length};
        bytes -= length;
      }
    }
    return cut_.data();
  }

  void sent(std::size_t bytes) {
    done_ += bytes;
    left_ -= bytes;
  }

 private:
  const iovec* rest_;
  std::size_t count_;
  std::size_t left_ = 0;
  std::size_t done_ = 0;
  std::array<iovec, IOV_MAX> cut_;
};

}  // namespace elbowroom::nic
