/* host_working.c: a large binary problem in two levels, for when the kernel matrix is not whole: a step needs
 * two rows of it, and rows are cheap only when many are computed at once.
 *
 * The outer level holds beta and f of all rows. It takes a working set of the rows that violate optimality
 * most, half from the top of those that may rise and half from the bottom of those that may fall, together
 * with rows of the last set that lie between their bounds; the inner level (smo.c) solves that set on its
 * packed kernel; then f of all rows is updated with one pass over the set's rows of K. Every set holds the
 * pair of the largest gap, so every round makes progress, and the end is LIBSVM's: the gap over all rows is
 * under the tolerance. Rows at their bounds are simply not chosen, which is what shrinking achieves
 * elsewhere. f is summed in fp64 from kernel values that do not change, so it is not computed afresh at the
 * end: that would compute every row once more.
 */
#include "svm/host.h"

#include <math.h>
#include <string.h>

enum { PART = LT_TILE, STEPS_PER_ROW = 32 };

static int may_rise(const lt_view *v, size_t t) {
    return v->beta[t] < (v->y[t] > 0 ? v->bound[t] : 0);
}

static int may_fall(const lt_view *v, size_t t) {
    return v->beta[t] > (v->y[t] > 0 ? 0 : -v->bound[t]);
}

/* Does a come before b? By value, larger first (sign +1) or smaller first (-1); equal ones by place. */
static int before(const double *f, double sign, uint32_t a, uint32_t b) {
    double x = sign * f[a], y = sign * f[b];
    return x > y || (x == y && a < b);
}

static void swap(uint32_t *a, uint32_t *b) {
    uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

static void sink(const double *f, double sign, uint32_t *heap, size_t count, size_t at) {
    for (;;) {
        size_t worst = at, child = 2 * at + 1;
        for (size_t c = child; c < child + 2 && c < count; c++) {
            if (before(f, sign, heap[worst], heap[c])) {
                worst = c;
            }
        }
        if (worst == at) {
            return;
        }
        swap(&heap[at], &heap[worst]);
        at = worst;
    }
}

/* The first `wanted` of list[0..count) in the order of before(), sorted, to its front; returns how many. A
 * heap of the best so far, its worst on top, meets the others one by one. */
static size_t first_of(const double *f, double sign, uint32_t *list, size_t count, size_t wanted) {
    wanted = wanted < count ? wanted : count;
    for (size_t at = wanted / 2; at-- > 0;) {
        sink(f, sign, list, wanted, at);
    }
    for (size_t i = wanted; wanted > 0 && i < count; i++) {
        if (before(f, sign, list[i], list[0])) {
            swap(&list[0], &list[i]);
            sink(f, sign, list, wanted, 0);
        }
    }
    for (size_t left = wanted; left > 1; left--) {
        swap(&list[0], &list[left - 1]);
        sink(f, sign, list, left - 1, 0);
    }
    return wanted;
}

/* Adds rows of a list to the set, those already in it passed over. */
static size_t add(lt_workspace *work, const uint32_t *list, size_t listed, size_t count, size_t room) {
    for (size_t i = 0; i < listed && room > 0; i++) {
        if (!work->chosen[list[i]]) {
            work->chosen[list[i]] = 1;
            work->positions[count++] = list[i];
            room--;
        }
    }
    return count;
}

/* Fills work->positions with the next working set; the `last` rows of the old one are there. Three quarters
 * may stay, which is what keeps rounds few: rows between their bounds must be balanced against each other. */
static size_t choose(lt_workspace *work, size_t last, size_t size) {
    const lt_view *v = &work->view;
    uint32_t *list = work->order;
    size_t count = 0, kept = 0;
    memset(work->chosen, 0, v->n);
    for (size_t i = 0; i < last && kept < size * 3 / 4; i++) {
        if (may_rise(v, work->positions[i]) && may_fall(v, work->positions[i])) {
            list[kept++] = work->positions[i];
        }
    }
    count = add(work, list, kept, 0, size);
    for (int side = 0; side < 2; side++) {
        size_t candidates = 0, room = size - count;
        for (size_t t = 0; t < v->n; t++) {
            if (side == 0 ? may_rise(v, t) : may_fall(v, t)) {
                list[candidates++] = (uint32_t)t;
            }
        }
        /* Enough that rows already in the set can be passed over. */
        candidates = first_of(v->f, side == 0 ? 1 : -1, list, candidates, size);
        count = add(work, list, candidates, count, side == 0 ? (room + 1) / 2 : room);
    }
    return count;
}

/* The kernel of the working set among itself, and its part of the problem. */
static void pack(const lt_solver *solver, lt_workspace *work, size_t count) {
    lt_smo *smo = &work->smo;
    const lt_view *v = &work->view;
    smo->n = count;
    smo->k = work->packed;
    smo->row = NULL;
    smo->begin[0] = smo->begin[1] = 0;
    smo->part = smo->stride = lt_smo_padded(count);
    for (size_t a = 0; a < count; a++) {
        size_t row = lt_view_row(v, work->positions[a]), run;
        float *to = smo->k + a * smo->stride;
        for (size_t b = 0; b < count; b++) {
            to[b] = *lt_matrix_at(solver->matrix, row, lt_view_row(v, work->positions[b]), &run);
        }
        for (size_t b = count; b < smo->stride; b++) {
            to[b] = 0;
        }
        size_t t = work->positions[a];
        smo->y[a] = v->y[t];
        smo->bound[a] = v->bound[t];
        smo->beta[a] = v->beta[t];
        smo->f[a] = v->f[t];
    }
}

typedef struct update_job {
    const lt_solver *solver;
    lt_view *view;
    const uint32_t *positions;
    const double *scale;
    size_t count;
    lt_workspace *own; /* whose pointers to use when the loops are not split */
    int parts[2];
} update_job;

/* f -= rows of K, over one part of one of the two ranges of columns. */
static void update_task(void *arg, int task, int thread) {
    const update_job *job = arg;
    lt_view *v = job->view;
    const float **pointers = (job->own ? job->own : &job->solver->works[thread])->pointers;
    int r = task >= job->parts[0];
    size_t part = (size_t)(r ? task - job->parts[0] : task);
    size_t c = (v->columns.begin[r] / PART + part) * PART, end = c + PART;
    c = c > v->columns.begin[r] ? c : v->columns.begin[r];
    end = end < v->columns.end[r] ? end : v->columns.end[r];
    for (size_t i = 0; i < job->count; i++) {
        size_t run;
        pointers[i] = lt_matrix_at(job->solver->matrix, lt_view_row(v, job->positions[i]), c, &run);
    }
    size_t t = r ? v->n0 + c - v->columns.begin[1] : c - v->columns.begin[0];
    lt_subtract_rows(v->f + t, end - c, pointers, job->scale, job->count);
}

static void update(const lt_solver *solver, lt_workspace *work, size_t count) {
    lt_view *v = &work->view;
    update_job job = {solver, v, work->positions, work->scale, count, solver->split ? NULL : work, {0, 0}};
    for (int r = 0; r < 2; r++) {
        if (v->columns.end[r] > v->columns.begin[r]) {
            job.parts[r] = (int)((v->columns.end[r] - 1) / PART - v->columns.begin[r] / PART + 1);
        }
    }
    int tasks = job.parts[0] + job.parts[1];
    lt_parallel_if(solver->matrix->backend, solver->split && count * v->n >= LT_SPLIT, tasks, update_task,
                   &job);
}

/* Takes the set's new beta; what did not move needs no update. Returns how many rows moved. */
static size_t take_moves(lt_workspace *work) {
    lt_view *v = &work->view;
    size_t moved = 0;
    for (size_t a = 0; a < work->smo.n; a++) {
        uint32_t t = work->positions[a];
        double move = work->smo.beta[a] - v->beta[t];
        v->beta[t] = work->smo.beta[a];
        if (move != 0) {
            work->order[moved] = t;
            work->scale[moved++] = move;
        }
    }
    return moved;
}

/* One round; *outcome is LT_SVM_CAPPED while there is more to do. */
static latent_status round_once(const lt_solver *solver, lt_workspace *work, uint64_t cap, size_t size,
                                size_t *last, lt_svm_solution *out) {
    lt_view *v = &work->view;
    lt_smo *smo = &work->smo;
    double tolerance = solver->call->tolerance;
    *last = choose(work, *last, size);
    for (size_t a = 0; a < *last; a++) {
        work->order[a] = lt_view_row(v, work->positions[a]);
    }
    latent_status status = lt_matrix_need(solver->ctx, solver->matrix, work->order, *last, &v->columns);
    if (status != LATENT_OK) {
        return status;
    }
    pack(solver, work, *last);
    uint64_t left = cap - out->iterations, most = (uint64_t)STEPS_PER_ROW * smo->n;
    smo->iterations_max = left < most ? left : most;
    smo->tolerance = out->gap * 0.1 > tolerance * 0.5 ? out->gap * 0.1 : tolerance * 0.5;
    lt_svm_outcome outcome = lt_smo_run(smo);
    out->iterations += smo->iterations;
    size_t moved = take_moves(work);
    /* The moved rows, at the front of the list where update() looks. */
    uint32_t set[LT_WORKING];
    memcpy(set, work->positions, *last * sizeof *set);
    memcpy(work->positions, work->order, moved * sizeof *set);
    update(solver, work, moved);
    memcpy(work->positions, set, *last * sizeof *set);
    out->outcome = outcome == LT_SVM_STALLED && moved == 0 ? LT_SVM_STALLED : LT_SVM_CAPPED;
    return LATENT_OK;
}

static void measure(const lt_view *v, lt_svm_solution *out) {
    double rise, fall;
    lt_smo_extremes(v->n, v->y, v->bound, v->beta, v->f, &rise, &fall);
    out->gap = rise - fall;
}

latent_status lt_solve_working(const lt_solver *solver, lt_workspace *work, uint64_t cap,
                               lt_svm_solution *out) {
    latent_status status = LATENT_OK;
    size_t size = lt_matrix_rows_max(solver->matrix, &work->view.columns), last = 0;
    size = size < LT_WORKING ? size : LT_WORKING;
    out->iterations = 0;
    out->outcome = LT_SVM_CAPPED;
    measure(&work->view, out);
    while (out->gap >= solver->call->tolerance && out->iterations < cap && out->outcome != LT_SVM_STALLED &&
           !solver->ctx->interrupted) {
        LT_TRY(round_once(solver, work, cap, size, &last, out));
        measure(&work->view, out);
    }
    out->outcome = out->gap < solver->call->tolerance ? LT_SVM_SOLVED : out->outcome;
done:
    return status;
}
