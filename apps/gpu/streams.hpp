// The program that answers runs (docs/reference/protocol.md): cases of gpu-bench, a repetition at a time, with MPI
// messages as one of their sides.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "case_loads.hpp"
#include "common/serve.hpp"
#include "device_access.hpp"
#include "messages.hpp"
#include "protocol/pool.hpp"

namespace elbowroom::gpu_bench {

class Streams final : public program::Program {
 public:
  // `libraries`: folders with NVRTC and cuBLASLt. A device that is not there is no error: every answer says so.
  Streams(const Job& job, const program::Settings& settings, std::vector<std::string> libraries);
  ~Streams() override;

  nlohmann::json facts() const override;
  nlohmann::json answer(const nlohmann::json& request) override;

 private:
  struct Asked;
  class Repetition;

  const Job& job_;
  Request request_;  // of the device: its number, libraries
  BoundThread submitting_;
  std::unique_ptr<DeviceAccess> device_;  // used by the submitting thread only; null on other ranks
  nlohmann::json facts_;

  void submit(const std::function<void()>& task);
  nlohmann::json measured(const Asked& asked, Messages* messages);
};

}  // namespace elbowroom::gpu_bench
