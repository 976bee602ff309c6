/*
 * The software device: a stand-in libcuda whose kernels are the library's own, compiled for the host and run by a small
 * SIMT interpreter. Hand softgpu_get_proc to nst_open_options.get_proc. It shows whether kernels are right; its times
 * mean nothing.
 */
#ifndef NST_SOFTGPU_H
#define NST_SOFTGPU_H

#ifdef __cplusplus
extern "C" {
#endif

/* A driver function, as nst_get_proc says; NULL for one that the software device lacks. */
void *softgpu_get_proc(void *user, const char *name, int cuda_version);

/* The order in which clusters, warps, lanes and late copies run: 0 forward, copies as late as can be; 1 backward,
 * copies as early as can be; any other number: shuffled, by that seed. Correct kernels give the same results in every
 * order. Until it is called the environment variable SOFTGPU_ORDER decides, else 0. */
void softgpu_set_order(unsigned order);

/* How many multiprocessors the device says it has; 4 until it is called. */
void softgpu_set_multiprocessors(int count);

/* Launches that ran, or began to, in this process. */
unsigned long softgpu_launches(void);

/* What went wrong in the calling thread's last launch; "" when nothing did. Valid until its next launch. */
const char *softgpu_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
