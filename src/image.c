/* The kernel image: what is in it, and the kernels that come from it. */
#define _POSIX_C_SOURCE 200809L /* fileno, fstat */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "build_id.h"
#include "internal.h"

static const uint32_t capabilities[NST_ARCH_COUNT] = NST_ARCH_CAPABILITIES;

/* ---- The image ----------------------------------------------------------------------------------------------- */

/* A fatbin: this head, then entries one after the other, each with a head of its own. Little-endian. */
struct fatbin_head {
  uint32_t magic;
  uint16_t version;
  uint16_t head_size;
  uint64_t size; /* of the entries */
};
#define FATBIN_MAGIC 0xBA55ED50u
#define FATBIN_VERSION 1

struct fatbin_entry {
  uint16_t kind;
  uint16_t version;
  uint32_t head_size;
  uint64_t size; /* of what follows the head */
  uint32_t compressed_size;
  uint32_t options_offset;
  uint32_t code_version;
  uint32_t arch; /* 90 for sm_90 */
};
#define FATBIN_KIND_ELF 2

/* For each of its architectures the image holds an ELF file with the build id, then one for each part that has kernels,
 * in the order of the parts. */
static bool has_kernels(uint32_t part) {
  for (uint32_t i = 0; i < NST_PART_ROWS; i++) {
    if (nst_rows[part * NST_PART_ROWS + i].symbol) {
      return true;
    }
  }
  return false;
}

static nst_status read_file(struct nst_image *image, FILE *file, const char *path) {
  struct stat facts;
  if (fstat(fileno(file), &facts) != 0) {
    return nst_fail(NST_ERROR_IMAGE_READ, "image_path = \"%s\" can't be read: %s", path, strerror(errno));
  }
  if (!S_ISREG(facts.st_mode)) {
    return nst_fail(NST_ERROR_IMAGE_READ, "image_path = \"%s\" is not a regular file: expected normstatic.fatbin",
                    path);
  }
  image->size = (size_t)facts.st_size;
  image->bytes = image->owned = malloc(image->size + 1); /* never malloc(0) */
  if (!image->owned) {
    return nst_fail(NST_ERROR_OUT_OF_MEMORY, "no memory for the %zu bytes of image_path = \"%s\"", image->size, path);
  }
  if (fread(image->owned, 1, image->size, file) != image->size) {
    return nst_fail(NST_ERROR_IMAGE_READ, "image_path = \"%s\" can't be read: %s", path,
                    ferror(file) ? strerror(errno) : "it became shorter meanwhile");
  }
  return NST_OK;
}

static nst_status find_image(struct nst_image *image, const nst_open_options *options) {
  if (options->image_path) {
    image->name = options->image_path;
    FILE *file = fopen(options->image_path, "rb");
    if (!file) {
      return nst_fail(NST_ERROR_IMAGE_READ, "image_path = \"%s\" can't be opened: %s", options->image_path,
                      strerror(errno));
    }
    nst_status status = read_file(image, file, options->image_path);
    fclose(file);
    return status;
  }
  if (options->image) {
    *image = (struct nst_image){.size = options->image_size, .name = "image"};
    image->bytes = image->owned = malloc(image->size + 1);
    if (!image->owned) {
      return nst_fail(NST_ERROR_OUT_OF_MEMORY, "no memory for the %zu bytes of image", image->size);
    }
    memcpy(image->owned, options->image, image->size);
  } else if (options->image_size) {
    return nst_fail(NST_ERROR_NULL_POINTER, "image is NULL beside image_size = %zu: expected a kernel image, or both 0",
                    options->image_size);
  } else {
    *image = (struct nst_image){.bytes = nst_image, .size = (size_t)nst_image_size, .name = "the embedded image"};
  }
  return NST_OK;
}

static nst_status fail_truncated(const struct nst_image *image) {
  return nst_fail(NST_ERROR_IMAGE_FORMAT, "%s is truncated or damaged: expected more than its %zu bytes", image->name,
                  image->size);
}

static nst_status fail_other_build(const struct nst_image *image) {
  return nst_fail(NST_ERROR_IMAGE_BUILD_ID, "%s is of another build: expected build id " NST_BUILD_ID, image->name);
}

/* Notes an entry that holds kernels: the next file of its architecture. */
static nst_status take_entry(struct nst_image *image, const struct fatbin_entry *entry, const unsigned char *elf) {
  for (uint32_t arch = 0; arch < NST_ARCH_COUNT; arch++) {
    if (entry->kind != FATBIN_KIND_ELF || entry->arch != capabilities[arch]) {
      continue;
    }
    if (entry->compressed_size != 0 || entry->size < 4 || memcmp(elf, "\177ELF", 4) != 0) {
      return nst_fail(NST_ERROR_IMAGE_FORMAT, "%s has an entry for sm_%d that is no ELF file: expected a kernel image "
                      "that is not compressed", image->name, (int)entry->arch);
    }
    uint32_t number = image->files[arch]++;
    if (number == 0) {
      image->id[arch] = elf;
      image->archs |= 1u << arch;
      continue;
    }
    uint32_t part = 0; /* the part with this number among those that have kernels */
    while (part < NST_PART_COUNT && (number -= has_kernels(part)) > 0) {
      part++;
    }
    if (part == NST_PART_COUNT) {
      return fail_other_build(image);
    }
    image->parts[arch][part] = elf;
  }
  return NST_OK;
}

/* Walks the image, so that the driver never sees a broken one, and notes what it holds. */
static nst_status check_image(struct nst_image *image) {
  struct fatbin_head head;
  if (image->size < sizeof head) {
    return nst_fail(NST_ERROR_IMAGE_FORMAT, "%s has %zu bytes: expected a kernel image (normstatic.fatbin)",
                    image->name, image->size);
  }
  memcpy(&head, image->bytes, sizeof head);
  if (head.magic != FATBIN_MAGIC || head.version != FATBIN_VERSION || head.head_size < sizeof head) {
    return nst_fail(NST_ERROR_IMAGE_FORMAT,
                    "%s begins with 0x%08x, version %d: expected a kernel image (0x%08x, version %d)", image->name,
                    (unsigned)head.magic, head.version, FATBIN_MAGIC, FATBIN_VERSION);
  }
  if (head.head_size > image->size || head.size > image->size - head.head_size) {
    return fail_truncated(image);
  }
  const unsigned char *at = image->bytes + head.head_size;
  for (uint64_t left = head.size; left > 0;) {
    struct fatbin_entry entry;
    if (left < sizeof entry) {
      return fail_truncated(image);
    }
    memcpy(&entry, at, sizeof entry);
    if (entry.head_size < sizeof entry || entry.head_size > left || entry.size > left - entry.head_size) {
      return fail_truncated(image);
    }
    nst_status status = take_entry(image, &entry, at + entry.head_size);
    if (status != NST_OK) {
      return status;
    }
    at += entry.head_size + entry.size;
    left -= entry.head_size + entry.size;
  }
  for (uint32_t arch = 0; arch < NST_ARCH_COUNT; arch++) {
    for (uint32_t part = 0; part < NST_PART_COUNT; part++) {
      if (image->id[arch] && has_kernels(part) && !image->parts[arch][part]) {
        return fail_other_build(image);
      }
    }
  }
  return NST_OK;
}

nst_status nst_image_open(struct nst_image *image, const nst_open_options *options) {
  nst_status status = find_image(image, options);
  return status == NST_OK ? check_image(image) : status;
}

/* ---- Its parts, each loaded when a kernel of it is first wanted ------------------------------------------------ */

/* The failure of a driver call that names a kernel. */
static nst_status fail_kernel(const nst_library *library, CUresult result, const char *call, const char *symbol) {
  char text[160];
  snprintf(text, sizeof text, "%s(%s)", call, symbol);
  return nst_driver_fail(&library->driver, NST_ERROR_DRIVER_CALL, result, text, "");
}

/* Hands an ELF file to the driver, which needs no copy of it: it stays where it is as long as the handle lives. */
static nst_status load_elf(const nst_library *library, const void *elf, CUlibrary *cu_library) {
  CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
  void *yes = (void *)(uintptr_t)1;
  CUresult result = library->driver.cuLibraryLoadData(cu_library, elf, NULL, NULL, 0, &preserved, &yes, 1);
  return result == CUDA_SUCCESS
             ? NST_OK
             : nst_driver_fail(&library->driver, NST_ERROR_DRIVER_CALL, result, "cuLibraryLoadData", "");
}

nst_status nst_image_check_build_id(const nst_library *library, uint32_t arch) {
  CUlibrary cu_library;
  nst_status status = load_elf(library, library->image.id[arch], &cu_library);
  if (status != NST_OK) {
    return status;
  }
  CUkernel kernel;
  CUresult result = library->driver.cuLibraryGetKernel(&kernel, cu_library, NST_BUILD_ID_SYMBOL);
  if (result == CUDA_ERROR_NOT_FOUND) {
    status = fail_other_build(&library->image);
  } else if (result != CUDA_SUCCESS) {
    status = fail_kernel(library, result, "cuLibraryGetKernel", NST_BUILD_ID_SYMBOL);
  }
  result = library->driver.cuLibraryUnload(cu_library);
  if (status == NST_OK && result != CUDA_SUCCESS) {
    status = nst_driver_fail(&library->driver, NST_ERROR_DRIVER_CALL, result, "cuLibraryUnload", "");
  }
  return status;
}

/* More shared memory than 48 KB has to be asked for, kernel by kernel and device by device. */
static nst_status allow_shared_memory(const nst_library *library, uint32_t arch, CUkernel kernel,
                                      const struct nst_row *row) {
  for (int i = 0; i < library->device_count; i++) {
    if (library->devices[i].arch == arch) {
      CUresult result =
          library->driver.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)row->shared_bytes,
                                               kernel, library->devices[i].handle);
      if (result != CUDA_SUCCESS) {
        return fail_kernel(library, result, "cuKernelSetAttribute", row->symbol);
      }
    }
  }
  return NST_OK;
}

static nst_status find_kernels(const nst_library *library, uint32_t arch, uint32_t number, struct nst_part *part) {
  for (uint32_t i = 0; i < NST_PART_ROWS; i++) {
    const struct nst_row *row = &nst_rows[number * NST_PART_ROWS + i];
    if (!row->symbol) {
      continue;
    }
    CUresult result = library->driver.cuLibraryGetKernel(&part->kernels[i], part->cu_library, row->symbol);
    if (result != CUDA_SUCCESS) {
      return fail_kernel(library, result, "cuLibraryGetKernel", row->symbol);
    }
    if (row->shared_bytes > 48 * 1024) {
      nst_status status = allow_shared_memory(library, arch, part->kernels[i], row);
      if (status != NST_OK) {
        return status;
      }
    }
  }
  return NST_OK;
}

static CUresult release_part(const nst_library *library, struct nst_part *part) {
  CUresult result = library->driver.cuLibraryUnload(part->cu_library);
  free(part);
  return result;
}

/* Threads that need a part at once may each load it; one of them puts its own in place, the others throw theirs away.
 * So a slot changes once, from NULL, and whoever reads it needs no lock. */
nst_status nst_image_load(const nst_library *library, uint32_t arch, uint32_t number) {
  struct nst_part *part = calloc(1, sizeof *part);
  if (!part) {
    return nst_fail(NST_ERROR_OUT_OF_MEMORY, "no memory for the handles of %d kernels", NST_PART_ROWS);
  }
  nst_status status = load_elf(library, library->image.parts[arch][number], &part->cu_library);
  if (status != NST_OK) {
    free(part);
    return status;
  }
  status = find_kernels(library, arch, number, part);
  struct nst_part *none = NULL;
  if (status != NST_OK || !atomic_compare_exchange_strong(&library->slots->part[arch][number], &none, part)) {
    release_part(library, part);
  }
  return status;
}

nst_status nst_image_preload(const nst_library *library, uint32_t arch) {
  for (size_t i = 0; i < NST_ROWS_COUNT; i++) {
    if (!nst_rows[i].symbol) {
      continue;
    }
    CUkernel kernel;
    nst_status status = nst_kernel_of(library, arch, i, &kernel);
    if (status != NST_OK) {
      return status;
    }
    CUfunction function;
    CUresult result = library->driver.cuKernelGetFunction(&function, kernel);
    if (result != CUDA_SUCCESS) {
      return fail_kernel(library, result, "cuKernelGetFunction", nst_rows[i].symbol);
    }
  }
  return NST_OK;
}

CUresult nst_image_close(nst_library *library) {
  CUresult failure = CUDA_SUCCESS;
  for (uint32_t arch = 0; library->slots && arch < NST_ARCH_COUNT; arch++) {
    for (uint32_t number = 0; number < NST_PART_COUNT; number++) {
      struct nst_part *part = atomic_load(&library->slots->part[arch][number]);
      CUresult result = part ? release_part(library, part) : CUDA_SUCCESS;
      failure = failure == CUDA_SUCCESS ? result : failure;
    }
  }
  free(library->slots);
  free(library->image.owned);
  return failure;
}
