#include "protocol/line_source.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

using namespace elbowroom;

namespace {

struct Pipe {
  Pipe() { REQUIRE(pipe(ends) == 0); }
  ~Pipe() {
    close(ends[0]);
    finish();
  }
  void write(const std::string& text) const {
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void finish() {
    if (ends[1] >= 0) {
      close(ends[1]);
      ends[1] = -1;
    }
  }
  int ends[2] = {-1, -1};
};

bool never() { return false; }

}  // namespace

TEST_CASE("lines come one by one however they were written, the last one also without its end") {
  Pipe pipe;
  pipe.write("one\ntw");
  pipe.write("o\n\nlast");
  pipe.finish();
  LineSource lines(pipe.ends[0], never);
  CHECK(lines.next() == "one");
  CHECK(lines.next() == "two");
  CHECK(lines.next() == "");
  CHECK(lines.next() == "last");
  CHECK_FALSE(lines.next().has_value());
}

TEST_CASE("a line longer than what is read at once is whole") {
  Pipe pipe;
  const std::string part(40000, 'x');
  LineSource lines(pipe.ends[0], never);
  pipe.write(part);
  pipe.write("\n");
  CHECK(lines.next() == part);
}

TEST_CASE("an open stream whose user is gone ends") {
  Pipe pipe;
  int calls = 0;
  LineSource lines(pipe.ends[0], [&] { return ++calls == 2; });
  CHECK_FALSE(lines.next().has_value());
  CHECK(calls == 2);
}

TEST_CASE("the grandparent is found and stays the same while it lives") {
  CHECK(grandparent() >= 0);
  CHECK(grandparent() == grandparent());
}
