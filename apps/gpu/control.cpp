#include "load_kinds.hpp"

namespace elbowroom::gpu_bench {
namespace {

class Control final : public Load {
 public:
  explicit Control(const gpu::Context& context) : context_(context), event_(context) {}
  const char* unit() const override { return ""; }
  void start() override {
    const gpu::Stream stream(context_);
    event_.record(stream);
    stream.synchronize();
  }
  void poll() override {
    event_.done();
    ++asked_;
  }
  bool running() override { return true; }
  void begin() override { begun_ = asked_; }
  void end() override { ended_ = asked_; }
  void stop() override {}
  Sample sample() const override { return {.units = ended_ - begun_}; }

 private:
  const gpu::Context& context_;
  gpu::Event event_;
  std::size_t asked_ = 0;
  std::size_t begun_ = 0;
  std::size_t ended_ = 0;
};

}  // namespace

std::unique_ptr<Load> make_control(const gpu::Context& context) { return std::make_unique<Control>(context); }

}  // namespace elbowroom::gpu_bench
