// What the stand-in plants: a JSON document in the file that ELBOW_STAND_IN names. Everything has a default.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace elbowroom::stand_in {

// While `mover` runs, `victim` keeps this share of its rate. Names: h2d, d2h, d2d (copy engines), sm_d2d (a copy that the
// driver makes by SMs), or a kernel's. `held`: only while the mover has so many SMs; 0: any number.
struct Interference {
  std::string victim;
  std::string mover;
  double kept = 1;
  int held = 0;
  bool operator==(const Interference&) const = default;
};

struct Settings {
  int sms = 8;
  int capability = 90;  // 90 is compute capability 9.0
  int driver_version = 12080;
  int devices = 1;
  std::size_t memory = std::size_t{1} << 30U;  // bytes of the device
  bool virtual_clock = true;                   // time passes by what is waited for, else by the host's clock
  double query_s = 1e-6;                       // what a query takes on the virtual clock
  double submit_s = 2e-6;                  // what a launch, a copy or the launch of a graph takes the submitter there
  std::map<std::string, double> rates = {  // bytes/s
      {"h2d", 25e9},
      {"d2h", 27e9},
      {"d2d", 80e9},
      {"sm_d2d", 90e9},
      {"elbow_copy_per_sm", 2.5e9}};
  std::map<std::string, double> kernels = {  // s
      {"elbow_triad", 100e-6},
      {"elbow_small", 3e-6},
      {"elbow_sweep", 20e-6},
      {"gemm", 200e-6},
      {"gemm_target", 200e-6}};
  std::vector<Interference> interference;
  double host_flag_kept = 0.55;  // of all other kernels, while a kernel polls a flag in host memory
  double zeros_gain = 1.13;      // of gemm, if its first matrix is zeros

  bool lazy_loading = true;  // a kernel's first launch waits until no SM is held, as CUDA loads it then
  int connections = 8;       // hardware queues; CUDA_DEVICE_MAX_CONNECTIONS sets others
  double rise_s = 0;         // s of work until clocks and link are as fast as they get; 0 they are so at once
  double copy_lag_s = 0;     // s after its start until elbow_copy copies
  std::string name = "stand-in";
  int clock_khz = 0;      // most of the SMs; 0 the driver does not know, as for the next two
  int memory_khz = 0;     // of the memory
  int bus_bits = 0;       // of the memory
  double power_w = 350;   // now
  unsigned throttle = 0;  // bits of NVML's reasons

  // Faults.
  bool busy = false;                // the device has another process' context, and is exclusive
  bool pinned_refused = false;      // host memory cannot be pinned
  int lost_after = 0;               // operations until the device is lost; 0 never
  bool batch_on_sms = false;        // the batch copy is a kernel, although it is meant not to be
  bool holders_share = false;       // all holders report the same SM
  bool no_compiler = false;         // NVRTC does not know the device
  std::vector<unsigned> processes;  // ids of other processes on the device
  int link_width = 16;              // PCIe lanes now, of 16
  bool host_pids = false;           // NVML's id of this process is not its own: it is in a container
  bool stop_ignored = false;        // kernels that hold SMs never end
  bool carveout_ignored = false;    // a preferred carve-out of shared memory is not taken
  int blocks_per_sm = 1;            // of a kernel that takes all shared memory
  bool gemm_wrong = false;          // half of a product's columns are not computed

  bool operator==(const Settings&) const = default;
};

// Throws std::runtime_error with a sentence where the text is no JSON or has a key that does not exist.
Settings parse_settings(const std::string& text);
Settings settings_from_environment();  // defaults without ELBOW_STAND_IN

}  // namespace elbowroom::stand_in
