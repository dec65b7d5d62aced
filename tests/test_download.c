/* test_download.c: the download against a web server of its own: whole, broken, resumed, refused, damaged.
 * After every failure the folder holds what the next try can use, or nothing.
 */
#include "download_fixture.h"

#ifndef LATENT_HAVE_CURL

int main(void) {
    return 77;
} /* nothing to test: reported as skipped */

#else

#include "http_server.h"

#include <sys/resource.h>

typedef struct fixture {
    tar_maker t;
    http_server server;
    char hex[33];
    latent_download_options options;
} fixture;

static void begin(fixture *f, http_plan *plan) {
    make_set(&f->t);
    plan->bytes = f->t.packed;
    plan->length = f->t.packed_length;
    http_start(&f->server, plan);
    f->options = options_for(&f->t, f->server.url, f->hex);
}

static void end(fixture *f) {
    http_stop(&f->server);
    tar_free(&f->t);
}

static void note_progress(void *user, uint64_t done, uint64_t total) {
    uint64_t *seen = user;
    seen[0] = done > seen[0] ? done : seen[0];
    seen[1] = total;
}

static void test_whole(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {0};
    uint64_t seen[2] = {0};
    begin(&f, &plan);
    f.options.progress = note_progress;
    f.options.user = seen;
    assert_int_equal(download(s, &f.options), LATENT_OK);
    assert_set(s);
    assert_int_equal(f.server.log->requests, 1);
    assert_int_equal(f.server.log->start[0], -1);
    assert_int_equal(seen[0], f.t.packed_length);
    assert_int_equal(seen[1], f.t.packed_length);
    end(&f);
}

static void test_redirect(void **state) {
    fixture f;
    http_plan plan = {.redirect = 1};
    begin(&f, &plan);
    assert_int_equal(download(*state, &f.options), LATENT_OK);
    assert_set(*state);
    assert_int_equal(f.server.log->requests, 2);
    end(&f);
}

static void test_resume(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {.cut = 10000};
    begin(&f, &plan);
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_IO, "broke off after 10000 of");
    assert_says(s->ctx, "next try goes on");
    assert_int_equal(part_size(s), 10000);
    assert_int_equal(scratch_entries(scratch_path(s, "data")), 1);
    assert_int_equal(download(s, &f.options), LATENT_OK);
    assert_int_equal(f.server.log->requests, 2);
    assert_int_equal(f.server.log->start[1], 10000); /* the second request asked for the rest alone */
    assert_set(s);
    end(&f);
}

static void test_no_range(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {.cut = 10000, .no_range = 1};
    begin(&f, &plan);
    assert_int_equal(download(s, &f.options), LATENT_ERROR_IO);
    assert_int_equal(part_size(s), 10000);
    assert_int_equal(download(s, &f.options), LATENT_OK);
    assert_int_equal(f.server.log->start[1], 10000);
    assert_set(s);
    end(&f);
}

/* A server that answers a range with other bytes is asked for everything. */
static void test_wrong_range(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {.cut = 10000, .wrong_range = 1};
    begin(&f, &plan);
    assert_int_equal(download(s, &f.options), LATENT_ERROR_IO);
    assert_int_equal(download(s, &f.options), LATENT_OK);
    assert_int_equal(f.server.log->requests, 3);
    assert_int_equal(f.server.log->start[2], -1);
    assert_set(s);
    end(&f);
}

/* A .part of another, larger file starts over; a whole one that was never unpacked needs no transfer. */
static void test_odd_parts(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {0};
    begin(&f, &plan);
    assert_int_equal(mkdir(scratch_path(s, "data"), 0755), 0);
    scratch_file(s, PART, f.t.bytes, f.t.packed_length + 1);
    assert_int_equal(download(s, &f.options), LATENT_OK);
    assert_int_equal(f.server.log->start[0], -1);
    assert_set(s);
    assert_int_equal(scratch_folder_remove(scratch_path(s, SET)), 0);
    scratch_file(s, PART, f.t.packed, f.t.packed_length);
    assert_int_equal(download(s, &f.options), LATENT_OK);
    assert_int_equal(f.server.log->requests, 1);
    assert_set(s);
    end(&f);
}

static void test_not_found(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {.status = 404};
    begin(&f, &plan);
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_IO, "HTTP status 404 (not found)");
    assert_says(s->ctx, f.server.url);
    assert_nothing(s);
    assert_int_equal(mkdir(scratch_path(s, "data"), 0755), 0);
    scratch_file(s, PART, f.t.packed, 100); /* what an earlier try brought is kept */
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_IO, "404");
    assert_int_equal(part_size(s), 100);
    end(&f);
}

static void test_refused_connection(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {0};
    begin(&f, &plan);
    http_stop(&f.server); /* nobody listens there now */
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_IO, "transfer failed");
    assert_says(s->ctx, "refused");
    assert_nothing(s);
    f.options.url = "file:///etc/passwd";
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_IO, "transfer failed");
    assert_nothing(s);
    tar_free(&f.t);
}

static void test_wrong_md5(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {0};
    begin(&f, &plan);
    f.hex[5] = f.hex[5] == 'a' ? 'b' : 'a';
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_FORMAT, "MD5");
    assert_says(s->ctx, "was removed");
    assert_nothing(s);
    end(&f);
}

/* Another file behind the address: announced as such, or found out on the way. */
static void test_wrong_size(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {0};
    begin(&f, &plan);
    f.options.size = 5000;
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_FORMAT, "but the archive has 5000");
    assert_nothing(s);
    f.options.size = 500000;
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_FORMAT, "but the archive has 500000");
    assert_nothing(s);
    end(&f);
    http_plan vague = {.no_length = 1};
    begin(&f, &vague);
    f.options.size = 5000;
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_FORMAT, "more than the 5000 bytes");
    assert_nothing(s);
    f.options.size = f.t.packed_length + 1; /* too short, and no word of it: the next try learns 416 */
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_IO, "the server ended it");
    assert_int_equal(part_size(s), f.t.packed_length);
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_IO, "the server ended it");
    assert_int_equal(f.server.log->start[2], f.t.packed_length);
    assert_int_equal(f.server.log->start[3], -1);
    end(&f);
}

static void test_bad_archive(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {0};
    memset(&f, 0, sizeof f);
    tar_add(&f.t, "../outside", '0', "x", 1);
    tar_gzip(&f.t, 1);
    plan.bytes = f.t.packed;
    plan.length = f.t.packed_length;
    http_start(&f.server, &plan);
    f.options = options_for(&f.t, f.server.url, f.hex);
    assert_fails(s->ctx, download(s, &f.options), LATENT_ERROR_FORMAT, "..");
    assert_nothing(s);
    assert_false(lt_file_exists(scratch_path(s, "outside")));
    end(&f);
}

static void test_full_disk(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {0};
    struct rlimit old, small;
    begin(&f, &plan);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 12000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    latent_status status = download(s, &f.options);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, LATENT_ERROR_IO);
    assert_says(s->ctx, "File too large");
    assert_says(s->ctx, "12000 of");
    assert_int_equal(part_size(s), 12000);
    assert_int_equal(download(s, &f.options), LATENT_OK); /* with room again */
    assert_int_equal(f.server.log->start[1], 12000);
    assert_set(s);
    end(&f);
}

static latent_context *interrupted_context;
static void on_alarm(int number) {
    (void)number;
    latent_context_interrupt(interrupted_context);
}

/* A server that says nothing does not hold up someone who wants to leave. */
static void test_interrupt(void **state) {
    scratch *s = *state;
    fixture f;
    http_plan plan = {.silent = 1};
    begin(&f, &plan);
    assert_int_equal(mkdir(scratch_path(s, "data"), 0755), 0);
    scratch_file(s, PART, f.t.packed, 100);
    interrupted_context = s->ctx;
    signal(SIGALRM, on_alarm);
    alarm(1);
    assert_fails(s->ctx, download(s, &f.options), LATENT_INTERRUPTED, "interrupted after 100 of");
    s->ctx->interrupted = 0;
    assert_int_equal(part_size(s), 100);
    assert_int_equal(scratch_entries(scratch_path(s, "data")), 1);
    end(&f);
}

int main(void) {
    unsetenv("http_proxy"); /* libcurl would send even 127.0.0.1 through it */
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_whole),      SCRATCH_TEST(test_redirect),           SCRATCH_TEST(test_resume),
        SCRATCH_TEST(test_no_range),   SCRATCH_TEST(test_wrong_range),        SCRATCH_TEST(test_odd_parts),
        SCRATCH_TEST(test_not_found),  SCRATCH_TEST(test_refused_connection), SCRATCH_TEST(test_wrong_md5),
        SCRATCH_TEST(test_wrong_size), SCRATCH_TEST(test_bad_archive),        SCRATCH_TEST(test_full_disk),
        SCRATCH_TEST(test_interrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
