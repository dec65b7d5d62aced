/* model_parse.c: LIBSVM's model file, read.
 *
 * The header's claims (classes, vectors) are believed only as far as the lines that follow bear them out:
 * lists have exactly the length that nr_class asks for, and vectors are gathered as they come, so that memory
 * is bounded by the file. What the model needs and this library does not have (other kernels, regression,
 * one-class) is named.
 */
#include "svm/svm.h"

#include "base/json.h"
#include "io/libsvm_text.h"

#include <stdlib.h>
#include <string.h>

enum { CLASSES_MAX = 4096, DENSE_FACTOR = 256 };
#define DENSE_FREE ((uint64_t)1 << 30)

enum {
    TYPE,
    KERNEL,
    GAMMA,
    CLASSES,
    TOTAL,
    RHO,
    LABEL,
    PROB_A,
    PROB_B,
    NR_SV,
    SV,
    DEGREE,
    COEF0,
    MARKS,
    KEYS
};
static const char *const keys[KEYS] = {
    "svm_type", "kernel_type", "gamma", "nr_class", "total_sv", "rho",   "label",
    "probA",    "probB",       "nr_sv", "SV",       "degree",   "coef0", "prob_density_marks"};

typedef struct entry {
    uint32_t index;
    float value;
} entry;

typedef struct reader {
    latent_context *ctx;
    lt_scan *scan;
    unsigned seen; /* bit per key */
    latent_svm_kernel kernel;
    double gamma;
    int classes;
    int32_t total;
    double *lists[KEYS];  /* RHO, LABEL, PROB_A, PROB_B, NR_SV */
    double *coefficients; /* [vectors][classes-1] */
    size_t vectors, vectors_room;
    entry *entries;
    size_t count, room;
    size_t *ends; /* [vectors] */
    uint32_t largest;
} reader;

static latent_status wrong(const reader *r, const char *word, const char *what) {
    char excerpt[LT_EXCERPT_MAX];
    return lt_fail(r->ctx, LATENT_ERROR_FORMAT, "%s: line %llu: '%s' %s", lt_scan_origin(r->scan),
                   lt_scan_line(r->scan), lt_excerpt(word, excerpt), what);
}

/* The next word of this line; the end of the line is an error. */
static latent_status next_word(reader *r, const char *key, const char **word) {
    lt_scan_kind kind;
    latent_status status = lt_scan_next(r->ctx, r->scan, &kind, word);
    if (status == LATENT_OK && kind != LT_SCAN_WORD) {
        status = wrong(r, key, "is followed by too few values");
    }
    return status;
}

static latent_status end_line(reader *r, const char *key) {
    lt_scan_kind kind;
    const char *word;
    latent_status status = lt_scan_next(r->ctx, r->scan, &kind, &word);
    if (status == LATENT_OK && kind == LT_SCAN_WORD) {
        status = wrong(r, key, "is followed by too many values");
    }
    return status;
}

static latent_status read_number(reader *r, const char *key, double *out) {
    const char *word;
    latent_status status = next_word(r, key, &word);
    if (status == LATENT_OK && !lt_scan_number(r->scan, word, out)) {
        status = wrong(r, word, "is not a finite number");
    }
    return status;
}

static latent_status read_whole(reader *r, const char *key, int32_t low, int32_t high, int32_t *out) {
    const char *word;
    latent_status status = next_word(r, key, &word);
    if (status == LATENT_OK && (!lt_scan_integer(r->scan, word, out) || *out < low || *out > high)) {
        status =
            lt_fail(r->ctx, LATENT_ERROR_FORMAT, "%s: line %llu: %s must be a whole number from %d to %d",
                    lt_scan_origin(r->scan), lt_scan_line(r->scan), key, low, high);
    }
    return status;
}

static latent_status read_list(reader *r, int key, int count) {
    latent_status status = LATENT_OK;
    if (!(r->seen & 1u << CLASSES)) {
        return wrong(r, keys[key], "comes before nr_class");
    }
    LT_TRY(lt_calloc(r->ctx, (size_t)count, sizeof(double), "a list", (void **)&r->lists[key]));
    for (int i = 0; i < count; i++) {
        if (key == LABEL || key == NR_SV) {
            int32_t value = 0;
            LT_TRY(read_whole(r, keys[key], key == LABEL ? INT32_MIN : 0, INT32_MAX, &value));
            r->lists[key][i] = value;
        } else {
            LT_TRY(read_number(r, keys[key], &r->lists[key][i]));
        }
    }
done:
    return status;
}

static latent_status read_kernel(reader *r) {
    const char *word;
    latent_status status = next_word(r, keys[KERNEL], &word);
    if (status != LATENT_OK) {
        return status;
    }
    if (strcmp(word, "rbf") != 0 && strcmp(word, "linear") != 0) {
        return wrong(r, word, "is not a kernel that can be used here; rbf and linear can");
    }
    r->kernel = strcmp(word, "rbf") == 0 ? LATENT_SVM_RBF : LATENT_SVM_LINEAR;
    return LATENT_OK;
}

static latent_status read_type(reader *r) {
    const char *word;
    latent_status status = next_word(r, keys[TYPE], &word);
    if (status == LATENT_OK && strcmp(word, "c_svc") != 0 && strcmp(word, "nu_svc") != 0) {
        status = wrong(r, word, "is not a classifier; c_svc and nu_svc are");
    }
    return status;
}

static latent_status read_value(reader *r, int key) {
    int pairs = r->classes * (r->classes - 1) / 2;
    double ignored;
    int32_t whole = 0;
    latent_status status;
    switch (key) {
    case TYPE:
        return read_type(r);
    case KERNEL:
        return read_kernel(r);
    case GAMMA:
        return read_number(r, keys[key], &r->gamma);
    case CLASSES:
        status = read_whole(r, keys[key], 2, CLASSES_MAX, &whole);
        r->classes = whole;
        return status;
    case TOTAL:
        return read_whole(r, keys[key], 1, INT32_MAX, &r->total);
    case RHO:
    case PROB_A:
    case PROB_B:
        return read_list(r, key, pairs);
    case LABEL:
    case NR_SV:
        return read_list(r, key, r->classes);
    case DEGREE:
    case COEF0:
        return read_number(r, keys[key], &ignored);
    }
    return wrong(r, keys[key], "belongs to a one-class model, not to a classifier");
}

/* Up to and with the line "SV". */
static latent_status read_header(reader *r) {
    for (;;) {
        lt_scan_kind kind;
        const char *word;
        int key = 0;
        latent_status status = lt_scan_next(r->ctx, r->scan, &kind, &word);
        if (status != LATENT_OK) {
            return status;
        }
        if (kind != LT_SCAN_WORD) {
            return lt_fail(r->ctx, LATENT_ERROR_FORMAT,
                           "%s: line %llu: %s; a model file has lines such as 'svm_type c_svc' up to 'SV'",
                           lt_scan_origin(r->scan), lt_scan_line(r->scan),
                           kind == LT_SCAN_END ? "the file ends within the header" : "the line is empty");
        }
        while (key < KEYS && strcmp(word, keys[key]) != 0) {
            key++;
        }
        if (key == KEYS || (r->seen & 1u << key)) {
            return wrong(r, word, key == KEYS ? "is not a key of a LIBSVM model" : "is there twice");
        }
        r->seen |= 1u << key;
        status = key == SV ? LATENT_OK : read_value(r, key);
        status = status == LATENT_OK ? end_line(r, keys[key]) : status;
        if (status != LATENT_OK || key == SV) {
            return status;
        }
    }
}

static latent_status check_header(const reader *r) {
    unsigned needed =
        1u << TYPE | 1u << KERNEL | 1u << CLASSES | 1u << TOTAL | 1u << RHO | 1u << LABEL | 1u << NR_SV;
    needed |= r->kernel == LATENT_SVM_RBF ? 1u << GAMMA : 0;
    needed |= r->seen & 1u << PROB_A ? 1u << PROB_B : 0;
    needed |= r->seen & 1u << PROB_B ? 1u << PROB_A : 0;
    for (int key = 0; key < KEYS; key++) {
        if (needed & ~r->seen & 1u << key) {
            return lt_fail(r->ctx, LATENT_ERROR_FORMAT, "%s: the header lacks the key '%s'",
                           lt_scan_origin(r->scan), keys[key]);
        }
    }
    return LATENT_OK;
}

static int put_entry(void *user, uint32_t index, float value) {
    reader *r = user;
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 1024;
        entry *grown = realloc(r->entries, room * sizeof *grown);
        if (!grown) {
            return 0;
        }
        r->entries = grown;
        r->room = room;
    }
    r->entries[r->count++] = (entry){index, value};
    return 1;
}

static latent_status grow_vectors(reader *r) {
    size_t room = r->vectors_room ? 2 * r->vectors_room : 64;
    double *coefficients = realloc(r->coefficients, room * (size_t)(r->classes - 1) * sizeof *coefficients);
    r->coefficients = coefficients ? coefficients : r->coefficients;
    size_t *ends = realloc(r->ends, room * sizeof *ends);
    r->ends = ends ? ends : r->ends;
    if (!coefficients || !ends) {
        return lt_fail(r->ctx, LATENT_ERROR_MEMORY, "%s: no memory for its vectors", lt_scan_origin(r->scan));
    }
    r->vectors_room = room;
    return LATENT_OK;
}

/* The lines after "SV". */
static latent_status read_vectors(reader *r) {
    latent_status status = LATENT_OK;
    int lines = r->classes - 1;
    for (int32_t v = 0; v < r->total; v++) {
        if (r->vectors == r->vectors_room) {
            LT_TRY(grow_vectors(r));
        }
        for (int i = 0; i < lines; i++) {
            lt_scan_kind kind;
            const char *word;
            LT_TRY(lt_scan_next(r->ctx, r->scan, &kind, &word));
            if (kind != LT_SCAN_WORD) {
                status = lt_fail(r->ctx, LATENT_ERROR_FORMAT,
                                 "%s: line %llu: cut short: %d support vectors with %d coefficients each are "
                                 "promised",
                                 lt_scan_origin(r->scan), lt_scan_line(r->scan), r->total, lines);
                goto done;
            }
            if (!lt_scan_number(r->scan, word, &r->coefficients[r->vectors * (size_t)lines + (size_t)i])) {
                status = wrong(r, word, "is not a coefficient: each vector has one for every other class");
                goto done;
            }
        }
        LT_TRY(lt_libsvm_row(r->ctx, r->scan, put_entry, r, &r->largest));
        r->ends[r->vectors++] = r->count;
    }
    lt_scan_kind kind;
    const char *word;
    LT_TRY(lt_scan_next(r->ctx, r->scan, &kind, &word));
    if (kind == LT_SCAN_WORD) {
        status = wrong(r, word, "comes after the last support vector");
    }
done:
    return status;
}

static void fill(const reader *r, latent_svm *svm) {
    size_t at = 0, lines = (size_t)r->classes - 1;
    svm->kernel = r->kernel;
    svm->open_width = 1;
    for (int c = 0; c < r->classes; c++) {
        svm->labels[c] = (int32_t)r->lists[LABEL][c];
        svm->supports[c] = (uint64_t)r->lists[NR_SV][c];
    }
    for (int p = 0; p < svm->pairs; p++) {
        svm->rho[p] = r->lists[RHO][p];
        svm->gamma[p] = r->gamma;
        if (svm->prob_a) {
            svm->prob_a[p] = r->lists[PROB_A][p];
            svm->prob_b[p] = r->lists[PROB_B][p];
        }
    }
    for (size_t v = 0; v < r->vectors; v++) {
        for (size_t line = 0; line < lines; line++) {
            svm->coefficients[line * svm->support + v] = r->coefficients[v * lines + line];
        }
        for (; at < r->ends[v]; at++) {
            svm->vectors[v * svm->d + r->entries[at].index - 1] = r->entries[at].value;
        }
    }
}

static latent_status read_model(latent_context *ctx, lt_scan *scan, latent_svm **out) {
    latent_status status = LATENT_OK;
    latent_svm *svm = NULL;
    reader r = {.ctx = ctx, .scan = scan};
    uint64_t dense = 0, earned = 0;
    LT_TRY(read_header(&r));
    LT_TRY(check_header(&r));
    LT_TRY(read_vectors(&r));
    r.largest = r.largest ? r.largest : 1;
    earned = (uint64_t)r.count * sizeof(entry) * DENSE_FACTOR;
    dense = (uint64_t)r.vectors * r.largest * sizeof(float); /* below 2^64: both are below 2^31 */
    if (dense > (earned > DENSE_FREE ? earned : DENSE_FREE)) {
        status =
            lt_fail(ctx, LATENT_ERROR_FORMAT,
                    "%s: its %zu vectors reach up to index %u with %zu values in all; they are kept dense "
                    "here, and that would be out of proportion",
                    lt_scan_origin(scan), r.vectors, r.largest, r.count);
        goto done;
    }
    LT_TRY(lt_svm_model_make(ctx, r.classes, r.vectors, r.largest, r.lists[PROB_A] != NULL, &svm));
    LT_TRY(lt_svm_vectors_make(ctx, svm));
    fill(&r, svm);
    LT_TRY(lt_svm_model_check(ctx, lt_scan_origin(scan), svm));
    *out = svm;
    svm = NULL;
done:
    for (int key = 0; key < KEYS; key++) {
        free(r.lists[key]);
    }
    free(r.coefficients);
    free(r.entries);
    free(r.ends);
    latent_svm_destroy(svm);
    return status;
}

latent_status lt_svm_text_read(latent_context *ctx, const char *path, latent_svm **out) {
    lt_scan *scan = NULL;
    *out = NULL;
    latent_status status = lt_scan_open(ctx, path, &scan);
    if (status == LATENT_OK) {
        status = read_model(ctx, scan, out);
    }
    lt_scan_close(scan);
    return status;
}

latent_status lt_svm_text_parse(latent_context *ctx, const void *bytes, size_t size, const char *origin,
                                latent_svm **out) {
    lt_scan *scan = NULL;
    *out = NULL;
    latent_status status = lt_scan_memory(ctx, bytes, size, origin, &scan);
    if (status == LATENT_OK) {
        status = read_model(ctx, scan, out);
    }
    lt_scan_close(scan);
    return status;
}
