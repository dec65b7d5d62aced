/* pool.c: threads that share the tasks of one loop after another.
 *
 * A training step is dozens of short loops, so who waits for the next one, or for the last task of this one,
 * looks for a while and then sleeps. How long is what OpenMP does not let a library choose: its threads look
 * for milliseconds, and where other programs want the same cores, whoever is waited for stands behind those
 * who wait (docs/design.md has figures).
 *
 * `call` is the number of the loop and how many helpers it wants, in one word: a helper that is not wanted
 * reads nothing else, so that the caller need not wait for it.
 */
#include "backend/cpu/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LOOKS = 6000, /* about a quarter of a millisecond */
    HELPERS_BITS = 12,
    HELPERS_MAX = (1 << HELPERS_BITS) - 1
};

typedef struct helper {
    lt_cpu_pool *pool;
    pthread_t thread;
    int number; /* counts from 1: the caller is thread 0 */
} helper;

struct lt_cpu_pool {
    helper *helpers;
    int count;
    _Atomic uint32_t call;     /* loop << HELPERS_BITS | helpers wanted */
    _Atomic uint32_t sleepers; /* helpers that sleep until `call` changes */
    _Atomic uint32_t working;  /* helpers that are not done with this loop */
    _Atomic uint32_t caller_sleeps;
    _Atomic int next; /* task */
    atomic_int busy, leaving;
    int tasks;
    void (*run)(void *arg, int task, int thread);
    void *arg;
};

static void sleep_while(_Atomic uint32_t *word, uint32_t value) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void pause_a_little(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void work(lt_cpu_pool *pool, int thread) {
    for (;;) {
        int task = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (task >= pool->tasks) {
            return;
        }
        pool->run(pool->arg, task, thread);
    }
}

/* Until `call` is not `seen` any more; returns it. */
static uint32_t await_call(lt_cpu_pool *pool, uint32_t seen) {
    for (int i = 0; i < LOOKS; i++) {
        uint32_t call = atomic_load_explicit(&pool->call, memory_order_acquire);
        if (call != seen) {
            return call;
        }
        pause_a_little();
    }
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->call) == seen) {
        sleep_while(&pool->call, seen);
    }
    atomic_fetch_sub(&pool->sleepers, 1);
    return atomic_load(&pool->call);
}

static void *help(void *user) {
    helper *h = user;
    lt_cpu_pool *pool = h->pool;
    uint32_t seen = 0;
    while (!atomic_load(&pool->leaving)) {
        seen = await_call(pool, seen);
        if (h->number > (int)(seen & HELPERS_MAX)) {
            continue;
        }
        work(pool, h->number);
        if (atomic_fetch_sub(&pool->working, 1) == 1 && atomic_load(&pool->caller_sleeps)) {
            wake(&pool->working);
        }
    }
    return NULL;
}

/* A new loop for `wanted` helpers. */
static void call_helpers(lt_cpu_pool *pool, int wanted) {
    uint32_t loop = (atomic_load(&pool->call) >> HELPERS_BITS) + 1;
    atomic_store(&pool->call, loop << HELPERS_BITS | (uint32_t)wanted);
    if (atomic_load(&pool->sleepers)) {
        wake(&pool->call);
    }
}

static void await_helpers(lt_cpu_pool *pool) {
    for (int i = 0; i < LOOKS; i++) {
        if (!atomic_load_explicit(&pool->working, memory_order_acquire)) {
            return;
        }
        pause_a_little();
    }
    atomic_store(&pool->caller_sleeps, 1);
    uint32_t working;
    while ((working = atomic_load(&pool->working)) != 0) {
        sleep_while(&pool->working, working);
    }
    atomic_store(&pool->caller_sleeps, 0);
}

void lt_cpu_pool_run(lt_cpu_pool *pool, int helpers, int count, void (*run)(void *arg, int task, int thread),
                     void *arg) {
    int wanted = pool && helpers > pool->count ? pool->count : helpers;
    wanted = wanted < count - 1 ? wanted : count - 1;
    if (!pool || wanted < 1 || atomic_exchange(&pool->busy, 1)) {
        for (int task = 0; task < count; task++) {
            run(arg, task, 0);
        }
        return;
    }
    pool->run = run;
    pool->arg = arg;
    pool->tasks = count;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->working, (uint32_t)wanted);
    call_helpers(pool, wanted);
    work(pool, 0);
    await_helpers(pool);
    atomic_store(&pool->busy, 0);
}

lt_cpu_pool *lt_cpu_pool_create(int helpers) {
    lt_cpu_pool *pool = helpers > 0 ? calloc(1, sizeof *pool) : NULL;
    helpers = helpers < HELPERS_MAX ? helpers : HELPERS_MAX;
    if (!pool || !(pool->helpers = calloc((size_t)helpers, sizeof *pool->helpers))) {
        free(pool);
        return NULL;
    }
    sigset_t all, before; /* signals are for the threads of the program */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; pool->count < helpers; pool->count++) {
        helper *h = &pool->helpers[pool->count];
        *h = (helper){.pool = pool, .number = pool->count + 1};
        if (pthread_create(&h->thread, NULL, help, h) != 0) {
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pool;
}

void lt_cpu_pool_destroy(lt_cpu_pool *pool) {
    if (!pool) {
        return;
    }
    atomic_store(&pool->leaving, 1);
    call_helpers(pool, 0);
    for (int i = 0; i < pool->count; i++) {
        pthread_join(pool->helpers[i].thread, NULL);
    }
    free(pool->helpers);
    free(pool);
}
