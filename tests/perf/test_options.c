/* The command line of nst-bench. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "options.h"

enum { ARGUMENTS_MAX = 24 };

/* Splits a line at its spaces; the options' strings point into `text`. */
static int parse(const char *line, char *text, struct options *o, struct problem *p) {
  char *argv[ARGUMENTS_MAX + 1] = {"nst-bench"};
  int argc = 1;
  strcpy(text, line);
  for (char *word = strtok(text, " "); word && argc < ARGUMENTS_MAX; word = strtok(NULL, " ")) argv[argc++] = word;
  return options_parse(argc, argv, o, p);
}

static void refused(const char *line, const char *words) {
  char text[512];
  struct options o;
  struct problem p = {""};
  assert_int_equal(parse(line, text, &o, &p), -1);
  if (!strstr(p.text, words)) fail_msg("%s: the sentence is \"%s\", expected \"%s\" in it", line, p.text, words);
}

static struct options accepted(const char *line, char *text) {
  struct options o;
  struct problem p = {""};
  if (parse(line, text, &o, &p)) fail_msg("%s: %s", line, p.text);
  return o;
}

static void test_defaults(void **state) {
  (void)state;
  char text[512];
  const struct options o = accepted("", text);
  assert_string_equal(o.workloads, "perf/workloads.json");
  assert_true(o.host && !o.has_shape && !o.has_strategy && !o.all_kernels && !o.tune);
  assert_int_equal(o.iterations, 0);
}

static void test_shape(void **state) {
  (void)state;
  char text[512];
  struct options o = accepted(
      "--op rms_norm_fwd --dtype bf16 --weight-dtype f32 --rows 4 --n 4096 --x-stride 6144 "
      "--offset 3 --eps 1e-5 --strategy block --iterations 7 --no-host --json a.json",
      text);
  assert_true(o.has_shape && o.has_strategy && !o.host);
  assert_int_equal(o.shape.dtype, NST_DTYPE_BF16);
  assert_int_equal(o.shape.weight_dtype, NST_DTYPE_F32);
  assert_true(o.shape.rows == 4 && o.shape.n == 4096 && o.shape.x_stride == 6144 && o.shape.offset == 3);
  assert_true(o.shape.eps == 1e-5f && o.shape.has[ROWS_WEIGHT]);
  assert_int_equal(o.strategy, NST_STRATEGY_BLOCK);
  assert_int_equal(o.iterations, 7);
  assert_string_equal(o.json, "a.json");
  assert_string_equal(o.shape.id, "rms_norm_fwd/bf16w32/4x4096");
  o = accepted("--op=fused_add_rms_norm_fwd --dtype=f16 --rows=1 --n=1 --without=weight", text);
  assert_true(o.shape.has[ROWS_RESIDUAL] && o.shape.has[ROWS_RESIDUAL_OUT] && !o.shape.has[ROWS_WEIGHT]);
  assert_int_equal(o.shape.weight_dtype, NST_DTYPE_F16);
  o = accepted("--op rms_norm_fwd --dtype f16 --rows 1 --n 8", text);
  assert_true(o.shape.has[ROWS_WEIGHT] && o.shape.eps == 1e-6f && o.shape.rows_per_cond == 1);
  assert_int_equal(o.shape.weight_dtype, NST_DTYPE_F16);
}

static void test_layer_norms(void **state) {
  (void)state;
  char text[512];
  struct options o =
      accepted("--n 8 --rows 1 --weight-dtype f32 --without weight --dtype f16 --op layer_norm_fwd", text);
  assert_true(!o.shape.has[ROWS_WEIGHT] && o.shape.has[ROWS_BIAS] && o.shape.eps == 1e-5f);
  assert_int_equal(o.shape.weight_dtype, NST_DTYPE_F32);
  assert_string_equal(o.shape.id, "layer_norm_fwd/f16w32/1x8");
  o = accepted("--op ada_layer_norm_zero_fwd --dtype bf16 --rows 8 --n 8 --rows-per-cond 4 --without shift,gate", text);
  assert_true(o.shape.has[ROWS_SCALE] && !o.shape.has[ROWS_SHIFT] && !o.shape.has[ROWS_GATE]);
  assert_int_equal(o.shape.rows_per_cond, 4);
  o = accepted("--op ada_layer_norm_fwd --dtype f32 --rows 8 --n 8 --eps 0", text);
  assert_true(o.shape.has[ROWS_SHIFT] && !o.shape.has[ROWS_GATE] && o.shape.eps == 0);
}

static void test_tuner(void **state) {
  (void)state;
  char text[512];
  const struct options o =
      accepted("--tune t.json --ops rms_norm_fwd --dtypes bf16,f32 --buckets 64 --seconds 2.5", text);
  assert_string_equal(o.tune, "t.json");
  assert_string_equal(o.dtypes, "bf16,f32");
  assert_true(o.seconds == 2.5);
}

static void test_help(void **state) {
  (void)state;
  char text[64];
  struct options o;
  struct problem p;
  assert_int_equal(parse("--help", text, &o, &p), OPTIONS_HELP);
}

static void test_refused(void **state) {
  (void)state;
  const char *shape = "--op rms_norm_fwd --dtype bf16 --rows 4 --n 64";
  char line[256];
  refused("--frobnicate 3", "--frobnicate is unknown");
  refused("--match", "--match needs a value");
  refused("file.json", "\"file.json\" is not an option");
  refused("--op layer --dtype f16",
          "--op is \"layer\", expected rms_norm_fwd, fused_add_rms_norm_fwd, layer_norm_fwd, "
          "fused_add_layer_norm_fwd, ada_layer_norm_fwd or ada_layer_norm_zero_fwd");
  refused("--op rms_norm_fwd --dtype f64", "--dtype is \"f64\"");
  refused("--op rms_norm_fwd --rows 3 --n 4", "--dtype is missing");
  refused("--op rms_norm_fwd --dtype f16 --n 4", "--rows is missing");
  refused("--op rms_norm_fwd --dtype f16 --rows 4", "--n is missing");
  refused("--rows 4", "--op is missing");
  refused("--eps 1e-3", "--op is missing");
  refused("--op rms_norm_fwd --dtype f16 --rows 0 --n 4", "--rows is \"0\"");
  refused("--op rms_norm_fwd --dtype f16 --rows 4x --n 4", "--rows is \"4x\"");
  refused("--op rms_norm_fwd --dtype f16 --rows 1 --n 99999999999", "--n is \"99999999999\"");
  refused("--op rms_norm_fwd --dtype f16 --weight-dtype bf16 --rows 1 --n 8", "--weight-dtype differs");
  refused("--op rms_norm_fwd --dtype f16 --eps -1 --rows 1 --n 8", "--eps is \"-1\"");
  refused("--op rms_norm_fwd --dtype f16 --eps nan --rows 1 --n 8", "--eps is \"nan\"");
  refused("--without bias", "--op is missing");
  refused("--weight-dtype f32", "--op is missing");
  refused("--op rms_norm_fwd --dtype f16 --weight-dtype none --rows 1 --n 8", "--weight-dtype is \"none\"");
  refused("--op rms_norm_fwd --dtype f16 --without bias --rows 1 --n 8", "--without names \"bias\"");
  refused("--op layer_norm_fwd --dtype f16 --without bias,x --rows 1 --n 8", "--without names \"x\"");
  refused("--op layer_norm_fwd --dtype f16 --without bias, --rows 1 --n 8", "--without names \"\"");
  refused("--op layer_norm_fwd --dtype f16 --without mean --rows 1 --n 8", "--without names \"mean\"");
  refused("--op fused_add_layer_norm_fwd --dtype f16 --without residual --rows 1 --n 8",
          "--without names \"residual\", expected inputs that fused_add_layer_norm_fwd can do without");
  refused("--op layer_norm_fwd --dtype f16 --without bias,weight --weight-dtype f32 --rows 1 --n 8",
          "--weight-dtype is given, but neither");
  refused("--op ada_layer_norm_fwd --dtype f16 --weight-dtype f32 --rows 1 --n 8", "--weight-dtype is given, but");
  refused("--op layer_norm_fwd --dtype f16 --rows-per-cond 2 --rows 4 --n 8",
          "--rows-per-cond is given, but layer_norm_fwd has no scale");
  refused("--op ada_layer_norm_fwd --dtype f16 --rows-per-cond 0 --rows 4 --n 8", "--rows-per-cond is \"0\"");
  refused("--strategy fast", "--strategy is \"fast\"");
  refused("--strategy warp --all-kernels", "exclude each other");
  refused("--kernel k --all-kernels", "exclude each other");
  refused("--iterations 0", "--iterations is \"0\"");
  refused("--tune t.json --match a", "--tune takes");
  refused("--tune t.json --strategy warp", "--tune takes");
  refused("--buckets 64", "belong to --tune");
  refused("--seconds 5", "belong to --tune");
  snprintf(line, sizeof line, "%s --match a", shape);
  refused(line, "give one of them");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_defaults), cmocka_unit_test(test_shape), cmocka_unit_test(test_layer_norms),
      cmocka_unit_test(test_tuner),    cmocka_unit_test(test_help),  cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
