// A node at the level of single lines of 64 B: what waits where, until when. Nobody is told to favour anybody; whoever
// loses does because its lines take longer to come back.
//
// A source has so many lines under way and asks for the next one when one is back. A line passes the uplink of its
// socket (a core's) or the root complex (a device's), the link to the other socket if its data is there, and enters the
// queue of a memory channel as soon as that has room. A write is back when the queue has taken it, a read when it was
// served, and over the link again. Uplinks, roots and links serve in the order of arrival, one line after the other.
#pragma once

#include "simulate/node.hpp"

namespace elbowroom::simulate {

// The same node, experiment and seed give the same result, everywhere.
Result simulate(const Node& node, const Experiment& experiment);

}  // namespace elbowroom::simulate
