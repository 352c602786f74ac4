#include "engine.hpp"

#include <chrono>

#include "holders.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20U;
constexpr double kStopPatience = 10;  // s

template <class Ready>
bool comes(const Ready& ready, double patience) {
  const auto begun = std::chrono::steady_clock::now();
  while (!ready()) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() > patience) return false;
  }
  return true;
}

// Stops the holder before the copy's buffers go: a copy that waits for SMs would wait for ever.
class Held {
 public:
  explicit Held(Holder& holder) : holder_(holder) { holder_.start(); }
  ~Held() {
    try {
      holder_.stop();
      holder_.context().synchronize();
    } catch (const std::exception&) {  // the device is lost
    }
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Holder& holder_;
};

}  // namespace

std::string prove_engine(const Kernels& kernels, const Work& work, Direction direction, double patience) {
  Work small = work;
  small.bytes = kBytes;
  const auto copy = make_copy(kernels.context(), small, direction);
  copy->warm();
  Work all;
  all.sms = kernels.context().facts().sms;
  Holder holder(kernels, all, kStopPatience);
  holder.warm();
  const gpu::Stream stream(kernels.context());  // goes after the copies have ended
  const Held held(holder);
  if (!comes([&] { return holder.running(); }, patience)) {
    throw gpu::Unavailable("not all SMs could be held, so that it is unknown which engine copies",
                           "let no other process use the device");
  }
  // Alone and, as small ones are, several in a graph.
  copy->submit(stream);
  copy->submit_unit(stream);
  return comes([&] { return stream.done(); }, patience) ? "copy engine" : "SMs";
}

}  // namespace elbowroom::gpu_bench
