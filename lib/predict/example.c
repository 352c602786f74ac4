/* How many computing cores may run before messages keep less than 90 % of their bandwidth?
 *
 *     elbowroom fit RUN -o M.json && ./predict_example M.json 0 0
 */
#include <elbowroom/predict.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s M.json COMP_NODE COMM_NODE\n", argv[0]);
    return 2;
  }
  elbow_model* model = elbow_predict_load(argv[1], NULL);
  elbow_machine machine;
  if (model == NULL || elbow_predict_machine(model, &machine) != 0) {
    fprintf(stderr, "%s\n", elbow_predict_error());
    return 1;
  }
  int most = 0;
  for (int n = 1; n <= machine.cores_first_socket; n++) {
    elbow_prediction p;
    if (elbow_predict(model, n, 0, atoi(argv[2]), atoi(argv[3]), &p) != 0) {
      fprintf(stderr, "%s\n", elbow_predict_error());
      return 1;
    }
    if (p.comm_together.value < 0.9 * p.comm_alone.value) break;
    most = n;
  }
  printf("%s: up to %d of %d cores\n", machine.name, most, machine.cores_first_socket);
  elbow_predict_free(model);
  return 0;
}
