/* model_text.c: LIBSVM's model file, written.
 *
 * A header of "key value ..." lines, the line "SV", then a line for each support vector: its coefficients in
 * the classes-1 problems of its class, then its features as "index:value". The format has no room for a gamma
 * per pair, for the vote rule or for the width of a row. Doubles are written with 17 digits and floats with
 * 9, so that they read back as they are.
 */
#include "svm/svm.h"

#include "base/file.h"
#include "io/scan.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct output {
    latent_context *ctx;
    lt_writer *writer;
    latent_status status; /* of the first failure */
} output;

static void put(output *o, const char *format, ...) LT_PRINTF(2, 3);

static void put(output *o, const char *format, ...) {
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (o->status == LATENT_OK) {
        o->status = lt_writer_put(o->ctx, o->writer, text, (size_t)length);
    }
}

static void put_doubles(output *o, const char *key, const double *values, int count) {
    put(o, "%s", key);
    for (int i = 0; i < count; i++) {
        put(o, " %.17g", values[i]);
    }
    put(o, "\n");
}

static void put_header(output *o, const latent_svm *svm) {
    put(o, "svm_type c_svc\nkernel_type %s\n", svm->kernel == LATENT_SVM_RBF ? "rbf" : "linear");
    if (svm->kernel == LATENT_SVM_RBF) {
        put(o, "gamma %.17g\n", svm->gamma[0]);
    }
    put(o, "nr_class %d\ntotal_sv %zu\n", svm->classes, svm->support);
    put_doubles(o, "rho", svm->rho, svm->pairs);
    put(o, "label");
    for (int c = 0; c < svm->classes; c++) {
        put(o, " %d", svm->labels[c]);
    }
    put(o, "\n");
    if (svm->prob_a) {
        put_doubles(o, "probA", svm->prob_a, svm->pairs);
        put_doubles(o, "probB", svm->prob_b, svm->pairs);
    }
    put(o, "nr_sv");
    for (int c = 0; c < svm->classes; c++) {
        put(o, " %llu", (unsigned long long)svm->supports[c]);
    }
    put(o, "\nSV\n");
}

latent_status lt_svm_text_write(latent_context *ctx, const latent_svm *svm, const char *path) {
    output o = {.ctx = ctx};
    lt_plain_locale locale = {0};
    if (svm->gamma_per_pair) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "%s: LIBSVM's model file has one gamma, and this model has one per pair; save it as "
                       "safetensors",
                       path);
    }
    o.status = lt_writer_open(ctx, path, &o.writer);
    if (o.status != LATENT_OK) {
        return o.status;
    }
    locale = lt_plain_locale_begin();
    put_header(&o, svm);
    for (size_t i = 0; i < svm->support && o.status == LATENT_OK; i++) {
        for (int line = 0; line < svm->classes - 1; line++) {
            put(&o, "%.17g ", svm->coefficients[(size_t)line * svm->support + i]);
        }
        for (size_t c = 0; c < svm->d; c++) {
            float value = svm->vectors[i * svm->d + c];
            if (value != 0) {
                put(&o, "%zu:%.9g ", c + 1, (double)value);
            }
        }
        put(&o, "\n");
    }
    lt_plain_locale_end(&locale);
    if (o.status != LATENT_OK) {
        lt_writer_abort(o.writer);
        return o.status;
    }
    return lt_writer_commit(ctx, o.writer);
}
