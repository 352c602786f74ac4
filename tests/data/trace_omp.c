/* Parallel regions, loops and tasks of OpenMP, for its adapter; prints what they computed. */
#include <stdio.h>

static void increment(int* value) {
#pragma omp atomic
  *value += 1;
}

int main(void) {
  int a = 0, b = 0, c = 0, many = 0;
  long sum = 0;
#pragma omp parallel num_threads(3)
  {
#pragma omp for schedule(dynamic) reduction(+ : sum)
    for (int i = 0; i < 30; ++i) {
      sum += i;
    }
#pragma omp single
    {
#pragma omp task depend(out : a)
      increment(&a);
#pragma omp task depend(in : a) depend(out : b)
      b = a + 1;
#pragma omp task depend(in : a) depend(out : c)
      c = a + 2;
#pragma omp task depend(in : b, c) depend(inout : a)
      a = b + c;
#pragma omp taskwait
      for (int i = 0; i < 20; ++i) {
#pragma omp task untied
        {
          increment(&many);
#pragma omp task
          increment(&many);
#pragma omp taskwait
        }
      }
    }
#pragma omp critical
    sum += 1;
  }
#pragma omp parallel num_threads(2)
  {
#pragma omp barrier
  } printf("a %d b %d c %d many %d sum %ld\n", a, b, c, many, sum);
  return 0;
}
