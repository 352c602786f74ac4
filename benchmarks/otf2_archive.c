// write-archive FOLDER EVENTS: an OTF2 archive with about so many events (otf2_archive.py).
#include <otf2/otf2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static OTF2_FlushType flush(void* a, OTF2_FileType b, OTF2_LocationRef c, void* d, bool e) { return OTF2_FLUSH; }
static OTF2_TimeStamp stamp(void* a, OTF2_FileType b, OTF2_LocationRef c) { return 1; }

int main(int count, char** words) {
  const uint64_t events = strtoull(words[2], NULL, 10), locations = 4, each = events / locations / 4 * 4;
  OTF2_FlushCallbacks callbacks = {flush, stamp};
  OTF2_Archive* archive = OTF2_Archive_Open(words[1], "traces", OTF2_FILEMODE_WRITE, 1 << 20, 4 << 20,
                                            OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
  OTF2_Archive_SetFlushCallbacks(archive, &callbacks, NULL);
  OTF2_Archive_SetSerialCollectiveCallbacks(archive);
  OTF2_Archive_OpenEvtFiles(archive);
  for (uint64_t location = 0; location < locations; ++location) {
    OTF2_EvtWriter* writer = OTF2_Archive_GetEvtWriter(archive, location);
    uint64_t time = 1000;
    for (uint64_t at = 0; at < each; at += 4) {
      OTF2_EvtWriter_Enter(writer, NULL, time, 0);
      OTF2_EvtWriter_Leave(writer, NULL, time += 1000 + at % 64, 0);
      OTF2_EvtWriter_Enter(writer, NULL, time, 1);
      OTF2_EvtWriter_Leave(writer, NULL, time += 300, 1);
    }
    OTF2_Archive_CloseEvtWriter(archive, writer);
  }
  OTF2_Archive_CloseEvtFiles(archive);
  OTF2_Archive_OpenDefFiles(archive);
  for (uint64_t location = 0; location < locations; ++location) {
    OTF2_Archive_CloseDefWriter(archive, OTF2_Archive_GetDefWriter(archive, location));
  }
  OTF2_Archive_CloseDefFiles(archive);
  OTF2_GlobalDefWriter* global = OTF2_Archive_GetGlobalDefWriter(archive);
  OTF2_GlobalDefWriter_WriteClockProperties(global, 1000000000, 0, 1000000000, 0);
  const char* texts[] = {"",       "compute", "MPI_Allreduce", "host",  "Master thread",
                         "rank 0", "rank 1",  "rank 2",        "rank 3"};
  for (uint32_t at = 0; at < 9; ++at) OTF2_GlobalDefWriter_WriteString(global, at, texts[at]);
  OTF2_GlobalDefWriter_WriteRegion(global, 0, 1, 1, 0, OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_USER, 0, 0, 0, 0);
  OTF2_GlobalDefWriter_WriteRegion(global, 1, 2, 2, 0, OTF2_REGION_ROLE_COLL_ALL2ALL, OTF2_PARADIGM_MPI, 0, 0, 0, 0);
  OTF2_GlobalDefWriter_WriteSystemTreeNode(global, 0, 3, 3, OTF2_UNDEFINED_SYSTEM_TREE_NODE);
  for (uint32_t at = 0; at < locations; ++at) {
    OTF2_GlobalDefWriter_WriteLocationGroup(global, at, 5 + at, OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
                                            OTF2_UNDEFINED_LOCATION_GROUP);
    OTF2_GlobalDefWriter_WriteLocation(global, at, 4, OTF2_LOCATION_TYPE_CPU_THREAD, each, at);
  }
  OTF2_Archive_Close(archive);
  return 0;
}
