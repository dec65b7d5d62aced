/* host_matrix.c: the kernel matrix in host memory, and the table of the host's support vector machines.
 *
 * The rows are copied once, centered and sorted. A matrix that fits is computed whole: block after block of
 * rows, only the part right of the diagonal, which is then mirrored. exp() runs over each block while it is
 * in the cache. With squared distances kept beside it, another gamma costs one pass.
 */
#include "svm/host.h"

#include <stdlib.h>
#include <string.h>

static void matrix_free(lt_backend *backend, lt_svm_matrix *handle) {
    lt_host_matrix *matrix = (lt_host_matrix *)handle;
    (void)backend;
    if (matrix) {
        free(matrix->x);
        free(matrix->norm);
        free(matrix->k);
        free(matrix->distance);
        lt_tiles_destroy(matrix->tiles);
        free(matrix);
    }
}

typedef struct block_job {
    lt_host_matrix *matrix;
    size_t first, last; /* rows of the block */
} block_job;

/* One row of a block: products to kernel values, right of the block's first column. */
static void transform_task(void *arg, int task, int thread) {
    const block_job *job = arg;
    lt_host_matrix *m = job->matrix;
    size_t i = job->first + (size_t)task, place = i * m->row + job->first;
    (void)thread;
    lt_kernel_from_products(m, i, job->first, m->n - job->first, m->k + place,
                            m->distance ? m->distance + place : NULL, m->k + place);
    memset(m->k + i * m->row + m->n, 0, (m->row - m->n) * sizeof(float)); /* whole vectors are read */
}

enum { MIRROR = 64 };

static void mirror(float *k, size_t row, size_t i0, size_t i1, size_t j0, size_t j1) {
    for (size_t j = j0; j < j1; j++) {
        for (size_t i = i0; i < i1; i++) {
            k[j * row + i] = k[i * row + j];
        }
    }
}

static void mirror_task(void *arg, int task, int thread) {
    const block_job *job = arg;
    lt_host_matrix *m = job->matrix;
    size_t j0 = job->last + (size_t)task * MIRROR, j1 = j0 + MIRROR < m->n ? j0 + MIRROR : m->n;
    (void)thread;
    for (size_t i0 = job->first; i0 < job->last; i0 += MIRROR) {
        size_t i1 = i0 + MIRROR < job->last ? i0 + MIRROR : job->last;
        mirror(m->k, m->row, i0, i1, j0, j1);
        if (m->distance) {
            mirror(m->distance, m->row, i0, i1, j0, j1);
        }
    }
}

static latent_status build_whole(latent_context *ctx, lt_host_matrix *m, const lt_svm_progress *progress) {
    uint64_t total = (uint64_t)m->n * (m->n + 1) / 2, done = 0;
    for (size_t first = 0; first < m->n; first += LT_BLOCK) {
        size_t last = first + LT_BLOCK < m->n ? first + LT_BLOCK : m->n;
        latent_status status = m->backend->type->gemm_nt(
            ctx, m->backend, last - first, m->n - first, m->d, m->x + first * m->stride, m->stride,
            m->x + first * m->stride, m->stride, m->k + first * m->row + first, m->row);
        if (status != LATENT_OK) {
            return status;
        }
        if (ctx->interrupted) {
            return lt_fail(ctx, LATENT_INTERRUPTED, "interrupted while the kernel matrix was computed");
        }
        block_job job = {m, first, last};
        int split = (last - first) * (m->n - first) >= LT_SPLIT;
        lt_parallel_if(m->backend, split, (int)(last - first), transform_task, &job);
        lt_parallel_if(m->backend, split, (int)((m->n - last + MIRROR - 1) / MIRROR), mirror_task, &job);
        done += (uint64_t)(last - first) * (m->n - first + m->n - last + 1) / 2;
        if (progress && progress->call) {
            progress->call(progress->user, done < total ? done : total, total);
        }
    }
    return LATENT_OK;
}

/* Whole, with or without distances, or tiles: what the limit allows. */
static latent_status choose_form(latent_context *ctx, lt_host_matrix *m, const lt_svm_matrix_call *call) {
    latent_status status = LATENT_OK;
    uint64_t limit = call->bytes_limit, whole = 0;
    if (limit == 0) {
        uint64_t available = lt_memory_available();
        limit = available > 0 ? available / 2 : (uint64_t)1 << 30;
    }
    m->row = (m->n + 15) / 16 * 16;
    int fits = !__builtin_mul_overflow((uint64_t)m->n * sizeof(float), (uint64_t)m->row, &whole) &&
               whole <= limit && whole <= SIZE_MAX / 2;
    if (!fits) {
        LT_TRY(lt_tiles_create(ctx, m, limit, &m->tiles));
        m->bytes = lt_tiles_bytes(m->tiles);
        goto done;
    }
    LT_TRY(lt_aligned_raw(ctx, m->n, m->row * sizeof(float), "the kernel matrix", &m->k));
    memset(m->k + m->n * m->row, 0, 64); /* lt_aligned_raw() has that much more */
    m->bytes = whole;
    if (call->keep_distances && m->kernel == LT_SVM_RBF && whole <= limit / 2) {
        LT_TRY(lt_aligned_raw(ctx, m->n, m->row * sizeof(float), "the squared distances", &m->distance));
        m->bytes += whole;
    }
done:
    return status;
}

static latent_status matrix_create(latent_context *ctx, lt_backend *backend, const lt_svm_matrix_call *call,
                                   lt_svm_matrix **out) {
    latent_status status = LATENT_OK;
    lt_host_matrix *m = NULL;
    double begun = lt_seconds();
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *m, "the kernel matrix", (void **)&m));
    m->backend = backend;
    m->kernel = call->kernel;
    m->gamma = call->gamma;
    m->n = call->rows.n;
    m->d = call->rows.d;
    m->stride = lt_row_stride(m->d);
    LT_TRY(lt_aligned_raw(ctx, m->n, m->stride * sizeof(float), "the centered features", &m->x));
    LT_TRY(lt_aligned(ctx, m->n, sizeof(float), "squared lengths", &m->norm));
    lt_center_rows(backend, &call->rows, call->order, call->mean, m->x, m->stride);
    LT_TRY(lt_norms(ctx, backend, m->x, m->n, m->d, m->stride, call->order, m->norm));
    LT_TRY(choose_form(ctx, m, call));
    if (call->progress.call) {
        call->progress.call(call->progress.user, 0, (uint64_t)m->n * (m->n + 1) / 2);
    }
    if (m->k) {
        LT_TRY(build_whole(ctx, m, &call->progress));
        if (m->distance || !call->keep_distances || m->kernel != LT_SVM_RBF) {
            free(m->x);
            m->x = NULL;
        }
    }
    m->seconds = lt_seconds() - begun;
    *out = (lt_svm_matrix *)m;
    m = NULL;
done:
    matrix_free(backend, (lt_svm_matrix *)m);
    return status;
}

static void gamma_task(void *arg, int task, int thread) {
    lt_host_matrix *m = arg;
    size_t place = (size_t)task * m->row;
    (void)thread;
    lt_kernel_from_distances(m->gamma, m->n, m->distance + place, m->k + place);
}

static latent_status matrix_gamma(latent_context *ctx, lt_backend *backend, lt_svm_matrix *handle,
                                  double gamma) {
    lt_host_matrix *m = (lt_host_matrix *)handle;
    if (gamma == m->gamma || m->kernel != LT_SVM_RBF) {
        return LATENT_OK;
    }
    m->gamma = gamma;
    if (m->tiles) {
        lt_tiles_clear(m->tiles);
        return LATENT_OK;
    }
    if (m->distance) {
        lt_parallel(backend, (int)m->n, gamma_task, m);
        return LATENT_OK;
    }
    return build_whole(ctx, m, NULL);
}

static void matrix_get_info(const lt_svm_matrix *handle, lt_svm_matrix_info *out) {
    const lt_host_matrix *m = (const lt_host_matrix *)handle;
    *out = (lt_svm_matrix_info){m->bytes, m->k != NULL, m->seconds, 0};
}

const lt_svm_ops lt_svm_host_ops = {
    .statistics = lt_host_statistics,
    .matrix_create = matrix_create,
    .matrix_gamma = matrix_gamma,
    .matrix_get_info = matrix_get_info,
    .matrix_free = matrix_free,
    .solve = lt_host_solve,
    .sums = lt_host_sums,
    .machine_create = lt_host_machine_create,
    .machine_decide = lt_host_machine_decide,
    .machine_free = lt_host_machine_free,
};
