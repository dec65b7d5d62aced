/* test_svm_backend.c: every backend's kernel matrix and solver (backend/svm.h), entry by entry.
 *
 * Sums over one row with coefficient 1 are the kernel matrix itself: it is read back and checked value by
 * value against fp64 within derived bounds; whole numbers must be met exactly. What the solver says of its
 * solutions is then recomputed from the very matrix that it had. Runs on the host's backends, and with
 * --backend cuda on the GPU.
 */
#include "svm_bench.h"

/* ---- the matrix ---- */

/* K as the backend has it: [n][n], by sums with one coefficient each. */
static double *read_matrix(const bench *b, lt_svm_matrix *matrix) {
    lt_svm_problem *problems = calloc(b->n, sizeof *problems);
    double *alpha = malloc(b->n * sizeof *alpha), *k = malloc(b->n * b->n * sizeof *k);
    for (size_t i = 0; i < b->n; i++) {
        problems[i] = (lt_svm_problem){
            .begin = {(uint32_t)i, 0}, .end = {(uint32_t)i + 1, 0}, .c = {1, 1}, .fold = -1, .first = i};
        alpha[i] = 1;
    }
    lt_svm_sums_call call = {.problems = problems, .count = (int)b->n, .alpha = alpha, .sums = k};
    BENCH_OK(b, b->ops->sums(b->ctx, b->backend, matrix, &call));
    free(problems);
    free(alpha);
    return k;
}

static void check_matrix(const bench *b, const double *k, int exact) {
    for (size_t i = 0; i < b->n; i++) {
        for (size_t j = 0; j < b->n; j++) {
            double want = bench_kernel(b, i, j), bound = exact ? 0 : bench_bound(b, i, j, want);
            if (!(fabs(k[i * b->n + j] - want) <= bound) || k[i * b->n + j] != k[j * b->n + i]) {
                fail_msg("K[%zu][%zu] is %.9g, mirrored %.9g; %.9g within %.2g is right", i, j,
                         k[i * b->n + j], k[j * b->n + i], want, bound);
            }
        }
        assert_true(b->kernel != LT_SVM_RBF || k[i * b->n + i] == 1);
    }
}

static void test_matrix(void **state) {
    (void)state;
    latent_context *ctx = bench_context();
    for (int i = 0; i < 12; i++) {
        bench_recipe r = {.n = i % 4 == 3 ? 65 : 150 + (size_t)i,
                          .d = i % 2 ? 129 : 40,
                          .classes = 3,
                          .apart = 1,
                          .device = i % 2,
                          .wide = i % 3 == 1,
                          .whole = i >= 9,
                          .kernel = i % 4 == 2 || i >= 9 ? LT_SVM_LINEAR : LT_SVM_RBF,
                          .precision = (lt_svm_precision)(i % 3)};
        bench b = bench_make(ctx, bench_backend, &r);
        lt_svm_matrix *matrix = bench_matrix(&b, 0, 0);
        lt_svm_matrix_info info;
        double *k = read_matrix(&b, matrix);
        b.ops->matrix_get_info(matrix, &info);
        assert_true(info.resident);
        assert_true(info.bytes >= b.n * b.n * sizeof(float));
        check_matrix(&b, k, r.whole);
        free(k);
        b.ops->matrix_free(b.backend, matrix);
        bench_free(&b);
    }
    latent_context_destroy(ctx);
}

/* Another gamma from kept distances is the matrix of that gamma, bit for bit; and without room for distances
 * too. */
static void test_gamma(void **state) {
    (void)state;
    latent_context *ctx = bench_context();
    bench_recipe r = {.n = 200, .d = 30, .classes = 2, .apart = 1};
    bench b = bench_make(ctx, bench_backend, &r);
    for (int tight = 0; tight < 2; tight++) {
        uint64_t limit = tight ? (uint64_t)(r.n * 224 * sizeof(float)) : 0;
        lt_svm_matrix *matrix = bench_matrix(&b, 1, limit);
        BENCH_OK(&b, b.ops->matrix_gamma(ctx, b.backend, matrix, 3 * b.gamma));
        double *k = read_matrix(&b, matrix);
        b.ops->matrix_free(b.backend, matrix);
        double gamma = b.gamma;
        b.gamma *= 3;
        matrix = bench_matrix(&b, 0, limit);
        double *fresh = read_matrix(&b, matrix);
        assert_memory_equal(k, fresh, b.n * b.n * sizeof *k);
        check_matrix(&b, k, 0);
        b.ops->matrix_free(b.backend, matrix);
        b.gamma = gamma;
        free(k);
        free(fresh);
    }
    bench_free(&b);
    latent_context_destroy(ctx);
}

/* ---- solving ---- */

typedef struct answers {
    lt_svm_problem *problems;
    lt_svm_solution *solutions;
    double *alpha, *gradient;
    int count;
    size_t places;
} answers;

static void answers_free(answers *a) {
    free(a->problems);
    free(a->solutions);
    free(a->alpha);
    free(a->gradient);
}

static answers solve(const bench *b, lt_svm_matrix *matrix, double c, int folds, const uint8_t *fold,
                     double tolerance, uint64_t cap, const double *start) {
    answers a = {0};
    a.problems = bench_problems(b, c, folds, &a.count, &a.places);
    a.solutions = calloc((size_t)a.count, sizeof *a.solutions);
    a.alpha = malloc(a.places * sizeof *a.alpha);
    a.gradient = malloc(a.places * sizeof *a.gradient);
    memset(a.alpha, 0xFF, a.places * sizeof *a.alpha);
    if (start) {
        memcpy(a.alpha, start, a.places * sizeof *a.alpha);
    }
    lt_svm_solve_call call = {.problems = a.problems,
                              .count = a.count,
                              .fold = fold,
                              .tolerance = tolerance,
                              .iterations_max = cap,
                              .warm = start != NULL,
                              .alpha = a.alpha,
                              .gradient = a.gradient,
                              .solutions = a.solutions};
    BENCH_OK(b, b->ops->solve(b->ctx, b->backend, matrix, &call));
    return a;
}

/* What is said of problem p against K as given: k[i*n + j], or NULL: fp64 from the features. */
static void check_solution(const bench *b, const answers *a, int p, const double *k, const uint8_t *fold,
                           double tolerance, double slack) {
    const lt_svm_problem *q = &a->problems[p];
    const lt_svm_solution *s = &a->solutions[p];
    size_t n = bench_size(q), n0 = q->end[0] - q->begin[0];
    const double *alpha = a->alpha + q->first, *gradient = a->gradient + q->first;
    double balance = 0, objective = 0, rise = -INFINITY, fall = INFINITY, inside = 0, sum = 0, total = 0;
    for (size_t i = 0; i < n; i++) {
        double y = i < n0 ? 1 : -1, c = q->c[i >= n0], g = 0;
        int out = fold && q->fold >= 0 && fold[bench_row(q, i)] == (uint8_t)q->fold;
        assert_true(alpha[i] >= 0 && alpha[i] <= c && !(out && alpha[i] != 0));
        for (size_t j = 0; j < n; j++) {
            if (alpha[j] != 0) {
                uint32_t row = bench_row(q, i), column = bench_row(q, j);
                g += (j < n0 ? 1 : -1) * alpha[j] *
                     (k ? k[row * b->n + column] : bench_kernel(b, row, column));
            }
        }
        g = y * g - 1;
        if (!(fabs(g - gradient[i]) <= slack)) {
            fail_msg("problem %d, row %zu: the gradient is %.12g, %.12g within %.2g is right", p, i,
                     gradient[i], g, slack);
        }
        balance += y * alpha[i];
        total += alpha[i];
        objective += alpha[i] * (g - 1) / 2;
        int up = !out && (y > 0 ? alpha[i] < c : alpha[i] > 0),
            down = !out && (y > 0 ? alpha[i] > 0 : alpha[i] < c);
        rise = up && -y * g > rise ? -y * g : rise;
        fall = down && -y * g < fall ? -y * g : fall;
        inside += up && down;
        sum += up && down ? y * g : 0;
    }
    assert_true(fabs(balance) <= 1e-9 * (1 + total));
    assert_true(fabs(s->objective - objective) <= slack * (1 + total));
    assert_true(fabs(s->gap - (rise - fall)) <= 2 * slack || (isinf(s->gap) && isinf(rise - fall)));
    assert_true(inside == 0 || fabs(s->rho - sum / inside) <= slack);
    assert_true(tolerance == 0 || (s->outcome == LT_SVM_SOLVED && s->gap < tolerance));
}

static void test_solve(void **state) {
    (void)state;
    latent_context *ctx = bench_context();
    double tolerance = bench_small ? 1e-2 : 1e-5;
    for (int i = 0; i < 6; i++) {
        bench_recipe r = {.n = bench_small ? 60 : 240,
                          .d = 20,
                          .classes = 2 + i,
                          .apart = 0.4,
                          .one_row = i == 2,
                          .device = i % 2,
                          .kernel = i == 3 ? LT_SVM_LINEAR : LT_SVM_RBF,
                          .precision = (lt_svm_precision)(i % 3)};
        bench b = bench_make(ctx, bench_backend, &r);
        lt_svm_matrix *matrix = bench_matrix(&b, 0, 0);
        double *k = read_matrix(&b, matrix), c = i == 4 && !bench_small ? 1000 : i == 5 ? 0.01 : 10;
        answers a = solve(&b, matrix, c, 0, NULL, tolerance, 10000000, NULL);
        for (int p = 0; p < a.count; p++) {
            check_solution(&b, &a, p, k, NULL, tolerance, 1e-9 * (1 + c));
        }
        answers again = solve(&b, matrix, c, 0, NULL, tolerance, 10000000, NULL);
        assert_memory_equal(a.alpha, again.alpha, a.places * sizeof *a.alpha);
        assert_memory_equal(a.gradient, again.gradient, a.places * sizeof *a.gradient);
        assert_memory_equal(a.solutions, again.solutions, (size_t)a.count * sizeof *a.solutions);
        /* From its own answer there is nothing to do; from that of a smaller C there is. */
        answers warm = solve(&b, matrix, c, 0, NULL, tolerance, 10000000, a.alpha);
        assert_memory_equal(a.alpha, warm.alpha, a.places * sizeof *a.alpha);
        answers larger = solve(&b, matrix, 2 * c, 0, NULL, tolerance, 10000000, a.alpha);
        for (int p = 0; p < a.count; p++) {
            assert_int_equal(warm.solutions[p].iterations, 0);
            check_solution(&b, &larger, p, k, NULL, tolerance, 1e-9 * (1 + c));
        }
        answers_free(&a);
        answers_free(&again);
        answers_free(&warm);
        answers_free(&larger);
        free(k);
        b.ops->matrix_free(b.backend, matrix);
        bench_free(&b);
    }
    latent_context_destroy(ctx);
}

static void test_folds(void **state) {
    (void)state;
    latent_context *ctx = bench_context();
    bench_recipe r = {.n = bench_small ? 60 : 210, .d = 25, .classes = 3, .apart = 0.5, .device = 1};
    bench b = bench_make(ctx, bench_backend, &r);
    lt_svm_matrix *matrix = bench_matrix(&b, 0, 0);
    double *k = read_matrix(&b, matrix);
    uint8_t fold[210];
    for (size_t i = 0; i < b.n; i++) {
        fold[i] = (uint8_t)(i < b.begin[1] ? 0 : i % 4); /* class 0 is wholly in fold 0 */
    }
    answers a = solve(&b, matrix, 5, 4, fold, 1e-4, 10000000, NULL);
    double *sums = malloc((size_t)a.count * b.n * sizeof *sums);
    lt_svm_sums_call call = {
        .problems = a.problems, .count = a.count, .alpha = a.alpha, .fold = fold, .sums = sums};
    BENCH_OK(&b, b.ops->sums(ctx, b.backend, matrix, &call));
    for (int p = 0; p < a.count; p++) {
        const lt_svm_problem *q = &a.problems[p];
        check_solution(&b, &a, p, k, fold, 1e-4, 1e-8);
        for (size_t i = 0; i < b.n; i++) {
            double want = 0;
            for (size_t j = 0; j < bench_size(q); j++) {
                want += (j < q->end[0] - q->begin[0] ? 1 : -1) * a.alpha[q->first + j] *
                        k[i * b.n + bench_row(q, j)];
            }
            assert_true(fold[i] != q->fold || fabs(sums[(size_t)p * b.n + i] - want) <= 1e-9);
        }
    }
    answers_free(&a);
    free(sums);
    free(k);
    b.ops->matrix_free(b.backend, matrix);
    bench_free(&b);
    latent_context_destroy(ctx);
}

/* The cap is kept, and what is said of the unfinished solution is true. */
static void test_cap(void **state) {
    (void)state;
    latent_context *ctx = bench_context();
    bench_recipe r = {.n = 200, .d = 10, .classes = 2, .apart = 0.1};
    bench b = bench_make(ctx, bench_backend, &r);
    lt_svm_matrix *matrix = bench_matrix(&b, 0, 0);
    double *k = read_matrix(&b, matrix);
    answers a = solve(&b, matrix, 10, 0, NULL, 1e-6, 7, NULL);
    assert_int_equal(a.solutions[0].outcome, LT_SVM_CAPPED);
    assert_int_equal(a.solutions[0].iterations, 7);
    check_solution(&b, &a, 0, k, NULL, 0, 1e-9);
    answers_free(&a);
    free(k);
    b.ops->matrix_free(b.backend, matrix);
    bench_free(&b);
    latent_context_destroy(ctx);
}

/* Sizes around every limit of the solvers: rows to a thread, the largest problem in registers, packed
 * problems of the host. The classes lie far apart: few steps, any of which may meet any row. */
static void test_sizes(void **state) {
    (void)state;
    latent_context *ctx = bench_context();
    static const size_t sizes[] = {2, 31, 513, 1025, 2049, 3073, 6145, 10240, 12288, 12289, 13001};
    int device = strcmp(bench_backend, "cuda") == 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && (device || sizes[i] < 3000); i++) {
        if (bench_small && sizes[i] > 1025 && sizes[i] != 12289) { /* one that is not kept in registers */
            continue;
        }
        bench_recipe r = {.n = sizes[i],
                          .d = 6,
                          .classes = 2,
                          .apart = 3,
                          .kernel = i % 4 == 2 ? LT_SVM_LINEAR : LT_SVM_RBF,
                          .precision = LT_SVM_FP32};
        bench b = bench_make(ctx, bench_backend, &r);
        lt_svm_matrix *matrix = bench_matrix(&b, 0, 0);
        answers a = solve(&b, matrix, 1, 0, NULL, 1e-2, 10000000, NULL);
        check_solution(&b, &a, 0, NULL, NULL, 1e-2, b.kernel == LT_SVM_LINEAR ? 1e-2 : 1e-4);
        answers_free(&a);
        b.ops->matrix_free(b.backend, matrix);
        bench_free(&b);
    }
    latent_context_destroy(ctx);
}

/* Too little memory for the whole matrix: rows are computed as they are needed. */
static void test_parts(void **state) {
    (void)state;
    latent_context *ctx = bench_context();
    bench_recipe r = {
        .n = bench_small ? 600 : 3000, .d = 8, .classes = 6, .apart = 1, .precision = LT_SVM_FP32};
    bench b = bench_make(ctx, bench_backend, &r);
    lt_svm_matrix *matrix = bench_matrix(&b, 0, (uint64_t)(bench_small ? 1 : 10) << 20);
    lt_svm_matrix_info info;
    b.ops->matrix_get_info(matrix, &info);
    assert_false(info.resident);
    uint8_t *fold = malloc(b.n);
    for (size_t i = 0; i < b.n; i++) {
        fold[i] = (uint8_t)(i % 2);
    }
    answers a = solve(&b, matrix, 1, 2, fold, 1e-2, 10000000, NULL);
    double *sums = malloc((size_t)a.count * b.n * sizeof *sums);
    lt_svm_sums_call call = {
        .problems = a.problems, .count = a.count, .alpha = a.alpha, .fold = fold, .sums = sums};
    BENCH_OK(&b, b.ops->sums(ctx, b.backend, matrix, &call));
    for (int p = 0; p < a.count; p++) {
        const lt_svm_problem *q = &a.problems[p];
        check_solution(&b, &a, p, NULL, fold, 1e-2, 1e-4);
        for (size_t i = 0; i < b.n; i += 97) {
            double want = 0;
            for (size_t j = 0; j < bench_size(q); j++) {
                double alpha = a.alpha[q->first + j];
                want += alpha == 0 ? 0
                                   : (j < q->end[0] - q->begin[0] ? alpha : -alpha) *
                                         bench_kernel(&b, i, bench_row(q, j));
            }
            assert_true(fold[i] != q->fold || fabs(sums[(size_t)p * b.n + i] - want) <= 1e-4);
        }
    }
    answers_free(&a);
    free(sums);
    free(fold);
    b.ops->matrix_free(b.backend, matrix);
    bench_free(&b);
    latent_context_destroy(ctx);
}

static void stop_at_once(void *user, uint64_t done, uint64_t total) {
    (void)done, (void)total;
    ((latent_context *)user)->interrupted = 1;
}

static void test_interrupt(void **state) {
    (void)state;
    latent_context *ctx = bench_context();
    bench_recipe r = {.n = 300, .d = 10, .classes = 3, .apart = 0.2};
    bench b = bench_make(ctx, bench_backend, &r);
    lt_svm_matrix *matrix = NULL;
    lt_svm_matrix_call call = {.rows = b.rows,
                               .order = b.order,
                               .kernel = LT_SVM_RBF,
                               .gamma = b.gamma,
                               .progress = {stop_at_once, ctx}};
    assert_int_equal(b.ops->matrix_create(ctx, b.backend, &call, &matrix), LATENT_INTERRUPTED);
    assert_null(matrix);
    ctx->interrupted = 0;
    bench_free(&b);
    latent_context_destroy(ctx);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix), cmocka_unit_test(test_gamma),     cmocka_unit_test(test_solve),
        cmocka_unit_test(test_folds),  cmocka_unit_test(test_cap),       cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_parts),  cmocka_unit_test(test_interrupt),
    };
    return bench_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
