/*
 * Printed by `python3 -m codegen all` from spec axes.json and template build_id.h.j2; not to be edited.
 *
 * Digest of the tables and the device sources, as in the file BUILD_ID. A kernel image carries it as the name of an
 * empty kernel, so that a library refuses the image of another build.
 */
#ifndef NST_BUILD_ID_H
#define NST_BUILD_ID_H

#define NST_BUILD_ID "2ad863e0cab9ac91"
#define NST_BUILD_ID_KERNEL nst_build_id_2ad863e0cab9ac91
#define NST_BUILD_ID_SYMBOL "nst_build_id_2ad863e0cab9ac91"

#endif
