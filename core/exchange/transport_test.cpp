#include "exchange/transport.hpp"

#include <doctest/doctest.h>

using namespace elbowroom;

TEST_CASE("UCX's list of transports names the way between hosts where it leaves one") {
  CHECK(ucx_transport("tcp,self") == "tcp");
  CHECK(ucx_transport("tcp,posix,cma") == "tcp");
  CHECK(ucx_transport("rc_verbs,ud_verbs,self") == "verbs");
  CHECK(ucx_transport("dc_x,sm") == "verbs");
}

TEST_CASE("UCX's list of transports that leaves several ways, none or an unknown one names nothing") {
  for (const char* list : {"", "all", "self,sm", "tcp,rc", "^tcp", "rc,cuda_ipc,rdmacm"}) {
    CAPTURE(list);
    CHECK(ucx_transport(list) == "unknown");
  }
}
