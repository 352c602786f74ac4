// A file descriptor that closes itself.
#pragma once

#include <unistd.h>

namespace elbowroom {

class Descriptor {
 public:
  // `number`: as open gives it; below 0: none.
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) {
      close(number_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace elbowroom
