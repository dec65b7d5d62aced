/* gemm.c: C = A B^T for fp32 matrices of any size, on all threads.
 *
 * C is cut into tasks of up to LT_GEMM_ROWS x LT_GEMM_COLUMNS. A task goes down k in steps of LT_GEMM_DEPTH:
 * each step's sum starts from 0 in registers and is added to C, in the order of k. Short sums added up lose
 * fewer bits than one long one, and how C was cut changes none.
 */
#include "backend/cpu/gemm.h"

#include "backend/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

/* Multiply-adds below which one thread is done before others are awake. */
#define SMALL 4e6

typedef struct gemm_job {
    const lt_cpu_gemm *kernel;
    size_t m, n, k;
    const float *a, *b;
    size_t lda, ldb;
    float *c;
    size_t ldc;
    size_t rows, row_tasks; /* rows of C in a task */
    float *packed;          /* [threads][packed_floats] */
    size_t packed_floats;
} gemm_job;

static void gemm_task(void *arg, int task, int thread) {
    const gemm_job *job = arg;
    size_t i = (size_t)task % job->row_tasks * job->rows, j = (size_t)task / job->row_tasks * LT_GEMM_COLUMNS;
    size_t m = job->m - i < job->rows ? job->m - i : job->rows;
    size_t n = job->n - j < LT_GEMM_COLUMNS ? job->n - j : LT_GEMM_COLUMNS;
    for (size_t l = 0; l < job->k; l += LT_GEMM_DEPTH) {
        size_t k = job->k - l < LT_GEMM_DEPTH ? job->k - l : LT_GEMM_DEPTH;
        job->kernel->block(m, n, k, job->a + i * job->lda + l, job->lda, job->b + j * job->ldb + l, job->ldb,
                           job->c + i * job->ldc + j, job->ldc, l > 0,
                           job->packed + (size_t)thread * job->packed_floats);
    }
}

/* The block that goes with the backend's instruction set; those beyond AVX-512 have it as well. */
static const lt_cpu_gemm *kernel_of(const lt_cpu *cpu) {
    lt_cpu_isa best = lt_cpu_isa_best();
    if (strcmp(cpu->kernels->name, "plain") == 0 || best == LT_CPU_ISA_PLAIN) {
        return &lt_cpu_gemm_plain;
    }
    return strcmp(cpu->kernels->name, "avx2") == 0 || best == LT_CPU_ISA_AVX2 ? &lt_cpu_gemm_avx2
                                                                              : &lt_cpu_gemm_avx512;
}

latent_status lt_cpu_gemm_nt(latent_context *ctx, lt_backend *backend, size_t m, size_t n, size_t k,
                             const float *a, size_t lda, const float *b, size_t ldb, float *c, size_t ldc) {
    latent_status status = LATENT_OK;
    const lt_cpu *cpu = (const lt_cpu *)backend;
    gemm_job job = {kernel_of(cpu), m, n, k, a, b, lda, ldb, c, ldc, LT_GEMM_ROWS, 0, NULL, 0};
    void *memory = NULL;
    if (k == 0) {
        for (size_t i = 0; i < m; i++) {
            memset(c + i * ldc, 0, n * sizeof *c);
        }
        return LATENT_OK;
    }
    size_t column_tasks = (n + LT_GEMM_COLUMNS - 1) / LT_GEMM_COLUMNS, threads = (size_t)cpu->threads;
    while (job.rows > 64 && column_tasks * ((m + job.rows - 1) / job.rows) < 4 * threads) {
        job.rows /= 2;
    }
    job.row_tasks = (m + job.rows - 1) / job.rows;
    size_t depth = k < LT_GEMM_DEPTH ? k : LT_GEMM_DEPTH, tile = (size_t)job.kernel->columns;
    size_t width = ((n < LT_GEMM_COLUMNS ? n : LT_GEMM_COLUMNS) + tile - 1) / tile * tile;
    job.packed_floats = (depth * (width + (size_t)job.kernel->rows) + 15) / 16 * 16;
    LT_TRY(lt_host_alloc(ctx, backend, threads * job.packed_floats * sizeof(float), &memory));
    job.packed = memory;
    int tasks = (int)(job.row_tasks * column_tasks);
    if ((double)m * (double)n * (double)k < SMALL) {
        for (int task = 0; task < tasks; task++) {
            gemm_task(&job, task, 0);
        }
    } else {
        lt_cpu_parallel(cpu, tasks, gemm_task, &job);
    }
done:
    lt_host_free(backend, memory);
    return status;
}

void lt_cpu_run(lt_backend *backend, int count, void (*run)(void *arg, int task, int thread), void *arg) {
    lt_cpu_parallel((const lt_cpu *)backend, count, run, arg);
}

int lt_cpu_threads(const lt_backend *backend) {
    return ((const lt_cpu *)backend)->threads;
}
