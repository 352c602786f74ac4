// Messages on a network of links that they share in equal parts: what the cost model knows of a network. Deterministic.
#pragma once

#include <cstdint>
#include <vector>

namespace elbowroom::broadcast {

struct Network {
  double latency = 1e-6;     // s of a process's link; a message passes two
  double overhead = 0.5e-6;  // s of a process for each message that it sends or receives
  double bandwidth = 10e9;   // B/s of a process's link, in each direction
  double forwarding = 0;     // s of computation that a process loses for each byte that it forwards
  int sharing = 1;           // processes of a node, which share its link; among them, messages pass memory at its rate
};

class Flows {
 public:
  // `crossing`: messages of different senders arrive at one process together, and what one of them cannot use of a link is
  // left to the others (approximately max-min fair). Without it, the sender's link is taken to be the narrower one.
  Flows(const Network& network, int processes, bool crossing);

  // What a message is, or why a process wakes: of the user.
  struct Content {
    int kind = 0;
    int edge = 0;
    std::uint64_t segment = 0;
  };

  struct Happening {
    bool sent = false;      // the message has left the links
    bool received = false;  // its receiver has it
    Content content;
  };

  double now() const { return now_; }
  void send(int from, int to, double bytes, const Content& content);
  // A message so small that it takes nothing from others.
  void post(int from, int to, double bytes, const Content& content);
  void wake(double at, const Content& content);
  // The next thing that happens; false where nothing is left.
  bool next(Happening& happening);

 private:
  struct Flow {
    Content content;
    int from = 0;
    int to = 0;
    double left = 0;  // bytes
    double rate = 0;  // B/s
    double since = 0;
    double end = 0;
  };
  struct Link {
    std::vector<int> flows;
    bool changed = false;
    double level = 0;  // B/s that it gives to a message at most
  };
  enum class What : std::uint8_t { kBegin, kEnd, kArrive, kReceive, kWake };
  struct Event {
    double at;
    std::uint32_t order;
    What what;
    int flow;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  int add(const Content& content, int from, int to, double bytes);
  void push(double at, What what, int flow);
  double occupy(int process);
  std::size_t node_of(int process) const { return static_cast<std::size_t>(process / network_.sharing); }
  Link& up(int flow) { return up_[node_of(flows_[static_cast<std::size_t>(flow)].from)]; }
  Link& down(int flow) { return down_[node_of(flows_[static_cast<std::size_t>(flow)].to)]; }
  void change(Link& link);
  void share();
  void spread_changes();
  double level(const Link& link);
  void set_rate(int flow, double rate);
  bool end(int flow, Happening& happening);
  void arrive(int flow, Happening& happening);

  Network network_;
  bool crossing_;
  double now_ = 0;
  std::uint32_t pushed_ = 0;
  std::vector<Event> queue_;  // a heap
  std::vector<Flow> flows_;
  std::vector<int> free_;
  std::vector<Link> up_;
  std::vector<Link> down_;
  std::vector<Link*> changed_;
  std::vector<double> bounds_;  // of the messages of one link
  std::vector<double> busy_until_;
};

}  // namespace elbowroom::broadcast
