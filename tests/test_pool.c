/* test_pool.c: the threads of the backend `cpu`: every task once, on a thread that was asked for, however
 * many there are, loop after loop.
 */
#ifndef LATENT_HAVE_CPU
int main(void) {
    return 77; /* not an x86-64 build */
}
#else
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cpu/pool.h"

enum { TASKS = 100, THREADS = 8 };

typedef struct loop {
    lt_cpu_pool *pool;
    atomic_int runs[TASKS], nested;
    atomic_int largest; /* thread seen */
} loop;

static void task(void *arg, int number, int thread) {
    loop *l = arg;
    atomic_fetch_add(&l->runs[number], 1);
    int seen = atomic_load(&l->largest);
    while (thread > seen && !atomic_compare_exchange_weak(&l->largest, &seen, thread)) {
    }
}

static void expect_once(loop *l, int count) {
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(atomic_load(&l->runs[i]), i < count);
    }
}

static void test_every_task_once(void **state) {
    (void)state;
    for (int helpers = 0; helpers < THREADS; helpers++) {
        lt_cpu_pool *pool = lt_cpu_pool_create(helpers);
        assert_true((pool != NULL) == (helpers > 0));
        for (int round = 0; round < 300; round++) {
            int count = round % (TASKS + 1), wanted = round % THREADS;
            loop l;
            memset(&l, 0, sizeof l);
            lt_cpu_pool_run(pool, wanted, count, task, &l);
            expect_once(&l, count);
            assert_in_range(atomic_load(&l.largest), 0, wanted < helpers ? wanted : helpers);
        }
        lt_cpu_pool_destroy(pool);
    }
    lt_cpu_pool_destroy(NULL);
}

/* Helpers that have gone to sleep come back, and so does a caller who had to wait for them. */
static void slow_task(void *arg, int number, int thread) {
    if (thread > 0) {
        usleep(2000);
    }
    task(arg, number, thread);
}

static void test_sleep(void **state) {
    (void)state;
    lt_cpu_pool *pool = lt_cpu_pool_create(3);
    for (int round = 0; round < 30; round++) {
        loop l;
        memset(&l, 0, sizeof l);
        usleep(1000);
        lt_cpu_pool_run(pool, 3, 20, slow_task, &l);
        expect_once(&l, 20);
    }
    lt_cpu_pool_destroy(pool);
}

static void inner(void *arg, int number, int thread) {
    loop *l = arg;
    assert_int_equal(thread, 0);
    atomic_fetch_add(&l->nested, 1);
    (void)number;
}

static void outer(void *arg, int number, int thread) {
    loop *l = arg;
    task(arg, number, thread);
    lt_cpu_pool_run(l->pool, 3, 5, inner, l);
}

static void test_nested(void **state) {
    (void)state;
    loop l;
    memset(&l, 0, sizeof l);
    l.pool = lt_cpu_pool_create(3);
    lt_cpu_pool_run(l.pool, 3, 40, outer, &l);
    expect_once(&l, 40);
    assert_int_equal(atomic_load(&l.nested), 200);
    lt_cpu_pool_destroy(l.pool);
}

/* A plain sum: what tasks write must be there when the loop has ended. */
typedef struct squares {
    int value[TASKS];
} squares;

static void square(void *arg, int number, int thread) {
    squares *s = arg;
    (void)thread;
    s->value[number] += number * number;
}

static void test_many_loops(void **state) {
    (void)state;
    enum { LOOPS = 20000 };
    lt_cpu_pool *pool = lt_cpu_pool_create(2);
    squares s = {{0}};
    for (int i = 0; i < LOOPS; i++) {
        lt_cpu_pool_run(pool, 1 + i % 2, 6, square, &s);
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(s.value[i], LOOPS * i * i);
    }
    lt_cpu_pool_destroy(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_task_once),
        cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_many_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
