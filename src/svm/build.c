/* build.c: the model out of the solved problems: which rows support, their coefficients, thresholds.
 *
 * A row is kept when its alpha is above 0 in any pair, and kept once. The kernel matrix was made of centered
 * rows; the model holds the rows as they came. For RBF nothing else changes. For the linear kernel, with w
 * the sum of beta*x, the solver's decision value is w.(x - mean) - rho, so the model's threshold is rho +
 * w.mean (sum(beta) = 0 makes w the same for both).
 */
#include "svm/svm.h"

#include <stdlib.h>
#include <string.h>

typedef struct builder {
    const lt_svm_training *t;
    uint32_t *vector; /* [n] place of a sorted row among the support vectors + 1; 0: it is none */
    size_t support;
    uint64_t *supports; /* [classes] */
    uint32_t *row;      /* [support] */
} builder;

static latent_status find_support(builder *b) {
    latent_status status = LATENT_OK;
    const lt_svm_training *t = b->t;
    LT_TRY(lt_calloc(t->ctx, t->set.rows.n, sizeof *b->vector, "support vectors", (void **)&b->vector));
    LT_TRY(lt_calloc(t->ctx, (size_t)t->set.classes, sizeof *b->supports, "vector counts",
                     (void **)&b->supports));
    for (int p = 0; p < t->set.pairs; p++) {
        const lt_svm_problem *q = &t->problems[p];
        size_t at = q->first;
        for (int k = 0; k < 2; k++) {
            for (uint32_t row = q->begin[k]; row < q->end[k]; row++, at++) {
                b->vector[row] |= t->alpha[at] > 0;
            }
        }
    }
    for (int c = 0; c < t->set.classes; c++) {
        for (uint32_t row = t->set.begin[c]; row < t->set.begin[c + 1]; row++) {
            if (b->vector[row]) {
                b->vector[row] = (uint32_t)++b->support;
                b->supports[c]++;
            }
        }
    }
done:
    return status;
}

/* Which row a support vector is. */
static latent_status find_rows(builder *b) {
    const lt_svm_set *set = &b->t->set;
    latent_status status =
        lt_alloc(b->t->ctx, b->support * sizeof *b->row, "support vectors", (void **)&b->row);
    for (size_t i = 0; status == LATENT_OK && i < set->rows.n; i++) {
        if (b->vector[i]) {
            b->row[b->vector[i] - 1] = set->order[i];
        }
    }
    return status;
}

/* Rows that the caller has in backend memory alone come over in blocks. */
static latent_status download_vectors(const builder *b, latent_svm *svm) {
    enum { BLOCK_BYTES = 1 << 26 };
    latent_status status = LATENT_OK;
    const lt_svm_training *t = b->t;
    const lt_svm_rows *rows = &t->set.rows;
    size_t row_bytes = rows->stride * sizeof(float), block = BLOCK_BYTES / row_bytes + 1;
    float *copy = NULL;
    uint32_t *place = NULL; /* row -> place + 1 */
    LT_TRY(lt_calloc(t->ctx, rows->n, sizeof *place, "row numbers", (void **)&place));
    for (size_t i = 0; i < rows->n; i++) {
        place[t->set.order[i]] = b->vector[i];
    }
    LT_TRY(lt_alloc(t->ctx, block * row_bytes, "rows", (void **)&copy));
    for (size_t first = 0; first < rows->n; first += block) {
        size_t count = block < rows->n - first ? block : rows->n - first;
        LT_TRY(t->engine->backend->type->download(t->ctx, t->engine->backend, copy,
                                                  rows->x + first * rows->stride,
                                                  (count - 1) * row_bytes + rows->d * sizeof(float)));
        for (size_t i = 0; i < count; i++) {
            if (place[first + i]) {
                memcpy(svm->vectors + (size_t)(place[first + i] - 1) * svm->d, copy + i * rows->stride,
                       svm->d * sizeof(float));
            }
        }
    }
done:
    free(copy);
    free(place);
    return status;
}

static latent_status copy_vectors(const builder *b, latent_svm *svm) {
    latent_status status = lt_svm_vectors_make(b->t->ctx, svm);
    if (status != LATENT_OK || b->t->set.rows.on_backend) {
        return status == LATENT_OK ? download_vectors(b, svm) : status;
    }
    lt_svm_rows_gather(&b->t->set.rows, b->row, b->support, svm->vectors);
    return LATENT_OK;
}

/* Coefficients of one pair into LIBSVM's layout, and what there is to say about it. */
static void build_pair(const builder *b, int pair, latent_svm *svm) {
    const lt_svm_training *t = b->t;
    const lt_svm_problem *q = &t->problems[pair];
    const lt_svm_solution *s = &t->solutions[pair];
    latent_svm_pair *out = &svm->pair[pair];
    int classes[2];
    size_t at = q->first;
    double rho = s->rho;
    lt_svm_pair_classes(svm->classes, pair, &classes[0], &classes[1]);
    for (int k = 0; k < 2; k++) {
        size_t line = k == 0 ? (size_t)classes[1] - 1 : (size_t)classes[0];
        for (uint32_t row = q->begin[k]; row < q->end[k]; row++, at++) {
            double alpha = t->alpha[at], beta = k == 0 ? alpha : -alpha, shift = 0;
            if (!(alpha > 0)) {
                continue;
            }
            size_t place = b->vector[row] - 1;
            svm->coefficients[line * svm->support + place] = beta;
            out->support++;
            out->bounded += alpha >= q->c[k];
            for (size_t c = 0; svm->kernel == LATENT_SVM_LINEAR && c < svm->d; c++) {
                shift += (double)svm->vectors[place * svm->d + c] * (double)t->set.mean[c];
            }
            rho += beta * shift;
        }
    }
    svm->rho[pair] = rho;
    svm->gamma[pair] = t->set.gamma[pair];
    out->first = svm->labels[classes[0]];
    out->second = svm->labels[classes[1]];
    out->rows = lt_svm_problem_rows(q);
    out->iterations = s->iterations;
    out->objective = s->objective;
    out->gap = s->gap > 0 ? s->gap : 0; /* below 0: no pair of rows is left that violates optimality */
    out->rho = rho;
    out->gamma = svm->gamma[pair];
    out->converged = s->outcome == LT_SVM_SOLVED;
}

latent_status lt_svm_model_build(const lt_svm_training *t, latent_svm **out) {
    latent_status status = LATENT_OK;
    latent_svm *svm = NULL;
    builder b = {.t = t};
    size_t pairs = (size_t)t->set.pairs;
    *out = NULL;
    LT_TRY(find_support(&b));
    LT_TRY(find_rows(&b));
    LT_TRY(lt_svm_model_make(t->ctx, t->set.classes, b.support, t->set.rows.d, t->prob_a != NULL, &svm));
    LT_TRY(lt_calloc(t->ctx, pairs, sizeof *svm->pair, "pairs", (void **)&svm->pair));
    svm->kernel = t->options->kernel;
    svm->precision = t->options->precision;
    svm->vote = t->options->vote;
    svm->gamma_per_pair = t->options->gamma_per_pair;
    memcpy(svm->labels, t->set.labels, (size_t)svm->classes * sizeof *svm->labels);
    memcpy(svm->supports, b.supports, (size_t)svm->classes * sizeof *svm->supports);
    LT_TRY(copy_vectors(&b, svm));
    for (int p = 0; p < svm->pairs; p++) {
        build_pair(&b, p, svm);
    }
    if (t->prob_a) {
        memcpy(svm->prob_a, t->prob_a, pairs * sizeof(double));
        memcpy(svm->prob_b, t->prob_b, pairs * sizeof(double));
    }
    if (t->set.there.on_backend && svm->kernel == LATENT_SVM_RBF) {
        /* The rows are at hand, so that the first prediction need not send the vectors. Where it fails, for
         * want of memory mostly, the first prediction makes the machine or says why it cannot. A linear
         * machine is a sum over the vectors, whose bits depend on their order: it waits for the model's. */
        if (lt_svm_machine_make(t->ctx, svm, t->engine, &t->set.there, b.row, &svm->machine) != LATENT_OK) {
            t->ctx->message[0] = 0; /* nothing has failed */
        }
    }
    *out = svm;
    svm = NULL;
done:
    free(b.vector);
    free(b.supports);
    free(b.row);
    latent_svm_destroy(svm);
    return status;
}
