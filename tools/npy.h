/*
 * NumPy's .npy files: one array of f16, f32 or 16-bit unsigned integers (which carry bf16), little-endian, in C order.
 * Format versions 1.0, 2.0 and 3.0 are read, version 1.0 is written.
 */
#ifndef NST_TOOLS_NPY_H
#define NST_TOOLS_NPY_H

#include <stddef.h>
#include <stdint.h>

enum npy_type { NPY_F16, NPY_F32, NPY_U16 };

#define NPY_MAX_DIMENSIONS 32

struct npy {
  enum npy_type type;
  int dimensions;
  int64_t shape[NPY_MAX_DIMENSIONS];
  size_t count; /* elements: the product of the shape */
  void *data;   /* from malloc; also set for an array without elements */
};

/* "f16", "f32", "uint16", and the bytes of an element. */
const char *npy_type_name(enum npy_type type);
size_t npy_type_size(enum npy_type type);

/* Reads a file. Returns 0, or -1 with a sentence in `why` that names the file; then there is nothing to free. */
int npy_read(const char *path, struct npy *array, char *why, size_t why_size);
void npy_free(struct npy *array);

/*
 * Writes a file in two steps, so that a failure leaves nothing behind: npy_stage writes a temporary file beside `path`
 * and puts its name into `staged`; npy_commit gives it its name; npy_discard removes it (with an empty name: nothing).
 * Like npy_read they return 0, or -1 with a sentence. Only `array`'s type, shape and data are used.
 */
#define NPY_PATH_SIZE 4096
int npy_stage(const char *path, const struct npy *array, char staged[NPY_PATH_SIZE], char *why, size_t why_size);
int npy_commit(const char *path, char staged[NPY_PATH_SIZE], char *why, size_t why_size);
void npy_discard(char staged[NPY_PATH_SIZE]);

#endif
