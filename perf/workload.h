/* What is measured: one operation on tensors of one shape, and the bytes it can't avoid to move. */
#ifndef NST_PERF_WORKLOAD_H
#define NST_PERF_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "normstatic.h"
#include "problem.h"

struct workload {
  char id[128];
  nst_op op;
  nst_dtype dtype;
  nst_dtype weight_dtype; /* also where there is no weight: it names the kernel */
  int has_weight;
  int64_t rows, n;
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

/* Each input read once, each output written once. */
int64_t workload_bytes(const struct workload *w);

/* Bytes from the first to past the last element of x, strided as it is. */
int64_t workload_x_extent(const struct workload *w);

/* Names, as in kernels and on the command line ("rms_norm_fwd", "bf16", "bf16w32"). The *_from_name return 0 where the
 * name is unknown. */
const char *op_name(nst_op op);
int op_from_name(const char *name, nst_op *op);
int op_adds_residual(nst_op op);
int dtype_from_name(const char *name, nst_dtype *dtype);
const char *types_name(nst_dtype dtype, nst_dtype weight_dtype);
const char *strategy_name(nst_strategy strategy);
int strategy_from_name(const char *name, nst_strategy *strategy);
const char *access_name(nst_access access);

#endif
