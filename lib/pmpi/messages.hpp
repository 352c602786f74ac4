// What becomes of the two ends of a message. With the lock, but `tell_sent`, `follow` and `abandon`.
#pragma once

#include <optional>

#include "pmpi/books.hpp"
#include "pmpi/shim.hpp"

namespace elbowroom::pmpi {

// A receive is pending from now on; `request`: which it may be asked by, 0 where that is not known yet.
void post(Operation& operation, std::uintptr_t request);
// The message that a receive got, where it is one to be told.
std::optional<Message> message_of(Books& books, Operation& operation, const MPI_Status& status);
// The message that leaves for `destination`, where it is one to be told: it has the next number.
std::optional<Message> message_to(Communicator& communicator, int destination, int tag, std::uint64_t bytes);
void tell_sent(const std::optional<Message>& message);
// An operation of which nothing matters but its times is posted or, if it is persistent, made.
void follow(int result, const Request& request, int call, const About& known, bool persistent = false);
// A receive that was posted gets nothing.
void withdraw(const Operation& operation);

}  // namespace elbowroom::pmpi
