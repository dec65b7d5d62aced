/* host_direct.c: plain steps over all rows of a binary problem.
 *
 * A small problem's kernel is packed, so that it stays in the cache; rows of the fold that is left out are
 * not packed. A larger one works on the rows of a whole kernel matrix where they lie: both classes are
 * contiguous there, and its left-out rows have bound 0. At the end f is computed afresh; should the true gap
 * miss the tolerance, the steps go on from there.
 */
#include "svm/host.h"

#include <string.h>

enum { RESUMES = 3 };

/* Row `row` of K over the view's columns, only those that take part. */
static void pack_row(const lt_host_matrix *matrix, const lt_view *view, size_t row, size_t kept, float *to) {
    size_t t = 0, b = 0;
    for (int r = 0; r < 2; r++) {
        for (size_t c = view->columns.begin[r]; c < view->columns.end[r];) {
            size_t run, left = view->columns.end[r] - c;
            const float *from = lt_matrix_at(matrix, row, c, &run);
            run = run < left ? run : left;
            if (kept == view->n) {
                memcpy(to + t, from, run * sizeof *to);
            } else {
                for (size_t i = 0; i < run; i++) {
                    to[b] = from[i];
                    b += view->bound[t + i] > 0;
                }
            }
            t += run;
            c += run;
        }
    }
    for (size_t i = kept; i < lt_smo_padded(kept); i++) {
        to[i] = 0;
    }
}

static latent_status pack(const lt_solver *solver, lt_workspace *work) {
    lt_view *view = &work->view;
    lt_smo *smo = &work->smo;
    size_t count = 0, batch = lt_matrix_rows_max(solver->matrix, &view->columns);
    for (size_t t = 0; t < view->n; t++) {
        if (view->bound[t] > 0) {
            work->positions[count] = (uint32_t)t;
            work->order[count] = lt_view_row(view, t);
            smo->y[count] = view->y[t];
            smo->bound[count] = view->bound[t];
            smo->beta[count] = view->beta[t];
            smo->f[count] = view->f[t];
            count++;
        }
    }
    smo->n = count;
    smo->k = work->packed;
    smo->row = NULL;
    smo->begin[0] = smo->begin[1] = 0;
    smo->part = smo->stride = lt_smo_padded(count) + LT_SMO_LANES;
    for (size_t first = 0; first < count; first += batch) {
        batch = batch < count - first ? batch : count - first;
        latent_status status =
            lt_matrix_need(solver->ctx, solver->matrix, work->order + first, batch, &view->columns);
        if (status != LATENT_OK) {
            return status;
        }
        for (size_t a = first; a < first + batch; a++) {
            pack_row(solver->matrix, view, work->order[a], count, smo->k + a * smo->stride);
        }
    }
    return LATENT_OK;
}

static lt_svm_outcome run(const lt_solver *solver, lt_workspace *work, uint64_t cap, lt_svm_solution *out) {
    lt_smo *smo = &work->smo;
    lt_svm_outcome outcome = LT_SVM_SOLVED;
    double rise, fall;
    out->iterations = 0;
    for (int attempt = 0; attempt <= RESUMES; attempt++) {
        smo->tolerance = solver->call->tolerance;
        smo->iterations_max = cap - out->iterations;
        outcome = solver->call->shrinking
                      ? lt_smo_shrink(smo, &work->spare, work->room, work->order, &solver->ctx->interrupted)
                      : lt_smo_run(smo);
        out->iterations += smo->iterations;
        for (size_t a = 0; a < smo->n; a++) {
            smo->f[a] = smo->y[a] - lt_smo_sum(smo, a);
        }
        lt_smo_extremes(smo->n, smo->y, smo->bound, smo->beta, smo->f, &rise, &fall);
        out->gap = rise - fall;
        if (outcome != LT_SVM_SOLVED || out->gap < solver->call->tolerance) {
            return outcome;
        }
    }
    return LT_SVM_STALLED;
}

latent_status lt_solve_direct(const lt_solver *solver, lt_workspace *work, uint64_t cap,
                              lt_svm_solution *out) {
    lt_view *view = &work->view;
    latent_status status = pack(solver, work);
    size_t left_out = 0;
    if (status != LATENT_OK) {
        return status;
    }
    out->outcome = run(solver, work, cap, out);
    for (size_t a = 0; a < work->smo.n; a++) {
        view->beta[work->positions[a]] = work->smo.beta[a];
        view->f[work->positions[a]] = work->smo.f[a];
    }
    for (size_t t = 0; t < view->n; t++) {
        if (!(view->bound[t] > 0)) {
            work->positions[left_out++] = (uint32_t)t;
        }
    }
    return solver->call->gradient ? lt_view_refresh(solver, view, work->positions, left_out) : LATENT_OK;
}

/* The view's rows as positions of the matrix: the first class filled up to whole vectors by rows that cannot
 * move. */
latent_status lt_solve_in_place(const lt_solver *solver, lt_workspace *work, uint64_t cap,
                                lt_svm_solution *out) {
    lt_view *view = &work->view;
    lt_smo *smo = &work->smo;
    size_t part = lt_smo_padded(view->n0);
    smo->n = part + view->n - view->n0;
    smo->k = solver->matrix->k;
    smo->stride = solver->matrix->row;
    smo->row = work->positions;
    smo->part = part;
    memcpy(smo->begin, view->columns.begin, sizeof smo->begin);
    for (size_t i = 0; i < smo->n; i++) {
        size_t t = i < part ? i : i - part + view->n0;
        int filler = i >= view->n0 && i < part;
        work->positions[i] = lt_view_row(view, filler ? 0 : t);
        smo->y[i] = filler ? 1 : view->y[t];
        smo->bound[i] = filler ? 0 : view->bound[t];
        smo->beta[i] = filler ? 0 : view->beta[t];
        smo->f[i] = filler ? 0 : view->f[t];
    }
    out->outcome = run(solver, work, cap, out);
    for (size_t t = 0; t < view->n; t++) {
        size_t i = t < view->n0 ? t : t - view->n0 + part;
        view->beta[t] = smo->beta[i];
        view->f[t] = smo->f[i];
    }
    return LATENT_OK;
}
