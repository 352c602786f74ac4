#include "simulate/simulation.hpp"

#include <cmath>

#include "simulate/random.hpp"
#include "simulate/state.hpp"

namespace elbowroom::simulate {
namespace {

constexpr std::uint64_t kMostRounds = 1U << 20;  // more than a row has, so that all of them differ

constexpr int kAhead = 4;  // lines that a channel decides on at once

Time scaled(Time cost, double work) { return static_cast<Time>(std::llround(static_cast<double>(cost) * work)); }

class Simulation {
 public:
  Simulation(const Node& node, const Experiment& experiment)
      : node_(node),
        experiment_(experiment),
        end_(experiment.warm + experiment.measure),
        random_(experiment.seed),
        wheel_(events(node, experiment)) {
    const Use use(experiment.warm, end_);
    const auto sockets = static_cast<std::size_t>(node.sockets);
    uplinks_.assign(sockets, Passage(use));
    roots_.assign(sockets, Passage(use));
    links_.assign(sockets * sockets, Link{Passage(use), node.link_credits, {}});
    for (int i = 0; i < node.nodes() * node.channels; ++i)
      channels_.push_back({Channel(node), use, {}, 0, 0, 0, false});
    jitter_ = static_cast<std::int64_t>(experiment.jitter * 1024.0);
    lines_.resize(channels_.size());
    for (Line& line : lines_) line.stage = Stage::bus;
    groups_.resize(experiment.sources.size());
    for (std::size_t i = 0; i < experiment.sources.size(); ++i) enter(i, experiment.sources[i]);
  }

  Result run() {
    for (;;) {
      const Id id = wheel_.next();
      if (id == kNone || wheel_.now() >= end_) break;
      step(id, lines_[id], wheel_.now());
    }
    return result();
  }

 private:
  // Those of the channels come first: a channel's number is that of its bus.
  static std::size_t events(const Node& node, const Experiment& experiment) {
    std::size_t count = static_cast<std::size_t>(node.nodes()) * static_cast<std::size_t>(node.channels);
    for (const Source& source : experiment.sources) {
      count += static_cast<std::size_t>(source.count) * static_cast<std::size_t>(source.window);
      if (source.messages) count += static_cast<std::size_t>(source.messages->threads);
    }
    return count;
  }

  void enter(std::size_t group, const Source& source) {
    for (int i = 0; i < source.count; ++i) {
      const std::size_t number = senders_.size();
      senders_.push_back(sender(group, source));
      const std::size_t first = lines_.size();
      for (int k = 0; k < source.window; ++k) {
        Line line;
        line.source = static_cast<std::uint32_t>(number);
        lines_.push_back(line);
      }
      if (source.messages) {
        enter_messages(number, first, source);
      } else {
        for (Id id = static_cast<Id>(first); id < lines_.size(); ++id) start(id, paced(senders_[number], 0));
      }
    }
  }

  // The threads' own accesses come from a sender of their own, one line for each thread.
  void enter_messages(std::size_t number, std::size_t first, const Source& source) {
    const Messages& messages = *source.messages;
    for (Id id = static_cast<Id>(first); id < lines_.size(); ++id) senders_[number].resting.push_back(id);
    Source setting_up;
    setting_up.socket = messages.socket;
    setting_up.node = source.node;
    setting_up.pattern = {Access::read};
    setting_up.read = messages.way;
    Sender own = sender(senders_[number].group, setting_up);
    own.counted = false;
    const std::size_t other = senders_.size();
    senders_.push_back(own);
    for (int k = 0; k < messages.threads; ++k) {
      Line line;
      line.source = static_cast<std::uint32_t>(other);
      line.thread = static_cast<std::uint32_t>(k);
      line.stage = Stage::message;
      const Id id = static_cast<Id>(lines_.size());
      lines_.push_back(line);
      senders_[number].threads.push_back({0, 0, 0, id});
      owners_.resize(senders_.size(), 0);
      owners_[other] = number;
      // Threads do not begin all at once, nor at the same phase with every seed.
      wheel_.schedule(id, static_cast<Time>(random_.below(1'000'000)));
    }
  }

  Sender sender(std::size_t group, const Source& source) {
    Sender result;
    const int target = source.node / node_.nodes_per_socket;
    const auto sockets = static_cast<std::size_t>(node_.sockets);
    const auto from = static_cast<std::size_t>(source.socket), to = static_cast<std::size_t>(target);
    result.group = group;
    result.entry = source.device ? Entry::root : Entry::uplink;
    result.station = from;
    result.remote = from != to;
    result.link = from * sockets + to;
    result.link_back = to * sockets + from;
    result.first_channel = static_cast<std::size_t>(source.node) * static_cast<std::size_t>(node_.channels);
    result.interval = source.interval;
    result.think = source.think;
    result.read = source.read;
    result.write = source.write;
    result.uplink_read = source.device ? node_.root_line : scaled(node_.uplink_read, source.uplink_work);
    result.uplink_write = source.device ? node_.root_line : scaled(node_.uplink_write, source.uplink_work);
    result.memory_read = static_cast<std::int32_t>(scaled(node_.read_line, source.memory_work));
    result.memory_write = static_cast<std::int32_t>(scaled(node_.write_line, source.memory_work));
    result.pattern = source.pattern;
    // The arrays begin anywhere in their first rows.
    for (std::size_t i = 0; i < source.pattern.size(); ++i) {
      Position position;
      position.number = random_.next();
      position.visited = static_cast<std::uint32_t>(random_.below(static_cast<std::uint64_t>(node_.channels)));
      const auto rounds = static_cast<std::uint64_t>(node_.lines_per_row / node_.lines_per_channel);
      position.round = static_cast<std::uint32_t>(random_.below(rounds));
      advance(position);
      result.positions.push_back(position);
    }
    return result;
  }

  Time jittered(Time value) {
    if (jitter_ == 0 || value == 0) return value;
    const auto shift = static_cast<std::int64_t>(random_.below(2 * static_cast<std::uint64_t>(jitter_) + 1)) - jitter_;
    return value + ((value * shift) >> 10);
  }

  // When the sender's next line leaves, if one was there at `ready`.
  Time paced(Sender& sender, Time ready) {
    const Time begin = std::max(ready, sender.free);
    const Time think = jittered(sender.think);
    sender.free = begin + std::max(jittered(sender.interval), think);
    return begin + think;
  }

  void start(Id id, Time at) {
    lines_[id].stage = Stage::issue;
    wheel_.schedule(id, at);
  }

  void step(Id id, Line& line, Time now) {
    switch (line.stage) {
      case Stage::issue: issue(id, line, senders_[line.source], now); break;
      case Stage::link: cross(id, line, senders_[line.source], now); break;
      case Stage::arrival: arrive(id, line, senders_[line.source], now); break;
      case Stage::way_back: {
        Sender& sender = senders_[line.source];
        back(id, line, sender, links_[sender.link_back].passage.pass(now, node_.link_line) + sender.read.back);
        break;
      }
      case Stage::back: delivered(id, line, senders_[line.source], now); break;
      case Stage::bus: serve(id, now); break;
      case Stage::message: set_up(id, line, now); break;
    }
  }

  // The line begins its next access, or the writing back of what it has read.
  void issue(Id id, Line& line, Sender& sender, Time now) {
    line.started = now;
    if (line.access == Access::allocate) {
      line.access = Access::write_back;
    } else {
      line.access = sender.pattern[sender.step];
      place(line, sender, sender.step);
      if (++sender.step == sender.pattern.size()) sender.step = 0;
    }
    const bool write = writes(line);
    Passage& station = sender.entry == Entry::root ? roots_[sender.station] : uplinks_[sender.station];
    const Time passed = station.pass(now, write ? sender.uplink_write : sender.uplink_read);
    line.stage = sender.remote ? Stage::link : Stage::arrival;
    wheel_.schedule(id, passed + (write ? sender.write.forward : sender.read.forward));
  }

  static bool writes(const Line& line) { return line.access == Access::store || line.access == Access::write_back; }

  // Channel and row of the next line of the array that the pattern's step walks through.
  void place(Line& line, Sender& sender, std::size_t step) const {
    Position& position = sender.positions[step];
    line.channel = static_cast<std::uint32_t>(sender.first_channel) + position.channel;
    line.row = position.row;
    if (++position.line == node_.lines_per_channel) advance(position);
  }

  // The next piece. One after the other goes to every channel, each time round from another one on, as addresses are
  // hashed: arrays that are walked through side by side do not stay in step.
  void advance(Position& position) const {
    const auto channels = static_cast<std::uint32_t>(node_.channels);
    position.line = 0;
    if (++position.visited == channels) {
      position.visited = 0;
      if (++position.round == static_cast<std::uint32_t>(node_.lines_per_row / node_.lines_per_channel)) {
        position.round = 0;
        ++position.number;
      }
      position.channel =
          static_cast<std::uint32_t>(scrambled(position.number * kMostRounds + position.round) % channels);
    } else {
      position.channel = position.channel + 1 == channels ? 0 : position.channel + 1;
    }
    position.row = row(position);
  }

  // Anywhere in the banks, and elsewhere in every channel.
  Row row(const Position& position) const {
    const std::uint64_t where = scrambled(position.number * kMostChannels + position.channel);
    return {static_cast<std::uint32_t>(where >> 32),
            static_cast<std::uint32_t>((where & 0xFFFFFFFFU) * static_cast<std::uint64_t>(node_.banks) >> 32)};
  }

  void cross(Id id, Line& line, Sender& sender, Time now) {
    Link& link = links_[sender.link];
    if (link.credits == 0) {
      link.waiting.append(wheel_, id);
      return;
    }
    --link.credits;
    enter_link(id, line, sender, link, now);
  }

  void enter_link(Id id, Line& line, const Sender& sender, Link& link, Time now) {
    const bool write = writes(line);
    const Time passed = link.passage.pass(now, write ? node_.link_line : node_.link_request);
    line.stage = Stage::arrival;
    wheel_.schedule(id, passed + (write ? sender.write.hop : sender.read.hop));
  }

  void leave_link(std::size_t number, Time now) {
    Link& link = links_[number];
    if (link.waiting.empty()) {
      ++link.credits;
      return;
    }
    const Id id = link.waiting.take(wheel_);
    enter_link(id, lines_[id], senders_[lines_[id].source], link, now);
  }

  void arrive(Id id, Line& line, Sender& sender, Time now) {
    Controlled& at = channels_[line.channel];
    const Entry entry = sender.remote ? Entry::link : sender.entry;
    if (at.waiting_lines == 0 && at.channel.room(writes(line))) {
      accept(at, id, now);
    } else {
      at.waiting[node_.round_robin ? static_cast<std::size_t>(entry) : 0].append(wheel_, id);
      ++at.waiting_lines;
      admit(at, now);
    }
    if (at.woken || !at.channel.has_work()) return;
    if (now >= at.free_at) {
      serve(line.channel, now);
    } else {
      at.woken = true;
      wheel_.schedule(line.channel, at.free_at);
    }
  }

  // Lets lines into the queues as long as the first of an entry finds room.
  void admit(Controlled& at, Time now) {
    if (!node_.round_robin) {
      WaitingLine& waiting = at.waiting[0];
      while (at.waiting_lines > 0 && at.channel.room(writes(lines_[waiting.first()]))) {
        --at.waiting_lines;
        accept(at, waiting.take(wheel_), now);
      }
      return;
    }
    std::size_t refused = 0;
    while (at.waiting_lines > 0 && refused < kEntries) {
      WaitingLine& waiting = at.waiting[at.turn];
      at.turn = at.turn + 1 == kEntries ? 0 : at.turn + 1;
      if (waiting.empty() || !at.channel.room(writes(lines_[waiting.first()]))) {
        ++refused;
        continue;
      }
      refused = 0;
      --at.waiting_lines;
      accept(at, waiting.take(wheel_), now);
    }
  }

  void accept(Controlled& at, Id id, Time now) {
    Line& line = lines_[id];
    Sender& sender = senders_[line.source];
    const bool write = writes(line);
    at.channel.admit(write, write ? kNone : id, line.row, write ? sender.memory_write : sender.memory_read, now);
    if (write) back(id, line, sender, now + sender.write.back);
    if (sender.remote) leave_link(sender.link, now);
  }

  // Only while the channel has work and its bus is free. Controllers schedule commands ahead of the data: a few lines
  // are decided on at once.
  void serve(Id number, Time now) {
    Controlled& at = channels_[number];
    at.free_at = now;
    for (int i = 0; i < kAhead && at.channel.has_work(); ++i) {
      const Channel::Served served = at.channel.serve(at.free_at);
      at.free_at = served.end;
      if (served.request != kNone) serve_read(served.request, served.end);
    }
    at.use.add(now, at.free_at);
    admit(at, now);
    at.woken = at.channel.has_work();
    if (at.woken) wheel_.schedule(number, at.free_at);
  }

  void serve_read(Id id, Time end) {
    Line& line = lines_[id];
    Sender& sender = senders_[line.source];
    if (sender.remote) {
      line.stage = Stage::way_back;
      wheel_.schedule(id, end);
    } else {
      back(id, line, sender, end + sender.read.back);
    }
  }

  // The line is with its source at `then`, not before now. Of endless sources, whose lines come back in order, the
  // next access is scheduled at once.
  void back(Id id, Line& line, Sender& sender, Time then) {
    if (sender.counted && then >= experiment_.warm && then < end_) {
      groups_[sender.group].latencies.count(then - line.started);
    }
    ++requests_;
    if (line.access == Access::allocate) {
      start(id, then);
    } else if (sender.threads.empty() && sender.counted) {
      start(id, paced(sender, then));
    } else {
      line.stage = Stage::back;
      wheel_.schedule(id, then);
    }
  }

  // A line of a message, or of what a thread reads between two messages, is back.
  void delivered(Id id, Line& line, Sender& sender, Time now) {
    if (!sender.counted) {
      set_up(id, line, now);
      return;
    }
    Thread& thread = sender.threads[line.thread];
    if (--thread.to_come == 0) {
      if (now >= experiment_.warm) ++groups_[sender.group].messages;
      set_up(thread.event, lines_[thread.event], now);
    }
    if (!feed(id, sender, now)) sender.resting.push_back(id);
  }

  // A thread between two messages: its accesses one after the other, its pause, and then the next message.
  void set_up(Id id, Line& line, Time now) {
    Sender& sender = senders_[owners_[line.source]];
    const Messages& messages = *experiment_.sources[sender.group].messages;
    Thread& thread = sender.threads[line.thread];
    if (line.stage != Stage::message && thread.accesses < messages.accesses) {
      ++thread.accesses;
      start(id, now);
    } else if (line.stage != Stage::message) {
      line.stage = Stage::message;
      wheel_.schedule(id, now + jittered(messages.pause));
    } else {
      line.stage = Stage::back;
      thread = {messages.lines, messages.lines, 0, id};
      while (!sender.resting.empty() && feed(sender.resting.back(), sender, now)) sender.resting.pop_back();
    }
  }

  // The line goes on for the next thread, in turn, that has something to send.
  bool feed(Id id, Sender& sender, Time now) {
    for (std::size_t i = 0; i < sender.threads.size(); ++i) {
      sender.turn = sender.turn + 1 >= sender.threads.size() ? 0 : sender.turn + 1;
      Thread& thread = sender.threads[sender.turn];
      if (thread.to_issue > 0) {
        --thread.to_issue;
        lines_[id].thread = static_cast<std::uint32_t>(sender.turn);
        start(id, paced(sender, now));
        return true;
      }
    }
    return false;
  }

  Result result() const {
    Result value;
    value.requests = requests_;
    for (const Group& group : groups_) {
      const Latencies& times = group.latencies;
      value.sources.push_back({times.number(), group.messages, times.mean(), times.quantile(0.9)});
    }
    for (const Passage& uplink : uplinks_) value.uplinks.push_back(uplink.use.share());
    for (const Passage& root : roots_) value.roots.push_back(root.use.share());
    for (const Link& link : links_) value.links.push_back(link.passage.use.share());
    const auto channels = static_cast<std::size_t>(node_.channels);
    for (std::size_t first = 0; first < channels_.size(); first += channels) {
      double sum = 0;
      for (std::size_t i = first; i < first + channels; ++i) sum += channels_[i].use.share();
      value.memories.push_back(sum / node_.channels);
    }
    return value;
  }

  const Node& node_;
  const Experiment& experiment_;
  Time end_;
  Random random_;
  Wheel wheel_;
  std::int64_t jitter_ = 0;
  std::vector<Passage> uplinks_, roots_;
  std::vector<Link> links_;
  std::vector<Controlled> channels_;
  std::vector<Line> lines_;
  std::vector<Sender> senders_;
  std::vector<std::size_t> owners_;  // of senders that set messages up: whose messages
  std::vector<Group> groups_;
  std::uint64_t requests_ = 0;
};

}  // namespace

Result simulate(const Node& node, const Experiment& experiment) { return Simulation(node, experiment).run(); }

}  // namespace elbowroom::simulate
