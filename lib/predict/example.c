/* How many computing cores may run before messages keep less than 90 % of their bandwidth? And what do that many leave to
 * messages when an accelerator copies to their data's node, too?
 *
 *     elbowroom fit RUN -o M.json && ./predict_example M.json 0 0
 */
#include <elbowroom/predict.h>
#include <stdio.h>
#include <stdlib.h>

/* A load: any groups of cores, messages, copies at once. */
static void copy_too(const elbow_predict_model* model, int n, int comp_node, int comm_node) {
  elbow_predict_group group = {0, comp_node, n, 0.0}; /* socket, node, count, intensity in flop/B (0: as calibrated) */
  elbow_predict_copy copy = {comp_node, 12000.0};     /* node, MB/s that it would reach alone */
  elbow_predict_messages messages = {.size = sizeof messages, /* .bytes stays 0: as calibrated */
                                     .node = comm_node,
                                     .direction = ELBOW_PREDICT_RECEIVE,
                                     .threads = 1};
  elbow_predict_load load = {.size = sizeof load,
                             .groups = &group,
                             .group_count = n > 0,
                             .messages = &messages,
                             .copies = &copy,
                             .copy_count = 1};
  elbow_predict_interval of_copy;
  /* .groups stays NULL: one group is all of the computation */
  elbow_predict_load_result p = {.size = sizeof p, .copies = &of_copy};
  if (elbow_predict_for_load(model, &load, &p) != 0) {
    fprintf(stderr, "beside a copy: %s\n", elbow_predict_error());
    return;
  }
  printf("beside a copy of %.0f MB/s (alone 12000): %.0f of %.0f MB/s\n", of_copy.value, p.comm_together.value,
         p.comm_alone.value);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s M.json COMP_NODE COMM_NODE\n", argv[0]);
    return 2;
  }
  elbow_predict_model* model = elbow_predict_model_load(argv[1], NULL);
  elbow_predict_machine machine = {.size = sizeof machine};
  if (model == NULL || elbow_predict_model_machine(model, &machine) != 0) {
    fprintf(stderr, "%s\n", elbow_predict_error());
    return 1;
  }
  int most = 0;
  for (int n = 1; n <= machine.cores_first_socket; n++) {
    elbow_predict_result p = {.size = sizeof p};
    if (elbow_predict(model, n, 0, atoi(argv[2]), atoi(argv[3]), &p) != 0) {
      fprintf(stderr, "%s\n", elbow_predict_error());
      return 1;
    }
    if (p.comm_together.value < 0.9 * p.comm_alone.value) break;
    most = n;
  }
  printf("%s: up to %d of %d cores\n", machine.name, most, machine.cores_first_socket);
  copy_too(model, most, atoi(argv[2]), atoi(argv[3]));
  elbow_predict_model_free(model);
  return 0;
}
