/* Of libelbow_trace, for elbowroom's own adapters: how a process takes part in a traced job. Not installed. */
#pragma once

#include "elbowroom/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As elbow_trace_start_from_environment, as process `rank` of `ranks` whatever the environment says; -1: as it says. */
ELBOW_API int elbow_trace_start_as(int rank, int ranks);
/* The folder of this process's job, and its place there, once it was claimed, whether or not the start succeeded; NULL before. */
ELBOW_API const char* elbow_trace_folder(int* rank, int* ranks);
/* Ends recording and removes what was recorded. */
ELBOW_API void elbow_trace_discard(void);
/* MPI was finalised. Where nothing but the categories `own` (of `count`) was recorded, the trace is stopped, else marked: what
 * ends without its exit handlers from now on was not killed. */
ELBOW_API int elbow_trace_finalised(const int* own, int count);

#ifdef __cplusplus
}
#endif
