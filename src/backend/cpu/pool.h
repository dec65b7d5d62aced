/* pool.h: threads that share the tasks of one loop after another. */
#ifndef LT_BACKEND_CPU_POOL_H
#define LT_BACKEND_CPU_POOL_H

typedef struct lt_cpu_pool lt_cpu_pool;

/* With `helpers` threads besides the caller's, or as many as the system gives; NULL: none at all. */
lt_cpu_pool *lt_cpu_pool_create(int helpers);
void lt_cpu_pool_destroy(lt_cpu_pool *pool); /* takes NULL */

/* Runs tasks 0 to count-1 on the caller's thread, which is thread 0, and on up to `helpers` others, handed
 * out one by one as threads become free; waits for all. One caller at a time; a task that calls it again has
 * its tasks run on its own thread, as thread 0. Takes NULL: then everything runs here. */
void lt_cpu_pool_run(lt_cpu_pool *pool, int helpers, int count, void (*run)(void *arg, int task, int thread),
                     void *arg);

#endif
