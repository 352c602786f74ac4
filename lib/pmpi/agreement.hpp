// Which processes of MPI_COMM_WORLD record: agreed on at the end of MPI_Init without a collective call, since processes that
// are not interposed (linked statically, started without LD_PRELOAD, on a host that lacks the library) would never enter it.
//
// It uses the folder of the job, which all that record can write to, and messages:
//
// 1. Before MPI_Init does its work, each interposed process writes a sign: it can record (agreement/3.ready), or why it cannot
//    (agreement/3.refused). The first process makes itself the leader (agreement/leader).
// 2. After it, the leader counts the signs, writes the decision (agreement/decision, by exclusive creation) and sends it to each
//    process that is ready. It is the leader's first message to them, so no message of the program can be taken for it.
// 3. A process that does not hear of the decision in time tries to write another: nobody records. Only one file can be
//    created, so all processes know the same decision, and none waits for one that knows another.
#pragma once

#include <string>
#include <vector>

namespace elbowroom::pmpi {

class Agreement {
 public:
  Agreement(std::string folder, int rank, int ranks);

  // Before MPI_Init: this process can record (`refusal` is empty), or why it cannot. False where the folder takes no sign.
  bool announce(const std::string& refusal);
  // After MPI_Init, on processes that are ready: the ranks that record, in order; empty where none does. Where they are not all,
  // the leader says why on stderr.
  std::vector<int> members();
  // The same on processes that refuse: they only lead.
  void refuse();

 private:
  struct Signs {
    std::vector<int> ready;
    std::vector<int> refused;
  };
  struct Decision {
    bool records = false;
    std::vector<int> informed;  // ranks that get a message
  };

  Signs signs() const;
  Signs settled_signs() const;
  void explain(const Signs& all) const;
  void lead();
  void await(int leader);
  bool write(const Decision& decision) const;
  bool read(Decision& decision) const;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  int rank_;
  int ranks_;
  bool leads_ = false;
  Decision decision_;
  // Given back when the ranks begin to agree: one that then ran out of memory would leave the others waiting.
  std::vector<char> reserve_;
};

}  // namespace elbowroom::pmpi
