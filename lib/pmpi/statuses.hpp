// Statuses of a call: the program's, or one's own where it ignores them and the tool must know.
#pragma once

#include <array>
#include <memory>
#include <new>

#include "pmpi/books.hpp"
#include "pmpi/fortran.hpp"

namespace elbowroom::pmpi {

// `size` of something: few of them without asking for memory. NULL where there is none.
template <typename Item, std::size_t few>
class Some {
 public:
  Item* make(std::size_t size) {
    if (size <= few) {
      return few_.data();
    }
    many_.reset(new (std::nothrow) Item[size]);
    return many_.get();
  }

 private:
  std::array<Item, few> few_;
  std::unique_ptr<Item[]> many_;
};

class Statuses {
 public:
  Statuses(MPI_Status* theirs, int count, bool wanted) : given_(theirs) {
    if (wanted && (theirs == MPI_STATUS_IGNORE || theirs == MPI_STATUSES_IGNORE)) {
      MPI_Status* const own = own_.make(static_cast<std::size_t>(count < 0 ? 0 : count));
      own != nullptr ? void(given_ = own) : give_up_messages();
    }
  }
  MPI_Status* given() { return given_; }
  // Of `wanted` statuses, while the books are complete.
  const MPI_Status& operator()(int i) { return given_[i]; }

 private:
  MPI_Status* given_;
  Some<MPI_Status, 8> own_;
};

namespace fortran {

class Statuses {
 public:
  Statuses(Word theirs, int count, bool wanted) : given_(theirs) {
    if (wanted && ignores_status(theirs)) {
      MPI_Fint* const own = own_.make(static_cast<std::size_t>(count < 0 ? 0 : count) * kWords);
      own != nullptr ? void(given_ = own) : give_up_messages();
    }
  }
  Word given() { return given_; }
  const MPI_Status& operator()(int i) {
    PMPI_Status_f2c(static_cast<const MPI_Fint*>(given_) + static_cast<std::size_t>(i) * kWords, &converted_);
    return converted_;
  }

 private:
  static constexpr std::size_t kWords = sizeof(MPI_Status) / sizeof(MPI_Fint);
  Word given_;
  Some<MPI_Fint, 8 * kWords> own_;
  MPI_Status converted_;
};

}  // namespace fortran

}  // namespace elbowroom::pmpi
