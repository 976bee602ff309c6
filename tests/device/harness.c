#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "oracle.h"

#ifdef NST_WITH_SOFTGPU
#include "softgpu.h"
#endif

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define WITH_ASAN 1
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define MARGIN 64 /* bytes of canary on a side */

static const unsigned char canary[2] = CANARY_BYTES;

uint64_t scramble(uint64_t x) { /* splitmix64 */
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static int is_output(int which) { return which >= ROWS_INPUTS; }

/* ---- Calls ---------------------------------------------------------------------------------------------------- */

struct call call_of(nst_op op, nst_dtype dtype, nst_dtype weight_dtype, int64_t rows, int64_t n) {
  struct call call = {
      .op = op, .dtype = dtype, .weight_dtype = weight_dtype, .rows = rows, .n = n, .rows_per_cond = 1,
      .eps = op_eps(op)};
  for (int t = 0; t < ROWS_TENSORS; t++) call.at[t].kind = op_has(op, (enum rows_tensor)t) ? OWN : ABSENT;
  return call;
}

void call_describe(const struct call *call, char *text, size_t size) {
  static const char *const fills[FILLS] = {"normal", "wide", "large", "tiny", "constant", "outlier", "far", "zero"};
  size_t used = (size_t)snprintf(text, size, "%s %s, %lld x %lld, %s values", op_name(call->op),
                                 types_name(call->dtype, call->weight_dtype), (long long)call->rows,
                                 (long long)call->n, fills[call->fill]);
  for (int t = 0; t < ROWS_TENSORS && used < size; t++) {
    const struct place *const at = &call->at[t];
    char how[64] = "";
    if (at->kind == ABSENT && op_has(call->op, (enum rows_tensor)t)) snprintf(how, sizeof how, " absent");
    if (at->kind == AS_X) snprintf(how, sizeof how, " = x");
    if (at->kind == AS_RESIDUAL) snprintf(how, sizeof how, " = residual");
    if (at->kind == OWN && at->stride)
      snprintf(how, sizeof how, " + %lld stride %lld", (long long)at->offset, (long long)at->stride);
    else if (at->kind == OWN && at->offset)
      snprintf(how, sizeof how, " + %lld", (long long)at->offset);
    if (*how) used += (size_t)snprintf(text + used, size - used, ", %s%s", rows_tensor_name((enum rows_tensor)t), how);
  }
  if (used < size && call->rows_per_cond > 1)
    used += (size_t)snprintf(text + used, size - used, ", rows_per_cond %lld", (long long)call->rows_per_cond);
  if (used < size)
    snprintf(text + used, size - used, ", eps %g, offset %g%s%s%s%s", (double)call->eps, (double)call->weight_offset,
             call->flags & NST_FLAG_ROUND_RESIDUAL ? ", ROUND_RESIDUAL" : "",
             call->flags & NST_FLAG_ROUND_BEFORE_WEIGHT ? ", ROUND_BEFORE_WEIGHT" : "",
             call->flags & NST_FLAG_DEPENDENT_LAUNCH ? ", DEPENDENT_LAUNCH" : "",
             call->flags & NST_FLAG_WEIGHT_READY ? ", WEIGHT_READY" : "");
}

static void say(const char *name, const struct setup *s, const char *finding) {
  char text[512];
  call_describe(&s->call, text, sizeof text);
  fprintf(stderr, "%s: %s\n    in %s\n", name, finding, text);
}

/* ---- Content -------------------------------------------------------------------------------------------------- */

static double normal(uint64_t bits) { /* the sum of four uniform numbers, variance 1 */
  double sum = -2;
  for (int i = 0; i < 4; i++) sum += (double)(bits >> 16 * i & 0xffff) / 65536;
  return sum * 1.7320508075688772;
}

static double value(const struct call *call, int which, int64_t row, int64_t i) {
  const uint64_t key = scramble(scramble(call->seed * ROWS_TENSORS + (uint64_t)which) + (uint64_t)row);
  const uint64_t bits = scramble(key + (uint64_t)i);
  const double v = normal(bits);
  switch (which) {
    case ROWS_WEIGHT: return (1 - (double)call->weight_offset) + v / 2;
    case ROWS_BIAS:
    case ROWS_SCALE:
    case ROWS_SHIFT: return v / 2;
    case ROWS_GATE: return 1 + v / 2;
    default: break;
  }
  switch (call->fill) {
    case FILL_WIDE: return v * half_power((int)(scramble(bits) % 17) - 8);
    case FILL_LARGE: return v * (call->dtype == NST_DTYPE_F16 ? 1e4 : 1e15);
    case FILL_TINY: return v * (call->dtype == NST_DTYPE_F16 ? 0x1p-18 : 1e-39);
    case FILL_CONSTANT: return 3;
    case FILL_OUTLIER: return i == (int64_t)(key % (uint64_t)call->n) ? (v < 0 ? -1000 : 1000) + v * 500 : v;
    case FILL_FAR: return 10000 + v * (call->dtype == NST_DTYPE_F32 ? 1 : call->dtype == NST_DTYPE_F16 ? 32 : 256);
    case FILL_ZERO: return 0;
    default: return v;
  }
}

static void fill_canary(char *p, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) p[i] = (char)canary[i % 2];
}

static size_t row_bytes(const struct tensor *t) { return (size_t)t->n * half_size(t->dtype); }
static size_t row_start(const struct tensor *t, int64_t row) {
  return t->first + (size_t)(row * t->stride) * half_size(t->dtype);
}

/* Calls visit(t, begin, bytes) for every stretch of the allocation that holds no element. */
static void each_gap(struct tensor *t, void (*visit)(struct tensor *t, size_t begin, size_t bytes)) {
  size_t end = 0; /* of the elements so far; rows may overlap */
  for (int64_t row = 0; row < t->rows; row++) {
    const size_t begin = row_start(t, row);
    if (begin > end) visit(t, end, begin - end);
    end = begin + row_bytes(t);
  }
  if (t->bytes > end) visit(t, end, t->bytes - end);
}

/* Under the address sanitizer the software device's kernels may not even read what is no element. (The sanitizer keeps
 * its books by 8 bytes and lets the last few before an element pass.) */
#ifdef WITH_ASAN
static void forbid(struct tensor *t, size_t begin, size_t bytes) {
  ASAN_POISON_MEMORY_REGION(t->device + begin, bytes);
}
static void forbid_gaps(struct tensor *t) { each_gap(t, forbid); }
static void allow_all(struct tensor *t) { ASAN_UNPOISON_MEMORY_REGION(t->device, t->bytes); }
#else
static void forbid_gaps(struct tensor *t) { (void)t; }
static void allow_all(struct tensor *t) { (void)t; }
#endif

/* ---- Tensors -------------------------------------------------------------------------------------------------- */

static int tensor_make(struct setup *s, int which) {
  const struct call *const call = &s->call;
  struct tensor *const t = &s->own[which];
  const struct place *const at = &call->at[which];
  const enum rows_shape shape = rows_tensor_shape((enum rows_tensor)which);
  const int one_row = shape == SHAPE_ROW || shape == SHAPE_COLUMN;
  const int64_t shared_by = shape == SHAPE_COND && call->rows_per_cond > 1 ? call->rows_per_cond : 1;
  const int64_t probe = one_row ? 0 : call->probe / shared_by;
  t->dtype = shape == SHAPE_COLUMN ? NST_DTYPE_F32 : shape == SHAPE_ROW ? call->weight_dtype : call->dtype;
  t->rows = one_row ? 1 : rows_of_cond(call->rows, shared_by);
  t->n = shape == SHAPE_COLUMN ? call->rows : call->n;
  t->stride = at->stride ? at->stride : t->n;
  t->first = MARGIN + (size_t)at->offset * half_size(t->dtype);
  t->bytes = t->rows > 0 ? row_start(t, t->rows - 1) + row_bytes(t) : t->first;
#ifdef WITH_ASAN
  /* The allocation ends where the tensor does, so that the sanitizer guards its end to the byte. */
  if (s->gpu->is_card) t->bytes += MARGIN;
#else
  t->bytes += MARGIN;
#endif
  t->device = gpu_alloc(s->gpu, t->bytes);
  t->given = malloc(t->bytes);
  t->got = malloc(t->bytes);
  if (!t->device || !t->given || !t->got) return -1;
  fill_canary(t->given, t->bytes);
  for (int64_t row = 0; row < t->rows && !is_output(which); row++) {
    const int64_t content = row == probe ? 0 : row == 0 ? probe : row;
    for (int64_t i = 0; i < t->n; i++)
      half_store(t->dtype, t->given + row_start(t, row), i, value(call, which, content, i));
  }
  return 0;
}

int setup_make(struct setup *s, struct gpu *gpu, const struct call *call) {
  memset(s, 0, sizeof *s);
  s->gpu = gpu;
  s->call = *call;
  for (int which = 0; which < ROWS_TENSORS; which++) {
    switch (call->at[which].kind) {
      case ABSENT: break;
      case AS_X: s->at[which] = &s->own[ROWS_X]; break;
      case AS_RESIDUAL: s->at[which] = &s->own[ROWS_RESIDUAL]; break;
      case OWN:
        s->at[which] = &s->own[which];
        if (tensor_make(s, which)) {
          say("harness", s, "no room for the tensors");
          setup_free(s);
          return -1;
        }
    }
  }
  return 0;
}

void setup_free(struct setup *s) {
  for (int which = 0; which < ROWS_TENSORS; which++) {
    struct tensor *const t = &s->own[which];
    if (t->device) gpu_free(s->gpu, t->device);
    free(t->given);
    free(t->got);
  }
  memset(s, 0, sizeof *s);
}

void *setup_given(struct setup *s, int which, int64_t row, int64_t i) {
  struct tensor *const t = s->at[which];
  return t->given + row_start(t, row) + (size_t)i * half_size(t->dtype);
}

/* ---- Running -------------------------------------------------------------------------------------------------- */

union rows_args setup_args(const struct setup *s) {
  const struct call *const call = &s->call;
  struct rows_call plain = {.op = call->op, .dtype = call->dtype, .weight_dtype = call->weight_dtype,
                            .rows = call->rows, .n = call->n, .rows_per_cond = call->rows_per_cond, .eps = call->eps,
                            .weight_offset = call->weight_offset, .flags = call->flags};
  for (int which = 0; which < ROWS_TENSORS; which++) {
    const struct tensor *const t = s->at[which];
    if (!t) continue;
    plain.tensor[which] = t->device + t->first;
    plain.stride[which] = call->at[t - s->own].stride; /* of an in-place output its input's */
  }
  return rows_args_of(&plain);
}

int setup_put(struct setup *s) {
  int error = 0;
  for (int which = 0; which < ROWS_TENSORS; which++) {
    struct tensor *const t = &s->own[which];
    if (t->bytes) error |= gpu_upload(s->gpu, t->device, t->given, t->bytes);
  }
  return error;
}

int setup_fetch(struct setup *s) {
  int error = gpu_sync(s->gpu);
  for (int which = 0; which < ROWS_TENSORS; which++) {
    struct tensor *const t = &s->own[which];
    if (t->bytes) error |= gpu_download(s->gpu, t->got, t->device, t->bytes);
  }
  return error;
}

nst_status setup_run(struct setup *s, size_t index, unsigned order) {
#ifdef NST_WITH_SOFTGPU
  if (!s->gpu->is_card) softgpu_set_order(order);
#else
  (void)order;
#endif
  int error = setup_put(s);
  for (int which = 0; which < ROWS_TENSORS; which++)
    if (s->own[which].bytes && !s->gpu->is_card) forbid_gaps(&s->own[which]);
  const union rows_args args = setup_args(s);
  nst_status status = index == DISPATCH ? rows_launch(s->gpu->library, s->call.op, &args, s->gpu->stream)
                                        : nst_launch_kernel(s->gpu->library, index, &args, s->gpu->stream);
  error |= gpu_sync(s->gpu);
  for (int which = 0; which < ROWS_TENSORS; which++)
    if (s->own[which].bytes && !s->gpu->is_card) allow_all(&s->own[which]);
  error |= setup_fetch(s);
  if (error) {
    char finding[128];
    snprintf(finding, sizeof finding, "the device failed with error %d", error);
    say("harness", s, finding);
    status = NST_ERROR_DRIVER_CALL;
  }
  return status;
}

/* ---- Looking at results --------------------------------------------------------------------------------------- */

/* The first byte at which a stretch differs from what was given; -1: none. */
static int64_t first_change(const struct tensor *t, size_t begin, size_t bytes) {
  if (memcmp(t->given + begin, t->got + begin, bytes) == 0) return -1;
  size_t i = begin;
  while (t->given[i] == t->got[i]) i++;
  return (int64_t)i;
}

static int64_t changed_gap; /* what look_at_gap found: the first changed byte, else -1 */
static void look_at_gap(struct tensor *t, size_t begin, size_t bytes) {
  if (changed_gap < 0) changed_gap = first_change(t, begin, bytes);
}

/* Whether anything but the elements of outputs changed. */
static int check_outside(const struct setup *s, const char *name, int written[ROWS_TENSORS]) {
  int wrong = 0;
  for (int which = 0; which < ROWS_TENSORS; which++) {
    struct tensor t = s->own[which];
    if (!t.bytes) continue;
    changed_gap = -1;
    if (written[which])
      each_gap(&t, look_at_gap);
    else
      changed_gap = first_change(&t, 0, t.bytes);
    if (changed_gap < 0) continue;
    char finding[160];
    snprintf(finding, sizeof finding, "byte %lld %s of %s changed", (long long)(changed_gap - (int64_t)t.first),
             written[which] ? "outside the elements" : "(counted from the first element)",
             rows_tensor_name((enum rows_tensor)which));
    say(name, s, finding);
    wrong++;
  }
  return wrong;
}

/* Whether an element of an output that was CANARY before still is. */
static int check_written(const struct setup *s, const char *name) {
  int wrong = 0;
  for (int which = 0; which < ROWS_TENSORS; which++) {
    const struct tensor *const t = &s->own[which];
    if (!t->bytes || !is_output(which)) continue;
    const size_t size = half_size(t->dtype);
    int64_t missing = 0, at = -1;
    for (int64_t row = 0; row < t->rows; row++) {
      const char *const p = t->got + row_start(t, row), *const q = t->given + row_start(t, row);
      for (int64_t i = 0; i < t->n; i++)
        if (memcmp(p + (size_t)i * size, q + (size_t)i * size, size) == 0 && missing++ == 0) at = row * t->n + i;
    }
    if (!missing) continue;
    char finding[160];
    snprintf(finding, sizeof finding, "%lld elements of %s not written, the first is [%lld][%lld]", (long long)missing,
             rows_tensor_name((enum rows_tensor)which), (long long)(at / t->n), (long long)(at % t->n));
    say(name, s, finding);
    wrong++;
  }
  return wrong;
}

static struct oracle_tensor view(const struct tensor *t, const char *base) {
  if (!t) return (struct oracle_tensor){NULL, (nst_dtype)0, 0};
  return (struct oracle_tensor){base + t->first, t->dtype, t->stride};
}

static struct oracle_tensor input(const struct setup *s, int which) {
  return view(s->at[which], s->at[which] ? s->at[which]->given : NULL);
}

/* A copy of mean or rstd, which need not be aligned where it was fetched to; NULL: absent. */
static float *column(const struct setup *s, int which) {
  const struct tensor *const t = s->at[which];
  if (!t || t->n == 0) return NULL;
  float *const copy = malloc((size_t)t->n * sizeof *copy);
  if (!copy) abort();
  return memcpy(copy, t->got + t->first, (size_t)t->n * sizeof *copy);
}

int setup_check(const struct setup *s, const char *name) {
  const struct call *const call = &s->call;
  int written[ROWS_TENSORS] = {0};
  for (int which = 0; which < ROWS_TENSORS; which++)
    if (is_output(which) && s->at[which]) written[s->at[which] - s->own] = 1;
  int wrong = check_outside(s, name, written) + check_written(s, name);

  const struct oracle_rows in = {.op = call->op, .n = call->n, .rows_per_cond = call->rows_per_cond, .eps = call->eps,
                                 .weight_offset = call->weight_offset, .flags = call->flags,
                                 .x = input(s, ROWS_X), .residual = input(s, ROWS_RESIDUAL),
                                 .weight = input(s, ROWS_WEIGHT), .bias = input(s, ROWS_BIAS),
                                 .scale = input(s, ROWS_SCALE), .shift = input(s, ROWS_SHIFT),
                                 .gate = input(s, ROWS_GATE)};
  struct oracle_result result = {.y = view(s->at[ROWS_Y], s->at[ROWS_Y]->got), .mean = NULL};
  if (s->at[ROWS_RESIDUAL_OUT]) result.residual_out = view(s->at[ROWS_RESIDUAL_OUT], s->at[ROWS_RESIDUAL_OUT]->got);
  float *const mean = column(s, ROWS_MEAN), *const rstd = column(s, ROWS_RSTD);
  result.mean = mean, result.rstd = rstd;
  struct oracle_report report = ORACLE_REPORT_INIT;
  for (int64_t row = 0; row < call->rows; row++) oracle_compare(&in, &result, row, &report);
  free(mean);
  free(rstd);
  if (report.wrong) {
    char finding[320];
    snprintf(finding, sizeof finding,
             "%s[%lld][%lld] is %.9g, expected %.9g within %.3g (%lld of %lld numbers wrong, y by up to %.3g ulp)",
             report.what, (long long)report.row, (long long)report.column, report.got, report.expected, report.limit,
             (long long)report.wrong, (long long)report.compared, report.y_ulps);
    say(name, s, finding);
    wrong++;
  }
  return wrong;
}

int setup_untouched(const struct setup *s, const char *name) {
  int written[ROWS_TENSORS] = {0};
  return check_outside(s, name, written);
}

uint64_t setup_digest(const struct setup *s) {
  uint64_t digest = 0;
  for (int which = 0; which < ROWS_TENSORS; which++) {
    const struct tensor *const t = &s->own[which];
    for (size_t i = 0; i < t->bytes; i += 8) {
      uint64_t word = 0;
      memcpy(&word, t->got + i, t->bytes - i < 8 ? t->bytes - i : 8);
      digest = scramble(digest ^ word);
    }
  }
  return digest;
}

int setup_same_row(const struct setup *a, int64_t row_a, const struct setup *b, int64_t row_b, const char *name) {
  static const int outputs[] = {ROWS_MEAN, ROWS_RSTD, ROWS_RESIDUAL_OUT, ROWS_Y};
  for (size_t o = 0; o < sizeof outputs / sizeof *outputs; o++) {
    const int which = outputs[o];
    const struct tensor *const ta = a->at[which], *const tb = b->at[which];
    if (!ta || !tb) continue;
    const size_t size = half_size(ta->dtype);
    const int is_column = rows_tensor_shape((enum rows_tensor)which) == SHAPE_COLUMN;
    const char *const pa = ta->got + (is_column ? ta->first + (size_t)row_a * size : row_start(ta, row_a));
    const char *const pb = tb->got + (is_column ? tb->first + (size_t)row_b * size : row_start(tb, row_b));
    const int64_t count = is_column ? 1 : ta->n;
    if (memcmp(pa, pb, (size_t)count * size) == 0) continue;
    int64_t i = 0;
    while (memcmp(pa + (size_t)i * size, pb + (size_t)i * size, size) == 0) i++;
    char finding[192];
    snprintf(finding, sizeof finding, "%s of row %lld, element %lld: %.9g where another run of the same row gave %.9g",
             rows_tensor_name((enum rows_tensor)which), (long long)row_b, (long long)i, half_load(tb->dtype, pb, i),
             half_load(ta->dtype, pa, i));
    say(name, b, finding);
    return 0;
  }
  return 1;
}

/* ---- Options and device --------------------------------------------------------------------------------------- */

static void refuse(const char *option, const char *given, const char *expected) {
  fprintf(stderr, "%s is %s, expected %s\n", option, given, expected);
  exit(2);
}

static enum gpu_choice device_choice(const char *option, const char *text) {
  if (strcmp(text, "card") == 0) return GPU_CARD;
  if (strcmp(text, "soft") == 0) return GPU_SOFT;
  if (strcmp(text, "auto") != 0) refuse(option, text, "card, soft or auto");
  return GPU_AUTO;
}

struct options options_read(int argc, char **argv) {
  struct options o = {.device = GPU_AUTO, .part = 1, .parts = 1};
  const char *const from_environment = getenv("NST_DEVICE");
  if (from_environment) o.device = device_choice("NST_DEVICE", from_environment);
  for (int i = 1; i < argc; i += 2) {
    const char *const option = argv[i], *const text = i + 1 < argc ? argv[i + 1] : NULL;
    if (!text) refuse(option, "the last word", "a value after it");
    if (strcmp(option, "--device") == 0)
      o.device = device_choice(option, text);
    else if (strcmp(option, "--op") == 0)
      o.op = text;
    else if (strcmp(option, "--types") == 0)
      o.types = text;
    else if (strcmp(option, "--strategy") == 0)
      o.strategy = text;
    else if (strcmp(option, "--part") == 0) {
      if (sscanf(text, "%d/%d", &o.part, &o.parts) != 2 || o.part < 1 || o.part > o.parts)
        refuse(option, text, "I/N with 1 <= I <= N");
    } else
      refuse("an option", option, "--device, --op, --types, --strategy or --part");
  }
  return o;
}

int options_pass(const struct options *o, const nst_kernel_info *info) {
  return (!o->op || strcmp(o->op, op_name(info->op)) == 0) &&
         (!o->types || strcmp(o->types, types_name(info->dtype, info->weight_dtype)) == 0) &&
         (!o->strategy || strcmp(o->strategy, strategy_name(info->strategy)) == 0);
}

void device_open(struct gpu *gpu, enum gpu_choice choice) {
  char why[512];
  if (gpu_open(gpu, choice, why, sizeof why)) {
    fprintf(stderr, "no device: %s\n", why);
    exit(1);
  }
  printf("device: %s%s\n", gpu->name, gpu->is_card ? "" : " (the software device)");
}

const char *device_error(void) {
#ifdef NST_WITH_SOFTGPU
  if (*softgpu_last_error()) return softgpu_last_error();
#endif
  return nst_last_error();
}

void device_multiprocessors(int count) {
#ifdef NST_WITH_SOFTGPU
  softgpu_set_multiprocessors(count);
#else
  (void)count;
#endif
}
