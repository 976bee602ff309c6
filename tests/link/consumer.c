/* A program that uses the library as anybody would: C99 and C++11 alike, nothing but the public header. */
#include "normstatic.h"
#include "normstatic.h" /* twice does no harm */

#include <stdio.h>
#include <string.h>

static int count; /* of the entry points that were asked for */

static void *no_driver(void *user, const char *name, int cuda_version) {
  (void)user;
  (void)cuda_version;
  count += name[0] == 'c';
  return NULL;
}

/* Prints what a call on the default driver would say, for tests that look at the process it runs in. */
static int open_default(void) {
  nst_library *library;
  nst_status status = nst_open(&library, NULL);
  printf("%s\n%s\n", nst_status_name(status), nst_last_error());
  return nst_close(library) == NST_OK ? 0 : 1;
}

int main(int argc, char **argv) {
  nst_open_options options = NST_OPEN_OPTIONS_INIT;
  nst_rms_norm_fwd_args norm = NST_RMS_NORM_FWD_ARGS_INIT;
  nst_fused_add_rms_norm_fwd_args fused = NST_FUSED_ADD_RMS_NORM_FWD_ARGS_INIT;
  nst_layer_norm_fwd_args layer = NST_LAYER_NORM_FWD_ARGS_INIT;
  nst_fused_add_layer_norm_fwd_args fused_layer = NST_FUSED_ADD_LAYER_NORM_FWD_ARGS_INIT;
  nst_ada_layer_norm_fwd_args ada = NST_ADA_LAYER_NORM_FWD_ARGS_INIT;
  nst_ada_layer_norm_zero_fwd_args zero = NST_ADA_LAYER_NORM_ZERO_FWD_ARGS_INIT;
  nst_kernel_info row = NST_KERNEL_INFO_INIT;
  nst_device_facts device = NST_DEVICE_FACTS_INIT;
  nst_launch_info launch = NST_LAUNCH_INFO_INIT;
  nst_library *library = NULL;
  static float x[2 * 64], y[2 * 64];

  if (argc > 1 && strcmp(argv[1], "open") == 0) {
    return open_default();
  }
  options.get_proc = no_driver;
  if (nst_open(&library, &options) != NST_ERROR_DRIVER_SYMBOL || library != NULL || count != 1) {
    printf("nst_open: %s\n", nst_last_error());
    return 1;
  }
  if (nst_version() != NST_VERSION_MAJOR * 10000 + NST_VERSION_MINOR * 100 + NST_VERSION_PATCH ||
      strlen(nst_build_id()) != 16 || nst_table_row(nst_table_count() - 1, &row) != NST_OK) {
    printf("the linked library is of another version than the header\n");
    return 1;
  }
  norm.rows = 2, norm.n = 64, norm.x = x, norm.y = y;
  device.arch = 90, device.multiprocessors = 132;
  if (nst_explain(NST_OP_RMS_NORM_FWD, &norm, &device, &launch) != NST_OK) {
    printf("nst_explain: %s\n", nst_last_error());
    return 1;
  }
  fused.rows = 2, fused.n = 64, fused.x = x, fused.y = y;
  if (nst_rms_norm_fwd(NULL, &norm, NULL) != NST_ERROR_NULL_POINTER ||
      nst_fused_add_rms_norm_fwd(NULL, &fused, NULL) != NST_ERROR_NULL_POINTER ||
      nst_layer_norm_fwd(NULL, &layer, NULL) != NST_ERROR_NULL_POINTER ||
      nst_fused_add_layer_norm_fwd(NULL, &fused_layer, NULL) != NST_ERROR_NULL_POINTER ||
      nst_ada_layer_norm_fwd(NULL, &ada, NULL) != NST_ERROR_NULL_POINTER ||
      nst_ada_layer_norm_zero_fwd(NULL, &zero, NULL) != NST_ERROR_NULL_POINTER ||
      nst_launch_kernel(NULL, 0, &norm, NULL) != NST_ERROR_NULL_POINTER || nst_device(NULL, &device) == NST_OK ||
      nst_preload(NULL) == NST_OK || nst_close(NULL) != NST_OK) {
    printf("a call without a handle was taken\n");
    return 1;
  }
  printf("%s: %s, %s\n", launch.kernel.symbol, launch.choice, nst_status_text(NST_OK));
  return 0;
}
