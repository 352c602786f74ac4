#include "program/together.hpp"

#include <fmt/format.h>

#include "program/serve.hpp"

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
    failed = error_record(error);
  } catch (const std::exception& error) {
    failed = error_record(RequestError("", "", error.what(), "look at the machine, then try again", "machine"));
  }
  const std::vector<json> all = gathered(job, failed);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const json& error = all[rank];
    if (!error.is_null()) {
      const std::string where = rank == 0 ? "" : fmt::format(" (rank {} on {})", rank, job.hosts()[rank]);
      throw RequestError(error.at("field"), error.at("value"), error.at("message").get<std::string>() + where,
                         error.at("mend"), error.at("kind"));
    }
  }
}

}  // namespace elbowroom::program
