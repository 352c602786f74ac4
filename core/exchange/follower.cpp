#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "exchange/common_clock.hpp"
#include "exchange/keeper.hpp"
#include "exchange/leader.hpp"
#include "exchange/station.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

class Follower {
 public:
  explicit Follower(const Job& job) : job_(job), station_(job), clock_(job.control()) {}

  void serve() {
    for (;;) {
      const json order = job_.receive(0);
      const std::string what = order.at("order");
      if (what == "quit") {
        return;
      }
      if (what == "synchronise") {
        clock_.synchronise();
      } else if (what == "phase") {
        phase(order);
      } else if (what == "extraneous") {
        extraneous();
      } else if (what == "overlap") {
        overlap();
      } else {
        job_.send(0, attempt(what, order));
      }
    }
  }

 private:
  // check, prepare, pages, hold and release: answered by an object, with "error" in it when it went wrong.
  json attempt(const std::string& what, const json& order) {
    try {
      if (what == "check") {
        request_ = read_request(order.at("request"));
        station_.check(request_);
      } else if (what == "prepare") {
        station_.prepare(request_);
      } else if (what == "pages") {
        std::set<std::string> flags = station_.request_flags();
        const json pages = station_.pages(flags);
        return {{"pages", pages}, {"flags", flags}};
      } else if (what == "hold" && job_.first_on_host()) {
        keeper_.hold(request_.settings);
      } else if (what == "release" && job_.first_on_host()) {
        return keeper_.release();
      }
      return json::object();
    } catch (const RequestError& error) {
      return {{"error", error_fields(error)}};
    } catch (const std::exception& error) {
      return {{"error", error_fields(RequestError("", "", error.what(), "", "machine"))}};
    }
  }

  void phase(const json& order) {
    const Phase phase = static_cast<Phase>(order.at("phase").get<int>());
    const TracedSpan span(traced_phase(phase), order.at("index").get<std::uint64_t>());
    const bool computing = computes(phase) && station_.computing();
    const bool communicating = communicates(phase) && station_.communicating();
    station_.begin_phase();
    bool steady = true;
    if (computing) {
      station_.start_computing();
      steady = station_.wait_until_computing();
      job_.send(0, {{"running", true}});
    }
    if (computing || phase == Phase::together) {
      job_.receive(0);  // all ranks are running
    }
    Window window{now_ns(), 0};
    if (communicating) {
      station_.follow_exchange();
    } else if (!computing) {
      sleep_for(request_.window);
    }
    if (computing) {
      job_.receive(0);  // the communication, or the window, is over
      window.end = now_ns();
      station_.stop_computing();
    }
    station_.end_phase();
    job_.send(0, report(phase, computing, steady, communicating ? station_.exchanged().window : window));
  }

  void extraneous() {
    station_.begin_phase();
    station_.follow_extraneous();
    station_.end_phase();
    std::set<std::string> flags;
    station_.observed(flags);
    job_.send(0, {{"flags", flags}});
  }

  void overlap() {
    station_.begin_phase();
    station_.run_overlap();
    station_.end_phase();
    std::set<std::string> flags;
    station_.observed(flags);
    job_.send(0, {{"flags", flags}});
  }

  json report(Phase phase, bool computing, bool steady, const Window& window) {
    std::set<std::string> flags;
    json record = {{"rank", job_.rank()}, {"steady", steady}};
    if (computing) {
      record["comp"] = station_.computed(window, flags);
    }
    if (communicates(phase) && station_.communicating()) {
      record["comm"] = station_.communicated(flags);
    }
    station_.observed(flags);
    record["flags"] = flags;
    return record;
  }

  const Job& job_;
  Station station_;
  CommonClock clock_;
  Keeper keeper_;
  Request request_;
};

}  // namespace

void follow(const Job& job) { Follower(job).serve(); }

}  // namespace elbowroom
