// The number of threads of OpenMP's parallel regions: set, read, and counted in the regions of the thread that calls MPI.
// The program's OpenMP (libgomp, libomp) is looked up; nothing is linked with it.
#pragma once

namespace elbowroom::pmpi {

// Looks the program's OpenMP up; whether there is one.
bool find_threads();
// Whether the calling thread is in a parallel region: then nothing may be set.
bool watches_regions();
bool in_parallel();
int threads_now();
void set_threads(int count);

// Of the regions that this thread began: the largest number of threads since the last call (0: none was seen), and how many
// of them had a number that the program fixes by a clause.
struct SeenRegions {
  int threads = 0;
  int fixed = 0;
};
SeenRegions take_seen_regions();

}  // namespace elbowroom::pmpi
