/* svm_solver.c: a group of problems on one matrix, from start values to solutions.
 *
 * Launches make a limited number of steps each, so that an interrupt is heard and a screen on the same card
 * goes on. When all problems have ended, f is computed afresh from K, and what is said of a solution is said
 * from that; a problem whose true gap is not under the tolerance goes on from the fresh f.
 */
#include "backend/cuda/svm_cuda.h"

#include <stdlib.h>
#include <string.h>

enum { RESUMES = 4, BUDGET = 1 << 16, BUDGET_MIN = 256 };

typedef struct solver {
    latent_context *ctx;
    lt_cuda *cuda;
    const lt_cuda_group *group;
    const lt_svm_solve_call *call;
    lt_cuda_solver there;   /* what the kernels see */
    lt_cuda_problem *table; /* host [count] */
    uint32_t *active;       /* host [count] */
    double *flat;           /* host [places] */
    size_t places;
    uint32_t rows_max;
    size_t shared; /* bytes of shared memory that a block may have */
} solver;

size_t lt_cuda_group_table(const lt_cuda_group *group, lt_cuda_problem *table) {
    size_t places = 0;
    for (int g = 0; g < group->count; g++) {
        const lt_svm_problem *p = &group->problems[group->which[g]];
        uint32_t n0 = p->end[0] - p->begin[0], n = n0 + (p->end[1] - p->begin[1]);
        table[g] = (lt_cuda_problem){.begin = {group->own ? 0 : p->begin[0], group->own ? n0 : p->begin[1]},
                                     .n0 = n0,
                                     .n = n,
                                     .first = places,
                                     .c = {p->c[0], p->c[1]},
                                     .fold = group->fold ? p->fold : -1,
                                     .outcome = LT_CUDA_RUNNING};
        places += n;
    }
    return places;
}

static int left_out(const lt_cuda_group *group, const lt_svm_problem *p, uint32_t t) {
    uint32_t n0 = p->end[0] - p->begin[0], row = t < n0 ? p->begin[0] + t : p->begin[1] + (t - n0);
    return group->fold && p->fold >= 0 && group->fold[row] == (uint8_t)p->fold;
}

/* beta = y*alpha of the start values, or with `labels` y itself, which is f where all alphas are 0. Returns
 * how many are not 0. */
static size_t start_values(solver *s, int labels) {
    size_t count = 0;
    for (int g = 0; g < s->group->count; g++) {
        const lt_svm_problem *p = &s->group->problems[s->group->which[g]];
        const lt_cuda_problem *q = &s->table[g];
        for (uint32_t t = 0; t < q->n; t++) {
            double c = q->c[t >= q->n0], y = t < q->n0 ? 1 : -1, alpha = 0;
            if (s->call->warm && !left_out(s->group, p, t)) {
                alpha = s->call->alpha[p->first + t];
                alpha = alpha < c ? alpha : c;
            }
            s->flat[q->first + t] = labels ? y : y * alpha;
            count += alpha != 0;
        }
    }
    return count;
}

static latent_status upload_fold(solver *s) {
    latent_context *ctx = s->ctx;
    lt_cuda *cuda = s->cuda;
    latent_status status = LATENT_OK;
    const lt_cuda_part *m = &s->group->matrix;
    uint8_t *there = NULL;
    size_t at = 0;
    if (!s->group->fold) {
        return LATENT_OK;
    }
    LT_TRY(lt_cuda_room(ctx, cuda, m->side, 1, &there));
    s->there.fold = there;
    for (int r = 0; r < m->ranges; r++) {
        size_t count = m->end[r] - m->begin[r];
        LT_TRY(lt_cuda_upload(ctx, &cuda->base, there + at, s->group->fold + m->begin[r], count));
        at += count;
    }
done:
    return status;
}

static latent_status begin(solver *s) {
    latent_context *ctx = s->ctx;
    lt_cuda *cuda = s->cuda;
    latent_status status = LATENT_OK;
    size_t count = (size_t)s->group->count;
    int shared = 0;
    LT_TRY(lt_calloc(ctx, count, sizeof *s->table, "problems", (void **)&s->table));
    LT_TRY(lt_calloc(ctx, count, sizeof *s->active, "problems", (void **)&s->active));
    s->places = lt_cuda_group_table(s->group, s->table);
    for (size_t g = 0; g < count; g++) {
        s->rows_max = s->table[g].n > s->rows_max ? s->table[g].n : s->rows_max;
    }
    LT_TRY(lt_alloc(ctx, s->places * sizeof *s->flat + 1, "alphas", (void **)&s->flat));
    LT_TRY(lt_cuda_room(ctx, cuda, count, sizeof *s->table, &s->there.problems));
    LT_TRY(lt_cuda_room(ctx, cuda, count, sizeof *s->active, &s->there.active));
    LT_TRY(lt_cuda_room(ctx, cuda, s->places, sizeof(double), &s->there.beta));
    LT_TRY(lt_cuda_room(ctx, cuda, s->places, sizeof(double), &s->there.f));
    LT_TRY(upload_fold(s));
    LT_CUDA(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, cuda->device));
    s->shared = (size_t)shared;
    s->there.k = s->group->matrix.k;
    s->there.row = s->group->matrix.row;
    s->there.diagonal = s->group->kernel == LT_SVM_LINEAR ? s->group->matrix.norm : NULL;
    s->there.tolerance = s->call->tolerance;
    s->there.iterations_max = s->call->iterations_max;
    LT_TRY(lt_cuda_upload(ctx, &cuda->base, s->there.problems, s->table, count * sizeof *s->table));
    size_t warm = start_values(s, 0);
    LT_TRY(lt_cuda_upload(ctx, &cuda->base, s->there.beta, s->flat, s->places * sizeof(double)));
    if (warm > 0) {
        lt_launch_svm_gradients(cuda->stream, &s->there, s->group->count, s->rows_max);
        LT_LAUNCHED("svm_gradients");
    } else {
        start_values(s, 1);
        LT_TRY(lt_cuda_upload(ctx, &cuda->base, s->there.f, s->flat, s->places * sizeof(double)));
    }
done:
    return status;
}

static void end(solver *s) {
    lt_backend *backend = &s->cuda->base;
    lt_cuda_free(backend, s->there.problems);
    lt_cuda_free(backend, (void *)s->there.active);
    lt_cuda_free(backend, (void *)s->there.fold);
    lt_cuda_free(backend, s->there.beta);
    lt_cuda_free(backend, s->there.f);
    free(s->table);
    free(s->active);
    free(s->flat);
}

/* The running problems of up to, or of more than, LT_CUDA_SMO_ROWS rows; *most: the rows of the largest. */
static int gather_active(solver *s, int large, uint32_t *most) {
    int count = 0;
    *most = 0;
    for (int g = 0; g < s->group->count; g++) {
        const lt_cuda_problem *q = &s->table[g];
        if (q->outcome == LT_CUDA_RUNNING && (q->n > LT_CUDA_SMO_ROWS) == large) {
            s->active[count++] = (uint32_t)g;
            *most = q->n > *most ? q->n : *most;
        }
    }
    return count;
}

static latent_status launch(solver *s, int large) {
    latent_context *ctx = s->ctx;
    lt_cuda *cuda = s->cuda;
    latent_status status = LATENT_OK;
    uint32_t most;
    s->there.count = gather_active(s, large, &most);
    if (s->there.count == 0) {
        goto done;
    }
    LT_TRY(lt_cuda_upload(ctx, &cuda->base, (void *)s->there.active, s->active,
                          (size_t)s->there.count * sizeof *s->active));
    if (large) {
        uint64_t budget = (uint64_t)BUDGET * LT_CUDA_SMO_ROWS / most;
        s->there.budget = budget > BUDGET_MIN ? budget : BUDGET_MIN;
        lt_launch_svm_large(cuda->stream, &s->there);
        LT_LAUNCHED("svm_large");
    } else {
        s->there.budget = BUDGET;
        LT_CUDA(lt_launch_svm_smo(cuda->stream, &s->there, most, s->shared));
        LT_LAUNCHED("svm_smo");
    }
done:
    return status;
}

/* Steps until no problem runs. */
static latent_status run(solver *s) {
    latent_context *ctx = s->ctx;
    latent_status status = LATENT_OK;
    size_t bytes = (size_t)s->group->count * sizeof *s->table;
    for (int running = s->group->count; running > 0;) {
        LT_TRY(launch(s, 0));
        LT_TRY(launch(s, 1));
        LT_TRY(lt_cuda_download(ctx, &s->cuda->base, s->table, s->there.problems, bytes));
        running = 0;
        for (int g = 0; g < s->group->count; g++) {
            running += s->table[g].outcome == LT_CUDA_RUNNING;
        }
        int done = s->group->done + s->group->count - running;
        if (ctx->interrupted) {
            status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted after %d of %d binary problems", done,
                             s->group->total);
            goto done;
        }
        if (s->call->progress.call) {
            s->call->progress.call(s->call->progress.user, (uint64_t)done, (uint64_t)s->group->total);
        }
    }
done:
    return status;
}

/* Fresh f, and what it says. Problems that it finds wanting run again while `resume`; returns how many. */
static latent_status check(solver *s, int resume, int *again) {
    latent_context *ctx = s->ctx;
    lt_cuda *cuda = s->cuda;
    latent_status status = LATENT_OK;
    size_t bytes = (size_t)s->group->count * sizeof *s->table;
    *again = 0;
    if (s->rows_max > 0) {
        lt_launch_svm_gradients(cuda->stream, &s->there, s->group->count, s->rows_max);
        LT_LAUNCHED("svm_gradients");
    }
    lt_launch_svm_measure(cuda->stream, &s->there, s->group->count);
    LT_LAUNCHED("svm_measure");
    LT_TRY(lt_cuda_download(ctx, &cuda->base, s->table, s->there.problems, bytes));
    for (int g = 0; g < s->group->count; g++) {
        lt_cuda_problem *q = &s->table[g];
        if (q->gap < s->call->tolerance) {
            q->outcome = LT_SVM_SOLVED;
        } else if (q->outcome != LT_SVM_CAPPED) {
            q->outcome = resume ? LT_CUDA_RUNNING : LT_SVM_STALLED;
            *again += resume;
        }
    }
    if (*again) {
        LT_TRY(lt_cuda_upload(ctx, &cuda->base, s->there.problems, s->table, bytes));
    }
done:
    return status;
}

/* Solutions, alphas and, where wanted, gradients to the caller. */
static latent_status hand_over(solver *s) {
    latent_context *ctx = s->ctx;
    latent_status status = LATENT_OK;
    for (int what = 0; what < (s->call->gradient ? 2 : 1); what++) {
        LT_TRY(lt_cuda_download(ctx, &s->cuda->base, s->flat, what ? s->there.f : s->there.beta,
                                s->places * sizeof(double)));
        for (int g = 0; g < s->group->count; g++) {
            const lt_cuda_problem *q = &s->table[g];
            size_t to = s->group->problems[s->group->which[g]].first;
            for (uint32_t t = 0; t < q->n; t++) {
                double value = s->flat[q->first + t], signed_value = t < q->n0 ? value : -value;
                if (what) {
                    s->call->gradient[to + t] = -signed_value;
                } else {
                    s->call->alpha[to + t] = signed_value;
                }
            }
        }
    }
    for (int g = 0; g < s->group->count; g++) {
        const lt_cuda_problem *q = &s->table[g];
        s->call->solutions[s->group->which[g]] = (lt_svm_solution){.gap = q->gap,
                                                                   .objective = q->objective,
                                                                   .rho = q->rho,
                                                                   .iterations = q->iterations,
                                                                   .outcome = (lt_svm_outcome)q->outcome};
    }
done:
    return status;
}

latent_status lt_cuda_group_solve(latent_context *ctx, lt_cuda *cuda, const lt_cuda_group *group,
                                  const lt_svm_solve_call *call) {
    latent_status status = LATENT_OK;
    solver s = {.ctx = ctx, .cuda = cuda, .group = group, .call = call};
    int again = 0;
    LT_TRY(begin(&s));
    for (int attempt = 0; attempt == 0 || again; attempt++) {
        LT_TRY(run(&s));
        LT_TRY(check(&s, attempt < RESUMES, &again));
    }
    LT_TRY(hand_over(&s));
done:
    end(&s);
    return status;
}
