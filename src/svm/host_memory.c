/* host_memory.c: small things that the host's solver stands on: memory, time, threads, centered rows. */
#include "svm/host.h"

#include "svm/svm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double lt_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

latent_status lt_aligned_raw(latent_context *ctx, size_t count, size_t size, const char *what, void *out) {
    size_t bytes = 0;
    void *memory = NULL;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - 64 ||
        posix_memalign(&memory, 64, bytes + 64) != 0) {
        return lt_fail(ctx, LATENT_ERROR_MEMORY, "no memory for %s (%zu x %zu bytes)", what, count, size);
    }
    memcpy(out, &memory, sizeof memory);
    return LATENT_OK;
}

latent_status lt_aligned(latent_context *ctx, size_t count, size_t size, const char *what, void *out) {
    void *memory = NULL;
    latent_status status = lt_aligned_raw(ctx, count, size, what, &memory);
    if (status == LATENT_OK) {
        memset(memory, 0, count * size);
    }
    memcpy(out, &memory, sizeof memory);
    return status;
}

/* The first number of a file of the kernel's, after `key`; 0 when there is none. */
static uint64_t number_in(const char *path, const char *key) {
    char line[256];
    unsigned long long value = 0;
    FILE *file = fopen(path, "re");
    if (!file) {
        return 0;
    }
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%llu", &value) == 1) {
            break;
        }
    }
    fclose(file);
    return value;
}

uint64_t lt_memory_available(void) {
    uint64_t bytes = number_in("/proc/meminfo", "MemAvailable:") * 1024;
    /* In a container the control group's limit counts as well. */
    uint64_t limit = number_in("/sys/fs/cgroup/memory.max", "");
    uint64_t used = number_in("/sys/fs/cgroup/memory.current", "");
    if (limit > 0 && limit > used && (bytes == 0 || limit - used < bytes)) {
        bytes = limit - used;
    }
    return bytes;
}

void lt_parallel(lt_backend *backend, int count, void (*run)(void *arg, int task, int thread), void *arg) {
    if (backend->type->parallel) {
        backend->type->parallel(backend, count, run, arg);
        return;
    }
    for (int task = 0; task < count; task++) {
        run(arg, task, 0);
    }
}

void lt_parallel_if(lt_backend *backend, int split, int count, void (*run)(void *arg, int task, int thread),
                    void *arg) {
    if (split) {
        lt_parallel(backend, count, run, arg);
        return;
    }
    for (int task = 0; task < count; task++) {
        run(arg, task, 0);
    }
}

int lt_threads(const lt_backend *backend) {
    return backend->type->threads ? backend->type->threads(backend) : 1;
}

size_t lt_row_stride(size_t d) {
    size_t stride = (d + 15) / 16 * 16;
    /* Rows a multiple of a page apart would all fall into the same few lines of a cache. */
    return stride % 1024 == 0 ? stride + 16 : stride;
}

typedef struct center_job {
    const lt_svm_rows *rows;
    const uint32_t *order;
    const float *mean;
    float *out;
    size_t stride;
} center_job;

static void center_task(void *arg, int task, int thread) {
    const center_job *job = arg;
    const lt_svm_rows *rows = job->rows;
    size_t first = (size_t)task * LT_BLOCK, last = first + LT_BLOCK < rows->n ? first + LT_BLOCK : rows->n;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        const float *from = rows->x + (job->order ? job->order[i] : i) * rows->stride;
        float *to = job->out + i * job->stride;
        for (size_t c = 0; c < rows->d; c++) {
            to[c] = from[c] - (job->mean ? job->mean[c] : 0.0f);
        }
        memset(to + rows->d, 0, (job->stride - rows->d) * sizeof *to);
    }
}

void lt_center_rows(lt_backend *backend, const lt_svm_rows *rows, const uint32_t *order, const float *mean,
                    float *out, size_t stride) {
    center_job job = {rows, order, mean, out, stride};
    lt_parallel(backend, (int)((rows->n + LT_BLOCK - 1) / LT_BLOCK), center_task, &job);
}

latent_status lt_norms(latent_context *ctx, lt_backend *backend, const float *x, size_t n, size_t d,
                       size_t stride, const uint32_t *order, float *norm) {
    enum { PART = 16 };
    float products[PART * PART];
    for (size_t i = 0; i < n; i += PART) {
        size_t part = n - i < PART ? n - i : PART;
        const float *at = x + i * stride;
        latent_status status =
            backend->type->gemm_nt(ctx, backend, part, part, d, at, stride, at, stride, products, PART);
        if (status != LATENT_OK) {
            return status;
        }
        for (size_t r = 0; r < part; r++) {
            norm[i + r] = products[r * PART + r];
            if (!isfinite(norm[i + r])) {
                return lt_fail(ctx, LATENT_ERROR_NUMERIC,
                               "row %zu of the features is too long for fp32: its squared length, less the "
                               "mean, is not a finite number; scale the features down",
                               order ? (size_t)order[i + r] : i + r);
            }
        }
    }
    return LATENT_OK;
}

/* ---- statistics ---- */

enum { STATISTICS_ROWS = 256 };

typedef struct statistics_job {
    const lt_svm_rows *rows;
    double *columns; /* [tasks][d] sums */
    double *squares; /* [tasks] sum of squares around `center` */
    double center;
    size_t *bad; /* [tasks] first bad place, or SIZE_MAX */
} statistics_job;

static void sum_task(void *arg, int task, int thread) {
    const statistics_job *job = arg;
    const lt_svm_rows *rows = job->rows;
    size_t first = (size_t)task * STATISTICS_ROWS, last = first + STATISTICS_ROWS;
    double *sums = job->columns + (size_t)task * rows->d;
    last = last < rows->n ? last : rows->n;
    (void)thread;
    job->bad[task] = SIZE_MAX;
    for (size_t i = first; i < last; i++) {
        const float *x = rows->x + i * rows->stride;
        for (size_t c = 0; c < rows->d; c++) {
            sums[c] += (double)x[c];
        }
        if (job->bad[task] == SIZE_MAX && !lt_svm_finite(x, rows->d)) {
            size_t c = 0;
            while (lt_svm_finite(x + c, 1)) {
                c++;
            }
            job->bad[task] = i * rows->d + c;
        }
    }
}

static void square_task(void *arg, int task, int thread) {
    const statistics_job *job = arg;
    const lt_svm_rows *rows = job->rows;
    size_t first = (size_t)task * STATISTICS_ROWS, last = first + STATISTICS_ROWS;
    double sum = 0;
    last = last < rows->n ? last : rows->n;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        const float *x = rows->x + i * rows->stride;
        double row = 0;
        for (size_t c = 0; c < rows->d; c++) {
            double difference = x[c] - job->center;
            row += difference * difference;
        }
        sum += row;
    }
    job->squares[task] = sum;
}

latent_status lt_host_statistics(latent_context *ctx, lt_backend *backend, const lt_svm_rows *rows,
                                 float *mean, lt_svm_statistics *out) {
    latent_status status = LATENT_OK;
    int tasks = (int)((rows->n + STATISTICS_ROWS - 1) / STATISTICS_ROWS);
    statistics_job job = {.rows = rows};
    double total = 0, squares = 0;
    memset(out, 0, sizeof *out);
    LT_TRY(lt_calloc(ctx, (size_t)tasks * rows->d, sizeof(double), "column sums", (void **)&job.columns));
    LT_TRY(lt_calloc(ctx, (size_t)tasks, sizeof(double), "sums", (void **)&job.squares));
    LT_TRY(lt_calloc(ctx, (size_t)tasks, sizeof(size_t), "sums", (void **)&job.bad));
    lt_parallel(backend, tasks, sum_task, &job);
    out->finite = 1;
    for (int t = tasks - 1; t >= 0; t--) {
        if (job.bad[t] != SIZE_MAX) {
            out->finite = 0;
            out->bad = job.bad[t];
        }
    }
    for (size_t c = 0; c < rows->d; c++) {
        double sum = 0;
        for (int t = 0; t < tasks; t++) {
            sum += job.columns[(size_t)t * rows->d + c];
        }
        mean[c] = (float)(sum / (double)rows->n);
        total += sum;
    }
    job.center = total / ((double)rows->n * (double)rows->d);
    lt_parallel(backend, tasks, square_task, &job);
    for (int t = 0; t < tasks; t++) {
        squares += job.squares[t];
    }
    out->variance = squares / ((double)rows->n * (double)rows->d);
done:
    free(job.columns);
    free(job.squares);
    free(job.bad);
    return status;
}
