/* test_score.c: scores worked out by hand. */
#include "scratch.h"

/* Three classes, nine images:
 *     truth     0 0 0 0  1 1 1  2 2
 *     answers   0 0 1 2  1 1 0  0 2
 *     confusion 2 1 1 / 1 2 0 / 1 0 1
 * Right: 2+2+1 = 5 of 9. Row sums 4, 3, 2; column sums 4, 3, 2.
 * F1: 4/8, 4/6, 2/4; their mean (0.5 + 2/3 + 0.5) / 3 = 5/9. */
static void test_by_hand(void **state) {
    scratch *s = *state;
    const int32_t truth[] = {0, 0, 0, 0, 1, 1, 1, 2, 2}, answers[] = {0, 0, 1, 2, 1, 1, 0, 0, 2};
    const uint64_t wanted[] = {2, 1, 1, 1, 2, 0, 1, 0, 1};
    uint64_t confusion[9];
    latent_class_score each[3];
    latent_score score;
    assert_int_equal(latent_score_compute(s->ctx, truth, answers, 9, 3, confusion, each, &score), LATENT_OK);
    assert_memory_equal(confusion, wanted, sizeof wanted);
    assert_int_equal(score.count, 9);
    assert_int_equal(score.correct, 5);
    assert_true(score.accuracy == 5.0 / 9);
    assert_true(each[0].count == 4 && each[0].predicted == 4 && each[0].correct == 2);
    assert_true(each[0].accuracy == 0.5 && each[0].precision == 0.5 && each[0].f1 == 0.5);
    assert_true(each[1].accuracy == 2.0 / 3 && each[1].precision == 2.0 / 3 && each[1].f1 == 4.0 / 6);
    assert_true(each[2].accuracy == 0.5 && each[2].precision == 0.5 && each[2].f1 == 0.5);
    assert_float_equal(score.macro_f1, 5.0 / 9, 1e-15);
}

/* Precision and recall differ: truth 0 0 0 1, answers 0 1 1 1.
 * Class 0: 1 of 3 found, 1 of 1 right, F1 2/4. Class 1: 1 of 1 found, 1 of 3 right, F1 2/4. */
static void test_recall_is_not_precision(void **state) {
    scratch *s = *state;
    const int32_t truth[] = {0, 0, 0, 1}, answers[] = {0, 1, 1, 1};
    uint64_t confusion[4];
    latent_class_score each[2];
    latent_score score;
    assert_int_equal(latent_score_compute(s->ctx, truth, answers, 4, 2, confusion, each, &score), LATENT_OK);
    assert_true(each[0].accuracy == 1.0 / 3 && each[0].precision == 1 && each[0].f1 == 0.5);
    assert_true(each[1].accuracy == 1 && each[1].precision == 1.0 / 3 && each[1].f1 == 0.5);
    assert_true(confusion[1] == 2 && confusion[2] == 0); /* rows are the truth */
    assert_true(score.accuracy == 0.5 && score.macro_f1 == 0.5);
}

/* A class that never occurs has zeros everywhere and does not pull the macro F1 down; one that is only
 * answered does. truth 0 0, answers 0 1, three classes: F1 2/3, 0, absent: mean 1/3. */
static void test_absent_classes(void **state) {
    scratch *s = *state;
    const int32_t truth[] = {0, 0}, answers[] = {0, 1};
    uint64_t confusion[9];
    latent_class_score each[3];
    latent_score score;
    assert_int_equal(latent_score_compute(s->ctx, truth, answers, 2, 3, confusion, each, &score), LATENT_OK);
    assert_true(each[1].accuracy == 0 && each[1].precision == 0 && each[1].f1 == 0);
    assert_true(each[2].count == 0 && each[2].accuracy == 0 && each[2].precision == 0 && each[2].f1 == 0);
    assert_float_equal(score.macro_f1, 1.0 / 3, 1e-15);
}

static void test_refusals(void **state) {
    scratch *s = *state;
    const int32_t good[] = {0, 1}, high[] = {0, 2}, low[] = {-1, 1};
    uint64_t confusion[4];
    latent_class_score each[2];
    latent_score score;
    assert_fails(s->ctx, latent_score_compute(s->ctx, good, high, 2, 2, confusion, each, &score),
                 LATENT_ERROR_ARGUMENT, "the predicted label of image 1 is class 2");
    assert_fails(s->ctx, latent_score_compute(s->ctx, low, good, 2, 2, confusion, each, &score),
                 LATENT_ERROR_ARGUMENT, "the label of image 0 is class -1");
    assert_fails(s->ctx, latent_score_compute(s->ctx, good, good, 0, 2, confusion, each, &score),
                 LATENT_ERROR_ARGUMENT, "0 answers of 2 classes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_by_hand),
        SCRATCH_TEST(test_recall_is_not_precision),
        SCRATCH_TEST(test_absent_classes),
        SCRATCH_TEST(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
