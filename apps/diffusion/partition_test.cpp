#include "diffusion/partition.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "diffusion/volumes.hpp"
#include "protocol/request.hpp"

namespace elbowroom::diffusion {
namespace {

std::vector<RankVolume> volumes_of(const Mesh& mesh, int parts, Partitioner partitioner) {
  return rank_volumes(mesh, partition(mesh, parts, partitioner), parts);
}

TEST_CASE("a partition by METIS is balanced, sends less than slabs, and is the same every time") {
  const Mesh mesh({8, 8, 8});
  const auto metis = volume_record(volumes_of(mesh, 8, Partitioner::metis), false);
  const auto slabs = volume_record(volumes_of(mesh, 8, Partitioner::slabs), false);
  CHECK(metis.at("imbalance") < 1.06);
  CHECK(metis.at("sent_total") < slabs.at("sent_total"));
  CHECK(partition(mesh, 8, Partitioner::metis) == partition(mesh, 8, Partitioner::metis));
}

TEST_CASE("a partition by Scotch is as good and as constant; without Scotch it is refused") {
  const Mesh mesh({8, 8, 8});
  try {
    partitioner_of("scotch");
  } catch (const RequestError& error) {
    CHECK(error.hint.find("libscotch-dev") != std::string::npos);
    return;
  }
  const auto scotch = volume_record(volumes_of(mesh, 8, Partitioner::scotch), false);
  const auto slabs = volume_record(volumes_of(mesh, 8, Partitioner::slabs), false);
  CHECK(scotch.at("imbalance") < 1.06);
  CHECK(scotch.at("sent_total") < slabs.at("sent_total"));
  CHECK(partition(mesh, 8, Partitioner::scotch) == partition(mesh, 8, Partitioner::scotch));
}

TEST_CASE("slabs send one value for each of the two faces of each cube at their cuts, both ways") {
  const auto ranks = volumes_of(Mesh({4, 3, 5}), 2, Partitioner::slabs);
  for (const RankVolume& rank : ranks) {
    CHECK(rank.separator_cells == 2 * 3 * 5);
    CHECK(rank.cells == 6 * 4 * 3 * 5 / 2);
    REQUIRE(rank.sent.size() == 1);
    CHECK(rank.sent.front().second == 2 * 3 * 5 * 8);
  }
}

TEST_CASE("one part has all cells and sends nothing") {
  const auto ranks = volumes_of(Mesh({2, 2, 2}), 1, Partitioner::metis);
  CHECK(ranks.front().cells == 48);
  CHECK(ranks.front().sent.empty());
}

TEST_CASE("more parts than cells, a part without cells, no parts and an unknown partitioner are refused") {
  const Mesh mesh({1, 1, 1});
  CHECK_THROWS_WITH_AS(partition(mesh, 7, Partitioner::slabs), "there are more ranks than the 6 cells", RequestError);
  CHECK_THROWS_AS(partition(mesh, 0, Partitioner::slabs), RequestError);
  CHECK_THROWS_AS(partitioner_of("kahip"), RequestError);
  // So few cells for each part that the multilevel method leaves one empty.
  CHECK_THROWS_WITH_AS(partition(Mesh({3, 3, 3}), 150, Partitioner::metis), doctest::Contains("too small to partition"),
                       RequestError);
}

}  // namespace
}  // namespace elbowroom::diffusion
