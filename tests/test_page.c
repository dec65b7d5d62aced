/* test_page.c: the page is well-formed, loads nothing, and lets nothing through that a run folder holds. */
#include "scratch.h"

#include "io/safetensors.h"
#include "report/charts.h"
#include "report/page.h"
#include "report/text.h"

#include <ctype.h>
#include <math.h>

static void write_text(scratch *s, const char *name, const char *text) {
    scratch_file(s, name, text, strlen(text));
}

static char *read_page(scratch *s, const char *name) {
    char *page = NULL;
    size_t bytes = 0;
    assert_int_equal(lt_file_read(s->ctx, scratch_path(s, name), 1 << 26, &page, &bytes), LATENT_OK);
    assert_int_equal(strlen(page), bytes);
    return page;
}

/* Every tag is closed by its own end in the right order, every attribute is quoted, no text holds a bare
 * '<', every '&' begins a known entity. The page is XML but for its first line. */
static void assert_well_formed(const char *page) {
    const char *stack[64];
    int depth = 0;
    const char *at = strstr(page, "<html");
    assert_memory_equal(page, "<!DOCTYPE html>\n", 16);
    while (*at) {
        if (*at == '&') {
            size_t length = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz#0123456789");
            assert_true(length > 0 && at[1 + length] == ';');
        }
        if (*at != '<') {
            at++;
            continue;
        }
        int closing = at[1] == '/';
        const char *name = at + 1 + closing;
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz123456");
        assert_true(length > 0); /* a bare '<' */
        const char *end = name + length;
        while (*end && *end != '>') { /* attributes: name="value" */
            if (*end == '"') {
                end = strchr(end + 1, '"');
                assert_non_null(end);
            }
            assert_true(*end != '<');
            end++;
        }
        assert_true(*end == '>');
        if (closing) {
            assert_true(depth > 0);
            depth--;
            assert_int_equal(strspn(stack[depth], "abcdefghijklmnopqrstuvwxyz123456"), length);
            assert_memory_equal(stack[depth], name, length);
        } else if (end[-1] != '/') {
            assert_true(depth < 64);
            stack[depth++] = name;
        }
        at = end + 1;
    }
    assert_int_equal(depth, 0);
}

static void assert_loads_nothing(const char *page) {
    static const char *const loads[] = {"http:",   "https:", "//",     "<script", "<link",      "<iframe",
                                        "@import", "url(",   "onload", "onerror", "javascript:"};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        const char *found = strstr(page, loads[i]);
        /* base64 may hold any letters but those of a colon or a bracket */
        while (found && strcmp(loads[i], "//") == 0 && !isspace((unsigned char)found[-1]) &&
               found[-1] != '"') {
            found = strstr(found + 2, "//");
        }
        if (found) {
            fail_msg("the page holds %s: %.60s", loads[i], found);
        }
    }
}

#define EVIL "<script>alert(1)</script>\\\"'&amp;"

/* A run whose every text is an attack. */
static void hostile_run(scratch *s, const char *folder) {
    char name[64];
    assert_int_equal(lt_folder_create(s->ctx, scratch_path(s, folder)), LATENT_OK);
    snprintf(name, sizeof name, "%s/config.json", folder);
    write_text(s, name,
               "{\"net\": \"" EVIL "\", \"net_text\": \"" EVIL "\", \"engine\": \"" EVIL
               "\", \"data\": \"" EVIL "\", \"images\": 100, \"seed\": 1, \"recipe\": {\"epochs\": 2, "
               "\"batch\": 4, \"optimizer\": \"" EVIL "\", \"schedule\": \"" EVIL "\", \"lr\": 1e-3}}");
    snprintf(name, sizeof name, "%s/metrics.jsonl", folder);
    write_text(s, name,
               "{\"epoch\": 1, \"loss\": 0.5, \"seconds\": 1}\n{\"epoch\": 2, \"loss\": null}\n{\"epo");
    snprintf(name, sizeof name, "%s/eval.json", folder);
    write_text(s, name,
               "{\"classes\": [\"" EVIL "\", \"b\"], \"loss\": 0.25, \"split\": \"test\", \"svm\": "
               "{\"confusion\": [[3, 1], [2, 4]]}}");
    snprintf(name, sizeof name, "%s/run.json", folder);
    write_text(s, name,
               "{\"command\": \"latent run " EVIL "\", \"machine\": \"" EVIL "\", \"stages\": [{\"name\": "
               "\"" EVIL "\", \"inputs\": \"\", \"summary\": \"" EVIL "\", \"seconds\": 1e300}, {}]}");
    snprintf(name, sizeof name, "%s/profile.json", folder);
    write_text(s, name,
               "{\"engine\": \"" EVIL "\", \"ops\": [{\"name\": \"" EVIL "\", \"kind\": \"" EVIL
               "\", \"kernel\": \"" EVIL "\", \"seconds\": 0.25}, 7]}");
    snprintf(name, sizeof name, "%s/ladder.json", folder);
    write_text(s, name,
               "{\"epoch_images\": 50000, \"rungs\": [{\"backend\": \"" EVIL "\", \"what\": \"" EVIL
               "\", \"epoch_seconds\": 10}, {\"backend\": \"cuda\", \"kernels\": \"" EVIL
               "\", \"epoch_seconds\": 0.001}, {\"epoch_seconds\": -1}]}");
}

static void put_pictures(scratch *s, const char *path) {
    enum { N = 3, M = 2, BYTES = 4 * 4 * 3 };
    static uint8_t images[N * BYTES], labels[N] = {0, 1, 200}, truth[M] = {0, 1}, predicted[M] = {1, 77};
    for (int i = 0; i < N * BYTES; i++) {
        images[i] = (uint8_t)(i * 7);
    }
    lt_st_tensor tensors[6];
    const char *const names[6] = {"original", "output", "label", "confused", "truth", "predicted"};
    const void *const data[6] = {images, images, labels, images, truth, predicted};
    for (int i = 0; i < 6; i++) {
        uint64_t n = i < 3 ? N : M;
        int image = i == 0 || i == 1 || i == 3;
        tensors[i] = (lt_st_tensor){.name = names[i],
                                    .type = LT_ST_U8,
                                    .dims = image ? 4 : 1,
                                    .shape = {n, 4, 4, 3},
                                    .count = image ? n * BYTES : n,
                                    .data = data[i]};
    }
    assert_int_equal(lt_st_write(s->ctx, path, tensors, 6, NULL, 0), LATENT_OK);
}

static void test_hostile_run(void **state) {
    scratch *s = *state;
    char folder[128];
    hostile_run(s, "run");
    put_pictures(s, scratch_path(s, "run/pictures.safetensors"));
    snprintf(folder, sizeof folder, "%s", scratch_path(s, "run"));
    const char *runs[] = {folder};
    assert_int_equal(latent_report_write(s->ctx, runs, 1, NULL, scratch_path(s, "page.html")), LATENT_OK);
    char *page = read_page(s, "page.html");
    assert_well_formed(page);
    assert_loads_nothing(page);
    static const char *const parts[] = {"Targets",
                                        "Loss",
                                        "Reconstructions",
                                        "Accuracy by class",
                                        "Confusion matrix",
                                        "The pairs confused most",
                                        "Time by stage",
                                        "Time by kind of work",
                                        "The ladder of engines",
                                        "Hardware and how to make it again",
                                        "&lt;script&gt;alert(1)",
                                        "70.00%",   /* 7 of 10 right */
                                        "class 77", /* a label without a name */
                                        "prefers-color-scheme:dark",
                                        "@media print"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!strstr(page, parts[i])) {
            fail_msg("the page lacks '%s'", parts[i]);
        }
    }
    free(page);
}

static void assert_ids_unique(const char *page) {
    static const char mark[] = " id=\"";
    for (const char *at = page; (at = strstr(at, mark)); at += sizeof mark) {
        char id[64] = "";
        size_t length = sizeof mark + strcspn(at + sizeof mark - 1, "\"");
        assert_true(length < sizeof id);
        memcpy(id, at, length); /* with both quotes */
        assert_null(strstr(at + 1, id));
    }
}

/* Several runs: all of them side by side, the hostile one among them; ids stay unique. */
static void test_several_runs(void **state) {
    scratch *s = *state;
    char a[128], b[128];
    hostile_run(s, "a");
    hostile_run(s, "b&<i>");
    snprintf(a, sizeof a, "%s/", scratch_path(s, "a"));
    snprintf(b, sizeof b, "%s", scratch_path(s, "b&<i>"));
    const char *runs[] = {a, b, a};
    assert_int_equal(latent_report_write(s->ctx, runs, 3, NULL, scratch_path(s, "page.html")), LATENT_OK);
    char *page = read_page(s, "page.html");
    assert_well_formed(page);
    assert_loads_nothing(page);
    assert_non_null(strstr(page, "Side by side"));
    assert_non_null(strstr(page, "difference to the first run"));
    assert_non_null(strstr(page, "b&amp;&lt;i&gt;"));
    assert_ids_unique(page);
    free(page);
}

/* Files that are broken are named; what is missing is left out. */
static void test_refusals(void **state) {
    scratch *s = *state;
    char folder[128], page[128];
    snprintf(folder, sizeof folder, "%s", scratch_path(s, "run"));
    snprintf(page, sizeof page, "%s", scratch_path(s, "page.html"));
    const char *runs[9] = {folder, folder, folder, folder, folder, folder, folder, folder, folder};
    assert_fails(s->ctx, latent_report_write(s->ctx, runs, 1, NULL, page), LATENT_ERROR_ARGUMENT,
                 "no such folder");
    assert_int_equal(lt_folder_create(s->ctx, folder), LATENT_OK);
    assert_fails(s->ctx, latent_report_write(s->ctx, runs, 1, NULL, page), LATENT_ERROR_ARGUMENT,
                 "no config.json, metrics.jsonl or eval.json");
    assert_fails(s->ctx, latent_report_write(s->ctx, runs, 9, NULL, page), LATENT_ERROR_ARGUMENT,
                 "1 to 8 runs, not 9");
    write_text(s, "run/config.json", "{\"net\": ");
    assert_fails(s->ctx, latent_report_write(s->ctx, runs, 1, NULL, page), LATENT_ERROR_FORMAT,
                 "config.json");
    write_text(s, "run/config.json", "{}");
    assert_int_equal(latent_report_write(s->ctx, runs, 1, NULL, page), LATENT_OK);
    write_text(s, "run/metrics.jsonl", "{\"epoch\": -1}\n");
    assert_fails(s->ctx, latent_report_write(s->ctx, runs, 1, NULL, page), LATENT_ERROR_FORMAT,
                 "metrics.jsonl: line 1");
    write_text(s, "run/metrics.jsonl", "");
    static const char *const evals[] = {
        "{\"classes\": [7]}", "{\"classes\": [\"a\", \"b\"], \"svm\": {\"confusion\": [[1, 2]]}}",
        "{\"classes\": [\"a\", \"b\"], \"svm\": {\"confusion\": [[1, 2], [3]]}}",
        "{\"classes\": [\"a\"], \"svm\": {\"confusion\": [[-1]]}}",
        "{\"classes\": [\"a\"], \"svm\": {\"confusion\": [[99999999999999]]}}"};
    for (size_t i = 0; i < sizeof evals / sizeof *evals; i++) {
        write_text(s, "run/eval.json", evals[i]);
        assert_fails(s->ctx, latent_report_write(s->ctx, runs, 1, NULL, page), LATENT_ERROR_FORMAT,
                     "eval.json: ");
    }
    write_text(s, "run/eval.json", "{}");
    write_text(s, "run/pictures.safetensors", "no such thing");
    assert_fails(s->ctx, latent_report_write(s->ctx, runs, 1, NULL, page), LATENT_ERROR_FORMAT,
                 "pictures.safetensors");
    lt_st_tensor odd = {
        .name = "original", .type = LT_ST_U8, .dims = 4, .shape = {1, 2, 2, 1}, .count = 4, .data = "abcd"};
    assert_int_equal(lt_st_write(s->ctx, scratch_path(s, "run/pictures.safetensors"), &odd, 1, NULL, 0),
                     LATENT_OK);
    assert_fails(s->ctx, latent_report_write(s->ctx, runs, 1, NULL, page), LATENT_ERROR_FORMAT,
                 "not the pictures of a run");
    unlink(scratch_path(s, "run/pictures.safetensors"));
    assert_fails(s->ctx, latent_report_write(s->ctx, runs, 1, "/nowhere/ladder.json", page), LATENT_ERROR_IO,
                 "/nowhere/ladder.json");
}

static void test_text(void **state) {
    scratch *s = *state;
    lt_text t = {0};
    lt_escape(&t, "a<b>&\"'\x01\xff\xc3\xa9");
    assert_string_equal(t.s, "a&lt;b&gt;&amp;&quot;&#39;\xEF\xBF\xBD\xEF\xBF\xBD\xc3\xa9");
    t.length = 0;
    lt_base64(&t, "Man", 3); /* RFC 4648 */
    lt_base64(&t, "f", 1);
    lt_base64(&t, "fo", 2);
    lt_base64(&t, "foobar", 6);
    assert_string_equal(t.s, "TWFuZg==Zm8=Zm9vYmFy");
    assert_int_equal(lt_text_finish(s->ctx, &t), LATENT_OK);
    free(t.s);
    char out[LT_SHORT];
    assert_string_equal(lt_show_count(out, 0), "0");
    assert_string_equal(lt_show_count(out, 999), "999");
    assert_string_equal(lt_show_count(out, 1000), "1,000");
    assert_string_equal(lt_show_count(out, 1234567), "1,234,567");
    assert_string_equal(lt_show_count(out, -1000), "-1,000");
    assert_string_equal(lt_show_count(out, -100), "-100");
    assert_string_equal(lt_show_count(out, NAN), "–");
    assert_string_equal(lt_show_seconds(out, 0.012), "12 ms");
    assert_string_equal(lt_show_seconds(out, 0.42), "0.42 s");
    assert_string_equal(lt_show_seconds(out, 84.12), "84.1 s");
    assert_string_equal(lt_show_seconds(out, 185), "3 min 05 s");
    assert_string_equal(lt_show_seconds(out, 7800), "2 h 10 min");
}

static void test_axes(void **state) {
    (void)state;
    double ticks[LT_TICKS_MAX];
    lt_axis axis = lt_axis_over(0.007, 0.035, 100, 0);
    assert_false(axis.logarithmic);
    assert_float_equal(axis.min, 0, 1e-12);
    assert_float_equal(axis.max, 0.04, 1e-12);
    assert_float_equal(lt_axis_at(&axis, 0.01), 75, 1e-9);
    assert_int_equal(lt_axis_ticks(&axis, 5, ticks), 5);
    assert_float_equal(ticks[1], 0.01, 1e-12);
    axis = (lt_axis){1, 100, 1, 0, 200};
    assert_float_equal(lt_axis_at(&axis, 10), 100, 1e-9);
    assert_int_equal(lt_axis_ticks(&axis, 5, ticks), 7); /* 1 2 5 10 20 50 100 */
    axis = (lt_axis){1, 2000, 1, 0, 200};
    assert_int_equal(lt_axis_ticks(&axis, 4, ticks), 4); /* 1 10 100 1000 */
    const double odd[][2] = {{0, 0},         {5, 5},        {INFINITY, -INFINITY},
                             {1, 1 + 1e-15}, {-1e11, 1e11}, {1e-300, 1e11}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        axis = lt_axis_over(odd[i][0], odd[i][1], 0, 100);
        assert_true(isfinite(axis.min) && isfinite(axis.max) && axis.max > axis.min);
        int count = lt_axis_ticks(&axis, 5, ticks);
        assert_true(count >= 0 && count <= LT_TICKS_MAX);
    }
}

/* A run that was made under the conditions of every target. */
static void write_full_run(scratch *s) {
    char line[128], *metrics = calloc(30, 128);
    assert_int_equal(lt_folder_create(s->ctx, scratch_path(s, "run/features")), LATENT_OK);
    for (int i = 1; i <= 20; i++) {
        snprintf(line, sizeof line, "{\"epoch\": %d, \"loss\": 0.1, \"seconds\": 29}\n", i);
        strcat(metrics, line);
    }
    write_text(s, "run/metrics.jsonl", metrics);
    write_text(s, "run/config.json", "{\"images\": 50000}");
    write_text(s, "run/features/features.json",
               "{\"train\": 50000, \"test\": 10000, \"compute_seconds\": 15, \"write_seconds\": 6}");
    write_text(s, "run/eval.json",
               "{\"split\": \"test\", \"synthetic\": false, \"classes\": [\"a\", \"b\"], \"svm\": "
               "{\"confusion\": [[3000, 2000], [1500, 3500]]}}");
    write_text(s, "run/ladder.json",
               "{\"rungs\": [{\"backend\": \"ref\", \"epoch_seconds\": 9000}, {\"backend\": \"cpu\", "
               "\"epoch_seconds\": 100}, {\"backend\": \"cuda\", \"epoch_seconds\": 6}, {\"backend\": "
               "\"cuda\", \"epoch_seconds\": 4}]}");
    free(metrics);
}

/* With fewer training images, of the encoder or of the machine, the accuracy is another one. */
static void test_accuracy_of_fewer(void **state) {
    scratch *s = *state;
    latent_target targets[LATENT_TARGETS];
    char folder[128];
    snprintf(folder, sizeof folder, "%s", scratch_path(s, "run"));
    write_full_run(s);
    static const char *const fewer[][2] = {{"run/config.json", "{\"images\": 1000}"},
                                           {"run/config.json", "{\"images\": 50000}"},
                                           {"run/svm/svm.json", "{\"rows\": 1000}"}};
    assert_int_equal(lt_folder_create(s->ctx, scratch_path(s, "run/svm")), LATENT_OK);
    for (int i = 0; i < 3; i++) {
        write_text(s, fewer[i][0], fewer[i][1]);
        assert_int_equal(latent_run_targets(s->ctx, folder, NULL, targets), LATENT_OK);
        assert_int_equal(targets[2].met, i == 1 ? 1 : -1);
        assert_string_equal(targets[2].reason, i == 1 ? "" : "1,000 of 50,000 training images");
        assert_string_equal(targets[2].reached, i == 1 ? "yes" : "not comparable");
    }
}

/* Only what was measured under the conditions of a target decides it. */
static void test_targets(void **state) {
    scratch *s = *state;
    latent_target targets[LATENT_TARGETS];
    char folder[128];
    snprintf(folder, sizeof folder, "%s", scratch_path(s, "run"));
    write_full_run(s);
    assert_int_equal(latent_run_targets(s->ctx, folder, NULL, targets), LATENT_OK);
    assert_int_equal(targets[0].met, 1); /* 580 s */
    assert_int_equal(targets[1].met, 0); /* 21 s */
    assert_int_equal(targets[2].met, 1); /* 65% */
    assert_int_equal(targets[3].met, 1); /* 25 times */
    assert_non_null(strstr(targets[2].measured, "65.00%"));
    assert_non_null(strstr(targets[3].measured, "25.0 times the cpu backend"));
    assert_string_equal(targets[1].reached, "no");
    assert_string_equal(targets[2].reached, "yes");
    write_text(s, "run/config.json", "{\"images\": 1000}");
    write_text(s, "run/eval.json",
               "{\"split\": \"test\", \"synthetic\": true, \"classes\": [\"a\", \"b\"], \"svm\": "
               "{\"confusion\": [[3000, 2000], [1500, 3500]]}}");
    write_text(s, "run/ladder.json", "{\"rungs\": [{\"backend\": \"ref\", \"epoch_seconds\": 9000}]}");
    assert_int_equal(latent_run_targets(s->ctx, folder, NULL, targets), LATENT_OK);
    assert_int_equal(targets[0].met, -1);
    assert_int_equal(targets[2].met, -1);
    assert_int_equal(targets[3].met, -1);
    assert_non_null(strstr(targets[2].measured, "synthetic"));
    assert_string_equal(targets[0].reached, "not comparable");
    assert_string_equal(targets[0].reason, "1,000 of 50,000 images");
    assert_string_equal(targets[2].reason, "synthetic images");
    assert_string_equal(targets[3].reached, "not measured");
    assert_string_equal(targets[3].reason, "");
    const char *run = scratch_path(s, "run");
    assert_int_equal(latent_report_write(s->ctx, &run, 1, NULL, scratch_path(s, "page.html")), LATENT_OK);
    char *page = read_page(s, "page.html");
    assert_non_null(strstr(page, "<span class=\"open\">not comparable</span>: 1,000 of 50,000 images</td>"));
    assert_non_null(strstr(page, "<span class=\"no\">✗ no</span></td>"));
    assert_non_null(strstr(page, "<span class=\"open\">not measured</span></td>"));
    free(page);
}

/* A stage knows its files by what is in them. */
static void test_journal_files(void **state) {
    scratch *s = *state;
    latent_journal *journal = NULL;
    static const char *const files[] = {"a", "sub/b", "never-made", NULL};
    latent_stage stage = {.name = "svm", .inputs = "C 1", .files = files};
    assert_int_equal(latent_journal_create(s->ctx, s->folder, &journal), LATENT_OK);
    assert_int_equal(lt_folder_create(s->ctx, scratch_path(s, "sub")), LATENT_OK);
    write_text(s, "a", "first");
    write_text(s, "sub/b", "second");
    assert_int_equal(latent_journal_record(s->ctx, journal, &stage), LATENT_OK);
    latent_journal_destroy(journal);
    assert_int_equal(latent_journal_open(s->ctx, s->folder, &journal), LATENT_OK);
    assert_null(latent_journal_changed(journal, "svm"));
    assert_null(latent_journal_changed(journal, "nothing"));
    write_text(s, "sub/b", "secomd");
    assert_string_equal(latent_journal_changed(journal, "svm"), "sub/b");
    write_text(s, "sub/b", "second");
    assert_null(latent_journal_changed(journal, "svm"));
    assert_int_equal(unlink(scratch_path(s, "a")), 0);
    assert_string_equal(latent_journal_changed(journal, "svm"), "a");
    latent_journal_destroy(journal);
    /* A journal that cannot be read is replaced by an empty one, when that is wanted. */
    write_text(s, "run.json", "{\"form");
    assert_int_equal(latent_journal_create(s->ctx, s->folder, &journal), LATENT_OK);
    assert_int_equal(latent_journal_record(s->ctx, journal, &stage), LATENT_OK);
    latent_journal_destroy(journal);
    assert_int_equal(latent_journal_open(s->ctx, s->folder, &journal), LATENT_OK);
    assert_non_null(latent_journal_find(journal, "svm"));
    latent_journal_destroy(journal);
}

static void test_ladder_check(void **state) {
    scratch *s = *state;
    write_text(s, "good.json", "{\"rungs\": []}");
    write_text(s, "bad.json", "{\"rungs\": 3}");
    write_text(s, "half.json", "{\"rungs\": [");
    assert_int_equal(latent_ladder_check(s->ctx, scratch_path(s, "good.json")), LATENT_OK);
    assert_fails(s->ctx, latent_ladder_check(s->ctx, scratch_path(s, "bad.json")), LATENT_ERROR_FORMAT,
                 "no list under");
    assert_fails(s->ctx, latent_ladder_check(s->ctx, scratch_path(s, "half.json")), LATENT_ERROR_FORMAT,
                 "half.json");
    assert_fails(s->ctx, latent_ladder_check(s->ctx, scratch_path(s, "none.json")), LATENT_ERROR_IO,
                 "none.json");
}

static void test_journal(void **state) {
    scratch *s = *state;
    latent_journal *journal = NULL;
    assert_int_equal(latent_journal_open(s->ctx, s->folder, &journal), LATENT_OK);
    assert_null(latent_journal_find(journal, "train"));
    assert_int_equal(latent_journal_describe(s->ctx, journal, "latent run", "a machine"), LATENT_OK);
    latent_stage stage = {.name = "train", .inputs = "epochs 2\n\"x\"", .summary = "fine", .seconds = 1.5};
    latent_stage other = {.name = "svm", .inputs = "C 1"};
    assert_int_equal(latent_journal_record(s->ctx, journal, &stage), LATENT_OK);
    assert_int_equal(latent_journal_record(s->ctx, journal, &other), LATENT_OK);
    stage.seconds = 2.5;
    assert_int_equal(latent_journal_record(s->ctx, journal, &stage), LATENT_OK); /* in its old place */
    latent_journal_destroy(journal);
    assert_int_equal(latent_journal_open(s->ctx, s->folder, &journal), LATENT_OK);
    const latent_stage *found = latent_journal_find(journal, "train");
    assert_non_null(found);
    assert_string_equal(found->inputs, "epochs 2\n\"x\"");
    assert_string_equal(found->summary, "fine");
    assert_true(found->seconds == 2.5);
    /* Begun, and not completed: it is not found, but what it has taken is known. */
    stage.unfinished = 1;
    stage.seconds = 4;
    assert_int_equal(latent_journal_record(s->ctx, journal, &stage), LATENT_OK);
    latent_journal_destroy(journal);
    assert_int_equal(latent_journal_open(s->ctx, s->folder, &journal), LATENT_OK);
    assert_null(latent_journal_find(journal, "train"));
    assert_true(latent_journal_spent(journal, "train") == 4);
    assert_true(latent_journal_spent(journal, "features") == 0);
    latent_stage gone = {.name = "train"};
    assert_int_equal(latent_journal_record(s->ctx, journal, &gone), LATENT_OK);
    assert_null(latent_journal_find(journal, "train"));
    assert_non_null(latent_journal_find(journal, "svm"));
    latent_journal_destroy(journal);
    static const char *const broken[] = {"[]", "{\"format\": \"other\"}",
                                         "{\"format\": \"latent-journal 1\", \"stages\": [{}]}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        write_text(s, "run.json", broken[i]);
        assert_fails(s->ctx, latent_journal_open(s->ctx, s->folder, &journal), LATENT_ERROR_FORMAT,
                     "run.json");
        assert_null(journal);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_hostile_run),   SCRATCH_TEST(test_several_runs),
        SCRATCH_TEST(test_refusals),      SCRATCH_TEST(test_text),
        SCRATCH_TEST(test_axes),          SCRATCH_TEST(test_targets),
        SCRATCH_TEST(test_journal),       SCRATCH_TEST(test_ladder_check),
        SCRATCH_TEST(test_journal_files), SCRATCH_TEST(test_accuracy_of_fewer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
