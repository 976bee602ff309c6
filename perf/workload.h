/* What is measured: one operation on tensors of one shape, and the bytes it can't avoid to move. */
#ifndef NST_PERF_WORKLOAD_H
#define NST_PERF_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "normstatic.h"
#include "problem.h"
#include "rows.h"

struct workload {
  char id[128];
  nst_op op;
  nst_dtype dtype;
  nst_dtype weight_dtype; /* of weight and bias; also where there are none: it names the kernel */
  unsigned char has[ROWS_TENSORS];
  int64_t rows, n;
  int64_t rows_per_cond;
  int64_t x_stride; /* elements; 0: n */
  int64_t offset;   /* elements by which every tensor is moved off its 256-byte boundary */
  float eps;
  double published_us;   /* device time that another implementation publishes; 0: none */
  char alternative[32];  /* the best alternative that is published beside it; "": none */
  double alternative_us; /* its time */
};

struct workload_list {
  struct workload *items;
  size_t count;
  size_t left_out; /* workloads of operations that the library does not have */
};

/* Reads a file of workloads, keeping those whose id contains `match` (NULL: all) in the file's order. */
int workloads_load(const char *path, const char *match, struct workload_list *list, struct problem *p);
void workloads_free(struct workload_list *list);

/* A workload of an operation: its eps, all inputs, y and, where there is one, residual_out. Types and sizes are left.
 */
void workload_init(struct workload *w, nst_op op);

/* One of its tensors, as it lies in memory. */
struct matrix {
  int64_t rows, n, stride;
  nst_dtype dtype;
};
struct matrix workload_matrix(const struct workload *w, enum rows_tensor tensor);

/* Bytes from the first to past the last element. */
int64_t matrix_extent(const struct matrix *m);

/* Each input read once, each output written once. */
int64_t workload_bytes(const struct workload *w);

int dtype_from_name(const char *name, nst_dtype *dtype); /* 0 where the name is unknown */

#endif
