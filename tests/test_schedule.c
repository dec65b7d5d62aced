/* test_schedule.c: learning rates against the numbers of PyTorch 2's CosineAnnealingLR and OneCycleLR with a
 * peak of 0.1, printed by PyTorch with 17 digits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/schedule.h"

#include <math.h>

typedef struct known {
    uint64_t step;
    double lr;
} known;

static const double onecycle_1[] = {3.9999999999999998e-07};
static const double onecycle_3[] = {0.099441543545091188, 0.046263710266697504, 3.9999999999999998e-07};
static const double onecycle_7[] = {0.0040000000000000036, 0.098055662733495877, 0.091904437626971064,
                                    0.067268383648054514,  0.035773877573965704, 0.0099296791893265599,
                                    3.9999999999999998e-07};
static const double onecycle_20[] = {
    0.0040000000000000036, 0.013167184270002533,  0.037167184270002526,  0.066832815729997469,
    0.090832815729997476,  0.10000000000000001,   0.098746400623508743,  0.095048463201347383,
    0.089091617757105002,  0.081174565394976306,  0.071694300179130088,  0.06112620219362893,
    0.050000200000000002,  0.038874197806371073,  0.028306099820869922,  0.018825834605023701,
    0.010908782242895003,  0.0049519367986526289, 0.0012539993764912555, 3.9999999999999998e-07};
static const double cosine_1[] = {0.10000000000000001};
static const double cosine_5[] = {0.10000000000000001, 0.090450849718747381, 0.065450849718747373,
                                  0.034549150281252633, 0.0095491502812526333};
static const double cosine_12[] = {0.10000000000000001,  0.098296291314453416,  0.093301270189221949,
                                   0.085355339059327379, 0.075000000000000011,  0.062940952255126054,
                                   0.05000000000000001,  0.037059047744873973,  0.025000000000000015,
                                   0.01464466094067263,  0.0066987298107780658, 0.0017037086855465904};

/* Twenty epochs of 50,000 images in batches of 64. */
static const known onecycle_15640[] = {{0, 0.0040000000000000036},     {1, 0.0040000107641590121},
                                       {1000, 0.01436780979104671},    {4691, 0.10000000000000001},
                                       {4692, 0.099999997941416743},   {10000, 0.052366691864844772},
                                       {15639, 3.9999999999999998e-07}};
static const known cosine_15640[] = {{0, 0.10000000000000001},
                                     {1, 0.099999998991290182},
                                     {7820, 0.05000000000000026},
                                     {15639, 1.0087098323285992e-09}};

static void check(latent_schedule schedule, uint64_t step, uint64_t total, double want) {
    double lr = lt_schedule_lr(schedule, 0.1, step, total);
    if (!(fabs(lr - want) <= 1e-13)) {
        fail_msg("schedule %d, step %llu of %llu: %.17g, not %.17g", (int)schedule, (unsigned long long)step,
                 (unsigned long long)total, lr, want);
    }
}

static void check_all(latent_schedule schedule, const double *want, uint64_t total) {
    for (uint64_t step = 0; step < total; step++) {
        check(schedule, step, total, want[step]);
    }
}

static void constant_stays(void **state) {
    (void)state;
    for (uint64_t step = 0; step < 5; step++) {
        assert_true(lt_schedule_lr(LATENT_CONSTANT, 0.0123, step, 5) == 0.0123);
    }
}

static void cosine_is_pytorchs(void **state) {
    (void)state;
    check_all(LATENT_COSINE, cosine_1, 1);
    check_all(LATENT_COSINE, cosine_5, 5);
    check_all(LATENT_COSINE, cosine_12, 12);
    for (size_t i = 0; i < sizeof cosine_15640 / sizeof cosine_15640[0]; i++) {
        check(LATENT_COSINE, cosine_15640[i].step, 15640, cosine_15640[i].lr);
    }
}

static void onecycle_is_pytorchs(void **state) {
    (void)state;
    check_all(LATENT_ONECYCLE, onecycle_1, 1);
    check_all(LATENT_ONECYCLE, onecycle_3, 3);
    check_all(LATENT_ONECYCLE, onecycle_7, 7);
    check_all(LATENT_ONECYCLE, onecycle_20, 20);
    for (size_t i = 0; i < sizeof onecycle_15640 / sizeof onecycle_15640[0]; i++) {
        check(LATENT_ONECYCLE, onecycle_15640[i].step, 15640, onecycle_15640[i].lr);
    }
}

/* By hand: halfway down a cosine is half the peak; one-cycle begins at a 25th and ends at a 250,000th. */
static void by_hand(void **state) {
    (void)state;
    assert_true(fabs(lt_schedule_lr(LATENT_COSINE, 2, 50, 100) - 1) < 1e-12);
    assert_true(fabs(lt_schedule_lr(LATENT_ONECYCLE, 5, 0, 100) - 0.2) < 1e-12);
    assert_true(fabs(lt_schedule_lr(LATENT_ONECYCLE, 5, 29, 100) - 5) < 1e-12);
    assert_true(fabs(lt_schedule_lr(LATENT_ONECYCLE, 5, 99, 100) - 2e-5) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(constant_stays), cmocka_unit_test(cosine_is_pytorchs),
                                       cmocka_unit_test(onecycle_is_pytorchs), cmocka_unit_test(by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
