/* Names for the files that a test writes: in the build folder, which NST_BUILD names, never among the sources. */
#ifndef NST_TESTS_SCRATCH_H
#define NST_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>

/* Valid until eight later calls. */
static inline const char *scratch(const char *name) {
  static char names[8][512];
  static unsigned next;
  const char *build = getenv("NST_BUILD");
  char *text = names[next++ % 8];
  snprintf(text, sizeof names[0], "%.400s/%.100s", build ? build : ".", name);
  return text;
}

#endif
