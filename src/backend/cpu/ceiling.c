/* ceiling.c: what this machine can do at best on the backend's threads, measured: multiply-adds from
 * registers, and a copy much larger than the caches. The best of a few tries: a ceiling is not an average.
 */
#include "backend/cpu/cpu.h"

#include <string.h>
#include <time.h>

enum { TRIES = 5, PIECES = 4 /* tasks per thread */ };

#define COPY_BYTES ((size_t)128 << 20)
#define SPIN_FLOPS 5e9 /* per thread and try, about */

typedef struct job {
    const lt_cpu *cpu;
    int rounds;
    char *to;
    const char *from;
    size_t piece;
} job;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void spin_task(void *arg, int task, int thread) {
    const job *j = arg;
    float result = 0.5F;
    (void)task;
    (void)thread;
    j->cpu->kernels->spin(j->rounds, &result);
}

static void copy_task(void *arg, int task, int thread) {
    const job *j = arg;
    (void)thread;
    memcpy(j->to + (size_t)task * j->piece, j->from + (size_t)task * j->piece, j->piece);
}

static double best_time(const lt_cpu *cpu, lt_cpu_task_fn run, job *j) {
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        double start = now();
        lt_cpu_parallel(cpu, PIECES * cpu->threads, run, j);
        double seconds = now() - start;
        best = i == 0 || seconds < best ? seconds : best;
    }
    return best;
}

latent_status lt_cpu_ceiling(latent_context *ctx, lt_backend *backend, lt_ceiling *out) {
    const lt_cpu *cpu = (const lt_cpu *)backend;
    latent_status status = LATENT_OK;
    float result = 0.5F;
    double round = cpu->kernels->spin(1, &result), tasks = (double)PIECES * cpu->threads;
    job j = {.cpu = cpu, .rounds = 1000};
    void *to = NULL, *from = NULL;
    *out = (lt_ceiling){0, 0};
    double start = now(); /* emulated tiles are slow: as many rounds as a tenth of a second has */
    cpu->kernels->spin(j.rounds, &result);
    double rounds = 0.1 / PIECES * j.rounds / (now() - start + 1e-9), most = SPIN_FLOPS / PIECES / round;
    j.rounds = (int)(rounds < most ? rounds : most) + 1;
    out->flops = tasks * round * j.rounds / best_time(cpu, spin_task, &j);
    j.piece = COPY_BYTES / (size_t)(PIECES * cpu->threads);
    LT_TRY(lt_host_alloc(ctx, backend, COPY_BYTES, &to));
    LT_TRY(lt_host_alloc(ctx, backend, COPY_BYTES, &from));
    memset(from, 1, COPY_BYTES);
    memset(to, 0, COPY_BYTES);
    j.to = to;
    j.from = from;
    out->bytes = 2 * tasks * (double)j.piece / best_time(cpu, copy_task, &j);
done:
    lt_host_free(backend, to);
    lt_host_free(backend, from);
    return status;
}
