/*
 * Printed by `python3 -m codegen all` from spec axes.json and template build_id.cu.j2; not to be edited.
 *
 * The build id of a kernel image, looked up by name when the image is opened.
 */
#include "simt.cuh"

extern "C" __global__ void nst_build_id_2ad863e0cab9ac91(void) {}
