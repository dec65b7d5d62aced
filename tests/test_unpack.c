/* test_unpack.c: the set from an archive that is already there: checked, unpacked, refused. Whatever fails
 * leaves nothing behind.
 */
#include "download_fixture.h"

/* Writes the archive and keeps its path; those of scratch_path() do not last. */
static const char *write_archive(scratch *s, const tar_maker *t) {
    static char path[sizeof s->paths[0]];
    return strcpy(path, scratch_file(s, "archive.tar.gz", t->packed, t->packed_length));
}

static void test_from_file(void **state) {
    scratch *s = *state;
    tar_maker t;
    char hex[33];
    make_set(&t);
    latent_download_options options = options_for(&t, NULL, hex);
    options.from = write_archive(s, &t);
    assert_int_equal(download(s, &options), LATENT_OK);
    assert_set(s);
    assert_true(lt_file_exists(scratch_path(s, "archive.tar.gz")));
    tar_free(&t);
}

static void test_from_file_refused(void **state) {
    scratch *s = *state;
    tar_maker t;
    char hex[33];
    make_set(&t);
    latent_download_options options = options_for(&t, NULL, hex);
    options.from = "/nowhere/archive.tar.gz";
    assert_fails(s->ctx, download(s, &options), LATENT_ERROR_IO, "/nowhere/archive.tar.gz: cannot open");
    assert_nothing(s);
    options.from = s->folder;
    assert_fails(s->ctx, download(s, &options), LATENT_ERROR_ARGUMENT, "not a regular file");
    options.from = write_archive(s, &t);
    options.size++;
    assert_fails(s->ctx, download(s, &options), LATENT_ERROR_FORMAT, "bytes; the archive has");
    options.size = 0; /* the official archive's */
    assert_fails(s->ctx, download(s, &options), LATENT_ERROR_FORMAT, "170052171");
    options.size = t.packed_length;
    hex[0] = hex[0] == '0' ? '1' : '0';
    assert_fails(s->ctx, download(s, &options), LATENT_ERROR_FORMAT, "MD5");
    assert_says(s->ctx, hex);
    options.md5 = NULL;
    assert_fails(s->ctx, download(s, &options), LATENT_ERROR_FORMAT, "c32a1d4ab5d03f1284b67883e8d87530");
    options.md5 = "abc";
    assert_fails(s->ctx, download(s, &options), LATENT_ERROR_ARGUMENT, "32 hexadecimal digits");
    assert_nothing(s);
    assert_true(
        lt_file_exists(scratch_path(s, "archive.tar.gz"))); /* the user's file is not ours to remove */
    tar_free(&t);
}

/* Archives whose checksum is right and whose content is wrong. */
static void assert_content_refused(scratch *s, tar_maker *t, const char *part) {
    char hex[33];
    if (!t->packed) {
        tar_gzip(t, 1);
    }
    latent_download_options options = options_for(t, NULL, hex);
    options.from = write_archive(s, t);
    assert_fails(s->ctx, download(s, &options), LATENT_ERROR_FORMAT, part);
    assert_nothing(s);
    tar_free(t);
}

static void test_bad_content(void **state) {
    scratch *s = *state;
    tar_maker t;
    make_set(&t);
    t.packed_length /= 2;
    assert_content_refused(s, &t, "cut short");
    add_batch(&t, "data_batch_1.bin", 2, 1);
    tar_add(&t, "../outside", '0', "x", 1);
    add_batch(&t, "test_batch.bin", 2, 1);
    assert_content_refused(s, &t, "..");
    assert_false(lt_file_exists(scratch_path(s, "outside")));
    add_batch(&t, "data_batch_1.bin", 2, 1);
    tar_add(&t, "test_batch.bin", '2', "", 0);
    assert_content_refused(s, &t, "is a link");
    add_batch(&t, "data_batch_1.bin", 2, 1);
    add_batch(&t, "cifar-10-batches-bin/data_batch_1.bin", 2, 1);
    assert_content_refused(s, &t, "twice");
    add_batch(&t, "data_batch_1.bin", 2, 1);
    assert_content_refused(s, &t, "test_batch.bin: missing");
    tar_add(&t, "unrelated", '0', "x", 1);
    assert_content_refused(s, &t, "no data set");
    add_batch(&t, "data_batch_1.bin", 2, 1);
    add_batch(&t, "test_batch.bin", 2, 17);
    assert_content_refused(s, &t, "label 17");
}

static void hear(void *user, latent_log_level level, const char *message) {
    *(int *)user += level == LATENT_LOG_INFO && strstr(message, "already there") != NULL;
}

static void test_already_there(void **state) {
    scratch *s = *state;
    tar_maker t;
    char hex[33];
    int heard = 0;
    make_set(&t);
    latent_download_options options = options_for(&t, NULL, hex);
    options.from = write_archive(s, &t);
    assert_int_equal(download(s, &options), LATENT_OK);
    latent_context_set_log(s->ctx, hear, &heard);
    options.from = "/nowhere/at/all";
    assert_int_equal(download(s, &options), LATENT_OK);
    assert_int_equal(heard, 1);
    assert_int_equal(truncate(scratch_path(s, SET "/test_batch.bin"), 5), 0);
    assert_fails(s->ctx, download(s, &options), LATENT_ERROR_FORMAT, "damaged data set is in the way");
    assert_says(s->ctx, "test_batch.bin: 5 bytes");
    tar_free(&t);
}

/* A synthetic set beside it is no reason not to download, and does not hide what came. */
static void test_beside_synthetic(void **state) {
    scratch *s = *state;
    tar_maker t;
    char hex[33];
    latent_dataset *data = NULL;
    make_set(&t);
    latent_download_options options = options_for(&t, NULL, hex);
    options.from = write_archive(s, &t);
    assert_int_equal(latent_dataset_synthesize(s->ctx, scratch_path(s, "data"), 5, 1, 1), LATENT_OK);
    assert_int_equal(download(s, &options), LATENT_OK);
    assert_int_equal(latent_dataset_open(s->ctx, scratch_path(s, "data"), &data), LATENT_OK);
    assert_int_equal(data->synthetic, 0);
    assert_int_equal(data->count[LATENT_TRAIN], 7);
    latent_dataset_destroy(data);
    tar_free(&t);
}

#ifndef LATENT_HAVE_CURL
static void test_no_curl(void **state) {
    scratch *s = *state;
    assert_fails(s->ctx, download(s, NULL), LATENT_ERROR_UNSUPPORTED, "libcurl");
    assert_nothing(s);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_from_file),        SCRATCH_TEST(test_from_file_refused),
        SCRATCH_TEST(test_bad_content),      SCRATCH_TEST(test_already_there),
        SCRATCH_TEST(test_beside_synthetic),
#ifndef LATENT_HAVE_CURL
        SCRATCH_TEST(test_no_curl),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
