#include "protocol/sizes.hpp"

#include <doctest/doctest.h>

#include "protocol/request.hpp"

using namespace elbowroom;

TEST_CASE("MB counts in powers of ten and MiB in powers of two") {
  CHECK(parse_size("size", "4") == 4);
  CHECK(parse_size("size", "64MB") == 64'000'000);
  CHECK(parse_size("size", "64MiB") == std::int64_t{64} << 20);
  CHECK(parse_size("size", "1GiB") == std::int64_t{1} << 30);
}

TEST_CASE("what is no size is refused with the field and the value") {
  for (const char* text : {"", "MB", "4 MB", "1.5GiB", "-4", "4TB", "9223372036854775807GiB"}) {
    try {
      parse_size("working-set", text);
      FAIL(text);
    } catch (const RequestError& error) {
      CHECK(error.field == "working-set");
      CHECK(error.value == text);
    }
  }
}

TEST_CASE("lists of cores hold numbers and ranges") {
  CHECK(parse_core_list("cores", "0-2,6") == std::vector<int>{0, 1, 2, 6});
  for (const char* text : {"a", "1-", "3-1", "-1", "1;2"}) {
    CHECK_THROWS_AS(parse_core_list("cores", text), RequestError);
  }
}
