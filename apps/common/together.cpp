#include "common/together.hpp"

#include <fmt/format.h>

#include "common/serve.hpp"

namespace elbowroom::program {

using nlohmann::json;

std::vector<json> gathered(const Job& job, const json& own) {
  if (job.rank() != 0) {
    job.send(0, own);
    return job.receive(0).get<std::vector<json>>();
  }
  std::vector<json> all = {own};
  for (int rank = 1; rank < job.size(); ++rank) {
    all.push_back(job.receive(rank));
  }
  job.send_to_others(all);
  return all;
}

void together(const Job& job, const std::function<void()>& task) {
  json failed;
  try {
    task();
  } catch (const RequestError& error) {
    failed = error_fields(error);
  } catch (const std::exception& error) {
    failed = error_fields(RequestError("", "", error.what(), "check the machine, then try again", "machine"));
  }
  const std::vector<json> all = gathered(job, failed);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].is_null()) {
      throw error_of_rank(all[rank], static_cast<int>(rank), job.hosts()[rank]);
    }
  }
}

json raised_by_any(const Job& job, const std::vector<std::pair<const char*, bool>>& flags) {
  std::vector<int> raised;
  for (const auto& flag : flags) {
    raised.push_back(flag.second ? 1 : 0);
  }
  MPI_Allreduce(MPI_IN_PLACE, raised.data(), static_cast<int>(raised.size()), MPI_INT, MPI_MAX, job.headers());
  json names = json::array();
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (raised[i] != 0) {
      names.push_back(flags[i].first);
    }
  }
  return names;
}

}  // namespace elbowroom::program
