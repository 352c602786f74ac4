// Batches of messages in a window: of fitting length, until they are steady, then as long as the window lasts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

namespace elbowroom::program {

struct BatchWindow {
  double seconds = 0.12;  // measured, at least
  std::size_t steady_window = 7;
  double steady_cov = 0.05;
  double limit = 1;  // s to wait for steady batches
};

// Of a request of docs/reference/protocol.md. Throws RequestError.
BatchWindow read_window(const nlohmann::json& request);

struct Batch {
  std::int64_t took_ns;
  std::int64_t count;  // of messages or round trips
};

struct Batches {
  std::vector<Batch> measured;
  std::int64_t start_ns = 0;  // of all that follow the calibration
  std::int64_t end_ns = 0;
  std::size_t before = 0;  // batches that are not counted: the calibration, and those before the steady ones
  bool steady = false;

  double seconds() const;
  std::int64_t count() const;
};

// `timed(count)` runs a batch of that many and returns the nanoseconds that it took.
Batches measure_batches(const BatchWindow& window, const std::function<std::int64_t(std::int64_t)>& timed);

}  // namespace elbowroom::program
