/* host_sums.c: K times coefficients: f of rows afresh, and decision values of the training rows.
 *
 * A row's sum goes over columns in steps that end where tiles end, so it has the same bits whether the
 * matrix is whole or not.
 */
#include "svm/host.h"

#include <stdlib.h>
#include <string.h>

/* sum over the columns of K[row][c] * weights[c - begin] */
static double row_sum(const lt_host_matrix *matrix, size_t row, size_t begin, size_t end,
                      const double *weights) {
    double sum = 0;
    for (size_t c = begin; c < end;) {
        size_t run, step = LT_TILE - c % LT_TILE;
        const float *k = lt_matrix_at(matrix, row, c, &run);
        step = step < end - c ? step : end - c;
        sum += lt_dot(k, weights + (c - begin), step);
        c += step;
    }
    return sum;
}

typedef struct refresh_job {
    const lt_solver *solver;
    lt_view *view;
    const uint32_t *positions;
} refresh_job;

static void refresh_task(void *arg, int task, int thread) {
    const refresh_job *job = arg;
    lt_view *v = job->view;
    size_t t = job->positions[task], row = lt_view_row(v, t);
    const lt_host_matrix *m = job->solver->matrix;
    (void)thread;
    v->f[t] = v->y[t] - row_sum(m, row, v->columns.begin[0], v->columns.end[0], v->beta) -
              row_sum(m, row, v->columns.begin[1], v->columns.end[1], v->beta + v->n0);
}

latent_status lt_view_refresh(const lt_solver *solver, lt_view *view, const uint32_t *positions,
                              size_t count) {
    latent_status status = LATENT_OK;
    size_t batch = lt_matrix_rows_max(solver->matrix, &view->columns);
    uint32_t *rows = NULL;
    batch = batch < LT_BLOCK ? batch : LT_BLOCK;
    if (solver->matrix->tiles) {
        LT_TRY(lt_alloc(solver->ctx, batch * sizeof *rows, "row numbers", (void **)&rows));
    }
    for (size_t first = 0; first < count; first += batch) {
        size_t part = batch < count - first ? batch : count - first;
        for (size_t i = 0; rows && i < part; i++) {
            rows[i] = lt_view_row(view, positions[first + i]);
        }
        LT_TRY(lt_matrix_need(solver->ctx, solver->matrix, rows, part, &view->columns));
        refresh_job job = {solver, view, positions + first};
        lt_parallel_if(solver->matrix->backend, solver->split && part * view->n >= LT_SPLIT, (int)part,
                       refresh_task, &job);
    }
done:
    free(rows);
    return status;
}

typedef struct sums_job {
    lt_host_matrix *matrix;
    const lt_svm_sums_call *call;
    const double *beta; /* flat: y * alpha */
    size_t first;       /* row of task 0 */
} sums_job;

/* One row against all problems. */
static void sums_task(void *arg, int task, int thread) {
    const sums_job *job = arg;
    const lt_svm_sums_call *call = job->call;
    size_t row = job->first + (size_t)task;
    (void)thread;
    for (int p = 0; p < call->count; p++) {
        const lt_svm_problem *problem = &call->problems[p];
        if (call->fold && call->fold[row] != (uint8_t)problem->fold) {
            continue;
        }
        const double *beta = job->beta + problem->first;
        call->sums[(size_t)p * job->matrix->n + row] =
            row_sum(job->matrix, row, problem->begin[0], problem->end[0], beta) +
            row_sum(job->matrix, row, problem->begin[1], problem->end[1],
                    beta + (problem->end[0] - problem->begin[0]));
    }
}

latent_status lt_host_sums(latent_context *ctx, lt_backend *backend, lt_svm_matrix *matrix,
                           const lt_svm_sums_call *call) {
    latent_status status = LATENT_OK;
    lt_host_matrix *m = (lt_host_matrix *)matrix;
    double *beta = NULL;
    size_t places = 0, batch;
    uint32_t rows[LT_BLOCK];
    lt_columns all = {{0, m->n}, {m->n, m->n}};
    for (int p = 0; p < call->count; p++) {
        const lt_svm_problem *q = &call->problems[p];
        size_t end = q->first + (q->end[0] - q->begin[0]) + (q->end[1] - q->begin[1]);
        places = end > places ? end : places;
    }
    LT_TRY(lt_alloc(ctx, places * sizeof *beta, "coefficients", (void **)&beta));
    memcpy(beta, call->alpha, places * sizeof *beta);
    for (int p = 0; p < call->count; p++) {
        const lt_svm_problem *q = &call->problems[p];
        size_t n0 = q->end[0] - q->begin[0], n1 = q->end[1] - q->begin[1];
        for (size_t t = n0; t < n0 + n1; t++) {
            beta[q->first + t] = -call->alpha[q->first + t];
        }
    }
    batch = lt_matrix_rows_max(m, &all);
    batch = batch < LT_BLOCK ? batch : LT_BLOCK;
    for (size_t first = 0; first < m->n; first += batch) {
        size_t part = batch < m->n - first ? batch : m->n - first;
        for (size_t i = 0; i < part; i++) {
            rows[i] = (uint32_t)(first + i);
        }
        LT_TRY(lt_matrix_need(ctx, m, rows, part, &all));
        sums_job job = {m, call, beta, first};
        lt_parallel_if(backend, part * m->n >= LT_SPLIT, (int)part, sums_task, &job);
        if (ctx->interrupted) {
            status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted while decision values were computed");
            goto done;
        }
    }
done:
    free(beta);
    return status;
}
