#define _POSIX_C_SOURCE 200809L /* mkstemp, fdopen, fchmod */
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
  const char *name;
  const char *descr; /* as it stands in a file's header */
  size_t size;
} types[] = {
    [NPY_F16] = {"f16", "<f2", 2},
    [NPY_F32] = {"f32", "<f4", 4},
    [NPY_U16] = {"uint16", "<u2", 2},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

const char *npy_type_name(enum npy_type type) { return types[type].name; }
size_t npy_type_size(enum npy_type type) { return types[type].size; }

/* ---- The header: a Python dictionary with the keys descr, fortran_order and shape, in any order ---------------- */

/* What is left of the header's text. */
struct text {
  const char *at;
  const char *end;
};

static void skip_space(struct text *t) {
  while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\n' || *t->at == '\r')) t->at++;
}

/* Takes the character c, with white space before it; 0 when something else comes. */
static int take(struct text *t, char c) {
  skip_space(t);
  if (t->at == t->end || *t->at != c) return 0;
  t->at++;
  return 1;
}

static int take_word(struct text *t, const char *word) {
  size_t length = strlen(word);
  skip_space(t);
  if ((size_t)(t->end - t->at) < length || memcmp(t->at, word, length) != 0) return 0;
  t->at += length;
  return 1;
}

/* A string in either kind of quotes, without escapes, that fits `out`. */
static int take_string(struct text *t, char *out, size_t out_size) {
  char quote = '\'';
  if (!take(t, quote)) {
    quote = '"';
    if (!take(t, quote)) return 0;
  }
  size_t length = 0;
  for (; t->at < t->end && *t->at != quote; t->at++) {
    if (*t->at == '\\' || length + 1 >= out_size) return 0;
    out[length++] = *t->at;
  }
  out[length] = '\0';
  return take(t, quote);
}

static int take_number(struct text *t, int64_t *out) {
  skip_space(t);
  const char *start = t->at;
  int64_t value = 0;
  for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
    int digit = *t->at - '0';
    if (value > (INT64_MAX - digit) / 10) return 0;
    value = value * 10 + digit;
  }
  *out = value;
  return t->at > start;
}

/* A tuple of numbers: (), (4,), (3, 4), (3, 4,). */
static int take_shape(struct text *t, struct npy *array) {
  array->dimensions = 0;
  if (!take(t, '(')) return 0;
  int comma = 1;
  while (!take(t, ')')) {
    if (!comma || array->dimensions == NPY_MAX_DIMENSIONS) return 0;
    if (!take_number(t, &array->shape[array->dimensions++])) return 0;
    comma = take(t, ',');
  }
  return array->dimensions != 1 || comma; /* (4) is a number, no tuple */
}

/* Parses the header's text; returns NULL, or what is wrong with it as the end of a sentence about the file. */
static const char *parse_header(struct text t, struct npy *array, char *note, size_t note_size) {
  static const char *const malformed = "has a malformed NumPy header";
  enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
  char descr[16] = "";
  int seen = 0;
  int fortran = 0;
  if (!take(&t, '{')) return malformed;
  for (int comma = 1; !take(&t, '}'); comma = take(&t, ',')) {
    char key[16];
    int bit = 0;
    int ok = 0;
    if (!comma || !take_string(&t, key, sizeof key) || !take(&t, ':')) return malformed;
    if (strcmp(key, "descr") == 0) {
      bit = DESCR;
      ok = take_string(&t, descr, sizeof descr);
      if (!ok && !(seen & DESCR)) return "holds a structured or unknown element type; expected f16, f32 or uint16";
    } else if (strcmp(key, "fortran_order") == 0) {
      bit = ORDER;
      fortran = take_word(&t, "True");
      ok = fortran || take_word(&t, "False");
    } else if (strcmp(key, "shape") == 0) {
      bit = SHAPE;
      ok = take_shape(&t, array);
    }
    if (!ok || (seen & bit)) return malformed;
    seen |= bit;
  }
  skip_space(&t);
  if (seen != (DESCR | ORDER | SHAPE) || t.at != t.end) return malformed;
  if (fortran) return "is in Fortran order; expected C order (numpy.ascontiguousarray)";
  for (int type = 0; type < TYPE_COUNT; type++) {
    if (strcmp(descr, types[type].descr) == 0) {
      array->type = (enum npy_type)type;
      return NULL;
    }
  }
  for (const char *c = descr; *c; c++)
    if (*c < ' ' || *c > '~') return malformed;
  snprintf(note, note_size, "holds elements of NumPy type '%s'; expected '<f2' (f16), '<f4' (f32) or '<u2' (uint16)",
           descr);
  return note;
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

static int fail(char *why, size_t why_size, const char *path, const char *what) {
  snprintf(why, why_size, "%s %s", path, what);
  return -1;
}

static int fail_errno(char *why, size_t why_size, const char *path, const char *what) {
  snprintf(why, why_size, "%s %s: %s", path, what, strerror(errno));
  return -1;
}

/* Computes array->count and *bytes; 0 when they don't fit. */
static int count_elements(struct npy *array, size_t *bytes) {
  size_t count = 1;
  int empty = 0;
  for (int i = 0; i < array->dimensions; i++) empty |= array->shape[i] == 0;
  for (int i = 0; i < array->dimensions && !empty; i++) {
    if ((uint64_t)array->shape[i] > PTRDIFF_MAX / npy_type_size(array->type) / count) return 0;
    count *= (size_t)array->shape[i];
  }
  array->count = empty ? 0 : count;
  *bytes = array->count * npy_type_size(array->type);
  return 1;
}

/* Reads the open file of `size` bytes. */
static int read_stream(FILE *file, size_t size, const char *path, struct npy *array, char *why, size_t why_size) {
  static const char *const not_numpy = "is not a NumPy file (no \\x93NUMPY at its start)";
  unsigned char start[12];
  if (fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY", 6) != 0)
    return fail(why, why_size, path, not_numpy);
  int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0) {
    snprintf(why, why_size, "%s has NumPy format version %d.%d; expected 1.0, 2.0 or 3.0", path, version, start[7]);
    return -1;
  }
  size_t offset = version == 1 ? 10 : 12;
  if (offset == 12 && fread(start + 10, 1, 2, file) != 2)
    return fail(why, why_size, path, "is truncated inside its header");
  size_t header = start[8] | (size_t)start[9] << 8;
  if (offset == 12) header |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
  /* A real header is 118 bytes, or little more; this bound keeps a damaged length from costing memory. */
  if (header > 65535) return fail(why, why_size, path, "has a NumPy header of more than 65535 bytes");
  if (size < offset || header > size - offset) return fail(why, why_size, path, "is truncated inside its header");
  char *text = malloc(header + 1);
  if (!text) return fail(why, why_size, path, "can't be read: out of memory");
  if (fread(text, 1, header, file) != header) {
    free(text);
    return fail_errno(why, why_size, path, "can't be read");
  }
  char note[128];
  const char *problem = parse_header((struct text){text, text + header}, array, note, sizeof note);
  free(text);
  if (problem) return fail(why, why_size, path, problem);
  offset += header;
  size_t bytes;
  if (!count_elements(array, &bytes)) return fail(why, why_size, path, "has a shape too large for this machine");
  if (bytes != size - offset) {
    snprintf(why, why_size, "%s is %s: its shape and type need %zu bytes of data, it has %zu", path,
             bytes > size - offset ? "truncated" : "too long", bytes, size - offset);
    return -1;
  }
  array->data = malloc(bytes ? bytes : 1);
  if (!array->data) return fail(why, why_size, path, "can't be read: out of memory");
  if (fread(array->data, 1, bytes, file) != bytes) {
    npy_free(array);
    return fail_errno(why, why_size, path, "can't be read");
  }
  return 0;
}

int npy_read(const char *path, struct npy *array, char *why, size_t why_size) {
  memset(array, 0, sizeof *array);
  struct stat status;
  if (stat(path, &status) != 0) return fail_errno(why, why_size, path, "can't be opened");
  if (!S_ISREG(status.st_mode)) return fail(why, why_size, path, "is not a regular file");
  FILE *file = fopen(path, "rb");
  if (!file) return fail_errno(why, why_size, path, "can't be opened");
  int result = read_stream(file, (size_t)status.st_size, path, array, why, why_size);
  fclose(file);
  return result;
}

void npy_free(struct npy *array) {
  free(array->data);
  array->data = NULL;
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

/* Writes the header in version 1.0 form: padded with blanks so that the data start on a multiple of 64 bytes. */
static int write_header(FILE *file, const struct npy *array) {
  char text[1024];
  const size_t size = sizeof text;
  int length = snprintf(text, size, "{'descr': '%s', 'fortran_order': False, 'shape': (", types[array->type].descr);
  for (int i = 0; i < array->dimensions; i++)
    length += snprintf(text + length, size - (size_t)length, "%s%" PRId64, i ? ", " : "", array->shape[i]);
  length += snprintf(text + length, size - (size_t)length, "%s), }", array->dimensions == 1 ? "," : "");
  while ((10 + length + 1) % 64 != 0) text[length++] = ' ';
  text[length++] = '\n';
  const unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(length & 255),
                                   (unsigned char)(length >> 8)};
  return fwrite(start, 1, sizeof start, file) == sizeof start &&
         fwrite(text, 1, (size_t)length, file) == (size_t)length;
}

int npy_stage(const char *path, const struct npy *array, char staged[NPY_PATH_SIZE], char *why, size_t why_size) {
  struct stat status;
  staged[0] = '\0';
  /* Committing replaces what is there; a device or a directory is not to be replaced. */
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
    return fail(why, why_size, path, "can't be written: it is not a regular file");
  if (snprintf(staged, NPY_PATH_SIZE, "%s.XXXXXX", path) >= NPY_PATH_SIZE) {
    staged[0] = '\0';
    return fail(why, why_size, path, "can't be written: its name is too long");
  }
  int descriptor = mkstemp(staged);
  if (descriptor < 0) {
    staged[0] = '\0';
    return fail_errno(why, why_size, path, "can't be written");
  }
  mode_t mask = umask(0);
  umask(mask);
  FILE *file = fchmod(descriptor, 0666 & ~mask) == 0 ? fdopen(descriptor, "wb") : NULL;
  size_t size = npy_type_size(array->type);
  int ok = file && write_header(file, array) && fwrite(array->data, size, array->count, file) == array->count;
  int error = errno;
  if (file ? fclose(file) : close(descriptor)) {
    if (ok) error = errno;
    ok = 0;
  }
  if (ok) return 0;
  npy_discard(staged);
  errno = error;
  return fail_errno(why, why_size, path, "can't be written");
}

int npy_commit(const char *path, char staged[NPY_PATH_SIZE], char *why, size_t why_size) {
  if (rename(staged, path) != 0) return fail_errno(why, why_size, path, "can't be written");
  staged[0] = '\0';
  return 0;
}

void npy_discard(char staged[NPY_PATH_SIZE]) {
  if (staged[0]) unlink(staged);
  staged[0] = '\0';
}
