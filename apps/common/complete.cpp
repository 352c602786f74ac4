#include "common/complete.hpp"

#include <sched.h>

#include "exchange/job.hpp"

namespace elbowroom::program {
namespace {

constexpr double kNap = 20e-6;  // s: short beside the time slice that yielding to a computing thread would cost

}  // namespace

void wait_a_little(Waiting waiting) {
  switch (waiting) {
    case Waiting::spin: return relax();
    case Waiting::yield: sched_yield(); return;
    case Waiting::sleep: return sleep_for(kNap);
  }
}

void complete(std::vector<MPI_Request>& requests, Waiting waiting) {
  for (;;) {
    int done = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done != 0) {
      return;
    }
    wait_a_little(waiting);
  }
}

void barrier(MPI_Comm comm, Waiting waiting) {
  std::vector<MPI_Request> request(1, MPI_REQUEST_NULL);
  MPI_Ibarrier(comm, request.data());
  complete(request, waiting);
}

}  // namespace elbowroom::program
