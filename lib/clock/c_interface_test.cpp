// What all C interfaces have in common.
#include "c_interface.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>
#include <system_error>

using namespace elbowroom::c_interface;

namespace {

// A structure as the first release had it, as this one has it, and as a later one may.
struct First {
  std::size_t size;
  int rank;
  int ranks;
};
struct Now {
  std::size_t size;
  int rank;
  int ranks;
  double added;
};
struct Later {
  Now now;
  double unknown;
};

template <typename Given>
Now taken_from(const Given& given) {
  return taken(reinterpret_cast<const Now*>(&given), "settings", sizeof(First));
}

template <typename Error, typename... Arguments>
int guarded(Arguments... arguments) {
  return guard([&] { throw Error(arguments...); });
}

}  // namespace

TEST_CASE("Exceptions become errno and a sentence") {
  CHECK(guarded<Refusal>(EDOM, std::string("n 3: outside")) == -1);
  CHECK(errno == EDOM);
  CHECK(std::string(last_error) == "n 3: outside");
  CHECK(guarded<std::bad_alloc>() == -1);
  CHECK(errno == ENOMEM);
  CHECK(guarded<std::system_error>(std::make_error_code(std::errc::permission_denied)) == -1);
  CHECK(errno == EACCES);
  CHECK(guarded<std::runtime_error>("100 % odd") == -1);
  CHECK(errno == EIO);
  CHECK(std::string(last_error) == "100 % odd");
}

TEST_CASE("A guarded call returns what its work returns, and NULL or -1 where it throws") {
  int number = 7;
  CHECK(guard([] {}) == 0);
  CHECK(guard([] { return 5; }) == 5);
  CHECK(guard([&] { return &number; }) == &number);
  CHECK(guard([]() -> int* { throw Refusal(EINVAL, "no"); }) == nullptr);
  CHECK(guard([]() -> long { throw Refusal(EINVAL, "no"); }) == -1L);
}

TEST_CASE("A structure of an older release has zeros for what it lacks") {
  const First older{sizeof(First), 2, 4};
  const Now copy = taken_from(older);
  CHECK(copy.rank == 2);
  CHECK(copy.ranks == 4);
  CHECK(copy.added == 0.0);
  CHECK(copy.size == sizeof(Now));
}

TEST_CASE("A structure of a later release is taken if what it adds is zero") {
  Later later{{sizeof(Later), 2, 4, 0.5}, 0.0};
  CHECK(taken_from(later).added == 0.5);
  later.unknown = 1;
  CHECK_THROWS_WITH_AS(taken_from(later), doctest::Contains("fields that this release does not know"), Refusal);
}

TEST_CASE("A structure without its size, or NULL, is refused") {
  for (const std::size_t size : {std::size_t{0}, sizeof(First) - 1, std::size_t{1} << 40}) {
    const Now wrong{size, 0, 1, 0.0};
    CHECK_THROWS_WITH_AS(taken_from(wrong), doctest::Contains("set it to sizeof"), Refusal);
  }
  CHECK_THROWS_WITH_AS(taken(static_cast<const Now*>(nullptr), "settings"), "settings: is NULL", Refusal);
}

TEST_CASE("A result is given as far as the caller's structure has room for it") {
  Later later{{sizeof(First), 0, 0, -1.0}, -1.0};
  const Now result{sizeof(Now), 1, 2, 3.0};
  give(result, &later.now);
  CHECK(later.now.ranks == 2);
  CHECK(later.now.added == -1.0);
  CHECK(later.now.size == sizeof(First));
  later.now.size = sizeof(Later);
  give(result, &later.now);
  CHECK(later.now.added == 3.0);
  CHECK(later.unknown == -1.0);
  CHECK(later.now.size == sizeof(Later));
}
