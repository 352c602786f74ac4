#include "gpu/stand_in/simulation.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace elbowroom::stand_in;

namespace {

Operation operation(const char* name, double work_s, double* end, bool on_sms = false) {
  Operation one;
  one.name = name;
  one.work_s = work_s;
  one.on_sms = on_sms;
  one.finish = [end](double now, double) { *end = now; };
  return one;
}

}  // namespace

TEST_CASE("operations of a stream follow each other, those of two streams run at once") {
  Simulation simulation{{}};
  auto first = simulation.add_stream();
  auto second = simulation.add_stream();
  double a = 0, b = 0, c = 0;
  simulation.put(first, operation("h2d", 1, &a));
  simulation.put(first, operation("d2h", 2, &b));
  simulation.put(second, operation("elbow_triad", 1.5, &c, true));
  CHECK(simulation.wait([&] { return simulation.empty(); }));
  CHECK(a == doctest::Approx(1));
  CHECK(b == doctest::Approx(3));
  CHECK(c == doctest::Approx(1.5));
}

TEST_CASE("copies of one direction share their engine") {
  Simulation simulation{{}};
  double a = 0, b = 0;
  simulation.put(simulation.add_stream(), operation("h2d", 1, &a));
  simulation.put(simulation.add_stream(), operation("h2d", 2, &b));
  CHECK(simulation.wait([&] { return simulation.empty(); }));
  CHECK(a == doctest::Approx(2));
  CHECK(b == doctest::Approx(3));
}

TEST_CASE("a victim keeps the planted share while its mover runs, and all of its rate afterwards") {
  Settings settings;
  settings.interference = {{"elbow_triad", "h2d", 0.5, 0}};
  Simulation simulation{settings};
  double copy = 0, kernel = 0;
  simulation.put(simulation.add_stream(), operation("h2d", 1, &copy));
  simulation.put(simulation.add_stream(), operation("elbow_triad", 2, &kernel, true));
  CHECK(simulation.wait([&] { return simulation.empty(); }));
  CHECK(copy == doctest::Approx(1));
  CHECK(kernel == doctest::Approx(2.5));
}

TEST_CASE("a kernel waits while all SMs are held, a copy engine does not") {
  Settings settings;
  settings.lazy_loading = false;
  Simulation simulation{settings};
  std::uint32_t stop = 0;
  Operation holder = operation("elbow_hold", 0, nullptr, true);
  holder.finish = nullptr;
  holder.held = settings.sms;
  holder.stop = &stop;
  double copy = 0, kernel = 0;
  simulation.put(simulation.add_stream(), holder);
  simulation.put(simulation.add_stream(), operation("sm_d2d", 1, &kernel, true));
  simulation.put(simulation.add_stream(), operation("d2d", 1, &copy));
  CHECK(simulation.wait([&] { return copy > 0; }));
  CHECK_FALSE(simulation.wait([&] { return kernel > 0; }));
  stop = 1;
  CHECK(simulation.wait([&] { return kernel > 0; }));
}

TEST_CASE("settings refuse a key that does not exist") {
  CHECK_THROWS_WITH(parse_settings(R"({"rate": 1})"), "the stand-in has no setting rate");
  CHECK(parse_settings(R"({"rates": {"h2d": 1e9}})").rates.at("d2h") == 27e9);
}
