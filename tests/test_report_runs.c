/* test_report_runs.c: what a report calls its runs, and which ladder it takes for whose. */
#include "scratch.h"

#include "report/page.h"

static void write_text(scratch *s, const char *name, const char *text) {
    assert_int_equal(lt_file_write(s->ctx, scratch_path(s, name), text, strlen(text)), LATENT_OK);
}

static int says(const char *text, const char *part) {
    return strstr(text, part) != NULL;
}

/* A run of the least that counts as one. */
static void make_run(scratch *s, const char *folder) {
    char name[64];
    assert_int_equal(lt_folder_create(s->ctx, scratch_path(s, folder)), LATENT_OK);
    snprintf(name, sizeof name, "%s/config.json", folder);
    write_text(s, name, "{\"net\": \"tiny\", \"images\": 50000}");
}

static void assert_names(int count, const char *const *folders, const char *const *names) {
    lt_report_run runs[LT_REPORT_RUNS_MAX];
    memset(runs, 0, sizeof runs);
    for (int r = 0; r < count; r++) {
        runs[r].folder = strdup(folders[r]);
        const char *slash = strrchr(runs[r].folder, '/');
        runs[r].name = slash ? slash + 1 : runs[r].folder;
    }
    lt_report_name(runs, count);
    for (int r = 0; r < count; r++) {
        assert_string_equal(runs[r].name, names[r]);
        free(runs[r].folder);
    }
}

static void test_names(void **state) {
    (void)state;
    assert_names(2, (const char *[]){"demo/run", "sub/run"}, (const char *[]){"demo/run", "sub/run"});
    assert_names(2, (const char *[]){"runs/a", "runs/b"}, (const char *[]){"a", "b"});
    assert_names(3, (const char *[]){"run", "/x/sub/run", "/x/other"},
                 (const char *[]){"run", "sub/run", "other"});
    assert_names(3, (const char *[]){"/x/a/run", "/y/a/run", "/y/b/run"},
                 (const char *[]){"x/a/run", "y/a/run", "b/run"});
    assert_names(2, (const char *[]){"/run", "//run"}, (const char *[]){"/run", "//run"});
    assert_names(2, (const char *[]){"same/run", "same/run"}, (const char *[]){"same/run", "same/run"});
}

/* The page has them in its title, in its tables and over its sections. */
static void test_titles(void **state) {
    scratch *s = *state;
    char *text = NULL, one[128], two[128];
    size_t bytes = 0;
    make_run(s, "demo/run");
    make_run(s, "sub/run");
    snprintf(one, sizeof one, "%s/demo/run", s->folder);
    snprintf(two, sizeof two, "%s/sub/run/", s->folder);
    const char *const runs[] = {one, two};
    const char *page = scratch_path(s, "page.html");
    assert_int_equal(latent_report_write(s->ctx, runs, 2, NULL, page), LATENT_OK);
    assert_int_equal(lt_file_read(s->ctx, page, 1 << 24, &text, &bytes), LATENT_OK);
    assert_non_null(strstr(text, "<h1>demo/run · sub/run</h1>"));
    assert_non_null(strstr(text, "sub/run</h2>"));
    assert_non_null(strstr(text, "<tr><th scope=\"row\">features</th>"));
    free(text);
}

/* A file that is no ladder is refused, wherever it lies. */
static void test_no_ladder(void **state) {
    static const char *const wrong[] = {"{\"a\": 1}", "{\"rungs\": {}}", "{\"rungs\": []}",
                                        "{\"rungs\": [1, {\"epoch_seconds\": 0}, {}]}"};
    scratch *s = *state;
    char run[128];
    make_run(s, "run");
    snprintf(run, sizeof run, "%s/run", s->folder);
    const char *const runs[] = {run};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_text(s, "given.json", wrong[i]);
        assert_fails(
            s->ctx,
            latent_report_write(s->ctx, runs, 1, scratch_path(s, "given.json"), scratch_path(s, "page.html")),
            LATENT_ERROR_FORMAT, "given.json: the ladder has no \"rungs\"");
    }
    assert_false(lt_file_exists(scratch_path(s, "page.html")));
    write_text(s, "run/ladder.json", wrong[0]);
    assert_fails(s->ctx, latent_report_write(s->ctx, runs, 1, NULL, scratch_path(s, "page.html")),
                 LATENT_ERROR_FORMAT, "run: the ladder has no \"rungs\"");
}

/* The ladder of another net says so and decides nothing; its axis begins where lengths are proportional. */
static void test_ladder_of(void **state) {
    static const struct {
        const char *net;
        int fits;
    } cases[] = {{"\"net\": \"tiny\", ", 1},
                 {"\"net\": \"nets/tiny.net\", ", 1},
                 {"\"net\": \"autoencoder\", ", 0},
                 {"\"net\": \"tin\", ", 0},
                 {"", 1}};
    scratch *s = *state;
    char run[128], ladder[512];
    make_run(s, "run");
    snprintf(run, sizeof run, "%s/run", s->folder);
    const char *const runs[] = {run};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        latent_target targets[LATENT_TARGETS];
        char *text = NULL;
        size_t bytes = 0;
        snprintf(ladder, sizeof ladder,
                 "{%s\"epoch_images\": 50000, \"rungs\": [{\"backend\": \"cpu\", \"epoch_seconds\": %s, "
                 "\"batch\": 64}, {\"backend\": \"cuda\", \"epoch_seconds\": 1, \"batch\": 64}]}",
                 cases[i].net, i == 0 ? "4" : "40");
        write_text(s, "run/ladder.json", ladder);
        assert_int_equal(latent_run_targets(s->ctx, run, NULL, targets), LATENT_OK);
        assert_int_equal(targets[3].met, cases[i].fits ? i != 0 : -1);
        const char *page = scratch_path(s, "page.html");
        assert_int_equal(latent_report_write(s->ctx, runs, 1, NULL, page), LATENT_OK);
        assert_int_equal(lt_file_read(s->ctx, page, 1 << 24, &text, &bytes), LATENT_OK);
        assert_int_equal(says(text, "not the net of this run"), !cases[i].fits);
        assert_int_equal(says(text, "Measured on the net"), *cases[i].net != 0);
        assert_int_equal(says(text, "at batch 64"), *cases[i].net != 0);
        /* 4 times: a bar a quarter as long as the other. 40 times: a scale that begins at 1. */
        assert_int_equal(says(text, ">0×</text>"), i == 0);
        assert_true(says(text, ">1×</text>"));
        assert_int_equal(says(text, "begins at 1×"), i != 0);
        if (i == 0) {
            assert_non_null(strstr(text, "width=\"121.8\""));
            assert_non_null(strstr(text, "width=\"487.0\""));
        }
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        SCRATCH_TEST(test_titles),
        SCRATCH_TEST(test_no_ladder),
        SCRATCH_TEST(test_ladder_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
