#include "clock/job_clock.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>

namespace elbowroom::clock {
namespace {

constexpr int kDoublings = 16;           // of a barrier's window: 200 us to 13 s
constexpr int kSilent = 16;              // calls of due() in a row that send nothing, at most
constexpr std::size_t kRemembered = 32;  // sync points: rates are those of late

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string link(const char* path) {
  std::array<char, 256> target{};
  const ssize_t length = readlink(path, target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : "";
}

// The standard's own scramble of names is not the same in two builds: FNV-1a.
std::uint64_t number_of(const std::string& name) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  return hash;
}

}  // namespace

// Everything that travels: as long for a question as for its answer, so that both take the same way in the same time.
struct JobClock::Message {
  enum Kind : std::int64_t { question, turn, reply, fine, late };
  std::int64_t kind = question;
  std::int64_t time = 0;
  Offset offset;
};

HostClock calibration_of(Wanted wanted) {
  HostClock calibration;
  if (wanted == Wanted::best) {
    calibration = host_clock();
  }
  calibration.steered = wanted == Wanted::steered;
  return calibration;
}

Source source_of_host(Wanted wanted) {
  const HostClock calibration = calibration_of(wanted);
  // A counter is the processor's; the kernel's clock may be another one in each time namespace.
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  const std::string name = calibration.counter ? boot + " counter" : boot + " " + link("/proc/self/ns/time");
  return {calibration.steered ? name + " steered" : name, calibration, {}};
}

JobClock::JobClock(Peers peers, Source source) : peers_(std::move(peers)), source_(std::move(source)) {
  gather_names();
  share_calibration();
}

// Up the tree of ranks to rank 0, and down again.
void JobClock::gather_names() {
  const auto steps = meetings(peers_.rank, peers_.size);
  std::vector<std::uint64_t> names(static_cast<std::size_t>(peers_.size), 0);
  names[static_cast<std::size_t>(peers_.rank)] = number_of(source_.name);
  const std::size_t bytes = names.size() * sizeof names[0];
  std::vector<std::uint64_t> theirs(names.size());
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (!step->asks) {
      peers_.send(step->peer, names.data(), bytes);
      continue;
    }
    peers_.receive(step->peer, theirs.data(), bytes);
    for (std::size_t rank = 0; rank < names.size(); ++rank) {
      names[rank] |= theirs[rank];  // each is known on one of the two sides
    }
  }
  for (const Meeting& step : steps) {
    if (step.asks) {
      peers_.send(step.peer, names.data(), bytes);
    } else {
      peers_.receive(step.peer, names.data(), bytes);
    }
  }
  std::map<std::uint64_t, int> numbers;
  for (int rank = 0; rank < peers_.size; ++rank) {
    const std::uint64_t name = names[static_cast<std::size_t>(rank)];
    if (numbers.emplace(name, clocks()).second) {
      leaders_.push_back(rank);
    }
    if (name == names[static_cast<std::size_t>(peers_.rank)]) {
      own_ = numbers.at(name);
      others_.push_back(rank);
    }
  }
}

// From the first of `ranks`, this one among them, to all of them.
void JobClock::tell(const std::vector<int>& ranks, void* bytes, std::size_t count) {
  const auto place = std::find(ranks.begin(), ranks.end(), peers_.rank) - ranks.begin();
  for (const Meeting& step : meetings(static_cast<int>(place), static_cast<int>(ranks.size()))) {
    const int rank = ranks[static_cast<std::size_t>(step.peer)];
    if (step.asks) {
      peers_.send(rank, bytes, count);
    } else {
      peers_.receive(rank, bytes, count);
    }
  }
}

void JobClock::share_calibration() { tell(others_, &source_.calibration, sizeof source_.calibration); }

Exchange JobClock::exchange_with(int rank) {
  Message message;
  Exchange exchange;
  exchange.start = local();
  peers_.send(rank, &message, sizeof message);
  peers_.receive(rank, &message, sizeof message);
  exchange.end = local();
  exchange.middle = message.time;
  return exchange;
}

// Answers questions, and returns the first message that is none.
JobClock::Message JobClock::answered(int rank) {
  for (;;) {
    Message message;
    peers_.receive(rank, &message, sizeof message);
    if (message.kind != Message::question) {
      return message;
    }
    message.time = local();
    peers_.send(rank, &message, sizeof message);
  }
}

// Both ask, one after the other; then the other one is told how far it is from the root, and when it was so by its clock.
// False where the clocks cannot be compared.
bool JobClock::ask(int rank) {
  const auto here = compared([&] { return exchange_with(rank); });
  const Message turn{Message::turn, 0, {}};
  peers_.send(rank, &turn, sizeof turn);
  const Message theirs = answered(rank);
  Message end{Message::late, 0, {}};
  if (here && theirs.kind == Message::reply) {
    const Compared result = both(*here, {theirs.time, theirs.offset});
    end = {Message::reply, result.at - result.offset.offset,
           (own_ == 0 ? Offset{} : later(own_point_, correction_, result.at)) + result.offset};
  }
  peers_.send(rank, &end, sizeof end);
  return end.kind == Message::reply;
}

bool JobClock::answer(int rank) {
  answered(rank);
  const auto here = compared([&] { return exchange_with(rank); });
  Message mine{Message::late, 0, {}};
  if (here) {
    mine = {Message::reply, here->at, here->offset};
  }
  peers_.send(rank, &mine, sizeof mine);
  Message end;
  peers_.receive(rank, &end, sizeof end);
  if (end.kind != Message::reply) {
    return false;
  }
  own_point_ = {end.time, end.offset};
  correction_ = Correction(with(own_point_));
  return true;
}

// The meetings of this clock, on the first of its ranks; false where clocks cannot be compared.
bool JobClock::meet_all() {
  own_point_ = {local(), {}};
  bool fine = true;
  for (const Meeting& step : meetings(own_, clocks())) {
    const int rank = leaders_[static_cast<std::size_t>(step.peer)];
    fine = (step.asks ? ask(rank) : answer(rank)) && fine;
  }
  return fine;
}

SyncPoint JobClock::synchronise() {
  bool fine = true;
  if (peers_.rank == leaders_[static_cast<std::size_t>(own_)]) {
    fine = meet_all();
    // Clocks drift between being told and telling others, and the first time nobody knows how fast: it is found out now.
    if (history_.empty() && clocks() > 2) {
      history_ = {own_point_};
      fine = meet_all() && fine;
      history_.clear();
    }
  }
  SyncPoint point = own_point_;
  tell(others_, &point, sizeof point);
  // All know, or none goes on waiting for the others.
  if (clocks() > 1 && agreed(fine ? Message::fine : Message::late) != Message::fine) {
    correction_ = Correction(history_);
    throw Unsteady("clocks contradict each other again and again: one of the " + std::to_string(clocks()) +
                   " is stepped");
  }
  history_ = with(point);
  silent_ = let_pass_ = 0;
  compared_at_ = local();
  correction_ = Correction(history_);
  return point;
}

// The points of late and one more.
std::vector<SyncPoint> JobClock::with(const SyncPoint& point) const {
  const auto first = history_.size() < kRemembered ? history_.begin() : history_.end() - (kRemembered - 1);
  std::vector<SyncPoint> points(first, history_.end());
  points.push_back(point);
  return points;
}

// The reference's own host knows without an error.
Corrected JobClock::reference_at(std::int64_t local) const {
  return own_ == 0 ? Corrected{local, 0} : correction_.ahead(local);
}

// When this clock shows what the reference shows at `reference`.
std::int64_t JobClock::local_of(std::int64_t reference) const {
  std::int64_t result = reference - history_.back().offset.offset;
  for (int i = 0; i < 3; ++i) {
    result -= reference_at(result).time - reference;
  }
  return result;
}

// Up the tree: `late` when any process is.
std::int64_t JobClock::reported(std::int64_t own) {
  const auto steps = meetings(peers_.rank, peers_.size);
  Message all{own, 0, {}};
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (!step->asks) {
      peers_.send(step->peer, &all, sizeof all);
      continue;
    }
    Message theirs;
    peers_.receive(step->peer, &theirs, sizeof theirs);
    all.kind = std::max(all.kind, theirs.kind);
  }
  return all.kind;
}

// The same, and down again to all.
std::int64_t JobClock::agreed(std::int64_t own) {
  std::int64_t all = reported(own);
  tell(everybody(), &all, sizeof all);
  return all;
}

std::vector<int> JobClock::everybody() const {
  std::vector<int> ranks(static_cast<std::size_t>(peers_.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

bool JobClock::due(double seconds) {
  if (!synchronised()) {
    return true;
  }
  if (silent_ > 0) {
    --silent_;
    return false;
  }
  Message reply;  // `time`: how many calls are silent from now on
  if (peers_.rank == 0) {
    const std::int64_t now = local();
    const double left = seconds * 1e9 - static_cast<double>(now - history_.back().local);
    const double between = static_cast<double>(now - compared_at_) / (let_pass_ + 1);  // two calls
    reply.kind = left <= 0 ? Message::late : Message::fine;
    reply.time = left <= 0 ? 0 : static_cast<std::int64_t>(std::min(left / 8 / std::max(between, 1.0), kSilent * 1.0));
    compared_at_ = now;
  }
  tell(everybody(), &reply, sizeof reply);
  silent_ = let_pass_ = static_cast<int>(reply.time);
  return reply.kind == Message::late;
}

Left JobClock::barrier() {
  for (int tried = 0; tried <= kDoublings; ++tried) {
    Message announced{Message::fine, local() + window_, {}};  // of rank 0, whose clock is the reference's
    tell(everybody(), &announced, sizeof announced);
    const std::int64_t deadline = local_of(announced.time);
    std::int64_t verdict = reported(local() < deadline ? Message::fine : Message::late);
    const std::int64_t heard = local();
    // That all heard of the deadline in time must reach all before it, too.
    if (peers_.rank == 0 && heard > deadline - window_ / 2) {
      verdict = Message::late;
    }
    tell(everybody(), &verdict, sizeof verdict);
    if (verdict == Message::fine) {
      std::int64_t now = local();
      while (now < deadline) {
        now = local();
      }
      // A disturbance long ago makes nobody wait longer for ever.
      if (heard < deadline - window_ / 8 * 7) {
        window_ = std::max(kWindow, window_ / 2);
      }
      const Corrected then = reference_at(deadline);
      const std::int64_t offset = then.time - deadline;
      return {{deadline, {offset, offset - then.error, offset + then.error}}, now - deadline};
    }
    window_ *= 2;
  }
  throw Unsteady("no deadline was met by all " + std::to_string(peers_.size) + " processes in " +
                 std::to_string(kDoublings + 1) + " tries, each with twice the time");
}

}  // namespace elbowroom::clock
