/*
 * normstatic: ahead-of-time compiled GPU normalisation kernels in a C static library.
 *
 * A program links libnormstatic.a, opens a library handle once, and then launches normalisations on CUDA streams.
 * The kernels lie in the archive as machine code; nothing is compiled at run time, and neither Python nor the CUDA
 * toolkit is needed to link or to run. At run time the library loads the display driver's libcuda.so.1, or takes the
 * driver's functions from a hook (nst_open_options.get_proc).
 *
 *     nst_library *nst;
 *     nst_status status = nst_open(&nst, NULL);
 *     nst_rms_norm_fwd_args args = NST_RMS_NORM_FWD_ARGS_INIT;
 *     args.dtype = NST_DTYPE_BF16, args.rows = 2048, args.n = 4096;
 *     args.x = x, args.weight = w, args.y = y, args.eps = 1e-6f;
 *     status = nst_rms_norm_fwd(nst, &args, stream);
 *
 * Threads: a handle is immutable once nst_open returns; any number of threads may launch through one handle at once.
 * Only nst_close must be alone. Streams and contexts: a launch goes to the stream given, which must belong to the
 * context that is current to the calling thread (NULL: that context's default stream). Any device that the image
 * covers may be used through the same handle.
 *
 * Asynchrony: a launch returns as soon as the kernel is queued. The argument struct may be reused at once; the tensors
 * must stay valid until the stream has passed the launch. Launches may be captured into CUDA graphs; nst_preload before
 * the capture makes sure that no kernel has to be loaded within it, which a driver may refuse.
 *
 * Errors: every function returns a status. When it is not NST_OK, nothing was launched and nothing written, and
 * nst_last_error() holds one sentence that names the argument, its value and what was expected. The library never
 * prints, never aborts and installs no handlers.
 *
 * Results are the same bit for bit from run to run, and a row's result depends on that row alone: not on the number of
 * rows, on its neighbours, on the kernel that the tables choose or on the device's number of multiprocessors.
 *
 * What is not in this header is not part of the API.
 */
#ifndef NORMSTATIC_H
#define NORMSTATIC_H

#include <stddef.h> /* size_t */
#include <stdint.h> /* int64_t, uint32_t */

#ifdef __cplusplus
extern "C" {
#endif

#define NST_VERSION_MAJOR 0
#define NST_VERSION_MINOR 1
#define NST_VERSION_PATCH 0

/* major * 10000 + minor * 100 + patch of the linked library; compare with the macros to detect a mixed build. */
int nst_version(void);

/* Hexadecimal digest of the tables and device sources that the linked library was built from. */
const char *nst_build_id(void);

/* ---- Status ------------------------------------------------------------------------------------------------- */

/* Values are pinned: a new cause gets a new value, a value never changes its meaning. */
typedef enum nst_status {
  NST_OK = 0,
  /* arguments */
  NST_ERROR_NULL_POINTER = 10,  /* a pointer that must be set is NULL */
  NST_ERROR_STRUCT_SIZE = 11,   /* an argument struct's size member fits no version of it */
  NST_ERROR_DTYPE = 12,         /* a data type is unknown, or not allowed beside the others */
  NST_ERROR_SHAPE = 13,         /* rows, n or rows_per_cond outside their range */
  NST_ERROR_STRIDE = 14,        /* a row stride is negative, overflows, or lets written rows overlap */
  NST_ERROR_ALIGNMENT = 15,     /* a pointer is not aligned to its element */
  NST_ERROR_OVERLAP = 16,       /* tensors overlap in a way that is not one of the documented in-place forms */
  NST_ERROR_VALUE = 17,         /* a number (eps, ...) is outside its range or not a number */
  NST_ERROR_FLAGS = 18,         /* an unknown flag, or flags that exclude each other or the operation */
  NST_ERROR_OP = 19,            /* an operation is unknown */
  NST_ERROR_INDEX = 20,         /* a table index is outside the table */
  /* kernels */
  NST_ERROR_NO_KERNEL = 30,     /* this build has no kernel for the call (the table's row is a hole) */
  NST_ERROR_KERNEL_UNFIT = 31,  /* a kernel named by its index can't serve these arguments */
  /* driver */
  NST_ERROR_DRIVER_NOT_FOUND = 40,   /* libcuda.so.1 can't be loaded */
  NST_ERROR_DRIVER_TOO_OLD = 41,     /* the driver is older than the kernels need */
  NST_ERROR_DRIVER_SYMBOL = 42,      /* the driver (or the hook) lacks an entry point */
  NST_ERROR_DRIVER_CALL = 43,        /* a driver call failed; the sentence names the call and the driver's error */
  NST_ERROR_NO_CONTEXT = 44,         /* no CUDA context is current to the calling thread */
  NST_ERROR_DEVICE_UNSUPPORTED = 45, /* the image holds no kernels for this device's architecture */
  NST_ERROR_STATIC_EXECUTABLE = 46,  /* a fully static executable: the driver can't be loaded into it */
  /* image */
  NST_ERROR_IMAGE_READ = 60,     /* a kernel image file can't be opened or read */
  NST_ERROR_IMAGE_FORMAT = 61,   /* not a kernel image, or truncated */
  NST_ERROR_IMAGE_BUILD_ID = 62, /* a kernel image of another build than the tables */
  /* host */
  NST_ERROR_OUT_OF_MEMORY = 80
} nst_status;

/* The name of a status as it stands in this header, such as "NST_ERROR_SHAPE"; never NULL. */
const char *nst_status_name(nst_status status);

/* What a status means, in words; never NULL. */
const char *nst_status_text(nst_status status);

/* The sentence for the calling thread's last refused call: argument, value, expectation. "" before the first one.
 * Valid until the thread's next refused call. */
const char *nst_last_error(void);

/* ---- Opening ------------------------------------------------------------------------------------------------ */

typedef struct nst_library nst_library;

/* Finds a driver entry point, such as "cuLaunchKernelEx", in the version that CUDA `cuda_version` (for instance 12000)
 * introduced or an older one; NULL where there is none. */
typedef void *(*nst_get_proc)(void *user, const char *name, int cuda_version);

typedef struct nst_open_options {
  size_t size;            /* sizeof(nst_open_options) */
  nst_get_proc get_proc;  /* NULL: the driver is loaded with dlopen("libcuda.so.1") */
  void *get_proc_user;    /* handed to get_proc */
  const char *image_path; /* a kernel image file (normstatic.fatbin); NULL: see image */
  const void *image;      /* a kernel image in memory, copied; NULL: the embedded one */
  size_t image_size;      /* bytes at image */
} nst_open_options;
#define NST_OPEN_OPTIONS_INIT {sizeof(nst_open_options), NULL, NULL, NULL, NULL, 0}

/* Opens the driver and the kernel image. `options` may be NULL: all defaults. Needs no current context. Kernels are
 * loaded lazily: those of an operation and its types at the first launch of one of them (a few milliseconds), each
 * kernel by the driver at its own first launch, unless nst_preload was called. On failure *library is NULL. */
nst_status nst_open(nst_library **library, const nst_open_options *options);

/* Finishes the loading of every kernel for the device of the current context, so that no launch loads later. */
nst_status nst_preload(const nst_library *library);

/* Releases a handle; NULL is allowed. The caller makes sure that no thread launches through it and that no queued work
 * of it is unfinished. */
nst_status nst_close(nst_library *library);

/* ---- Operations --------------------------------------------------------------------------------------------- */

/* The same type as CUstream and cudaStream_t. */
typedef struct CUstream_st *nst_stream;

typedef enum nst_op {
  NST_OP_RMS_NORM_FWD = 0,
  NST_OP_FUSED_ADD_RMS_NORM_FWD = 1,
  NST_OP_LAYER_NORM_FWD = 2,
  NST_OP_FUSED_ADD_LAYER_NORM_FWD = 3,
  NST_OP_ADA_LAYER_NORM_FWD = 4,
  NST_OP_ADA_LAYER_NORM_ZERO_FWD = 5
} nst_op;

typedef enum nst_dtype {
  NST_DTYPE_F16 = 1,  /* IEEE binary16 */
  NST_DTYPE_BF16 = 2, /* bfloat16 */
  NST_DTYPE_F32 = 3   /* IEEE binary32 */
} nst_dtype;

/* Flags of a call. */
enum {
  /* Normalise the residual sum after it was rounded to the data type, instead of before (fused-add operations). */
  NST_FLAG_ROUND_RESIDUAL = 1u << 0,
  /* Round the normalised value to the data type before it is multiplied by the weight (or by 1 + scale); what comes of
   * that is rounded again. */
  NST_FLAG_ROUND_BEFORE_WEIGHT = 1u << 1,
  /* Programmatic dependent launch: the kernel may start while the kernel before it in the stream still runs; it waits
   * for that one's results before it reads or writes any tensor. */
  NST_FLAG_DEPENDENT_LAUNCH = 1u << 2,
  /* With NST_FLAG_DEPENDENT_LAUNCH: weight and bias are not written by the kernel before, and are read before the wait
   * (operations with a weight). */
  NST_FLAG_WEIGHT_READY = 1u << 3
};

/*
 * Overlaps. Each operation says in which forms it works in place. Tensors that share no byte never overlap, however
 * their rows interleave: two slices of one tensor, say, which have the same row stride. Only where two tensors with
 * gaps between their rows have different strides and intersecting address ranges, they are taken to overlap, without a
 * closer look. Inputs may overlap each other, and the rows of one input may (a stride below n).
 */

/*
 * RMSNorm: y[r][i] = x[r][i] * rstd[r] * (weight[i] + weight_offset), rstd[r] = 1 / sqrt(mean_i(x[r][i]^2) + eps).
 * (Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.)
 *
 * Everything is computed in f32 and rounded once, to nearest even. Squares are summed in f32: a row's sum of squares
 * overflows to infinity, and y to 0, when its values exceed about 1.8e19 / sqrt(n).
 * In place: y may be x itself (same pointer and same row stride). Any other overlap of y with x is refused.
 */
typedef struct nst_rms_norm_fwd_args {
  size_t size;            /* sizeof(nst_rms_norm_fwd_args) */
  nst_dtype dtype;        /* of x and y */
  nst_dtype weight_dtype; /* of weight: dtype or NST_DTYPE_F32; 0: dtype */
  int64_t rows;           /* 0 to 2^31-1; with 0 rows nothing is launched and the tensors may be NULL */
  int64_t n;              /* 1 to 2^31-1, the normalised length */
  const void *x;          /* in, [rows][n] */
  int64_t x_stride;       /* elements from a row of x to the next; 0: n; unused with one row */
  const void *weight;     /* in, [n]; NULL: the factor (weight + weight_offset) is 1 */
  void *y;                /* out, [rows][n] */
  int64_t y_stride;       /* as x_stride; at least n, since rows that are written must not overlap */
  float *rstd;            /* out, [rows]; NULL: not wanted */
  float eps;              /* finite, >= 0 */
  float weight_offset;    /* finite; added to the weight in f32 (1 for models that store weight - 1) */
  uint32_t flags;         /* NST_FLAG_* */
} nst_rms_norm_fwd_args;
#define NST_RMS_NORM_FWD_ARGS_INIT \
  {sizeof(nst_rms_norm_fwd_args), NST_DTYPE_F32, (nst_dtype)0, 0, 0, NULL, 0, NULL, NULL, 0, NULL, 1e-6f, 0.0f, 0}

nst_status nst_rms_norm_fwd(const nst_library *library, const nst_rms_norm_fwd_args *args, nst_stream stream);

/*
 * Fused residual add and RMSNorm: s = x + residual; residual_out = s; y = rms_norm(s).
 *
 * The sum is formed in f32 and normalised before it is rounded for residual_out, unless NST_FLAG_ROUND_RESIDUAL.
 * In place: y may be x or residual, residual_out may be x or residual (same pointer and same row stride each), also at
 * once, as long as y and residual_out are different tensors. Any other overlap of an output is refused.
 */
typedef struct nst_fused_add_rms_norm_fwd_args {
  size_t size;                 /* sizeof(nst_fused_add_rms_norm_fwd_args) */
  nst_dtype dtype;             /* of x, residual, y and residual_out */
  nst_dtype weight_dtype;      /* of weight: dtype or NST_DTYPE_F32; 0: dtype */
  int64_t rows;                /* 0 to 2^31-1 */
  int64_t n;                   /* 1 to 2^31-1 */
  const void *x;               /* in, [rows][n] */
  int64_t x_stride;            /* elements from a row to the next; 0: n; unused with one row */
  const void *residual;        /* in, [rows][n] */
  int64_t residual_stride;     /* as x_stride */
  const void *weight;          /* in, [n]; NULL: the factor is 1 */
  void *y;                     /* out, [rows][n] */
  int64_t y_stride;            /* as x_stride; at least n */
  void *residual_out;          /* out, [rows][n]; NULL: not wanted */
  int64_t residual_out_stride; /* as y_stride */
  float *rstd;                 /* out, [rows]; NULL: not wanted */
  float eps;                   /* finite, >= 0 */
  float weight_offset;         /* finite */
  uint32_t flags;              /* NST_FLAG_* */
} nst_fused_add_rms_norm_fwd_args;
#define NST_FUSED_ADD_RMS_NORM_FWD_ARGS_INIT                                                                       \
  {sizeof(nst_fused_add_rms_norm_fwd_args), NST_DTYPE_F32, (nst_dtype)0, 0, 0, NULL, 0, NULL, 0, NULL, NULL, 0, NULL, \
   0, NULL, 1e-6f, 0.0f, 0}

nst_status nst_fused_add_rms_norm_fwd(const nst_library *library, const nst_fused_add_rms_norm_fwd_args *args,
                                      nst_stream stream);

/*
 * LayerNorm: y[r][i] = (x[r][i] - mean[r]) * rstd[r] * weight[i] + bias[i], where mean[r] = mean_i(x[r][i]),
 * var[r] = mean_i((x[r][i] - mean[r])^2), the biased variance, and rstd[r] = 1 / sqrt(var[r] + eps).
 * (Ba, Kiros and Hinton, Layer Normalization, 2016.)
 *
 * Everything is computed in f32 and rounded once, to nearest even. The variance comes from deviations, never from raw
 * squares: they are taken from the mean of the row's first 16 bytes, so that a mean far from 0 costs no digits, and once
 * more from the row's mean where that is far from the first elements (Chan, Golub and LeVeque, Algorithms for Computing
 * the Sample Variance, 1983: the shifted one-pass and the two-pass algorithm). Sums in f32 overflow as f32 numbers do.
 * In place: y may be x itself (same pointer and same row stride). Any other overlap of y with x is refused.
 */
typedef struct nst_layer_norm_fwd_args {
  size_t size;            /* sizeof(nst_layer_norm_fwd_args) */
  nst_dtype dtype;        /* of x and y */
  nst_dtype weight_dtype; /* of weight and bias: dtype or NST_DTYPE_F32; 0: dtype */
  int64_t rows;           /* 0 to 2^31-1; with 0 rows nothing is launched and the tensors may be NULL */
  int64_t n;              /* 1 to 2^31-1, the normalised length */
  const void *x;          /* in, [rows][n] */
  int64_t x_stride;       /* elements from a row of x to the next; 0: n; unused with one row */
  const void *weight;     /* in, [n]; NULL: 1 */
  const void *bias;       /* in, [n]; NULL: 0 */
  void *y;                /* out, [rows][n] */
  int64_t y_stride;       /* as x_stride; at least n, since rows that are written must not overlap */
  float *mean;            /* out, [rows]; NULL: not wanted */
  float *rstd;            /* out, [rows]; NULL: not wanted */
  float eps;              /* finite, >= 0 */
  uint32_t flags;         /* NST_FLAG_* */
} nst_layer_norm_fwd_args;
#define NST_LAYER_NORM_FWD_ARGS_INIT                                                                             \
  {sizeof(nst_layer_norm_fwd_args), NST_DTYPE_F32, (nst_dtype)0, 0, 0, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, \
   1e-5f, 0}

nst_status nst_layer_norm_fwd(const nst_library *library, const nst_layer_norm_fwd_args *args, nst_stream stream);

/*
 * Fused residual add and LayerNorm: s = x + residual; residual_out = s; y = layer_norm(s).
 *
 * The sum is formed in f32 and normalised before it is rounded for residual_out, unless NST_FLAG_ROUND_RESIDUAL.
 * In place: as nst_fused_add_rms_norm_fwd.
 */
typedef struct nst_fused_add_layer_norm_fwd_args {
  size_t size;                 /* sizeof(nst_fused_add_layer_norm_fwd_args) */
  nst_dtype dtype;             /* of x, residual, y and residual_out */
  nst_dtype weight_dtype;      /* of weight and bias: dtype or NST_DTYPE_F32; 0: dtype */
  int64_t rows;                /* 0 to 2^31-1 */
  int64_t n;                   /* 1 to 2^31-1 */
  const void *x;               /* in, [rows][n] */
  int64_t x_stride;            /* elements from a row to the next; 0: n; unused with one row */
  const void *residual;        /* in, [rows][n] */
  int64_t residual_stride;     /* as x_stride */
  const void *weight;          /* in, [n]; NULL: 1 */
  const void *bias;            /* in, [n]; NULL: 0 */
  void *y;                     /* out, [rows][n] */
  int64_t y_stride;            /* as x_stride; at least n */
  void *residual_out;          /* out, [rows][n]; NULL: not wanted */
  int64_t residual_out_stride; /* as y_stride */
  float *mean;                 /* out, [rows]; NULL: not wanted */
  float *rstd;                 /* out, [rows]; NULL: not wanted */
  float eps;                   /* finite, >= 0 */
  uint32_t flags;              /* NST_FLAG_* */
} nst_fused_add_layer_norm_fwd_args;
#define NST_FUSED_ADD_LAYER_NORM_FWD_ARGS_INIT                                                                     \
  {sizeof(nst_fused_add_layer_norm_fwd_args), NST_DTYPE_F32, (nst_dtype)0, 0, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, \
   0, NULL, 0, NULL, NULL, 1e-5f, 0}

nst_status nst_fused_add_layer_norm_fwd(const nst_library *library, const nst_fused_add_layer_norm_fwd_args *args,
                                        nst_stream stream);

/*
 * Adaptive LayerNorm: y[r][i] = layer_norm(x)[r][i] * (1 + scale[c][i]) + shift[c][i], c = r / rows_per_cond.
 * (Peebles and Xie, Scalable Diffusion Models with Transformers, 2023; layer_norm without weight and bias.)
 *
 * Conditioning has one row for each row of x, or one for each `rows_per_cond` neighbouring rows: for x [B, T, n] and
 * scale [B, n], rows is B * T and rows_per_cond is T. Slices of a wider tensor (scale = c + n, stride 6 * n) are read
 * where they lie.
 * In place: y may be x itself (same pointer and same row stride). Any other overlap of y with an input is refused.
 */
typedef struct nst_ada_layer_norm_fwd_args {
  size_t size;           /* sizeof(nst_ada_layer_norm_fwd_args) */
  nst_dtype dtype;       /* of x, scale, shift and y */
  int64_t rows;          /* 0 to 2^31-1 */
  int64_t n;             /* 1 to 2^31-1 */
  int64_t rows_per_cond; /* 1 to 2^31-1, rows of x that share a row of conditioning; 0: 1 */
  const void *x;         /* in, [rows][n] */
  int64_t x_stride;      /* elements from a row to the next; 0: n; unused with one row */
  const void *scale;     /* in, [ceil(rows / rows_per_cond)][n]; NULL: 0 */
  int64_t scale_stride;  /* elements from a row of it to the next; 0: n; unused with one row of conditioning */
  const void *shift;     /* as scale; NULL: 0 */
  int64_t shift_stride;  /* as scale_stride */
  void *y;               /* out, [rows][n] */
  int64_t y_stride;      /* as x_stride; at least n */
  float *mean;           /* out, [rows]; NULL: not wanted */
  float *rstd;           /* out, [rows]; NULL: not wanted */
  float eps;             /* finite, >= 0 */
  uint32_t flags;        /* NST_FLAG_* */
} nst_ada_layer_norm_fwd_args;
#define NST_ADA_LAYER_NORM_FWD_ARGS_INIT                                                                       \
  {sizeof(nst_ada_layer_norm_fwd_args), NST_DTYPE_F32, 0, 0, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, \
   1e-5f, 0}

nst_status nst_ada_layer_norm_fwd(const nst_library *library, const nst_ada_layer_norm_fwd_args *args,
                                  nst_stream stream);

/*
 * Adaptive LayerNorm with a gate: y[r][i] = gate[c][i] * (layer_norm(x)[r][i] * (1 + scale[c][i]) + shift[c][i]),
 * c = r / rows_per_cond. All else as nst_ada_layer_norm_fwd.
 */
typedef struct nst_ada_layer_norm_zero_fwd_args {
  size_t size;           /* sizeof(nst_ada_layer_norm_zero_fwd_args) */
  nst_dtype dtype;       /* of x, scale, shift, gate and y */
  int64_t rows;          /* 0 to 2^31-1 */
  int64_t n;             /* 1 to 2^31-1 */
  int64_t rows_per_cond; /* 1 to 2^31-1, rows of x that share a row of conditioning; 0: 1 */
  const void *x;         /* in, [rows][n] */
  int64_t x_stride;      /* elements from a row to the next; 0: n; unused with one row */
  const void *scale;     /* in, [ceil(rows / rows_per_cond)][n]; NULL: 0 */
  int64_t scale_stride;  /* elements from a row of it to the next; 0: n; unused with one row of conditioning */
  const void *shift;     /* as scale; NULL: 0 */
  int64_t shift_stride;  /* as scale_stride */
  const void *gate;      /* as scale; NULL: 1 */
  int64_t gate_stride;   /* as scale_stride */
  void *y;               /* out, [rows][n] */
  int64_t y_stride;      /* as x_stride; at least n */
  float *mean;           /* out, [rows]; NULL: not wanted */
  float *rstd;           /* out, [rows]; NULL: not wanted */
  float eps;             /* finite, >= 0 */
  uint32_t flags;        /* NST_FLAG_* */
} nst_ada_layer_norm_zero_fwd_args;
#define NST_ADA_LAYER_NORM_ZERO_FWD_ARGS_INIT                                                                       \
  {sizeof(nst_ada_layer_norm_zero_fwd_args), NST_DTYPE_F32, 0, 0, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, \
   NULL, NULL, 1e-5f, 0}

nst_status nst_ada_layer_norm_zero_fwd(const nst_library *library, const nst_ada_layer_norm_zero_fwd_args *args,
                                       nst_stream stream);

/* ---- Looking inside: needs no GPU and no driver, except nst_launch_kernel ------------------------------------ */

typedef enum nst_strategy {
  NST_STRATEGY_WARP = 0,    /* one or several rows a warp, held in registers */
  NST_STRATEGY_BLOCK = 1,   /* one block a row, held in registers */
  NST_STRATEGY_PERSIST = 2, /* as BLOCK, each block walks over rows and requests the next one early */
  NST_STRATEGY_REREAD = 3,  /* one block a row, read twice, the second time from cache */
  NST_STRATEGY_CLUSTER = 4, /* a cluster of blocks a row, held in registers */
  NST_STRATEGY_RING = 5,    /* a cluster a row, rows stream through a ring of bulk copies in shared memory */
  NST_STRATEGY_LOOP = 6     /* a cluster a row, any length, read twice */
} nst_strategy;

typedef enum nst_access {
  NST_ACCESS_EXACT = 0,    /* n equals the bucket, every row starts on a 16-byte boundary */
  NST_ACCESS_MASKED = 1,   /* n up to the bucket, every row starts and ends on a 16-byte boundary */
  NST_ACCESS_UNALIGNED = 2 /* n up to the bucket, rows start on any element */
} nst_access;

/* One row of the dispatch table: a kernel, or a hole with its reason. Strings live as long as the program. */
typedef struct nst_kernel_info {
  size_t size;              /* sizeof(nst_kernel_info), set by the caller */
  size_t index;             /* this row's place in the table */
  nst_op op;                /* ... */
  nst_dtype dtype;          /* of the data */
  nst_dtype weight_dtype;   /* of the weight */
  int64_t bucket;           /* largest n that the row serves; 0: any */
  nst_strategy strategy;    /* ... */
  nst_access access;        /* ... */
  const char *symbol;       /* the kernel's name, NULL for a hole */
  const char *hole;         /* why there is no kernel; NULL for a kernel */
  uint32_t threads;         /* of a block */
  uint32_t cluster;         /* blocks that share a row */
  uint32_t vectors;         /* 16-byte vectors of a row that a thread holds at a time */
  uint32_t rows_per_block;  /* rows that a block (or cluster) serves at a time */
  uint32_t blocks_per_sm;   /* the grid is limited to so many blocks a multiprocessor; 0: not limited */
  uint32_t shared_bytes;    /* dynamic shared memory of a block */
} nst_kernel_info;
#define NST_KERNEL_INFO_INIT                                                                                      \
  {sizeof(nst_kernel_info), 0, (nst_op)0, (nst_dtype)0, (nst_dtype)0, 0, (nst_strategy)0, (nst_access)0, NULL, NULL, \
   0, 0, 0, 0, 0, 0}

/* The number of rows of the table. */
size_t nst_table_count(void);

/* Fills *info with the row at `index`. */
nst_status nst_table_row(size_t index, nst_kernel_info *info);

/* What a launch depends on besides its arguments. */
typedef struct nst_device_facts {
  size_t size;       /* sizeof(nst_device_facts) */
  int arch;          /* compute capability, major * 10 + minor: 90, 100 */
  int multiprocessors;
} nst_device_facts;
#define NST_DEVICE_FACTS_INIT {sizeof(nst_device_facts), 0, 0}

/* The kernel and the launch shape that the tables choose for a call. */
typedef struct nst_launch_info {
  size_t size;            /* sizeof(nst_launch_info), set by the caller */
  nst_kernel_info kernel; /* its size member is filled in too */
  uint32_t grid;          /* blocks in all; 0: nothing would be launched. Where clusters walk over rows (cluster > 1,
                           * blocks_per_sm > 0) a launch takes fewer if the driver says that fewer fit the device. */
  const char *choice;     /* where the choice comes from: "measured", "modelled", ... */
} nst_launch_info;
#define NST_LAUNCH_INFO_INIT {sizeof(nst_launch_info), NST_KERNEL_INFO_INIT, 0, NULL}

/* What would run: checks `args` (the args struct of `op`, as for a launch) and fills *info, without GPU or driver. */
nst_status nst_explain(nst_op op, const void *args, const nst_device_facts *device, nst_launch_info *info);

/* The same for the device of the current context. */
nst_status nst_device(const nst_library *library, nst_device_facts *device);

/* Launches the kernel at `index` instead of the chosen one: for tests, tuning and audits. Refused with
 * NST_ERROR_KERNEL_UNFIT where that kernel can't serve the arguments. */
nst_status nst_launch_kernel(const nst_library *library, size_t index, const void *args, nst_stream stream);

#ifdef __cplusplus
}
#endif
#endif
