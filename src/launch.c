/* From a public call to one cuLaunchKernelEx, and the same way without the launch for nst_explain. */
#include <inttypes.h>

#include "internal.h"

#define LARGEST_GRID INT32_MAX

/* Blocks of a launch. Every block or cluster takes rows_per_block rows; where the row of the table limits the blocks a
 * multiprocessor, they walk over the rest. */
static uint64_t grid_of(const struct nst_row *row, uint32_t rows, uint32_t multiprocessors) {
  uint32_t groups = (rows + row->rows_per_block - 1) / row->rows_per_block;
  if (row->blocks_per_sm) {
    uint32_t limit = multiprocessors * row->blocks_per_sm / row->cluster;
    limit = limit > 0 ? limit : 1;
    groups = groups < limit ? groups : limit;
  }
  return (uint64_t)groups * row->cluster;
}

/* Lowers the grid of clusters that walk over rows to those that the device holds at once. They are fewer than its
 * multiprocessors would hold, since a cluster needs them in one part of the chip: an H200 of 132 multiprocessors holds
 * 15 clusters of 8, and a 16th would begin when the others have done all rows but its own. Such launches take hundreds
 * of microseconds, so that the question costs nothing to speak of. */
static CUresult fit_clusters(const struct nst_driver *driver, CUfunction kernel, uint32_t cluster,
                             CUlaunchConfig *config) {
  int clusters = 0;
  CUresult result = driver->cuOccupancyMaxActiveClusters(&clusters, kernel, config);
  if (result == CUDA_SUCCESS && clusters > 0 && (uint32_t)clusters < config->gridDimX / cluster) {
    config->gridDimX = (unsigned)clusters * cluster;
  }
  return result;
}

static nst_status fail_hole(const struct nst_row *row) {
  return nst_fail(NST_ERROR_NO_KERNEL, "no kernel for this call: %s", row->hole);
}

static nst_status fail_grid(const struct nst_rows_call *call, const struct nst_row *row, uint64_t grid) {
  return nst_fail(NST_ERROR_KERNEL_UNFIT, "rows = %" PRId64 ": %s would need %" PRIu64 " blocks, expected at most %d",
                  call->rows, row->symbol, grid, LARGEST_GRID);
}

static nst_status fail_launch(const nst_library *library, CUresult result, const char *call) {
  bool capturing = result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  return nst_driver_fail(&library->driver, NST_ERROR_DRIVER_CALL, result, call,
                         capturing ? "; in a graph capture, nst_preload is expected to come before it" : "");
}

/* The multiplier and the shift that divide the number of a row by d = rows_per_cond. With s = ceil(log2(d)) the
 * multiplier (2^(31 + s) + e) / d has e < d <= 2^s, so that for a row below 2^31 the quotient is too large by less than
 * 1 / d, which rounding down takes away. */
static void set_cond_divisor(struct nst_rows_params *params, uint64_t d) {
  uint32_t s = d > 1 ? 64 - (uint32_t)__builtin_clzll(d - 1) : 0;
  params->cond_shift = 31 + s;
  params->cond_multiplier = (uint32_t)(((UINT64_C(1) << params->cond_shift) + d - 1) / d);
}

static struct nst_rows_params params_of(const struct nst_rows_call *call, const struct nst_rows_facts *facts) {
  const struct nst_place *places = facts->places;
  int64_t pivot = call->dtype == NST_DTYPE_F32 ? 4 : 8; /* elements of a vector */
  struct nst_rows_params params = {
      .x = (const void *)places[NST_TENSOR_X].begin,
      .residual = (const void *)places[NST_TENSOR_RESIDUAL].begin,
      .weight = (const void *)places[NST_TENSOR_WEIGHT].begin,
      .bias = (const void *)places[NST_TENSOR_BIAS].begin,
      .scale = (const void *)places[NST_TENSOR_SCALE].begin,
      .shift = (const void *)places[NST_TENSOR_SHIFT].begin,
      .gate = (const void *)places[NST_TENSOR_GATE].begin,
      .y = (void *)places[NST_TENSOR_Y].begin,
      .residual_out = (void *)places[NST_TENSOR_RESIDUAL_OUT].begin,
      .mean = (float *)places[NST_TENSOR_MEAN].begin,
      .rstd = (float *)places[NST_TENSOR_RSTD].begin,
      .x_stride = places[NST_TENSOR_X].stride_bytes,
      .residual_stride = places[NST_TENSOR_RESIDUAL].stride_bytes,
      .scale_stride = places[NST_TENSOR_SCALE].stride_bytes,
      .shift_stride = places[NST_TENSOR_SHIFT].stride_bytes,
      .gate_stride = places[NST_TENSOR_GATE].stride_bytes,
      .y_stride = places[NST_TENSOR_Y].stride_bytes,
      .residual_out_stride = places[NST_TENSOR_RESIDUAL_OUT].stride_bytes,
      .rows = (uint32_t)call->rows,
      .n = (uint32_t)call->n,
      .flags = call->flags,
      .eps = call->eps,
      .inv_n = (float)(1.0 / (double)call->n),
      .inv_pivot = (float)(1.0 / (double)(call->n < pivot ? call->n : pivot)),
      .weight_offset = places[NST_TENSOR_WEIGHT].begin ? call->weight_offset : 1.0f,
      .gate_offset = places[NST_TENSOR_GATE].begin ? 0.0f : 1.0f,
  };
  set_cond_divisor(&params, (uint64_t)call->rows_per_cond);
  return params;
}

/* Launches the kernel of row `index` for a checked call of at least one row. */
static nst_status submit(const nst_library *library, const struct nst_rows_call *call,
                         const struct nst_rows_facts *facts, const struct nst_device *device, size_t index,
                         nst_stream stream) {
  const struct nst_row *row = &nst_rows[index];
  if (!row->symbol) {
    return fail_hole(row);
  }
  uint64_t grid = grid_of(row, (uint32_t)call->rows, device->multiprocessors);
  if (grid > LARGEST_GRID) {
    return fail_grid(call, row, grid);
  }
  struct nst_rows_params params = params_of(call, facts);
  CUlaunchAttribute attributes[2];
  CUlaunchConfig config = {
      .gridDimX = (unsigned)grid,
      .gridDimY = 1,
      .gridDimZ = 1,
      .blockDimX = row->threads,
      .blockDimY = 1,
      .blockDimZ = 1,
      .sharedMemBytes = row->shared_bytes,
      .hStream = stream,
      .attrs = attributes,
  };
  if (row->cluster > 1) {
    CUlaunchAttribute *attribute = &attributes[config.numAttrs++];
    attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute->value.clusterDim.x = row->cluster;
    attribute->value.clusterDim.y = 1;
    attribute->value.clusterDim.z = 1;
  }
  if (call->flags & NST_FLAG_DEPENDENT_LAUNCH) {
    CUlaunchAttribute *attribute = &attributes[config.numAttrs++];
    attribute->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute->value.programmaticStreamSerializationAllowed = 1;
  }
  void *arguments[] = {&params};
  CUkernel of_library;
  nst_status status = nst_kernel_of(library, device->arch, index, &of_library);
  if (status != NST_OK) {
    return status;
  }
  CUfunction kernel = (CUfunction)of_library; /* a launch takes either */
  if (row->cluster > 1 && row->blocks_per_sm) {
    CUresult result = fit_clusters(&library->driver, kernel, row->cluster, &config);
    if (result != CUDA_SUCCESS) {
      return fail_launch(library, result, "cuOccupancyMaxActiveClusters");
    }
  }
  CUresult result = library->driver.cuLaunchKernelEx(&config, kernel, arguments, NULL);
  return result == CUDA_SUCCESS ? NST_OK : fail_launch(library, result, "cuLaunchKernelEx");
}

/* The device of the current context; refused where the image has no kernels for it. */
static nst_status covered_device(const nst_library *library, const struct nst_device **device) {
  nst_status status = nst_current_device(library, device);
  if (status == NST_OK && (*device)->arch == NST_ARCH_NONE) {
    return nst_device_fail((*device)->compute_capability, library->image.archs);
  }
  return status;
}

static nst_status fail_library(void) {
  return nst_fail(NST_ERROR_NULL_POINTER, "library is NULL: expected a handle from nst_open");
}

static nst_status launch(const nst_library *library, nst_op op, const void *args, nst_stream stream) {
  if (!library) {
    return fail_library();
  }
  struct nst_rows_call call;
  struct nst_rows_facts facts;
  nst_status status = nst_check_rows(op, args, &call, &facts);
  if (status != NST_OK || call.rows == 0) {
    return status;
  }
  const struct nst_device *device;
  status = covered_device(library, &device);
  if (status != NST_OK) {
    return status;
  }
  struct nst_selection selection =
      nst_select(device->arch, (uint32_t)call.op, facts.types, (uint32_t)call.n, (uint32_t)call.rows, facts.aligned);
  return submit(library, &call, &facts, device, selection.row, stream);
}

nst_status nst_rms_norm_fwd(const nst_library *library, const nst_rms_norm_fwd_args *args, nst_stream stream) {
  return launch(library, NST_OP_RMS_NORM_FWD, args, stream);
}

nst_status nst_fused_add_rms_norm_fwd(const nst_library *library, const nst_fused_add_rms_norm_fwd_args *args,
                                      nst_stream stream) {
  return launch(library, NST_OP_FUSED_ADD_RMS_NORM_FWD, args, stream);
}

nst_status nst_layer_norm_fwd(const nst_library *library, const nst_layer_norm_fwd_args *args, nst_stream stream) {
  return launch(library, NST_OP_LAYER_NORM_FWD, args, stream);
}

nst_status nst_fused_add_layer_norm_fwd(const nst_library *library, const nst_fused_add_layer_norm_fwd_args *args,
                                        nst_stream stream) {
  return launch(library, NST_OP_FUSED_ADD_LAYER_NORM_FWD, args, stream);
}

nst_status nst_ada_layer_norm_fwd(const nst_library *library, const nst_ada_layer_norm_fwd_args *args,
                                  nst_stream stream) {
  return launch(library, NST_OP_ADA_LAYER_NORM_FWD, args, stream);
}

nst_status nst_ada_layer_norm_zero_fwd(const nst_library *library, const nst_ada_layer_norm_zero_fwd_args *args,
                                       nst_stream stream) {
  return launch(library, NST_OP_ADA_LAYER_NORM_ZERO_FWD, args, stream);
}

/* Whether a kernel can serve a call that the tables might give to another one. */
static nst_status check_fit(const struct nst_rows_call *call, const struct nst_rows_facts *facts,
                            const struct nst_row *row) {
  uint32_t bucket = nst_bucket_sizes[row->bucket];
  nst_dtype data_type = nst_types_data[row->types];
  nst_dtype weight_type = nst_types_weight[row->types];
  if (call->dtype != data_type) {
    return nst_fail(NST_ERROR_KERNEL_UNFIT, "dtype = %d: expected %d, which %s serves", (int)call->dtype,
                    (int)data_type, row->symbol);
  }
  bool has_parameters = facts->places[NST_TENSOR_WEIGHT].begin || facts->places[NST_TENSOR_BIAS].begin;
  if (has_parameters && call->weight_dtype != weight_type) {
    return nst_fail(NST_ERROR_KERNEL_UNFIT, "weight_dtype = %d: expected %d, which %s serves", (int)call->weight_dtype,
                    (int)weight_type, row->symbol);
  }
  if (bucket && call->n > bucket) {
    return nst_fail(NST_ERROR_KERNEL_UNFIT, "n = %" PRId64 ": expected at most %" PRIu32 ", which %s serves", call->n,
                    bucket, row->symbol);
  }
  if (row->access == NST_ACCESS_EXACT && call->n != bucket) {
    return nst_fail(NST_ERROR_KERNEL_UNFIT, "n = %" PRId64 ": expected exactly %" PRIu32 ", which alone %s serves",
                    call->n, bucket, row->symbol);
  }
  if (row->access != NST_ACCESS_UNALIGNED && !facts->aligned) {
    return nst_fail(NST_ERROR_KERNEL_UNFIT,
                    "%s keeps rows from starting and ending on 16-byte boundaries: expected so by %s",
                    nst_first_unaligned(facts), row->symbol);
  }
  return NST_OK;
}

nst_status nst_launch_kernel(const nst_library *library, size_t index, const void *args, nst_stream stream) {
  if (!library) {
    return fail_library();
  }
  if (index >= NST_ROWS_COUNT) {
    return nst_fail(NST_ERROR_INDEX, "index = %zu: expected 0 to %d", index, NST_ROWS_COUNT - 1);
  }
  const struct nst_row *row = &nst_rows[index];
  if (!row->symbol) {
    return fail_hole(row);
  }
  struct nst_rows_call call;
  struct nst_rows_facts facts;
  nst_status status = nst_check_rows((nst_op)row->op, args, &call, &facts);
  if (status != NST_OK || call.rows == 0) {
    return status;
  }
  status = check_fit(&call, &facts, row);
  if (status != NST_OK) {
    return status;
  }
  const struct nst_device *device;
  status = covered_device(library, &device);
  return status == NST_OK ? submit(library, &call, &facts, device, index, stream) : status;
}

nst_status nst_explain(nst_op op, const void *args, const nst_device_facts *device, nst_launch_info *info) {
  static const char *const sources[] = {
      [NST_SOURCE_DEFAULT] = "default", [NST_SOURCE_MODELLED] = "modelled", [NST_SOURCE_MEASURED] = "measured"};
  if (!device || !info) {
    return nst_fail(NST_ERROR_NULL_POINTER, "%s is NULL: expected a pointer to %s", device ? "info" : "device",
                    device ? "an nst_launch_info" : "nst_device_facts");
  }
  if (device->size != sizeof *device) {
    return nst_fail(NST_ERROR_STRUCT_SIZE, "size of device = %zu: expected sizeof(nst_device_facts) = %zu",
                    device->size, sizeof *device);
  }
  if (info->size != sizeof *info) {
    return nst_fail(NST_ERROR_STRUCT_SIZE, "size of info = %zu: expected sizeof(nst_launch_info) = %zu", info->size,
                    sizeof *info);
  }
  if (device->multiprocessors < 1) {
    return nst_fail(NST_ERROR_VALUE, "multiprocessors = %d: expected 1 or more", device->multiprocessors);
  }
  struct nst_rows_call call;
  struct nst_rows_facts facts;
  nst_status status = nst_check_rows(op, args, &call, &facts);
  if (status != NST_OK) {
    return status;
  }
  uint32_t arch = nst_arch_of(device->arch);
  if (arch == NST_ARCH_NONE) {
    return nst_device_fail(device->arch, (1u << NST_ARCH_COUNT) - 1);
  }
  struct nst_selection selection =
      nst_select(arch, (uint32_t)op, facts.types, (uint32_t)call.n, (uint32_t)call.rows, facts.aligned);
  const struct nst_row *row = &nst_rows[selection.row];
  uint64_t grid = 0;
  if (call.rows > 0) {
    if (!row->symbol) {
      return fail_hole(row);
    }
    grid = grid_of(row, (uint32_t)call.rows, (uint32_t)device->multiprocessors);
    if (grid > LARGEST_GRID) {
      return fail_grid(&call, row, grid);
    }
  }
  nst_describe(selection.row, &info->kernel);
  info->grid = (uint32_t)grid;
  info->choice = sources[nst_choices[selection.choice].source];
  return NST_OK;
}
