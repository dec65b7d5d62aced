/* svm_machine.c: decision values of new rows on the device.
 *
 * The support vectors stay there as factors. New rows come in batches of a fixed size, so that the same row
 * gives the same bits in every call of the same length: one product with all vectors, one pass to kernel
 * values, one over the coefficients of all problems. A linear machine is its normal vectors, in fp64.
 */
#include "backend/cuda/svm_cuda.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 2048, BATCH_MIN = 32, LINEAR_BATCH = 16384 }; /* rows */

typedef struct machine {
    lt_svm_kernel kernel;
    lt_svm_precision precision;
    size_t n, d, row;
    float *mean; /* host [d], or NULL */
    int problems, one_gamma;
    double gamma;      /* the one */
    lt_cuda_operand x; /* the vectors */
    double *norm;      /* [n] */
    double *gammas;    /* [problems] where they differ */
    double *rho;       /* [problems] */
    double *coefficients;
    uint32_t *stretches, *begin;
    double *w; /* linear: [problems][d] */
} machine;

void lt_cuda_machine_free(lt_backend *backend, lt_svm_machine *handle) {
    machine *m = (machine *)handle;
    if (m) {
        lt_cuda_operand_free((lt_cuda *)backend, &m->x);
        lt_cuda_free(backend, m->norm);
        lt_cuda_free(backend, m->gammas);
        lt_cuda_free(backend, m->rho);
        lt_cuda_free(backend, m->coefficients);
        lt_cuda_free(backend, m->stretches);
        lt_cuda_free(backend, m->begin);
        lt_cuda_free(backend, m->w);
        free(m->mean);
        free(m);
    }
}

/* A copy on the device; `out` is the address of a pointer. */
static latent_status copy(latent_context *ctx, lt_cuda *cuda, const void *from, size_t count, size_t size,
                          void *out) {
    void *there = NULL;
    latent_status status = lt_cuda_room(ctx, cuda, count, size, &there);
    memcpy(out, &there, sizeof there);
    return status == LATENT_OK ? lt_cuda_upload(ctx, &cuda->base, there, from, count * size) : status;
}

/* The coefficients, padded to whole stretches, and which stretches a problem uses. */
static latent_status copy_coefficients(latent_context *ctx, lt_cuda *cuda, const lt_svm_machine_call *call,
                                       machine *m) {
    latent_status status = LATENT_OK;
    size_t stretches = (m->n + LT_CUDA_STRETCH - 1) / LT_CUDA_STRETCH, padded = stretches * LT_CUDA_STRETCH;
    size_t problems = (size_t)m->problems;
    double *dense = NULL;
    uint32_t *used = NULL, *begin = NULL, count = 0;
    LT_TRY(lt_calloc(ctx, problems * padded + 1, sizeof *dense, "coefficients", (void **)&dense));
    LT_TRY(lt_calloc(ctx, problems * stretches + 1, sizeof *used, "coefficients", (void **)&used));
    LT_TRY(lt_calloc(ctx, problems + 1, sizeof *begin, "coefficients", (void **)&begin));
    for (size_t p = 0; p < problems; p++) {
        const double *from = call->coefficients + p * m->n;
        memcpy(dense + p * padded, from, m->n * sizeof *dense);
        for (size_t i = 0, next = 0; i < m->n; i++) {
            if (from[i] != 0 && i / LT_CUDA_STRETCH >= next) {
                used[count++] = (uint32_t)(i / LT_CUDA_STRETCH);
                next = i / LT_CUDA_STRETCH + 1;
            }
        }
        begin[p + 1] = count;
    }
    LT_TRY(copy(ctx, cuda, dense, problems * padded, sizeof *dense, &m->coefficients));
    LT_TRY(copy(ctx, cuda, used, (size_t)count + 1, sizeof *used, &m->stretches));
    LT_TRY(copy(ctx, cuda, begin, problems + 1, sizeof *begin, &m->begin));
done:
    free(dense);
    free(used);
    free(begin);
    return status;
}

static latent_status make_rbf(latent_context *ctx, lt_cuda *cuda, const lt_svm_machine_call *call,
                              machine *m) {
    latent_status status = LATENT_OK;
    double upload = 0;
    LT_TRY(lt_cuda_products_open(ctx, cuda));
    uint64_t bytes = lt_cuda_operand_bytes(m->precision, m->n, m->d), left = lt_cuda_memory_free(&cuda->base);
    if (bytes > left) {
        status = lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                         "%zu support vectors of %zu features take %.1f GiB as factors of matrix products; "
                         "device %d (%s) has %.1f GiB free",
                         m->n, m->d, (double)bytes / (1 << 30), cuda->device, cuda->name,
                         (double)left / (1 << 30));
        goto done;
    }
    LT_TRY(lt_cuda_operand_create(ctx, cuda, m->precision, m->n, m->d, &m->x));
    LT_TRY(lt_cuda_operand_fill(ctx, cuda, &call->vectors, call->order, call->mean, &m->x, &upload));
    LT_TRY(lt_cuda_room(ctx, cuda, m->n, sizeof(double), &m->norm));
    if (m->n > 0) {
        lt_launch_svm_lengths(cuda->stream, &m->x, m->n, m->norm);
        LT_LAUNCHED("svm_lengths");
    }
    LT_TRY(copy_coefficients(ctx, cuda, call, m));
    m->gamma = m->problems > 0 ? call->gamma[0] : 0;
    m->one_gamma = 1;
    for (int p = 0; p < m->problems; p++) {
        m->one_gamma = m->one_gamma && call->gamma[p] == m->gamma;
    }
    if (!m->one_gamma) {
        LT_TRY(copy(ctx, cuda, call->gamma, (size_t)m->problems, sizeof(double), &m->gammas));
    }
done:
    return status;
}

typedef struct normals {
    const machine *m;
    const double *coefficients; /* device [problems][n] */
    lt_cuda_convert piece;
} normals;

static latent_status add_normals(latent_context *ctx, lt_cuda *cuda, const lt_cuda_piece *piece, void *user) {
    normals *n = user;
    latent_status status = LATENT_OK;
    n->piece.x = piece->x;
    n->piece.first = piece->first;
    n->piece.count = piece->count;
    lt_launch_svm_normals(cuda->stream, &n->piece, n->coefficients, n->m->n, n->m->problems, n->m->w);
    LT_LAUNCHED("svm_normals");
done:
    return status;
}

/* w = sum of coefficient * vector as it came: in fp64 nothing is gained by a shift. */
static latent_status make_linear(latent_context *ctx, lt_cuda *cuda, const lt_svm_machine_call *call,
                                 machine *m) {
    latent_status status = LATENT_OK;
    size_t problems = (size_t)m->problems;
    double *coefficients = NULL, upload = 0;
    uint32_t *place = NULL;
    lt_svm_rows rows;
    LT_TRY(copy(ctx, cuda, call->coefficients, problems * m->n, sizeof(double), &coefficients));
    LT_TRY(lt_cuda_room(ctx, cuda, problems * m->d, sizeof(double), &m->w));
    LT_CUDA(cudaMemsetAsync(m->w, 0, problems * m->d * sizeof(double), cuda->stream));
    LT_TRY(lt_cuda_places(ctx, cuda, &call->vectors, call->order, &rows, &place));
    normals n = {m, coefficients, {.d = m->d, .stride = rows.stride, .place = place}};
    LT_TRY(lt_cuda_pieces(ctx, cuda, &rows, add_normals, &n, &upload));
    LT_TRY(lt_cuda_synchronize(ctx, &cuda->base));
done:
    lt_cuda_free(&cuda->base, coefficients);
    lt_cuda_free(&cuda->base, place);
    return status;
}

latent_status lt_cuda_machine_create(latent_context *ctx, lt_backend *backend,
                                     const lt_svm_machine_call *call, lt_svm_machine **out) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    machine *m = NULL;
    *out = NULL;
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    LT_TRY(lt_calloc(ctx, 1, sizeof *m, "the machine", (void **)&m));
    m->kernel = call->kernel;
    m->precision = call->precision;
    m->n = call->vectors.n;
    m->d = call->vectors.d;
    m->row = (m->n + 31) / 32 * 32;
    m->problems = call->problems;
    if (call->mean) {
        LT_TRY(lt_alloc(ctx, m->d * sizeof(float), "the mean", (void **)&m->mean));
        memcpy(m->mean, call->mean, m->d * sizeof(float));
    }
    LT_TRY(copy(ctx, cuda, call->rho, (size_t)m->problems, sizeof(double), &m->rho));
    LT_TRY(m->kernel == LT_SVM_LINEAR ? make_linear(ctx, cuda, call, m) : make_rbf(ctx, cuda, call, m));
    *out = (lt_svm_machine *)m;
    m = NULL;
done:
    lt_cuda_machine_free(backend, (lt_svm_machine *)m);
    return status;
}

/* What a batch needs on the device. */
typedef struct batch {
    size_t rows; /* at most */
    lt_cuda_operand x;
    double *norm, *decisions;
    float *k;
    float *copy; /* linear: rows of the host */
} batch;

static void batch_free(lt_cuda *cuda, batch *b) {
    lt_cuda_operand_free(cuda, &b->x);
    lt_cuda_free(&cuda->base, b->norm);
    lt_cuda_free(&cuda->base, b->decisions);
    lt_cuda_free(&cuda->base, b->k);
    lt_cuda_free(&cuda->base, b->copy);
}

static latent_status batch_create(latent_context *ctx, lt_cuda *cuda, const machine *m,
                                  const lt_svm_rows *rows, batch *b) {
    latent_status status = LATENT_OK;
    uint64_t left = lt_cuda_memory_free(&cuda->base);
    uint64_t each = lt_cuda_operand_bytes(m->precision, 1, m->d) + m->row * sizeof(float) +
                    ((size_t)m->problems + 1) * sizeof(double) +
                    (rows->on_backend ? 0 : rows->stride * sizeof(float));
    b->rows = m->kernel == LT_SVM_LINEAR ? LINEAR_BATCH : BATCH;
    while (b->rows > BATCH_MIN && b->rows * each > left / 2) {
        b->rows /= 2;
    }
    LT_TRY(lt_cuda_room(ctx, cuda, b->rows, (size_t)m->problems * sizeof(double), &b->decisions));
    if (m->kernel == LT_SVM_LINEAR && !rows->on_backend) {
        LT_TRY(lt_cuda_room(ctx, cuda, b->rows, rows->stride * sizeof(float), &b->copy));
    }
    if (m->kernel == LT_SVM_RBF) {
        LT_TRY(lt_cuda_operand_create(ctx, cuda, m->precision, b->rows, m->d, &b->x));
        LT_TRY(lt_cuda_room(ctx, cuda, b->rows, sizeof(double), &b->norm));
        LT_TRY(lt_cuda_room(ctx, cuda, b->rows, m->row * sizeof(float), &b->k));
    }
done:
    return status;
}

static latent_status decide_linear(latent_context *ctx, lt_cuda *cuda, const machine *m,
                                   const lt_svm_rows *part, const batch *b) {
    latent_status status = LATENT_OK;
    const float *x = part->x;
    if (b->copy) {
        LT_TRY(lt_cuda_upload(ctx, &cuda->base, b->copy, part->x,
                              ((part->n - 1) * part->stride + part->d) * sizeof(float)));
        x = b->copy;
    }
    lt_launch_svm_linear(cuda->stream, x, part->n, m->d, part->stride, m->w, m->rho, m->problems,
                         b->decisions);
    LT_LAUNCHED("svm_linear");
done:
    return status;
}

static latent_status decide_rbf(latent_context *ctx, lt_cuda *cuda, const machine *m, const lt_svm_rows *part,
                                batch *b) {
    latent_status status = LATENT_OK;
    double upload = 0;
    LT_TRY(lt_cuda_operand_fill(ctx, cuda, part, NULL, m->mean, &b->x, &upload));
    lt_launch_svm_lengths(cuda->stream, &b->x, part->n, b->norm);
    LT_LAUNCHED("svm_lengths");
    LT_TRY(lt_cuda_product(ctx, cuda, &b->x, 0, part->n, &m->x, 0, m->n, b->k, m->row));
    if (m->n > 0) {
        lt_cuda_block block = {m->kernel, m->gamma,  part->n, m->n,   m->row,
                               b->x.unit, m->x.unit, b->norm, m->norm};
        lt_launch_svm_rectangle(cuda->stream, &block, !m->one_gamma, LT_CUDA_NO_ROW, b->k);
        LT_LAUNCHED("svm_rectangle");
    }
    lt_cuda_decisions decisions = {.k = b->k,
                                   .m = part->n,
                                   .n = m->n,
                                   .row = m->row,
                                   .gamma = m->gammas,
                                   .problems = m->problems,
                                   .coefficients = m->coefficients,
                                   .stretches = m->stretches,
                                   .begin = m->begin,
                                   .rho = m->rho,
                                   .out = b->decisions};
    lt_launch_svm_decisions(cuda->stream, &decisions);
    LT_LAUNCHED("svm_decisions");
done:
    return status;
}

latent_status lt_cuda_machine_decide(latent_context *ctx, lt_backend *backend, lt_svm_machine *handle,
                                     const lt_svm_rows *rows, double *decisions) {
    lt_cuda *cuda = (lt_cuda *)backend;
    const machine *m = (const machine *)handle;
    latent_status status = LATENT_OK;
    size_t problems = (size_t)m->problems;
    batch b = {0};
    if (rows->n == 0 || problems == 0) {
        return LATENT_OK;
    }
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    LT_TRY(batch_create(ctx, cuda, m, rows, &b));
    for (size_t first = 0; first < rows->n; first += b.rows) {
        lt_svm_rows part = *rows;
        part.x = rows->x + first * rows->stride;
        part.n = rows->n - first < b.rows ? rows->n - first : b.rows;
        LT_TRY(m->kernel == LT_SVM_LINEAR ? decide_linear(ctx, cuda, m, &part, &b)
                                          : decide_rbf(ctx, cuda, m, &part, &b));
        LT_TRY(lt_cuda_download(ctx, backend, decisions + first * problems, b.decisions,
                                part.n * problems * sizeof(double)));
        if (ctx->interrupted) {
            status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted after %zu of %zu rows", first, rows->n);
            goto done;
        }
    }
done:
    batch_free(cuda, &b);
    return status;
}
