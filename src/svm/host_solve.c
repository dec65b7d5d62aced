/* host_solve.c: all binary problems of one call, on a kernel matrix in host memory.
 *
 * With a whole matrix each thread takes the next problem that nobody has; the kernel is only read. With a
 * cache of tiles the problems follow one another and each uses all threads. A problem's result does not
 * depend on which thread solves it or when.
 */
#include "svm/host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t problem_rows(const lt_svm_problem *p) {
    return (size_t)(p->end[0] - p->begin[0]) + (p->end[1] - p->begin[1]);
}

/* Carves one block of memory; called once to count (memory NULL) and once to carve. The steps may see up to
 * a vector more rows than the view, and at least a working set. */
static size_t carve(lt_workspace *w, char *memory, size_t n, size_t room, int shrinking) {
    size_t at = 0, places = lt_smo_padded(n) + LT_SMO_LANES, small = lt_smo_padded(room);
    lt_smo *problems[2] = {&w->smo, &w->spare};
    places = places > small ? places : small;
    w->room = room;
#define CARVE(pointer, count)                                                                                \
    do {                                                                                                     \
        if (memory) {                                                                                        \
            (pointer) = (void *)(memory + at);                                                               \
        }                                                                                                    \
        at += ((count) * sizeof *(pointer) + 63) / 64 * 64;                                                  \
    } while (0)
    CARVE(w->view.y, places);
    CARVE(w->view.bound, places);
    CARVE(w->view.beta, places);
    CARVE(w->view.f, places);
    CARVE(w->packed, room * (small + LT_SMO_LANES));
    if (shrinking) {
        CARVE(w->spare.k, room * (small + LT_SMO_LANES));
    }
    for (int i = 0; i <= shrinking; i++) {
        size_t rows = i == 0 ? places : small;
        CARVE(problems[i]->y, rows);
        CARVE(problems[i]->bound, rows);
        CARVE(problems[i]->beta, rows);
        CARVE(problems[i]->f, rows);
        CARVE(problems[i]->may_rise, rows);
        CARVE(problems[i]->may_fall, rows);
        CARVE(problems[i]->diagonal, rows);
    }
    CARVE(w->positions, places);
    CARVE(w->order, 2 * places);
    CARVE(w->scale, LT_WORKING);
    CARVE(w->pointers, LT_WORKING);
    CARVE(w->chosen, n);
#undef CARVE
    return at;
}

static latent_status make_works(latent_context *ctx, const lt_svm_solve_call *call, int threads,
                                lt_workspace **out) {
    latent_status status = LATENT_OK;
    size_t n = 1, room;
    *out = NULL;
    for (int p = 0; p < call->count; p++) {
        size_t rows = problem_rows(&call->problems[p]);
        n = rows > n ? rows : n;
    }
    room = n < LT_DIRECT ? n : LT_DIRECT;
    room = room > LT_WORKING ? room : LT_WORKING;
    LT_TRY(lt_calloc(ctx, (size_t)threads, sizeof **out, "the solver", (void **)out));
    for (int t = 0; t < threads; t++) {
        size_t bytes = carve(&(*out)[t], NULL, n, room, call->shrinking != 0);
        LT_TRY(lt_aligned(ctx, bytes, 1, "the solver", &(*out)[t].memory));
        carve(&(*out)[t], (*out)[t].memory, n, room, call->shrinking != 0);
    }
done:
    return status;
}

/* Sets the view to a problem: labels, bounds, start values; f is y - K beta. Returns how many rows count. */
static latent_status begin_problem(const lt_solver *solver, lt_workspace *work, const lt_svm_problem *p,
                                   size_t *taking_part) {
    lt_view *v = &work->view;
    const lt_svm_solve_call *call = solver->call;
    size_t warm = 0;
    *taking_part = 0;
    v->problem = p;
    v->columns = (lt_columns){{p->begin[0], p->begin[1]}, {p->end[0], p->end[1]}};
    v->n = problem_rows(p);
    v->n0 = p->end[0] - p->begin[0];
    for (size_t t = 0; t < v->n; t++) {
        int second = t >= v->n0,
            out = call->fold && p->fold >= 0 && call->fold[lt_view_row(v, t)] == (uint8_t)p->fold;
        double alpha = call->warm && !out ? call->alpha[p->first + t] : 0;
        v->y[t] = second ? -1 : 1;
        v->bound[t] = out ? 0 : p->c[second];
        alpha = alpha < v->bound[t] ? alpha : v->bound[t];
        v->beta[t] = v->y[t] * alpha;
        v->f[t] = v->y[t];
        *taking_part += !out;
        warm += alpha != 0;
        work->order[t] = (uint32_t)t;
    }
    return warm > 0 ? lt_view_refresh(solver, v, work->order, v->n) : LATENT_OK;
}

static void end_problem(const lt_solver *solver, const lt_view *v, lt_svm_solution *out) {
    const lt_svm_solve_call *call = solver->call;
    out->rho = lt_smo_rho(v->n, v->y, v->bound, v->beta, v->f);
    out->objective = lt_smo_objective(v->n, v->y, v->beta, v->f);
    for (size_t t = 0; t < v->n; t++) {
        call->alpha[v->problem->first + t] = v->y[t] * v->beta[t];
        if (call->gradient) {
            call->gradient[v->problem->first + t] = -v->y[t] * v->f[t];
        }
    }
}

typedef struct solve_job {
    lt_solver solver;
    latent_status *status; /* [count] */
    int done;              /* problems; counted by all threads */
} solve_job;

static void solve_task(void *arg, int task, int thread) {
    solve_job *job = arg;
    const lt_solver *solver = &job->solver;
    const lt_svm_solve_call *call = solver->call;
    lt_workspace *work = &solver->works[thread];
    lt_svm_solution *out = &call->solutions[task];
    size_t rows = 0;
    memset(out, 0, sizeof *out);
    if (solver->ctx->interrupted) {
        return;
    }
    job->status[task] = begin_problem(solver, work, &call->problems[task], &rows);
    if (job->status[task] == LATENT_OK) {
        job->status[task] = rows <= LT_DIRECT ? lt_solve_direct(solver, work, call->iterations_max, out)
                            : solver->matrix->tiles
                                ? lt_solve_working(solver, work, call->iterations_max, out)
                                : lt_solve_in_place(solver, work, call->iterations_max, out);
    }
    if (job->status[task] == LATENT_OK) {
        end_problem(solver, &work->view, out);
    }
    int done = __atomic_add_fetch(&job->done, 1, __ATOMIC_RELAXED);
    if (thread == 0 && call->progress.call) {
        call->progress.call(call->progress.user, (uint64_t)done, (uint64_t)call->count);
    }
}

latent_status lt_host_solve(latent_context *ctx, lt_backend *backend, lt_svm_matrix *matrix,
                            const lt_svm_solve_call *call) {
    latent_status status = LATENT_OK;
    lt_host_matrix *m = (lt_host_matrix *)matrix;
    int threads = lt_threads(backend);
    solve_job job = {.solver = {ctx, m, call, NULL, m->tiles != NULL || call->count == 1}};
    LT_TRY(lt_calloc(ctx, (size_t)call->count, sizeof *job.status, "the solver", (void **)&job.status));
    LT_TRY(make_works(ctx, call, threads, &job.solver.works));
    if (job.solver.split) {
        for (int p = 0; p < call->count; p++) {
            solve_task(&job, p, 0);
        }
    } else {
        lt_parallel(backend, call->count, solve_task, &job);
    }
    for (int p = 0; p < call->count && status == LATENT_OK; p++) {
        status = job.status[p];
    }
    if (status == LATENT_OK && ctx->interrupted) {
        status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted after %d of %d binary problems", job.done,
                         call->count);
    }
done:
    for (int t = 0; job.solver.works && t < threads; t++) {
        free(job.solver.works[t].memory);
    }
    free(job.solver.works);
    free(job.status);
    return status;
}
