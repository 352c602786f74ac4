// Programs that use MPI by sessions, without MPI_Init or beside it.
//
// Opening a session is no communication, and need not happen on all processes. The tool starts where the first communicator
// is made from a group: before it is, as all of its processes come here then and none waits for another one inside MPI.
#pragma once

#include <string_view>

#include "calls.hpp"
#include "pmpi/special.hpp"

#if ELBOW_SESSIONS
namespace elbowroom::pmpi {

// MPI_Session_init, MPI_Session_finalize: also looked at where nothing is recorded.
class SessionOpening {
 public:
  explicit SessionOpening(int number);
  void done(int result, MPI_Session session);

 private:
  std::optional<Call> call_;
};
class SessionClosing {
 public:
  SessionClosing(int number, MPI_Session session);
  ~SessionClosing();
  SessionClosing(const SessionClosing&) = delete;
  SessionClosing& operator=(const SessionClosing&) = delete;
  void done(int) {}

 private:
  std::optional<Call> call_;
  bool last_;
};

// MPI_Comm_create_from_group, MPI_Intercomm_create_from_groups.
class FromGroupMaking {
 public:
  FromGroupMaking(int number, MPI_Group group, std::string_view tag);
  void done(int result, MPI_Comm communicator);

 private:
  std::optional<Call> call_;
  std::uint32_t communicator_number_ = kForeign;
};
class FromGroupsMaking {
 public:
  FromGroupsMaking(int number, std::string_view tag);
  void done(int result, MPI_Comm communicator);

 private:
  std::optional<InterMaking> call_;
};

}  // namespace elbowroom::pmpi
#endif
