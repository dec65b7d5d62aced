/* host_machine.c: decision values of new rows in host memory.
 *
 * RBF: new rows in blocks against all support vectors in one matrix product, exp() over it, then each
 * problem's coefficients; a problem uses the vectors of two classes, so its coefficients are kept as the
 * stretches that hold any. Linear: the vectors of a problem add up to one normal vector w, and its decision
 * value is one product. Both subtract a mean first, which the kernel does not feel (RBF) or which the
 * threshold takes back (linear): products of centered rows lose fewer bits.
 */
#include "svm/host.h"

#include <stdlib.h>
#include <string.h>

enum { STRETCH = 256 }; /* vectors */

typedef struct machine {
    lt_svm_kernel kernel;
    size_t n, d, stride; /* of the vectors; linear: n is the number of problems, the vectors are the w */
    float *vectors;      /* [n][stride], centered */
    float *norm;         /* [n] */
    float *mean;         /* [d] */
    int problems;
    int one_gamma; /* all problems have the same */
    double *gamma, *rho;
    double *coefficients; /* [problems][n]; RBF */
    uint8_t *stretches;   /* [problems][stretches of n]: 1 when a coefficient in it is not 0 */
} machine;

static size_t stretch_count(const machine *m) {
    return (m->n + STRETCH - 1) / STRETCH;
}

void lt_host_machine_free(lt_backend *backend, lt_svm_machine *handle) {
    machine *m = (machine *)handle;
    (void)backend;
    if (m) {
        free(m->vectors);
        free(m->norm);
        free(m->mean);
        free(m->gamma);
        free(m->rho);
        free(m->coefficients);
        free(m->stretches);
        free(m);
    }
}

static latent_status copy_doubles(latent_context *ctx, const double *from, size_t count, double **out) {
    latent_status status = lt_alloc(ctx, count * sizeof(double), "coefficients", (void **)out);
    if (status == LATENT_OK) {
        memcpy(*out, from, count * sizeof(double));
    }
    return status;
}

static latent_status make_rbf(latent_context *ctx, lt_backend *backend, const lt_svm_machine_call *call,
                              machine *m) {
    latent_status status = LATENT_OK;
    m->n = call->vectors.n;
    LT_TRY(lt_aligned_raw(ctx, m->n, m->stride * sizeof(float), "the support vectors", &m->vectors));
    LT_TRY(lt_aligned(ctx, m->n, sizeof(float), "squared lengths", &m->norm));
    lt_center_rows(backend, &call->vectors, call->order, m->mean, m->vectors, m->stride);
    LT_TRY(lt_norms(ctx, backend, m->vectors, m->n, m->d, m->stride, call->order, m->norm));
    LT_TRY(copy_doubles(ctx, call->coefficients, (size_t)m->problems * m->n, &m->coefficients));
    LT_TRY(lt_calloc(ctx, (size_t)m->problems, stretch_count(m), "coefficients", (void **)&m->stretches));
    m->one_gamma = 1;
    for (int p = 0; p < m->problems; p++) {
        m->one_gamma = m->one_gamma && m->gamma[p] == m->gamma[0];
        for (size_t i = 0; i < m->n; i++) {
            if (m->coefficients[(size_t)p * m->n + i] != 0) {
                m->stretches[(size_t)p * stretch_count(m) + i / STRETCH] = 1;
            }
        }
    }
done:
    return status;
}

/* w = sum of coefficient * vector, in fp64; the decision value w.x - rho is w.(x - mean) - (rho - w.mean). */
static latent_status make_linear(latent_context *ctx, const lt_svm_machine_call *call, machine *m) {
    latent_status status = LATENT_OK;
    double *w = NULL;
    m->n = (size_t)m->problems;
    LT_TRY(lt_aligned(ctx, m->n, m->stride * sizeof(float), "the normal vectors", &m->vectors));
    LT_TRY(lt_alloc(ctx, m->d * sizeof *w, "a normal vector", (void **)&w));
    for (int p = 0; p < m->problems; p++) {
        memset(w, 0, m->d * sizeof *w);
        for (size_t i = 0; i < call->vectors.n; i++) {
            double coefficient = call->coefficients[(size_t)p * call->vectors.n + i];
            const float *x = call->vectors.x + (call->order ? call->order[i] : i) * call->vectors.stride;
            for (size_t c = 0; coefficient != 0 && c < m->d; c++) {
                w[c] += coefficient * (double)x[c];
            }
        }
        for (size_t c = 0; c < m->d; c++) {
            float *to = m->vectors + (size_t)p * m->stride + c;
            *to = (float)w[c];
            m->rho[p] -= (double)*to * (double)m->mean[c];
        }
    }
done:
    free(w);
    return status;
}

latent_status lt_host_machine_create(latent_context *ctx, lt_backend *backend,
                                     const lt_svm_machine_call *call, lt_svm_machine **out) {
    latent_status status = LATENT_OK;
    machine *m = NULL;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *m, "the machine", (void **)&m));
    m->kernel = call->kernel;
    m->d = call->vectors.d;
    m->stride = lt_row_stride(m->d);
    m->problems = call->problems;
    LT_TRY(lt_calloc(ctx, m->d, sizeof(float), "the mean", (void **)&m->mean));
    if (call->mean) {
        memcpy(m->mean, call->mean, m->d * sizeof(float));
    }
    LT_TRY(copy_doubles(ctx, call->rho, (size_t)m->problems, &m->rho));
    if (m->kernel == LT_SVM_LINEAR) {
        LT_TRY(make_linear(ctx, call, m));
    } else {
        LT_TRY(copy_doubles(ctx, call->gamma, (size_t)m->problems, &m->gamma));
        LT_TRY(make_rbf(ctx, backend, call, m));
    }
    *out = (lt_svm_machine *)m;
    m = NULL;
done:
    lt_host_machine_free(backend, (lt_svm_machine *)m);
    return status;
}

typedef struct decide_job {
    const machine *m;
    float *products; /* [rows][row] */
    float *spare;    /* [threads][row] kernel values, where problems differ in gamma */
    size_t row;
    const float *norms; /* [rows] */
    double *decisions;  /* [rows][problems] */
} decide_job;

static double decide_one(const machine *m, int p, const float *k) {
    const double *coefficients = m->coefficients + (size_t)p * m->n;
    const uint8_t *used = m->stretches + (size_t)p * stretch_count(m);
    double sum = 0;
    for (size_t s = 0; s < stretch_count(m); s++) {
        size_t first = s * STRETCH, count = m->n - first < STRETCH ? m->n - first : STRETCH;
        if (used[s]) {
            sum += lt_dot(k + first, coefficients + first, count);
        }
    }
    return sum - m->rho[p];
}

/* One new row: products to squared distances, to kernel values, to decision values. */
static void decide_task(void *arg, int task, int thread) {
    const decide_job *job = arg;
    const machine *m = job->m;
    float *products = job->products + (size_t)task * job->row;
    double *decisions = job->decisions + (size_t)task * (size_t)m->problems;
    if (m->kernel == LT_SVM_LINEAR) {
        for (int p = 0; p < m->problems; p++) {
            decisions[p] = (double)products[p] - m->rho[p];
        }
        return;
    }
    float *k = m->one_gamma ? products : job->spare + (size_t)thread * job->row;
    lt_squared_distances(m->n, job->norms[task], m->norm, products, products);
    for (int p = 0; p < m->problems; p++) {
        if (p == 0 || !m->one_gamma) {
            lt_kernel_from_distances(m->gamma[p], m->n, products, k);
        }
        decisions[p] = decide_one(m, p, k);
    }
}

/* Rows to a block: their products stay within about 64 MB. */
static size_t block_rows(const machine *m, size_t row) {
    size_t rows = ((size_t)1 << 24) / (row > m->stride ? row : m->stride);
    return rows < 16 ? 16 : rows > LT_BLOCK ? LT_BLOCK : rows;
}

latent_status lt_host_machine_decide(latent_context *ctx, lt_backend *backend, lt_svm_machine *handle,
                                     const lt_svm_rows *rows, double *decisions) {
    latent_status status = LATENT_OK;
    const machine *m = (const machine *)handle;
    size_t row = (m->n + 15) / 16 * 16, block = block_rows(m, row);
    float *x = NULL, *norms = NULL;
    decide_job job = {.m = m, .row = row};
    LT_TRY(lt_aligned(ctx, block, m->stride * sizeof(float), "a block of rows", &x));
    LT_TRY(lt_aligned(ctx, block, sizeof(float), "squared lengths", &norms));
    LT_TRY(lt_aligned(ctx, block, row * sizeof(float), "kernel products", &job.products));
    LT_TRY(lt_aligned(ctx, (size_t)lt_threads(backend), row * sizeof(float), "kernel values", &job.spare));
    job.norms = norms;
    for (size_t first = 0; first < rows->n; first += block) {
        lt_svm_rows part = *rows;
        part.x = rows->x + first * rows->stride;
        part.n = rows->n - first < block ? rows->n - first : block;
        lt_center_rows(backend, &part, NULL, m->mean, x, m->stride);
        if (m->kernel == LT_SVM_RBF) {
            LT_TRY(lt_norms(ctx, backend, x, part.n, m->d, m->stride, NULL, norms));
        }
        LT_TRY(backend->type->gemm_nt(ctx, backend, part.n, m->n, m->d, x, m->stride, m->vectors, m->stride,
                                      job.products, row));
        job.decisions = decisions + first * (size_t)m->problems;
        lt_parallel(backend, (int)part.n, decide_task, &job);
        if (ctx->interrupted) {
            status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted after %zu of %zu rows", first, rows->n);
            goto done;
        }
    }
done:
    free(x);
    free(norms);
    free(job.products);
    free(job.spare);
    return status;
}
