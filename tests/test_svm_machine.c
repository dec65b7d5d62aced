/* test_svm_machine.c: every backend's statistics of features and decision values (backend/svm.h).
 *
 * Decision values are held against fp64 within derived bounds, and twice the same bits; whole numbers must be
 * met exactly. Runs on the host's backends, and with --backend cuda on the GPU.
 */
#include "svm_bench.h"

/* ---- statistics ---- */

static void test_statistics(void **state) {
    (void)state;
    latent_context *ctx = bench_context();
    for (int device = 0; device < 2; device++) {
        bench_recipe r = {.n = 700, .d = 1100, .classes = 2, .apart = 1, .device = device, .wide = 1};
        bench b = bench_make(ctx, bench_backend, &r);
        lt_svm_statistics out;
        double sum = 0, squares = 0, count = (double)(b.n * b.d);
        BENCH_OK(&b, b.ops->statistics(ctx, b.backend, &b.rows, b.mean, &out));
        for (size_t k = 0; k < b.d; k++) {
            double column = 0;
            for (size_t i = 0; i < b.n; i++) {
                column += b.x[i * b.stride + k];
            }
            assert_true(fabs(b.mean[k] - column / (double)b.n) <= 1e-6 * (1 + fabs(column / (double)b.n)));
            sum += column;
        }
        for (size_t i = 0; i < b.n * b.d; i++) {
            double away = b.x[i / b.d * b.stride + i % b.d] - sum / count;
            squares += away * away;
        }
        assert_true(fabs(out.variance - squares / count) <= ldexp(count, -52) * squares / count);
        if (!device) {
            b.x[690 * b.stride + 7] = INFINITY;
            b.x[300 * b.stride + 1099] = NAN;
            b.x[300 * b.stride + 1097] = -INFINITY;
            BENCH_OK(&b, b.ops->statistics(ctx, b.backend, &b.rows, b.mean, &out));
            assert_false(out.finite);
            assert_int_equal(out.bad, 300 * b.d + 1097);
            for (size_t i = 0; i < b.n * b.stride; i++) {
                b.x[i] = 0.1f;
            }
            BENCH_OK(&b, b.ops->statistics(ctx, b.backend, &b.rows, b.mean, &out));
            assert_true(out.finite && out.variance < 1e-20);
            assert_true(b.mean[5] == 0.1f);
        }
        bench_free(&b);
    }
    latent_context_destroy(ctx);
}

/* ---- decision values ---- */

/* Every third sorted row is a vector; coefficients of a problem cover part of them. */
static void test_machine(void **state) {
    (void)state;
    latent_context *ctx = bench_context();
    for (int i = 0; i < 8; i++) {
        bench_recipe r = {.n = i == 7 ? 2500 : 900,
                          .d = i % 2 ? 70 : 33,
                          .classes = 2,
                          .apart = 0.7,
                          .device = i / 2 % 2,
                          .wide = i % 3 == 1,
                          .whole = i >= 5 && i < 7,
                          .kernel = i == 4 || i == 5 ? LT_SVM_LINEAR : LT_SVM_RBF,
                          .precision = (lt_svm_precision)(i % 3)};
        bench b = bench_make(ctx, bench_backend, &r);
        enum { PROBLEMS = 7 };
        size_t count = b.n / 3;
        uint32_t *order = malloc(count * sizeof *order);
        double *coefficients = calloc(PROBLEMS * count, sizeof *coefficients), rho[PROBLEMS], gamma[PROBLEMS];
        double *got = malloc(b.n * PROBLEMS * sizeof *got), *twice = malloc(b.n * PROBLEMS * sizeof *got);
        for (size_t v = 0; v < count; v++) {
            order[v] = b.order[3 * v];
        }
        for (int p = 0; p < PROBLEMS; p++) {
            rho[p] = 0.25 * p - 1;
            gamma[p] = b.gamma * (i == 3 ? 1 + p : 1);
            for (size_t v = (size_t)p * count / 9; p > 0 && v < count * (size_t)(p + 3) / 9; v++) {
                coefficients[(size_t)p * count + v] =
                    r.whole ? (double)(v % 5) - 2 : bench_normal(77, v * PROBLEMS + (size_t)p);
            }
        }
        lt_svm_machine_call call = {.vectors = b.rows,
                                    .order = order,
                                    .mean = b.mean,
                                    .kernel = b.kernel,
                                    .gamma = gamma,
                                    .precision = b.precision,
                                    .problems = PROBLEMS,
                                    .coefficients = coefficients,
                                    .rho = rho};
        call.vectors.n = count;
        lt_svm_machine *machine = NULL;
        BENCH_OK(&b, b.ops->machine_create(ctx, b.backend, &call, &machine));
        BENCH_OK(&b, b.ops->machine_decide(ctx, b.backend, machine, &b.rows, got));
        BENCH_OK(&b, b.ops->machine_decide(ctx, b.backend, machine, &b.rows, twice));
        assert_memory_equal(got, twice, b.n * PROBLEMS * sizeof *got);
        double common = b.gamma;
        float *mean = b.mean, *none = calloc(b.d, sizeof *none);
        for (size_t j = 0; j < b.n; j += 7) {
            for (int p = 0; p < PROBLEMS; p++) {
                double want = -rho[p], bound = 1e-12;
                b.gamma = gamma[p];
                b.mean = b.kernel == LT_SVM_LINEAR ? none : mean;
                for (size_t v = 0; v < count; v++) {
                    double weight = coefficients[(size_t)p * count + v];
                    double k = weight != 0 ? bench_kernel(&b, j, 3 * v) : 0;
                    want += weight * k;
                    bound += weight != 0 ? fabs(weight) * bench_bound(&b, j, 3 * v, k) : 0;
                }
                b.mean = mean;
                b.gamma = common;
                bound = r.whole && b.kernel == LT_SVM_LINEAR ? 0 : bound;
                if (!(fabs(got[b.order[j] * PROBLEMS + (size_t)p] - want) <= bound)) {
                    fail_msg("case %d, row %zu, problem %d: %.9g; %.9g within %.2g is right", i, j, p,
                             got[b.order[j] * PROBLEMS + (size_t)p], want, bound);
                }
            }
        }
        b.ops->machine_free(b.backend, machine);
        free(none);
        free(order);
        free(coefficients);
        free(got);
        free(twice);
        bench_free(&b);
    }
    latent_context_destroy(ctx);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_machine),
    };
    return bench_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
