#include "test_schedules.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "test_loopback.hpp"

namespace elbowroom::broadcast {
namespace {

// Byte `at` of message `number`.
std::byte content(std::size_t number, std::size_t at) {
  const std::uint64_t bits = (number * 0x9E3779B97F4A7C15U) ^ (at * 0xBF58476D1CE4E5B9U);
  return static_cast<std::byte>(bits >> 40);
}

std::vector<std::byte> contents(std::size_t number, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at < size; ++at) bytes[at] = content(number, at);
  return bytes;
}

// What one rank does, in the order of the schedule: it sends, or receives from, each message that concerns it.
class Program {
 public:
  Program(const Schedule& schedule, Transport& transport, int rank)
      : schedule_(schedule), engine_(transport, schedule.settings), rank_(rank) {
    for (std::size_t number = 0; number < schedule.messages.size(); ++number) {
      const ScheduledMessage& message = schedule.messages[number];
      const bool receives = std::any_of(message.destinations.begin(), message.destinations.end(),
                                        [rank](const Destination& to) { return to.rank == rank; });
      if (message.root == rank || receives) steps_.push_back({number, {}, 0, false, false});
    }
    if (schedule.shuffled) shuffle();
  }

  bool may_post() const {
    if (next_ == steps_.size()) return false;
    return schedule_.ahead == 0 || next_ < over_ + schedule_.ahead;
  }

  void post() {
    Step& step = steps_[next_++];
    const ScheduledMessage& message = schedule_.messages[step.number];
    if (message.root == rank_) {
      step.buffer = contents(step.number, message.size);
      step.received = true;
      step.operation = engine_.send(message.context, message.tag, step.buffer, message.destinations, message.way);
    } else {
      step.buffer.resize(message.size);
      step.operation = engine_.receive({message.context, message.root, message.tag}, step.buffer);
    }
    take_events();
  }

  // Whether anything happened.
  bool progress() {
    const bool any = engine_.progress();
    take_events();
    return any;
  }

  bool over() const { return over_ == steps_.size() && engine_.idle() && engine_.pool_used() == 0; }
  const std::string& fault() const { return fault_; }

  std::string state() {
    std::string text = "rank " + std::to_string(rank_) + ": " + std::to_string(over_) + " of " +
                       std::to_string(steps_.size()) + " over";
    for (const Stall& stall : engine_.stalls(0)) {
      text += "; root " + std::to_string(stall.key.root) + " tag " + std::to_string(stall.key.tag) + " waits for";
      for (const int rank : stall.ranks) text += " " + std::to_string(rank);
    }
    return text + "\n";
  }

 private:
  struct Step {
    std::size_t number;
    std::vector<std::byte> buffer;
    Operation operation;
    bool received;
    bool released;
  };

  void shuffle() {
    std::mt19937_64 random(schedule_.seed + static_cast<std::uint64_t>(rank_));
    std::shuffle(steps_.begin(), steps_.end(), random);
    std::map<Key, std::vector<std::size_t>> places;
    for (std::size_t place = 0; place < steps_.size(); ++place) {
      const ScheduledMessage& message = schedule_.messages[steps_[place].number];
      places[{message.context, message.root, message.tag}].push_back(place);
    }
    for (const auto& [key, of_key] : places) {
      std::vector<std::size_t> numbers;
      for (const std::size_t place : of_key) numbers.push_back(steps_[place].number);
      std::sort(numbers.begin(), numbers.end());
      for (std::size_t i = 0; i < numbers.size(); ++i) steps_[of_key[i]].number = numbers[i];
    }
  }

  void take_events() {
    while (const std::optional<Event> event = engine_.next_event()) {
      const auto step = std::find_if(steps_.begin(), steps_.end(),
                                     [&](const Step& item) { return item.operation == event->operation; });
      if (event->kind == Event::Kind::kFailed || step == steps_.end()) {
        fault_ = "rank " + std::to_string(rank_) + ": " + event->text;
        return;
      }
      take(*step, event->kind);
    }
  }

  void take(Step& step, Event::Kind kind) {
    const std::string name = "rank " + std::to_string(rank_) + ", message " + std::to_string(step.number);
    if (kind == Event::Kind::kReceived) {
      if (step.received) fault_ = name + ": received twice";
      step.received = true;
      if (step.buffer != contents(step.number, step.buffer.size())) fault_ = name + ": other bytes than were sent";
      return;
    }
    if (!step.received || step.released) fault_ = name + ": released before it was received, or twice";
    step.released = true;
    ++over_;
    // Whoever still reads the buffer now sends nonsense.
    std::fill(step.buffer.begin(), step.buffer.end(), std::byte{0xA5});
  }

  const Schedule& schedule_;
  Engine engine_;
  int rank_;
  std::vector<Step> steps_;
  std::size_t next_ = 0;
  std::size_t over_ = 0;
  std::string fault_;
};

const char* const kTrees[] = {
    "flat",     "chain",           "binary",          "3-ary",           "binomial",
    "4-nomial", "delegate-binary", "split2-binomial", "two-level-chain", "delegate-two-level-binomial"};

std::size_t pick(std::mt19937_64& random, std::size_t below) { return random() % below; }

ScheduledMessage random_message(std::mt19937_64& random, int ranks) {
  ScheduledMessage message;
  message.root = static_cast<int>(pick(random, static_cast<std::size_t>(ranks)));
  message.context = static_cast<std::uint32_t>(pick(random, 2));
  message.tag = static_cast<std::int64_t>(pick(random, 3)) - 1;
  message.size = pick(random, 4) == 0 ? pick(random, 32) : pick(random, 5000);
  message.way.tree = parse_tree(kTrees[pick(random, std::size(kTrees))]);
  message.way.segment = pick(random, 3) == 0 ? 0 : pick(random, 1500) + 1;
  message.way.two_trees = pick(random, 4) == 0;
  const std::size_t share = pick(random, 100) + 1;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank != message.root && pick(random, 100) < share) {
      message.destinations.push_back({rank, static_cast<std::int32_t>(pick(random, 4))});
    }
  }
  if (message.destinations.empty()) message.destinations.push_back({message.root == 0 ? 1 : 0, 0});
  std::shuffle(message.destinations.begin(), message.destinations.end(), random);
  return message;
}

}  // namespace

Schedule random_schedule(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Schedule schedule;
  schedule.seed = seed;
  schedule.ranks = static_cast<int>(pick(random, pick(random, 8) == 0 ? 40 : 9)) + 2;
  schedule.settings.inline_limit = pick(random, 3) == 0 ? 0 : pick(random, 600);
  schedule.settings.window = pick(random, 4000) + 1;
  schedule.settings.patience = static_cast<double>(pick(random, 4));
  schedule.settings.grace = static_cast<double>(pick(random, 6));
  schedule.settings.posted = pick(random, 5) + 1;
  schedule.settings.late = static_cast<Late>(pick(random, 3));
  schedule.settings.pool = pick(random, 10000);
  // Where data wait for a late receive, a submission window may close a circle of waiting: that is why others are there.
  if (pick(random, 2) == 0) schedule.settings.pool *= 100;
  schedule.channels = static_cast<std::uint32_t>(pick(random, 3) == 0 ? pick(random, 4) + 1 : 1000);
  schedule.ahead = schedule.settings.late == Late::kPostpone ? 0 : pick(random, 6);
  schedule.computes = pick(random, 3) == 0;
  schedule.shuffled = schedule.ahead == 0 && pick(random, 2) == 0;
  if (pick(random, 2) == 0) {
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      schedule.settings.groups.push_back(static_cast<std::uint16_t>(pick(random, 4)));
    }
  }
  const bool one_tag_each = pick(random, 4) == 0;  // as task graphs do
  const std::size_t messages = pick(random, schedule.ranks < 5 && pick(random, 8) == 0 ? 200 : 24) + 1;
  for (std::size_t number = 0; number < messages; ++number) {
    schedule.messages.push_back(random_message(random, schedule.ranks));
    if (one_tag_each) schedule.messages.back().tag = static_cast<std::int64_t>(number);
  }
  return schedule;
}

std::optional<std::string> run(const Schedule& schedule) {
  std::mt19937_64 random(schedule.seed ^ 0x5DEECE66DU);
  LoopbackNetwork network(schedule.ranks, schedule.seed, true, schedule.channels);
  std::vector<std::unique_ptr<Program>> programs;
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    programs.push_back(std::make_unique<Program>(schedule, network.endpoint(rank), rank));
  }
  const std::size_t eager = pick(random, 10);  // how readily ranks post
  std::vector<std::size_t> busy(programs.size());
  const auto all_progress = [&] {
    bool any = false;
    for (const auto& program : programs) any = program->progress() || any;
    return any;
  };
  for (;;) {
    std::vector<Program*> able;
    for (const auto& program : programs) {
      if (!program->fault().empty()) return program->fault();
      if (program->may_post()) able.push_back(program.get());
    }
    if (!able.empty() && pick(random, 10) <= eager) {
      able[pick(random, able.size())]->post();
      continue;
    }
    if (const int rank = network.step(); rank >= 0) {
      std::size_t& computes = busy[static_cast<std::size_t>(rank)];
      if (computes > 0) {
        --computes;
        continue;
      }
      if (schedule.computes && pick(random, 20) == 0) computes = pick(random, 200);
      programs[static_cast<std::size_t>(rank)]->progress();
    } else if (!able.empty()) {
      able[pick(random, able.size())]->post();
    } else if (!all_progress()) {
      break;
    }
  }
  std::string state;
  for (const auto& program : programs) {
    if (!program->over()) state += program->state();
  }
  if (!state.empty()) return "nothing is left to happen, and not all is over:\n" + state;
  if (network.pending() != 0) return "transfers were left behind";
  return std::nullopt;
}

Schedule shrunk(Schedule schedule) {
  for (std::size_t number = 0; number < schedule.messages.size();) {
    Schedule smaller = schedule;
    smaller.messages.erase(smaller.messages.begin() + static_cast<std::ptrdiff_t>(number));
    if (run(smaller)) {
      schedule = std::move(smaller);
      number = 0;
    } else {
      ++number;
    }
  }
  return schedule;
}

std::string describe(const Schedule& schedule) {
  const Settings& settings = schedule.settings;
  std::string text = "seed " + std::to_string(schedule.seed) + ", " + std::to_string(schedule.ranks) +
                     " ranks, inline " + std::to_string(settings.inline_limit) + ", window " +
                     std::to_string(settings.window) + ", late " + std::to_string(static_cast<int>(settings.late)) +
                     ", pool " + std::to_string(settings.pool) + ", channels " + std::to_string(schedule.channels) +
                     ", ahead " + std::to_string(schedule.ahead) + (schedule.computes ? ", computes" : "") +
                     (schedule.shuffled ? ", shuffled" : "") + "\n";
  for (const ScheduledMessage& message : schedule.messages) {
    text += "  " + std::to_string(message.root) + " sends " + std::to_string(message.size) + " B with " +
            std::to_string(message.context) + "/" + std::to_string(message.tag) + " by " +
            (message.way.two_trees ? "two trees" : format_tree(message.way.tree)) + ", segments of " +
            std::to_string(message.way.segment) + ", to";
    for (const auto& [rank, priority] : message.destinations) {
      text += " " + std::to_string(rank) + ":" + std::to_string(priority);
    }
    text += "\n";
  }
  return text;
}

}  // namespace elbowroom::broadcast
