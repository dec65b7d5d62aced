/* test_tar.c: the archive reader takes the tar dialects people have and refuses what it should not trust. */
#include "scratch.h"
#include "tar_maker.h"

#include "data/tar.h"

typedef struct memory {
    const unsigned char *bytes;
    size_t length, at, step;
} memory;

/* Hands out a few bytes at a time: every boundary falls somewhere inconvenient. */
static latent_status from_memory(latent_context *ctx, void *user, void *buffer, size_t bytes, size_t *got) {
    memory *m = user;
    (void)ctx;
    *got = m->length - m->at < m->step ? m->length - m->at : m->step;
    *got = *got < bytes ? *got : bytes;
    memcpy(buffer, m->bytes + m->at, *got);
    m->at += *got;
    return LATENT_OK;
}

/* Walks the archive to its end, reading every file. The last entry and the number of entries stay. */
static latent_status walk(scratch *s, const tar_maker *t, uint64_t limit, lt_tar_entry *last, int *count) {
    memory m = {t->packed, t->packed_length, 0, 7};
    lt_tar *tar = NULL;
    lt_tar_entry entry;
    int more = 1;
    latent_status status = lt_tar_open(s->ctx, from_memory, &m, "some.tar.gz", limit, &tar);
    *count = 0;
    while (status == LATENT_OK) {
        status = lt_tar_next(s->ctx, tar, &entry, &more);
        if (status != LATENT_OK || !more) {
            break;
        }
        char buffer[333];
        size_t got = 1;
        uint64_t bytes = 0;
        while (status == LATENT_OK && got > 0) {
            status = lt_tar_read(s->ctx, tar, buffer, sizeof buffer, &got);
            bytes += got;
        }
        if (status == LATENT_OK) {
            assert_int_equal(bytes, entry.size);
        }
        *last = entry;
        ++*count;
    }
    lt_tar_close(tar);
    return status;
}

static void assert_last(scratch *s, tar_maker *t, int count, const char *name, uint64_t size) {
    lt_tar_entry last = {{0}, 0, 0};
    int found = 0;
    tar_gzip(t, 1);
    if (walk(s, t, 1 << 20, &last, &found) != LATENT_OK) {
        fail_msg("%s", latent_context_message(s->ctx));
    }
    assert_int_equal(found, count);
    assert_string_equal(last.name, name);
    assert_int_equal(last.size, size);
    tar_free(t);
}

static void assert_refused(scratch *s, tar_maker *t, const char *part) {
    lt_tar_entry last;
    int found = 0;
    tar_gzip(t, 1);
    assert_fails(s->ctx, walk(s, t, 1 << 20, &last, &found), LATENT_ERROR_FORMAT, part);
    assert_says(s->ctx, "some.tar.gz");
    tar_free(t);
}

static void test_plain(void **state) {
    tar_maker t = {0};
    tar_add(&t, "set/", '5', "", 0);
    tar_add(&t, "set/empty", '0', "", 0);
    tar_add(&t, "./set/exact", '0', NULL, 512);
    tar_add(&t, "set/old", '\0', "hello", 5);
    assert_last(*state, &t, 4, "set/old", 5);
    tar_add(&t, "./set/a", '0', "hello", 5);
    assert_last(*state, &t, 1, "set/a", 5);
    tar_add(&t, "old-folder/", '\0', "", 0);
    assert_last(*state, &t, 1, "old-folder", 0);
}

static void test_contents(void **state) {
    scratch *s = *state;
    tar_maker t = {0};
    tar_add(&t, "skipped", '0', NULL, 700);
    tar_add(&t, "read", '0', "0123456789", 10);
    tar_gzip(&t, 1);
    memory m = {t.packed, t.packed_length, 0, 1};
    lt_tar *tar = NULL;
    lt_tar_entry entry;
    int more = 0;
    size_t got = 0;
    char text[16] = {0};
    assert_int_equal(lt_tar_open(s->ctx, from_memory, &m, "x", 4096, &tar), LATENT_OK);
    assert_int_equal(lt_tar_next(s->ctx, tar, &entry, &more), LATENT_OK);
    assert_int_equal(lt_tar_read(s->ctx, tar, text, 5, &got), LATENT_OK); /* the rest is left behind */
    assert_int_equal(lt_tar_next(s->ctx, tar, &entry, &more), LATENT_OK);
    assert_int_equal(lt_tar_read(s->ctx, tar, text, 15, &got), LATENT_OK);
    assert_int_equal(got, 10);
    assert_string_equal(text, "0123456789");
    assert_int_equal(lt_tar_read(s->ctx, tar, text, 15, &got), LATENT_OK);
    assert_int_equal(got, 0);
    assert_int_equal(lt_tar_next(s->ctx, tar, &entry, &more), LATENT_OK);
    assert_int_equal(more, 0);
    lt_tar_close(tar);
    tar_free(&t);
}

static void test_dialects(void **state) {
    tar_maker t = {0};
    char longer[300];
    memset(longer, 'n', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    tar_add(&t, "././@LongLink", 'L', longer, sizeof longer); /* GNU: the name, with its 0 */
    tar_add(&t, "short", '0', "abc", 3);
    assert_last(*state, &t, 1, longer, 3);

    static const char pax[] = "19 path=given/name\n9 size=2\n30 mtime=1700000000.123456789\n";
    tar_add(&t, "global", 'g', "12 comment=x\n", 13);
    tar_add(&t, "extended", 'x', pax, sizeof pax - 1);
    tar_add(&t, "other", '0', "ab", 2);
    tar_add(&t, "after", '0', "abcd", 4); /* what pax said is over */
    assert_last(*state, &t, 2, "after", 4);
    tar_add(&t, "extended", 'x', pax, sizeof pax - 1);
    tar_add(&t, "other", '0', "ab", 2);
    assert_last(*state, &t, 1, "given/name", 2);

    size_t at = tar_header(&t, "name", '0', 0); /* ustar: a prefix */
    memcpy(t.bytes + at + 345, "some/prefix", 11);
    tar_seal(t.bytes + at);
    assert_last(*state, &t, 1, "some/prefix/name", 0);

    at = tar_header(&t, "big", '0', 0); /* GNU: the size in base 256 */
    memset(t.bytes + at + 124, 0, 12);
    t.bytes[at + 124] = 0x80;
    t.bytes[at + 135] = 5;
    tar_seal(t.bytes + at);
    tar_append(&t, "12345", 5);
    tar_append(&t, NULL, 507);
    assert_last(*state, &t, 1, "big", 5);
}

static void test_paths_that_lead_out(void **state) {
    static const struct {
        const char *name, *part;
    } cases[] = {
        {"/etc/passwd", "absolute"},
        {".//etc/passwd", "absolute"},
        {"../up", ".."},
        {"a/../../up", ".."},
        {"a//..", ".."},
        {"a/..", ".."},
        {"..", ".."},
        {"a\nb", "control characters"},
        {"", "no name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tar_maker t = {0};
        tar_add(&t, cases[i].name, '0', "x", 1);
        assert_refused(*state, &t, cases[i].part);
        tar_add(&t, "l", 'L', cases[i].name, strlen(cases[i].name) + 1); /* hidden in a long name */
        tar_add(&t, "harmless", '0', "x", 1);
        assert_refused(*state, &t, cases[i].part);
    }
    tar_maker t = {0};
    tar_add(&t, "p", 'x', "16 path=../up..\n", 16);
    tar_add(&t, "..harmless", '0', "x", 1);
    assert_refused(*state, &t, "..");
    tar_add(&t, "a..b/..c/d..", '0', "x", 1); /* dots that are no way up */
    assert_last(*state, &t, 1, "a..b/..c/d..", 1);
}

static void test_special_entries(void **state) {
    static const char types[] = "12346S?";
    for (const char *type = types; *type; type++) {
        tar_maker t = {0};
        tar_add(&t, "odd", *type, "", 0);
        assert_refused(*state, &t, *type <= '2' && *type >= '1' ? "is a link" : "special type");
    }
}

static void test_damage(void **state) {
    scratch *s = *state;
    tar_maker t = {0};
    size_t at = tar_header(&t, "name", '0', 0);
    t.bytes[at + 3] ^= 1;
    assert_refused(s, &t, "header");
    at = tar_header(&t, "name", '0', 0);
    t.bytes[at + 126] = '9'; /* no octal digit */
    tar_seal(t.bytes + at);
    assert_refused(s, &t, "header");
    at = tar_header(&t, "name", '0', 0);
    memset(t.bytes + at + 124, 0xFF, 12); /* a negative number */
    tar_seal(t.bytes + at);
    assert_refused(s, &t, "header");
    tar_header(&t, "name", '0', 077777777777); /* 8 GiB in an archive of 1 MiB */
    assert_refused(s, &t, "claims");
    tar_add(&t, "x", 'x', NULL, 70000);
    assert_refused(s, &t, "too long");
    static const char *const pax[] = {"x path=a\n", "99 path=a\n", "10 path=abc",
                                      "9 size=x\n", "3 a",         "0 a=b\n"};
    for (size_t i = 0; i < sizeof pax / sizeof *pax; i++) {
        tar_add(&t, "x", 'x', pax[i], strlen(pax[i]));
        tar_add(&t, "name", '0', "x", 1);
        assert_refused(s, &t, "pax");
    }
    char longest[2000];
    memset(longest, 'n', sizeof longest);
    tar_add(&t, "l", 'L', longest, sizeof longest);
    tar_add(&t, "name", '0', "x", 1);
    assert_refused(s, &t, "name is too long");
}

static void test_cut_short(void **state) {
    scratch *s = *state;
    tar_maker t = {0};
    lt_tar_entry last;
    int found = 0;
    tar_add(&t, "name", '0', "hello", 5);
    tar_gzip(&t, 0); /* no end mark */
    assert_fails(s->ctx, walk(s, &t, 1 << 20, &last, &found), LATENT_ERROR_FORMAT, "cut short");
    size_t whole = t.packed_length;
    for (t.packed_length = 0; t.packed_length < whole; t.packed_length++) {
        assert_fails(s->ctx, walk(s, &t, 1 << 20, &last, &found), LATENT_ERROR_FORMAT, "cut short");
    }
    t.packed[0] = 'P';
    assert_fails(s->ctx, walk(s, &t, 1 << 20, &last, &found), LATENT_ERROR_FORMAT, "some.tar.gz");
    tar_free(&t);
}

/* A small file that unpacks to a large one, and an archive without end. */
static void test_bomb(void **state) {
    scratch *s = *state;
    tar_maker t = {0};
    lt_tar_entry last;
    int found = 0;
    tar_add(&t, "a", '0', NULL, 600000);
    tar_add(&t, "b", '0', NULL, 600000);
    assert_refused(s, &t, "1048576");
    for (int i = 0; i < 10001; i++) {
        tar_header(&t, "many", '0', 0);
    }
    tar_gzip(&t, 1);
    assert_fails(s->ctx, walk(s, &t, 1 << 30, &last, &found), LATENT_ERROR_FORMAT, "10000 entries");
    tar_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_plain),           SCRATCH_TEST(test_contents),
        SCRATCH_TEST(test_dialects),        SCRATCH_TEST(test_paths_that_lead_out),
        SCRATCH_TEST(test_special_entries), SCRATCH_TEST(test_damage),
        SCRATCH_TEST(test_cut_short),       SCRATCH_TEST(test_bomb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
