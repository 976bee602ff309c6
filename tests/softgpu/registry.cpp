/* The table of the generated kernels, and the kernel whose name is the build id. */
#include <algorithm>

#include "build_id.h"
#include "machine.h"
#include "params.h"

#define NST_KERNEL_SYMBOL(family, name) extern "C" void name(nst_##family##_params);
#include "kernels.inc"
#undef NST_KERNEL_SYMBOL

const std::vector<softgpu_kernel> &softgpu_kernels() {
  static const std::vector<softgpu_kernel> sorted = [] {
    std::vector<softgpu_kernel> table = {
        {"nst_build_id_" NST_BUILD_ID, [](const void *) {}},
#define NST_KERNEL_SYMBOL(family, name) \
  {#name, [](const void *param) { name(*static_cast<const nst_##family##_params *>(param)); }},
#include "kernels.inc"
    };
    std::sort(table.begin(), table.end(),
              [](const softgpu_kernel &a, const softgpu_kernel &b) { return std::string(a.name) < b.name; });
    return table;
  }();
  return sorted;
}
