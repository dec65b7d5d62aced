/* parallel.c: threads are started for the loop and joined at its end. That costs some ten microseconds each,
 * little against the megabytes a loop is worth spreading for, and leaves nothing running in the host program.
 */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS_MAX = 32 };

typedef struct range {
    void (*fn)(void *user, size_t first, size_t last);
    void *user;
    size_t first, last;
} range;

static size_t cores(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : count > THREADS_MAX ? THREADS_MAX : (size_t)count;
}

static void *run(void *argument) {
    const range *r = argument;
    r->fn(r->user, r->first, r->last);
    return NULL;
}

void lt_parallel_ranges(size_t items, void (*fn)(void *user, size_t first, size_t last), void *user) {
    size_t parts = cores();
    parts = items < parts ? items : parts;
    range ranges[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    int started[THREADS_MAX] = {0};
    for (size_t i = 0; i < parts; i++) {
        ranges[i] = (range){fn, user, items * i / parts, items * (i + 1) / parts};
        /* The last range is the caller's own. */
        started[i] = i + 1 < parts && pthread_create(&threads[i], NULL, run, &ranges[i]) == 0;
    }
    for (size_t i = 0; i < parts; i++) {
        if (!started[i]) {
            run(&ranges[i]);
        }
    }
    for (size_t i = 0; i < parts; i++) {
        if (started[i]) {
            pthread_join(threads[i], NULL);
        }
    }
}
