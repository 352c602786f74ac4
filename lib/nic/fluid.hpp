// How nodes' NICs are shared: a fluid that every waiting flow gets an equal part of, as far as both of its ends allow.
//
// A flow is what one process sends to one other node. A flow that waits is sent to at the rate of max-min fairness over the
// egress of its node and the ingress of the other one. What it was sent is its credit: bytes that it may pass on. What no
// flow takes of an end fills this end's tokens, up to the burst, so that a message on an idle NIC does not wait.
//
// Plain data without pointers: it lies in memory that processes share. The caller holds a lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elbowroom::nic {

constexpr int kNodes = 64;
constexpr int kFlows = 512;
constexpr double kQuantum = 65536;          // bytes: a flow that wants more is not granted less
constexpr double kWindow = 262144;          // bytes of credit that a process off its core may have waiting, at least
constexpr double kLargestWindow = 1048576;  // and at most
constexpr std::int64_t kContinues = 1'000'000;  // ns in which the next message belongs to the same stream

struct Nic {
  double bandwidth = 0;         // bytes/s, of each direction of each node
  double burst = 0;             // bytes
  std::int64_t latency_ns = 0;  // before the first byte of a stream
};

struct Grant {
  std::size_t bytes = 0;      // 0: none yet
  std::int64_t wait_ns = 0;   // until there may be some, if nobody else comes
  std::int64_t since_ns = 0;  // when these bytes were first wanted
  std::int64_t ended_ns = 0;  // when both NICs had carried them, which the process may notice later
};

class Fluid {
 public:
  void start(const Nic& nic, std::int64_t now);
  const Nic& nic() const { return nic_; }

  // A flow of a process; -1 if there are too many.
  int open(int owner, int source, int target);
  void close(int flow) { flows_[static_cast<std::size_t>(flow)].owner = 0; }
  int owner(int flow) const { return flows_[static_cast<std::size_t>(flow)].owner; }

  // At most `wanted` bytes, at least the smaller one of it and kQuantum, or none. A flow without a grant waits.
  Grant take(int flow, std::size_t wanted, std::int64_t now);
  // Bytes of a grant that were not sent.
  void give_back(int flow, std::size_t bytes) {
    flows_[static_cast<std::size_t>(flow)].credit += static_cast<double>(bytes);
  }

 private:
  struct Flow {
    int owner;
    std::size_t source;  // ends
    std::size_t target;
    bool waiting;
    double credit;
    double window;
    double rate;          // bytes/ns
    double filled_at;     // bytes/ns, the last rate above 0
    std::int64_t filled;  // ns: until when it was sent to
    std::int64_t opens;   // ns: when the latency is over
    std::int64_t since;   // ns: when what it wants was first wanted
    std::int64_t last;    // ns of the last grant
  };

  bool filling(const Flow& flow) const {
    return flow.owner != 0 && flow.waiting && flow.opens <= now_ && flow.credit < flow.window;
  }
  void advance(std::int64_t now);
  std::int64_t next_change(std::int64_t now) const;
  void share();
  void begin(Flow& flow, std::int64_t now);
  Grant refuse(Flow& flow, double wanted, double missing);
  std::int64_t carried(const Flow& flow, double granted) const;

  Nic nic_;
  double rate_ = 0;  // bytes/ns of an end
  std::int64_t now_ = 0;
  int used_ = 0;  // flows up to this one were opened
  std::array<Flow, kFlows> flows_{};
  // Of the egress of each node, and of the ingress of each.
  std::array<double, 2 * kNodes> tokens_{};
  std::array<double, 2 * kNodes> left_{};  // bytes/ns that no flow takes
};

}  // namespace elbowroom::nic
