#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

void problem_write(struct problem *p, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(p->text, sizeof p->text, format, list);
  va_end(list);
}
