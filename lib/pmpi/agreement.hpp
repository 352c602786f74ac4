// Which processes of MPI_COMM_WORLD record, and on which nodes they are: agreed on at the end of MPI_Init without a call of MPI,
// since processes without the tool (linked statically, started without LD_PRELOAD, on a host that lacks the library) would
// never take part in it.
//
// It uses a folder of the job, which all that record can write to:
//
// 1. Each process with the tool writes a sign, whose name has its host: it can record (3.ready.HOST), it cannot and others may
//    (3.absent.HOST), or none may (3.refused.HOST); the latter two hold the reason. The first one makes itself the leader
//    (`leader`). If the rank is known, this is done before MPI_Init.
// 2. After MPI_Init the leader reads the folder, until all signs are there or it has waited for some seconds, and writes the
//    decision (`decision`, by exclusive creation), which the others read.
// 3. A process that waits too long for the decision tries to write one itself, without the leader. Only one file can be created,
//    so all processes know the same decision. One that comes after it does not record with the others.
//
// No process opens more than a few files. Network file systems cache directories; what a process creates in one makes it read
// the directory anew.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pmpi/hooks.hpp"

namespace elbowroom::pmpi {

// Of the folder's name: processes that begin by sessions agree among themselves, since those that call MPI_Init compare
// clocks over MPI_COMM_WORLD.
inline const char* suffix_of(const Place& place) { return place.by_sessions ? "-sessions" : ""; }

enum class Sign { ready, absent, refused };

struct Decision {
  bool records = false;
  std::vector<int> members;         // the ranks that record, in order
  std::vector<std::int32_t> nodes;  // of each rank, numbered by their lowest ranks; of ranks without a sign: nodes.hpp
};

class Agreement {
 public:
  // What is recorded, in sentences: "the job is not traced", "the trace lacks rank 3".
  struct Words {
    const char* recorded;
    const char* recording;
  };

  // How long the leader waits for signs of ranks that leave none, as far as it can tell (MPI_Init need not synchronise), and
  // others for its decision.
  struct Limits {
    std::chrono::milliseconds settling{2000};
    std::chrono::milliseconds patience{10000};
  };

  // `folder` need not exist, the one that it is in must.
  Agreement(std::string folder, int rank, int ranks, Words words, Limits limits);
  Agreement(std::string folder, int rank, int ranks, Words words)
      : Agreement(std::move(folder), rank, ranks, words, Limits{}) {}

  // False where the folder takes no sign.
  bool announce(Sign sign, const std::string& reason);
  // After MPI_Init, on processes that are ready. Where not all record, the leader says why on stderr.
  Decision decide();
  // The same on others that announced: they only lead.
  void lead_if_first();

 private:
  struct Signs {
    std::vector<int> ready;
    std::vector<int> absent;
    std::vector<int> refused;
    std::vector<std::string> hosts;  // by rank; empty where there is no sign
  };

  Signs signs() const;
  Signs settled_signs() const;
  void explain(const Signs& all) const;
  void say_missing(const std::vector<int>& ranks, const std::string& why) const;
  // Without the rank `without`, if it is 0 or more.
  Decision lead(const Signs& all, int without) const;
  Decision await() const;
  int leader() const;
  bool write(const Decision& decision) const;
  bool read(Decision& decision) const;
  // Makes a client of a network file system read the folder anew.
  void refresh() const;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  int rank_;
  int ranks_;
  Words words_;
  Limits limits_;
  std::string own_;
  bool leads_ = false;
  // Given back when the ranks begin to agree: one that then ran out of memory would leave the others waiting.
  std::vector<char> reserve_;
};

}  // namespace elbowroom::pmpi
