#include "nic/pieces.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using elbowroom::nic::Pieces;

TEST_CASE("Buffers sent in pieces of any size are sent once and in order") {
  std::vector<std::string> texts = {"", "abc", "d", "", "efghij", ""};
  std::vector<iovec> buffers;
  for (std::string& text : texts) {
    buffers.push_back({text.data(), text.size()});
  }
  for (std::size_t granted = 1; granted <= 12; ++granted) {
    for (std::size_t taken = 1; taken <= granted; ++taken) {
      CAPTURE(granted);
      CAPTURE(taken);
      Pieces pieces(buffers.data(), buffers.size());
      std::string sent;
      while (pieces.left() > 0) {
        std::size_t count = 0;
        const iovec* first = pieces.first(granted, count);
        std::string one;
        for (std::size_t i = 0; i < count; ++i) {
          one.append(static_cast<const char*>(first[i].iov_base), first[i].iov_len);
        }
        CHECK(one.size() == std::min(granted, pieces.left()));
        one.resize(std::min(taken, one.size()));  // the socket took less
        pieces.sent(one.size());
        sent += one;
      }
      CHECK(sent == "abcdefghij");
    }
  }
}
