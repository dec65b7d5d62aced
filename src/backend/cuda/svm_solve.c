/* svm_solve.c: all binary problems of a call: at once on a whole matrix, pair by pair on parts of it; and
 * sums for rows that a problem did not see.
 */
#include "backend/cuda/svm_cuda.h"

#include <stdlib.h>
#include <string.h>

int lt_cuda_same_rows(const lt_svm_problem *a, const lt_svm_problem *b) {
    return memcmp(a->begin, b->begin, sizeof a->begin) == 0 && memcmp(a->end, b->end, sizeof a->end) == 0;
}

/* A problem's rows and its index, for sorting. */
typedef struct entry {
    uint32_t key[5];
} entry;

static int by_rows(const void *a, const void *b) {
    const entry *x = a, *y = b;
    for (int i = 0; i < 5; i++) {
        if (x->key[i] != y->key[i]) {
            return x->key[i] < y->key[i] ? -1 : 1;
        }
    }
    return 0;
}

latent_status lt_cuda_group_sort(latent_context *ctx, const lt_svm_problem *problems, int count,
                                 uint32_t **out) {
    latent_status status = LATENT_OK;
    entry *entries = NULL;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, (size_t)count + 1, sizeof *entries, "problems", (void **)&entries));
    LT_TRY(lt_calloc(ctx, (size_t)count + 1, sizeof **out, "problems", (void **)out));
    for (int p = 0; p < count; p++) {
        const lt_svm_problem *q = &problems[p];
        entries[p] = (entry){{q->begin[0], q->begin[1], q->end[0], q->end[1], (uint32_t)p}};
    }
    qsort(entries, (size_t)count, sizeof *entries, by_rows);
    for (int p = 0; p < count; p++) {
        (*out)[p] = entries[p].key[4];
    }
done:
    free(entries);
    return status;
}

/* How many problems from which[first] on have the rows of that one. */
static int run_length(const lt_svm_problem *problems, const uint32_t *which, int first, int count) {
    int last = first + 1;
    while (last < count && lt_cuda_same_rows(&problems[which[first]], &problems[which[last]])) {
        last++;
    }
    return last - first;
}

static lt_cuda_part part_of(const lt_cuda_matrix *m) {
    return (lt_cuda_part){
        .end = {m->n, 0}, .ranges = 1, .side = m->n, .row = m->row, .k = m->k, .norm = m->norm};
}

latent_status lt_cuda_solve(latent_context *ctx, lt_backend *backend, lt_svm_matrix *handle,
                            const lt_svm_solve_call *call) {
    lt_cuda *cuda = (lt_cuda *)backend;
    const lt_cuda_matrix *m = (const lt_cuda_matrix *)handle;
    latent_status status = LATENT_OK;
    uint32_t *which = NULL;
    lt_cuda_group group = {.problems = call->problems,
                           .fold = call->fold,
                           .kernel = m->kernel,
                           .own = m->k == NULL,
                           .total = call->count};
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    LT_TRY(lt_cuda_group_sort(ctx, call->problems, call->count, &which));
    for (int first = 0; first < call->count; first += group.count) {
        group.which = which + first;
        group.done = first;
        group.count = m->k ? call->count : run_length(call->problems, which, first, call->count);
        if (m->k) {
            group.matrix = part_of(m);
        } else {
            LT_TRY(lt_cuda_part_create(ctx, cuda, m, &call->problems[which[first]], &group.matrix));
        }
        status = lt_cuda_group_solve(ctx, cuda, &group, call);
        if (group.own) {
            lt_cuda_part_free(cuda, &group.matrix);
        }
        if (status != LATENT_OK) {
            goto done;
        }
    }
done:
    free(which);
    return status;
}

/* ---- Sums -------------------------------------------------------------------------------------- */

/* Everything that sums need on the device, for a group of problems. */
typedef struct summing {
    lt_cuda_solver there;
    double *sums;            /* [count][rows] */
    uint32_t *rows, *wanted; /* lists of rows by fold */
    float *k;                /* parts: [batch][row] */
} summing;

static void summing_free(lt_cuda *cuda, summing *s) {
    lt_cuda_free(&cuda->base, s->there.problems);
    lt_cuda_free(&cuda->base, s->there.beta);
    lt_cuda_free(&cuda->base, s->sums);
    lt_cuda_free(&cuda->base, s->rows);
    lt_cuda_free(&cuda->base, s->wanted);
    lt_cuda_free(&cuda->base, s->k);
    memset(s, 0, sizeof *s);
}

/* Problems and their coefficients y*alpha. */
static latent_status upload_group(latent_context *ctx, lt_cuda *cuda, const lt_cuda_group *group,
                                  const double *alpha, summing *s) {
    latent_status status = LATENT_OK;
    lt_cuda_problem *table = NULL;
    double *flat = NULL;
    size_t count = (size_t)group->count;
    LT_TRY(lt_calloc(ctx, count, sizeof *table, "problems", (void **)&table));
    size_t places = lt_cuda_group_table(group, table);
    LT_TRY(lt_alloc(ctx, places * sizeof *flat + 1, "coefficients", (void **)&flat));
    for (size_t g = 0; g < count; g++) {
        const double *from = alpha + group->problems[group->which[g]].first;
        for (uint32_t t = 0; t < table[g].n; t++) {
            flat[table[g].first + t] = t < table[g].n0 ? from[t] : -from[t];
        }
        /* Rows are wanted by fold; none of its own is left out here. */
        table[g].fold = group->fold ? (uint8_t)group->problems[group->which[g]].fold : -1;
    }
    LT_TRY(lt_cuda_room(ctx, cuda, count, sizeof *table, &s->there.problems));
    LT_TRY(lt_cuda_room(ctx, cuda, places, sizeof *flat, &s->there.beta));
    LT_TRY(lt_cuda_upload(ctx, &cuda->base, s->there.problems, table, count * sizeof *table));
    LT_TRY(lt_cuda_upload(ctx, &cuda->base, s->there.beta, flat, places * sizeof *flat));
done:
    free(table);
    free(flat);
    return status;
}

/* Rows by fold, or all of them as the one list. *most: the longest list. */
static latent_status upload_lists(latent_context *ctx, lt_cuda *cuda, size_t n, const uint8_t *fold,
                                  summing *s, uint32_t *most) {
    enum { LISTS = 257 };
    latent_status status = LATENT_OK;
    uint32_t wanted[LISTS] = {0}, next[LISTS], *rows = NULL;
    LT_TRY(lt_alloc(ctx, n * sizeof *rows, "row numbers", (void **)&rows));
    *most = 0;
    for (size_t i = 0; i < n; i++) {
        wanted[(fold ? fold[i] : 0) + 1]++;
    }
    for (int f = 1; f < LISTS; f++) {
        *most = wanted[f] > *most ? wanted[f] : *most;
        wanted[f] += wanted[f - 1];
    }
    memcpy(next, wanted, sizeof next);
    for (size_t i = 0; i < n; i++) {
        rows[next[fold ? fold[i] : 0]++] = (uint32_t)i;
    }
    LT_TRY(lt_cuda_room(ctx, cuda, n, sizeof *rows, &s->rows));
    LT_TRY(lt_cuda_room(ctx, cuda, LISTS, sizeof *wanted, &s->wanted));
    LT_TRY(lt_cuda_upload(ctx, &cuda->base, s->rows, rows, n * sizeof *rows));
    LT_TRY(lt_cuda_upload(ctx, &cuda->base, s->wanted, wanted, sizeof wanted));
done:
    free(rows);
    return status;
}

/* On a whole matrix: a batch of problems, all wanted rows. */
static latent_status sum_whole(latent_context *ctx, lt_cuda *cuda, const lt_cuda_matrix *m,
                               const lt_svm_sums_call *call, lt_cuda_group *group) {
    latent_status status = LATENT_OK;
    summing s = {.there = {.k = m->k, .row = m->row}};
    uint32_t most;
    size_t bytes = (size_t)group->count * m->n * sizeof(double);
    LT_TRY(upload_group(ctx, cuda, group, call->alpha, &s));
    LT_TRY(upload_lists(ctx, cuda, m->n, call->fold, &s, &most));
    LT_TRY(lt_cuda_room(ctx, cuda, bytes, 1, &s.sums));
    LT_CUDA(cudaMemsetAsync(s.sums, 0, bytes, cuda->stream));
    lt_launch_svm_sums(cuda->stream, &s.there, group->count, s.rows, s.wanted, most, m->n, s.sums);
    LT_LAUNCHED("svm_sums");
    LT_TRY(lt_cuda_download(ctx, &cuda->base, call->sums + (size_t)group->which[0] * m->n, s.sums, bytes));
done:
    summing_free(cuda, &s);
    return status;
}

/* In parts: all problems of the same rows, for one batch of matrix rows after another. */
static latent_status sum_batch(latent_context *ctx, lt_cuda *cuda, const lt_cuda_matrix *m,
                               const lt_svm_sums_call *call, const lt_cuda_group *group, summing *s,
                               size_t first, size_t count) {
    latent_status status = LATENT_OK;
    const lt_svm_problem *p = &group->problems[group->which[0]];
    size_t column = 0;
    for (int r = 0; r < 2; r++) {
        size_t width = p->end[r] - p->begin[r];
        if (width == 0) {
            continue;
        }
        LT_TRY(lt_cuda_product(ctx, cuda, &m->x, first, count, &m->x, p->begin[r], width, s->k + column,
                               s->there.row));
        lt_cuda_block block = {m->kernel,
                               m->gamma,
                               count,
                               width,
                               s->there.row,
                               m->x.unit + first,
                               m->x.unit + p->begin[r],
                               m->norm + first,
                               m->norm + p->begin[r]};
        lt_launch_svm_rectangle(cuda->stream, &block, 0, (int64_t)first - (int64_t)p->begin[r],
                                s->k + column);
        LT_LAUNCHED("svm_rectangle");
        column += width;
    }
    lt_launch_svm_sums(cuda->stream, &s->there, group->count, s->rows, s->wanted, (uint32_t)count, count,
                       s->sums);
    LT_LAUNCHED("svm_sums");
    for (int g = 0; g < group->count; g++) {
        LT_TRY(lt_cuda_download(ctx, &cuda->base, call->sums + (size_t)group->which[g] * m->n + first,
                                s->sums + (size_t)g * count, count * sizeof(double)));
    }
    if (ctx->interrupted) {
        status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted while decision values were computed");
    }
done:
    return status;
}

static latent_status sum_parts(latent_context *ctx, lt_cuda *cuda, const lt_cuda_matrix *m,
                               const lt_svm_sums_call *call, const lt_cuda_group *group) {
    enum { BATCH = 2048 };
    latent_status status = LATENT_OK;
    const lt_svm_problem *p = &group->problems[group->which[0]];
    size_t side = (size_t)(p->end[0] - p->begin[0]) + (p->end[1] - p->begin[1]), last = 0;
    summing s = {.there = {.row = (side + 31) / 32 * 32}};
    uint32_t most;
    LT_TRY(upload_group(ctx, cuda, group, call->alpha, &s));
    LT_TRY(lt_cuda_room(ctx, cuda, BATCH, s.there.row * sizeof(float), &s.k));
    LT_TRY(lt_cuda_room(ctx, cuda, (size_t)group->count, BATCH * sizeof(double), &s.sums));
    s.there.k = s.k;
    for (size_t first = 0; first < m->n; first += BATCH) {
        size_t count = m->n - first < BATCH ? m->n - first : BATCH;
        if (count != last) {
            lt_cuda_free(&cuda->base, s.rows);
            lt_cuda_free(&cuda->base, s.wanted);
            s.rows = s.wanted = NULL;
            LT_TRY(upload_lists(ctx, cuda, count, NULL, &s, &most));
            last = count;
        }
        LT_TRY(sum_batch(ctx, cuda, m, call, group, &s, first, count));
    }
done:
    summing_free(cuda, &s);
    return status;
}

latent_status lt_cuda_sums(latent_context *ctx, lt_backend *backend, lt_svm_matrix *handle,
                           const lt_svm_sums_call *call) {
    lt_cuda *cuda = (lt_cuda *)backend;
    const lt_cuda_matrix *m = (const lt_cuda_matrix *)handle;
    latent_status status = LATENT_OK;
    uint32_t *which = NULL;
    lt_cuda_group group = {.problems = call->problems, .own = m->k == NULL, .kernel = m->kernel};
    size_t batch = ((size_t)1 << 27) / m->n + 1; /* problems: their sums take about a gigabyte */
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    LT_TRY(lt_cuda_group_sort(ctx, call->problems, call->count, &which));
    for (int p = 0; m->k && p < call->count; p++) {
        which[p] = (uint32_t)p; /* sums of a batch lie side by side */
    }
    for (int first = 0; first < call->count; first += group.count) {
        size_t left = (size_t)(call->count - first);
        group.which = which + first;
        if (m->k) {
            group.fold = call->fold;
            group.count = (int)(left < batch ? left : batch);
            LT_TRY(sum_whole(ctx, cuda, m, call, &group));
        } else {
            group.count = run_length(call->problems, which, first, call->count);
            LT_TRY(sum_parts(ctx, cuda, m, call, &group));
        }
    }
done:
    free(which);
    return status;
}
