/* svm_matrix.c: the kernel matrix on the device, whole or in parts, and the table of this backend's machines.
 *
 * Whole, it is n*n floats: block after block of rows is multiplied with everything right of the diagonal,
 * then one pass makes kernel values on both sides. Where that does not fit, the rows stay on the device and
 * svm_solve.c has the matrix of two classes made at a time: for k equal classes (2/k)^2 of the memory, and
 * about twice the products in all. Where not even that fits, the host takes over.
 */
#include "backend/cuda/svm_cuda.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 2048 }; /* rows of one product */

static const uint64_t kept_free = (uint64_t)256 << 20; /* for solving, and for the libraries */

static double gibibytes(uint64_t bytes) {
    return (double)bytes / (1 << 30);
}

static size_t row_of(size_t side) {
    return (side + 31) / 32 * 32;
}

static uint64_t matrix_bytes(size_t side) {
    uint64_t bytes;
    return __builtin_mul_overflow((uint64_t)side * sizeof(float), (uint64_t)row_of(side), &bytes)
               ? UINT64_MAX / 4
               : bytes;
}

static uint64_t memory_left(lt_cuda *cuda) {
    uint64_t bytes = lt_cuda_memory_free(&cuda->base);
    return bytes > kept_free ? bytes - kept_free : 0;
}

static void matrix_free(lt_backend *backend, lt_svm_matrix *handle) {
    lt_cuda_matrix *m = (lt_cuda_matrix *)handle;
    if (m) {
        lt_cuda_operand_free((lt_cuda *)backend, &m->x);
        lt_cuda_free(backend, m->norm);
        lt_cuda_free(backend, m->k);
        lt_cuda_free(backend, m->distance);
        free(m);
    }
}

/* Rows [first, last) of range `r`, at place `at` of the part, times all from `first` on. */
static latent_status multiply_block(latent_context *ctx, lt_cuda *cuda, const lt_cuda_matrix *m,
                                    const lt_cuda_part *part, int r, size_t first, size_t last, size_t at) {
    size_t column = at;
    for (int other = r; other < part->ranges; other++) {
        size_t begin = other == r ? first : part->begin[other], count = part->end[other] - begin;
        latent_status status = lt_cuda_product(ctx, cuda, &m->x, first, last - first, &m->x, begin, count,
                                               part->k + at * part->row + column, part->row);
        if (status != LATENT_OK) {
            return status;
        }
        column += count;
    }
    return LATENT_OK;
}

latent_status lt_cuda_part_fill(latent_context *ctx, lt_cuda *cuda, const lt_cuda_matrix *m,
                                const lt_cuda_part *part, const lt_svm_progress *progress) {
    latent_status status = LATENT_OK;
    uint64_t total = (uint64_t)part->side * (part->side + 1) / 2;
    size_t at = 0;
    for (int r = 0; r < part->ranges; r++) {
        size_t rows = part->end[r] - part->begin[r];
        if (part->unit != m->x.unit && rows > 0) {
            LT_CUDA(cudaMemcpyAsync(part->unit + at, m->x.unit + part->begin[r], rows * sizeof *part->unit,
                                    cudaMemcpyDeviceToDevice, cuda->stream));
        }
        for (size_t first = part->begin[r]; first < part->end[r]; first += BLOCK) {
            size_t last = first + BLOCK < part->end[r] ? first + BLOCK : part->end[r];
            LT_TRY(multiply_block(ctx, cuda, m, part, r, first, last, at));
            at += last - first;
            if (progress && progress->call) {
                uint64_t left = part->side - at;
                LT_TRY(lt_cuda_synchronize(ctx, &cuda->base));
                progress->call(progress->user, total - left * (left + 1) / 2, total);
            }
            if (ctx->interrupted) {
                status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted while the kernel matrix was computed");
                goto done;
            }
        }
    }
    if (part->side == 0) {
        goto done;
    }
    lt_launch_svm_diagonal(cuda->stream, part->k, part->row, part->side, part->unit, part->norm);
    LT_LAUNCHED("svm_diagonal");
    lt_cuda_block block = {m->kernel,  m->gamma,   part->side, part->side, part->row,
                           part->unit, part->unit, part->norm, part->norm};
    lt_launch_svm_symmetric(cuda->stream, &block, part->k, part->distance);
    LT_LAUNCHED("svm_symmetric");
done:
    return status;
}

void lt_cuda_part_free(lt_cuda *cuda, lt_cuda_part *part) {
    lt_cuda_free(&cuda->base, part->k);
    lt_cuda_free(&cuda->base, part->unit);
    lt_cuda_free(&cuda->base, part->norm);
    memset(part, 0, sizeof *part);
}

latent_status lt_cuda_part_create(latent_context *ctx, lt_cuda *cuda, const lt_cuda_matrix *m,
                                  const lt_svm_problem *problem, lt_cuda_part *out) {
    latent_status status = LATENT_OK;
    memset(out, 0, sizeof *out);
    for (int r = 0; r < 2; r++) {
        out->begin[r] = problem->begin[r];
        out->end[r] = problem->end[r];
        out->side += problem->end[r] - problem->begin[r];
    }
    out->ranges = 2;
    out->row = row_of(out->side);
    uint64_t bytes = matrix_bytes(out->side), left = memory_left(cuda);
    if (bytes > left || (m->limit && bytes > m->limit)) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the kernel matrix of two classes, %zu rows, takes %.1f GiB; device %d (%s) has %.1f "
                       "GiB for it",
                       out->side, gibibytes(bytes), cuda->device, cuda->name,
                       gibibytes(m->limit && m->limit < left ? m->limit : left));
    }
    LT_TRY(lt_cuda_room(ctx, cuda, out->side, out->row * sizeof(float), &out->k));
    LT_TRY(lt_cuda_room(ctx, cuda, out->side, sizeof(double), &out->unit));
    LT_TRY(lt_cuda_room(ctx, cuda, out->side, sizeof(double), &out->norm));
    LT_TRY(lt_cuda_part_fill(ctx, cuda, m, out, NULL));
done:
    if (status != LATENT_OK) {
        lt_cuda_part_free(cuda, out);
    }
    return status;
}

/* The whole matrix as a part. */
static lt_cuda_part whole(const lt_cuda_matrix *m) {
    return (lt_cuda_part){.begin = {0, 0},
                          .end = {m->n, 0},
                          .ranges = 1,
                          .side = m->n,
                          .row = m->row,
                          .k = m->k,
                          .distance = m->distance,
                          .unit = m->x.unit,
                          .norm = m->norm};
}

static latent_status check_lengths(latent_context *ctx, lt_cuda *cuda, const lt_cuda_matrix *m,
                                   const uint32_t *order) {
    latent_status status = LATENT_OK;
    double *norm = NULL;
    LT_TRY(lt_alloc(ctx, m->n * sizeof *norm, "squared lengths", (void **)&norm));
    LT_TRY(lt_cuda_download(ctx, &cuda->base, norm, m->norm, m->n * sizeof *norm));
    for (size_t i = 0; i < m->n; i++) {
        if (!(norm[i] <= FLT_MAX)) {
            status = lt_fail(ctx, LATENT_ERROR_NUMERIC,
                             "row %zu of the features is too long for fp32: its squared length, less the "
                             "mean, is not a finite number; scale the features down",
                             order ? (size_t)order[i] : i);
            goto done;
        }
    }
done:
    free(norm);
    return status;
}

/* What fits: the whole matrix with or without distances, or the rows alone. */
static latent_status choose_form(latent_context *ctx, lt_cuda *cuda, lt_cuda_matrix *m,
                                 const lt_svm_matrix_call *call) {
    latent_status status = LATENT_OK;
    uint64_t operand = lt_cuda_operand_bytes(call->precision, m->n, m->d), bytes = matrix_bytes(m->n);
    uint64_t left = memory_left(cuda), staging = lt_cuda_pieces_bytes(&call->rows);
    uint64_t room = left > operand ? left - operand : 0;
    room = m->limit && m->limit < room ? m->limit : room;
    if (left < operand + staging) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the %zu rows of %zu features take %.1f GiB as factors of matrix products, and their "
                       "kernel matrix %.1f GiB; device %d (%s) has %.1f GiB free",
                       m->n, m->d, gibibytes(operand + staging), gibibytes(bytes), cuda->device, cuda->name,
                       gibibytes(left));
    }
    LT_TRY(lt_cuda_operand_create(ctx, cuda, call->precision, m->n, m->d, &m->x));
    LT_TRY(lt_cuda_room(ctx, cuda, m->n, sizeof *m->norm, &m->norm));
    m->bytes = operand;
    if (bytes > room) {
        lt_log(ctx, LATENT_LOG_INFO,
               "the kernel matrix takes %.1f GiB, device %d (%s) has %.1f GiB for it: two classes at a time",
               gibibytes(bytes), cuda->device, cuda->name, gibibytes(room));
        goto done;
    }
    LT_TRY(lt_cuda_room(ctx, cuda, m->n, m->row * sizeof(float), &m->k));
    m->bytes = bytes;
    if (call->keep_distances && m->kernel == LT_SVM_RBF && bytes <= room / 2) {
        LT_TRY(lt_cuda_room(ctx, cuda, m->n, m->row * sizeof(float), &m->distance));
        m->bytes += bytes;
    }
done:
    return status;
}

static latent_status matrix_create(latent_context *ctx, lt_backend *backend, const lt_svm_matrix_call *call,
                                   lt_svm_matrix **out) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    lt_cuda_matrix *m = NULL;
    double begun = lt_cuda_seconds();
    *out = NULL;
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    LT_TRY(lt_cuda_products_open(ctx, cuda));
    LT_TRY(lt_calloc(ctx, 1, sizeof *m, "the kernel matrix", (void **)&m));
    m->kernel = call->kernel;
    m->gamma = call->gamma;
    m->n = call->rows.n;
    m->d = call->rows.d;
    m->row = row_of(m->n);
    m->limit = call->bytes_limit;
    LT_TRY(choose_form(ctx, cuda, m, call));
    if (call->progress.call) {
        call->progress.call(call->progress.user, 0, (uint64_t)m->n * (m->n + 1) / 2);
    }
    LT_TRY(lt_cuda_operand_fill(ctx, cuda, &call->rows, call->order, call->mean, &m->x, &m->upload_seconds));
    if (m->k) {
        lt_cuda_part all = whole(m);
        LT_TRY(lt_cuda_part_fill(ctx, cuda, m, &all, &call->progress));
    } else {
        lt_launch_svm_lengths(cuda->stream, &m->x, m->n, m->norm);
        LT_LAUNCHED("svm_lengths");
    }
    LT_TRY(check_lengths(ctx, cuda, m, call->order));
    if (m->k && (m->distance || !call->keep_distances || m->kernel != LT_SVM_RBF)) {
        lt_cuda_operand_free(cuda, &m->x);
    }
    m->seconds = lt_cuda_seconds() - begun;
    *out = (lt_svm_matrix *)m;
    m = NULL;
done:
    matrix_free(backend, (lt_svm_matrix *)m);
    return status;
}

static latent_status matrix_gamma(latent_context *ctx, lt_backend *backend, lt_svm_matrix *handle,
                                  double gamma) {
    lt_cuda *cuda = (lt_cuda *)backend;
    lt_cuda_matrix *m = (lt_cuda_matrix *)handle;
    latent_status status = LATENT_OK;
    if (gamma == m->gamma || m->kernel != LT_SVM_RBF) {
        return LATENT_OK;
    }
    m->gamma = gamma;
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    if (m->distance) {
        lt_cuda_block block = {.gamma = gamma, .m = m->n, .n = m->n, .row = m->row};
        lt_launch_svm_gamma(cuda->stream, &block, m->distance, m->k);
        LT_LAUNCHED("svm_gamma");
    } else if (m->k) {
        lt_cuda_part all = whole(m);
        LT_TRY(lt_cuda_part_fill(ctx, cuda, m, &all, NULL));
    }
done:
    return status;
}

static void matrix_get_info(const lt_svm_matrix *handle, lt_svm_matrix_info *out) {
    const lt_cuda_matrix *m = (const lt_cuda_matrix *)handle;
    *out = (lt_svm_matrix_info){.bytes = m->bytes,
                                .resident = m->k != NULL,
                                .seconds = m->seconds,
                                .upload_seconds = m->upload_seconds};
}

const lt_svm_ops lt_cuda_svm_ops = {
    .statistics = lt_cuda_statistics,
    .matrix_create = matrix_create,
    .matrix_gamma = matrix_gamma,
    .matrix_get_info = matrix_get_info,
    .matrix_free = matrix_free,
    .solve = lt_cuda_solve,
    .sums = lt_cuda_sums,
    .machine_create = lt_cuda_machine_create,
    .machine_decide = lt_cuda_machine_decide,
    .machine_free = lt_cuda_machine_free,
};
