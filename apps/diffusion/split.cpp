#include "diffusion/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "diffusion/device_block.hpp"
#include "diffusion/work.hpp"
#include "machine/machine.hpp"
#include "protocol/pool.hpp"
#include "protocol/request.hpp"

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;

constexpr double kStable = 0.9;  // of the longest stable step, as the solver takes by default
constexpr double kRoom = 0.95;   // of the device's memory: the rest is the context's and the kernels'

// Computing threads, one on each core.
class Threads {
 public:
  explicit Threads(const std::vector<int>& cores) {
    for (const int core : cores) {
      threads_.push_back(std::make_unique<BoundThread>(core, [](int own) { Machine::here().bind_this_thread(own); }));
    }
  }
  std::size_t count() const { return threads_.size(); }
  void post(const std::function<void(std::size_t)>& task) {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      threads_[i]->post([task, i] { task(i); });
    }
  }
  void wait() {
    for (const auto& thread : threads_) {
      thread->wait();
    }
  }
  void each(const std::function<void(std::size_t)>& task) {
    post(task);
    wait();
  }

 private:
  std::vector<std::unique_ptr<BoundThread>> threads_;
};

// Both sides of one mesh: part 0 is the cores', part 1 the accelerator's; a side without cells is not there.
class SplitSteps {
 public:
  SplitSteps(const Mesh& mesh, const SplitRequest& request) : medium_(mesh, {1, 1}), threads_(request.cores) {
    const auto on_host = static_cast<CellId>(std::llround((1 - request.w) * static_cast<double>(mesh.cells())));
    std::vector<std::int32_t> part(static_cast<std::size_t>(mesh.cells()), 0);
    std::fill(part.begin() + on_host, part.end(), 1);
    const double dt = kStable * longest_step(mesh, medium_);
    if (on_host > 0) {
      host_.emplace(mesh, medium_, make_part(mesh, part, 0, Order::tiles), Machine::here().nodes().front().number);
      work_.emplace(*host_, threads_.count());
      const auto place = places(mesh, host_->part());
      threads_.each([&](std::size_t thread) {
        work_->fill(thread, place, dt);
        work_->begin(thread);
      });
    }
    if (on_host < mesh.cells()) {
      add_device(mesh, request, part, dt);
    }
  }

  void run(std::int64_t step) {
    if (device_) {
      device_->start(step);
    }
    if (host_) {
      threads_.each([&](std::size_t thread) { work_->separator(thread, step); });
      threads_.post([this, step](std::size_t thread) { work_->interior(thread, step); });
    }
    if (host_ && device_) {
      exchange(step);
    }
    if (host_) {
      threads_.wait();
    }
    if (device_) {
      device_->finish();
    }
  }

  json record(std::int64_t steps) const {
    json record = {{"host_cells", host_ ? host_->part().cells : 0},
                   {"device_cells", mirror_ ? mirror_->part().cells : 0}};
    bool valid = true;
    std::uint64_t checksum = 0;
    if (device_) {
      device_->fetch(steps, *mirror_);
      record["device"] = context_->facts().name;
    }
    for (const Block* block : {host_ ? &*host_ : nullptr, mirror_ ? &*mirror_ : nullptr}) {
      if (block != nullptr) {
        valid = valid && block->follows(steps);
        checksum += block->checksum(steps);
      }
    }
    const std::int64_t sent = host_ && mirror_ ? host_->part().cells_sent() + mirror_->part().cells_sent() : 0;
    record["halo_bytes"] = sent * static_cast<std::int64_t>(sizeof(double));
    record["valid"] = valid;
    record["checksum"] = fmt::format("{:016x}", checksum);
    return record;
  }

 private:
  void add_device(const Mesh& mesh, const SplitRequest& request, const std::vector<std::int32_t>& part, double dt) {
    driver_.emplace();
    context_.emplace(*driver_, request.device);
    const double room = kRoom * static_cast<double>(context_->facts().memory);
    const double all = kDeviceCellBytes * static_cast<double>(mesh.cells());
    if (request.w * all > room) {
      throw RequestError("w", fmt::format("{:g}", request.w),
                         fmt::format("the device's memory of {:.3g} GB does not hold so many of the {} cells",
                                     static_cast<double>(context_->facts().memory) * 1e-9, mesh.cells()),
                         fmt::format("give at most {:.4f}", std::floor(1e4 * room / all) * 1e-4));
    }
    mirror_.emplace(mesh, medium_, make_part(mesh, part, 1, Order::tiles), Machine::here().nodes().front().number);
    mirror_->fill(places(mesh, mirror_->part()), dt, 0, mirror_->slice_count());
    mirror_->begin(0, static_cast<std::size_t>(mirror_->part().all()));
    device_.emplace(*context_, request.libraries, *mirror_);
  }

  // The values of each side's separator into the other one's ghosts: both list the cells by rising number.
  void exchange(std::int64_t step) {
    const Link& here = host_->part().links.front();
    const Link& there = mirror_->part().links.front();
    double* field = host_->field(step);
    for (std::size_t i = 0; i < here.send.size(); ++i) {
      device_->ghost_values()[i] = field[here.send[i]];
    }
    device_->wait_for_separator();
    for (std::size_t i = 0; i < there.send.size(); ++i) {
      field[here.first_ghost + static_cast<std::int32_t>(i)] = device_->separator_values()[there.send[i]];
    }
    device_->send_ghosts(step);
  }

  Medium medium_;
  Threads threads_;
  std::optional<Block> host_;
  std::optional<Diffusion> work_;
  std::optional<gpu::Driver> driver_;
  std::optional<gpu::Context> context_;
  std::optional<Block> mirror_;  // the accelerator's cells in host memory: what it starts with, and is checked by
  std::optional<DeviceBlock> device_;
};

void check(const SplitRequest& request) {
  if (!(request.w >= 0 && request.w <= 1)) {
    throw RequestError("w", fmt::format("{:g}", request.w), "is not a share of the cells", "give 0 to 1");
  }
  if (request.steps < 1) {
    throw RequestError("steps", std::to_string(request.steps), "there is at least one step", "give 1 or more");
  }
  for (const int core : request.cores) {
    if (Machine::here().core(core) == nullptr) {
      throw RequestError("cores", std::to_string(core), "is not a core of this machine", "see elbowroom doctor");
    }
  }
  if (request.cores.empty()) {
    throw RequestError("cores", "", "no core is named that computes", "name at least one");
  }
}

}  // namespace

json run_split(const Mesh& mesh, const SplitRequest& request) {
  check(request);
  try {
    SplitSteps split(mesh, request);
    json seconds = json::array();
    for (std::int64_t step = 1; step <= request.steps; ++step) {
      const std::int64_t begun = now_ns();
      split.run(step);
      seconds.push_back(static_cast<double>(now_ns() - begun) * 1e-9);
    }
    json record = split.record(request.steps);
    record["cells"] = mesh.cells();
    record["w"] = request.w;
    record["steps"] = request.steps;
    record["step_s"] = seconds;
    return record;
  } catch (const gpu::Unavailable& error) {
    throw RequestError("device", std::to_string(request.device), error.what(), error.hint(), "machine");
  } catch (const gpu::GpuError& error) {
    throw RequestError("device", std::to_string(request.device), error.what(), "see elbowroom doctor", "machine");
  }
}

}  // namespace elbowroom::diffusion
