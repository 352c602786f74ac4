#include "trace/merge/alike.hpp"

#include <doctest/doctest.h>

using elbowroom::trace::without_alike;
using Sentences = std::vector<std::string>;

TEST_CASE("Warnings of many ranks are one sentence that names them") {
  Sentences all;
  for (int rank = 0; rank < 64; ++rank) {
    if (rank != 7) {
      all.push_back("rank " + std::to_string(rank) + "'s clock jumped between sync points " + std::to_string(rank + 1) +
                    " times");
    }
  }
  all.push_back("something else");
  CHECK(without_alike(all) ==
        Sentences{"rank 0's clock jumped between sync points 1 times (also ranks 1-6, 8-63)", "something else"});
}

TEST_CASE("Warnings that are no rank's are counted, and different ones stay apart") {
  CHECK(without_alike({"type 17 is unknown", "type 18 is unknown", "type 3 is not"}) ==
        Sentences{"type 17 is unknown (also 1 more like it)", "type 3 is not"});
  CHECK(without_alike({"rank-00001.jsonl: line 3 is damaged", "rank-00002.jsonl: line 4 is damaged"}) ==
        Sentences{"rank-00001.jsonl: line 3 is damaged (also rank 2)"});
  CHECK(without_alike({}).empty());
}

TEST_CASE("Of very many ranges of ranks the first few are named") {
  Sentences all;
  for (int rank = 0; rank < 100; rank += 2) {
    all.push_back("rank " + std::to_string(rank) + " was killed");
  }
  CHECK(without_alike(all) == Sentences{"rank 0 was killed (also ranks 2, 4, 6, 8, 10, 12, 14, 16, ...)"});
}
