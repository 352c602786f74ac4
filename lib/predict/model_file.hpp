// The file M.json (schema elbowroom/model, docs/reference/model-file.md) as plain data, checked while it is read.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "c_interface.hpp"

namespace elbowroom::predict {

// comp_alone, comm_alone, comp_together, comm_together
constexpr int kStreamCount = 4;
using Streams = std::array<double, kStreamCount>;

using c_interface::Refusal;

struct Shape {
  std::string name;
  int cores_first_socket = 0;
  int numa_per_socket = 0;
  int sockets = 0;
  bool is_virtual = false;

  int nodes() const { return sockets * numa_per_socket; }
};

// What was measured: computing cores n_low..n_high of the first socket, and up to n_other_high of the second; whether data
// of computations, of communications was ever remote (first) and local (second) to the first socket.
struct Calibration {
  int n_low = 0;
  int n_high = 0;
  int n_other_high = 0;
  std::array<bool, 2> comp_measured{};
  std::array<bool, 2> comm_measured{};
  std::vector<int> nodes;  // the operating system's number of each node; empty: not known
};

// One set of parameters of the threshold model (thesis of P. Swartvagher, section 6.2.1), MB/s and counts of cores.
struct Parameters {
  int n_par_max = 0;
  double t_par_max = 0;
  int n_seq_max = 0;
  double t_seq_max = 0;
  double t_par_max2 = 0;
  double alpha = 0;
  double delta_l = 0;
  double delta_r = 0;
  double b_comp_seq = 0;
  double b_comm_seq = 0;
};

// `*_bands`: relative half-widths of the 90 % intervals of the streams, for the sampled placements and for the others.
struct ThresholdPart {
  std::optional<Parameters> local;
  std::optional<Parameters> remote;
  std::optional<Streams> local_bands;
  std::optional<Streams> remote_bands;
  std::optional<Streams> other_bands;
};

// What runs told of beyond situations, as bits.
enum Question : unsigned {
  asks_intensity = 1,
  asks_sizes = 2,
  asks_send = 4,
  asks_both = 8,
  asks_threads = 16,
  asks_copies = 32,
  asks_nodes = 64
};

// FLOW's parameters for loads (flow_load.hpp): rows as FlowPart::vectors, each ordered as kLoadNames, then latency (us)
// and speed of every regime of messages. `switches`: first sizes (bytes) of all regimes but the first; `intensity`
// (flop/B): that of the calibrated kernel.
struct Extension {
  std::vector<std::vector<double>> vectors;
  std::vector<double> switches;
  double intensity = 0;
};

// The same with what it rests on: bits of Question, and where the runs end.
struct LoadPart {
  Extension extension;
  Streams discrepancy{};
  unsigned measured = 0;
  bool has_latency = false;
  double intensity_high = 0;
  double size_low = 0;
  double size_high = 0;
};

// FLOW: values first, then the draws from the joint distribution, each ordered as kFlowNames. `local`, `remote` and
// `both` are the discrepancies of situations, by who computes; older files have the same everywhere.
struct FlowPart {
  std::vector<std::vector<double>> vectors;
  Streams discrepancy{};
  Streams local{};
  Streams remote{};
  Streams both{};

  const Streams& discrepancy_of(bool is_local, bool is_remote) const {
    return is_local && is_remote ? both : is_remote ? remote : local;
  }

  std::optional<LoadPart> load;
};

// Messages of s bytes take t0 + s/B (docs/reference/models.md): t0 in us with its 90 % interval, and the sizes it was
// fitted on, bytes.
struct MessageSize {
  double t0 = 0;
  double low = 0;
  double high = 0;
  double smallest = 0;
  double largest = 0;
};

struct ModelFile {
  Shape machine;
  double message_size = 0;           // bytes, of the messages of the calibration
  std::optional<MessageSize> sizes;  // how other sizes fare, where that is known
  Calibration calibration;
  std::optional<ThresholdPart> threshold;
  std::optional<ThresholdPart> robust;
  std::optional<FlowPart> flow;
};

// Throws Refusal: EBADMSG for what is damaged or no model, ENOTSUP for a newer version. Fields that are not known are
// passed over.
ModelFile read_model(std::string_view text);

// What messages of `size` bytes reach where those of the calibration reach `bandwidth`. Throws Refusal: ENOTSUP where the
// file knows one size only, EDOM where its law has no bandwidth for that one.
double bandwidth_at_size(const ModelFile& file, double bandwidth, double size);

// The content of a file; throws Refusal with what the system says, and for files too large to be a model.
std::string read_text(const std::string& path);

}  // namespace elbowroom::predict
