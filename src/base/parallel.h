/* parallel.h: a loop over independent items, spread over the cores this process may use. */
#ifndef LT_BASE_PARALLEL_H
#define LT_BASE_PARALLEL_H

#include <stddef.h>

/* Calls fn for ranges [first, last) that cover [0, items) once, at the same time on several threads. What a
 * range computes must not depend on the others; then the result does not depend on the number of threads.
 * Never fails: a thread that cannot be started has its range done by the caller. */
void lt_parallel_ranges(size_t items, void (*fn)(void *user, size_t first, size_t last), void *user);

#endif
