/* score.c: how good a classifier's answers are.
 *
 * Everything follows from the confusion matrix M, where M[t][p] counts the images of class t that were taken
 * for class p. With the row sum r (images of the class), the column sum c (answers of the class) and the
 * diagonal d (right answers):
 *     accuracy of the class (its recall) = d / r      precision = d / c      F1 = 2d / (r + c)
 * A quotient with nothing below it is 0. The macro F1 is the plain mean over the classes that occur at all,
 * as truth or as answer.
 */
#include "report/load.h"

#include <string.h>

static double quotient(uint64_t over, uint64_t under) {
    return under > 0 ? (double)over / (double)under : 0;
}

static latent_status count_answers(latent_context *ctx, const int32_t *truth, const int32_t *predicted,
                                   int count, int classes, uint64_t *confusion) {
    memset(confusion, 0, (size_t)classes * (size_t)classes * sizeof *confusion);
    for (int i = 0; i < count; i++) {
        if (truth[i] < 0 || truth[i] >= classes || predicted[i] < 0 || predicted[i] >= classes) {
            int is_truth = truth[i] < 0 || truth[i] >= classes;
            return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                           "the %s of image %d is class %d; with %d classes it must be from 0 to %d",
                           is_truth ? "label" : "predicted label", i, is_truth ? truth[i] : predicted[i],
                           classes, classes - 1);
        }
        confusion[(size_t)truth[i] * (size_t)classes + (size_t)predicted[i]]++;
    }
    return LATENT_OK;
}

void lt_score_from_confusion(const uint64_t *confusion, int classes, latent_class_score *each,
                             latent_score *out) {
    double f1_sum = 0;
    int occurring = 0;
    memset(out, 0, sizeof *out);
    for (int k = 0; k < classes; k++) {
        uint64_t row = 0, column = 0;
        for (int j = 0; j < classes; j++) {
            row += confusion[(size_t)k * (size_t)classes + (size_t)j];
            column += confusion[(size_t)j * (size_t)classes + (size_t)k];
        }
        uint64_t right = confusion[(size_t)k * (size_t)classes + (size_t)k];
        each[k] = (latent_class_score){.count = row,
                                       .predicted = column,
                                       .correct = right,
                                       .accuracy = quotient(right, row),
                                       .precision = quotient(right, column),
                                       .f1 = quotient(2 * right, row + column)};
        f1_sum += each[k].f1;
        occurring += row + column > 0;
        out->correct += right;
        out->count += row;
    }
    out->accuracy = quotient(out->correct, out->count);
    out->macro_f1 = occurring > 0 ? f1_sum / occurring : 0;
}

latent_status latent_score_compute(latent_context *ctx, const int32_t *truth, const int32_t *predicted,
                                   int count, int classes, uint64_t *confusion, latent_class_score *each,
                                   latent_score *out) {
    memset(out, 0, sizeof *out);
    if (count < 1 || classes < 1) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "%d answers of %d classes cannot be scored; give at least one of each", count,
                       classes);
    }
    latent_status status = count_answers(ctx, truth, predicted, count, classes, confusion);
    if (status == LATENT_OK) {
        lt_score_from_confusion(confusion, classes, each, out);
    }
    return status;
}
