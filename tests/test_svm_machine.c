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

enum { PROBLEMS = 7 };

/* Every third sorted row is a vector; the coefficients of a problem cover part of them. */
typedef struct asked {
    size_t count;
    uint32_t *order;
    double *coefficients; /* [PROBLEMS][count] */
    double rho[PROBLEMS], gamma[PROBLEMS];
} asked;

static asked ask(const bench *b, int whole, int gammas_differ) {
    asked a = {.count = b->n / 3};
    a.order = malloc(a.count * sizeof *a.order);
    a.coefficients = calloc(PROBLEMS * a.count, sizeof *a.coefficients);
    for (size_t v = 0; v < a.count; v++) {
        a.order[v] = b->order[3 * v];
    }
    for (size_t p = 0; p < PROBLEMS; p++) {
        a.rho[p] = 0.25 * (double)p - 1;
        a.gamma[p] = b->gamma * (gammas_differ ? 1 + (double)p : 1);
        for (size_t v = p * a.count / 9; p > 0 && v < a.count * (p + 3) / 9; v++) {
            a.coefficients[p * a.count + v] =
                whole ? (double)(v % 5) - 2 : bench_normal(77, v * PROBLEMS + p);
        }
    }
    return a;
}

/* Decision value p of sorted row j in fp64, and how far the backend's may be off. A linear machine has no
 * mean: its threshold is that of the rows as they came. */
static double decision(const bench *from, const asked *a, size_t j, size_t p, double *bound) {
    bench b = *from;
    float *none = calloc(b.d, sizeof *none);
    double sum = -a->rho[p];
    *bound = 1e-12;
    b.gamma = a->gamma[p];
    b.mean = b.kernel == LT_SVM_LINEAR ? none : b.mean;
    for (size_t v = 0; v < a->count; v++) {
        double weight = a->coefficients[p * a->count + v];
        if (weight != 0) {
            double k = bench_kernel(&b, j, 3 * v);
            sum += weight * k;
            *bound += fabs(weight) * bench_bound(&b, j, 3 * v, k);
        }
    }
    free(none);
    return sum;
}

static void check_machine(const bench *b, const asked *a, int exact) {
    size_t values = b->n * PROBLEMS;
    double *got = malloc(values * sizeof *got), *twice = malloc(values * sizeof *twice), bound;
    lt_svm_machine *machine = NULL;
    lt_svm_machine_call call = {.vectors = b->rows,
                                .order = a->order,
                                .mean = b->mean,
                                .kernel = b->kernel,
                                .gamma = a->gamma,
                                .precision = b->precision,
                                .problems = PROBLEMS,
                                .coefficients = a->coefficients,
                                .rho = a->rho};
    call.vectors.n = a->count;
    BENCH_OK(b, b->ops->machine_create(b->ctx, b->backend, &call, &machine));
    BENCH_OK(b, b->ops->machine_decide(b->ctx, b->backend, machine, &b->rows, got));
    BENCH_OK(b, b->ops->machine_decide(b->ctx, b->backend, machine, &b->rows, twice));
    assert_memory_equal(got, twice, values * sizeof *got);
    for (size_t j = 0; j < b->n; j += 7) {
        for (size_t p = 0; p < PROBLEMS; p++) {
            double value = got[b->order[j] * PROBLEMS + p], want = decision(b, a, j, p, &bound);
            bound = exact ? 0 : bound;
            if (!(fabs(value - want) <= bound)) {
                fail_msg("row %zu, problem %zu: %.9g; %.9g within %.2g is right", j, p, value, want, bound);
            }
        }
    }
    b->ops->machine_free(b->backend, machine);
    free(got);
    free(twice);
}

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
        asked a = ask(&b, r.whole, i == 3);
        check_machine(&b, &a, r.whole && r.kernel == LT_SVM_LINEAR);
        free(a.order);
        free(a.coefficients);
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
