#include "protocol/payload.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace elbowroom;

TEST_CASE("a filled message is recognised at every size and refused with another seed") {
  for (const std::size_t size : {1UL, 3UL, 4UL, 7UL, 8UL, 9UL, 63UL, 127UL, 128UL, 1001UL, 65536UL}) {
    std::vector<unsigned char> message(size);
    fill_message(message.data(), size, 42);
    CHECK(message_holds(message.data(), size, 42));
    CHECK(stamp_holds(message.data(), size, 42));
    CHECK_FALSE(message_holds(message.data(), size, 43));
    CHECK_FALSE(stamp_holds(message.data(), size, 43));
  }
}

TEST_CASE("one wrong byte anywhere is seen by the whole check") {
  std::vector<unsigned char> message(1003);
  fill_message(message.data(), message.size(), 7);
  for (std::size_t i = 0; i < message.size(); ++i) {
    message[i] ^= 1U;
    CHECK_FALSE(message_holds(message.data(), message.size(), 7));
    message[i] ^= 1U;
  }
}

TEST_CASE("stamps replace one another and reach the first and the last byte") {
  std::vector<unsigned char> message(1003, 0);
  stamp_message(message.data(), message.size(), 1);
  CHECK(stamp_holds(message.data(), message.size(), 1));
  stamp_message(message.data(), message.size(), 2);
  CHECK(stamp_holds(message.data(), message.size(), 2));
  CHECK_FALSE(stamp_holds(message.data(), message.size(), 1));
  for (const std::size_t place : {std::size_t{0}, message.size() - 1}) {
    message[place] ^= 1U;
    CHECK_FALSE(stamp_holds(message.data(), message.size(), 2));
    message[place] ^= 1U;
  }
}

TEST_CASE("a message too short for a word is stamped whole") {
  unsigned char message[4] = {0, 0, 0, 0};
  stamp_message(message, 4, 9);
  CHECK(stamp_holds(message, 4, 9));
  CHECK_FALSE(stamp_holds(message, 4, 10));
}
