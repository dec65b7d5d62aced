/* test_synth.c: the synthetic set: the same bytes always, balanced, and never half of it. */
#include "scratch.h"

#include "base/hash.h"
#include "data/dataset.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

static const char *const synthetic_files[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                              "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin",
                                              "batches.meta.txt", "synthetic.txt"};

static void hash_set(scratch *s, const char *folder, char hex[33]) {
    lt_md5 md5;
    lt_md5_init(&md5);
    for (int i = 0; i < 8; i++) {
        char path[256], *bytes = NULL;
        size_t size = 0;
        snprintf(path, sizeof path, "%s/%s", folder, synthetic_files[i]);
        assert_int_equal(lt_file_read(s->ctx, path, 1 << 24, &bytes, &size), LATENT_OK);
        lt_md5_update(&md5, bytes, size);
        free(bytes);
    }
    lt_md5_final(&md5, hex);
}

static void test_synth_same_bytes(void **state) {
    scratch *s = *state;
    char a[33], b[33], c[33];
    const char *one = scratch_path(s, "deep/one"), *two = scratch_path(s, "two");
    assert_int_equal(latent_dataset_synthesize(s->ctx, one, 23, 11, 42), LATENT_OK);
    assert_int_equal(latent_dataset_synthesize(s->ctx, two, 23, 11, 42), LATENT_OK);
    hash_set(s, one, a);
    hash_set(s, two, b);
    assert_string_equal(a, b);
    /* Other machines and compilers give these bytes too; they change only with the version in the marker. */
    assert_string_equal(a, "cbb1abd2f81ebeae502456e78566b61e");
    assert_int_equal(latent_dataset_synthesize(s->ctx, two, 23, 11, 43), LATENT_OK);
    hash_set(s, two, c);
    assert_string_not_equal(a, c);
    assert_int_equal(scratch_entries(one), 8);
    assert_int_equal(scratch_entries(two), 8);
}

static void test_synth_reads_back(void **state) {
    scratch *s = *state;
    latent_dataset *data = NULL;
    int census[2][10] = {{0}}, changes = 0;
    assert_int_equal(latent_dataset_synthesize(s->ctx, s->folder, 203, 100, 7), LATENT_OK);
    assert_int_equal(latent_dataset_open(s->ctx, s->folder, &data), LATENT_OK);
    assert_int_equal(data->synthetic, 1);
    assert_int_equal(data->count[LATENT_TRAIN], 203);
    assert_int_equal(data->count[LATENT_TEST], 100);
    assert_string_equal(latent_dataset_class_name(data, 0), "disc");
    for (int split = 0; split < 2; split++) {
        for (int i = 0; i < data->count[split]; i++) {
            census[split][data->labels[split][i]]++;
            changes += i > 0 && data->labels[split][i] != (data->labels[split][i - 1] + 1) % 10;
        }
    }
    for (int label = 0; label < 10; label++) { /* balanced within one */
        assert_in_range(census[LATENT_TRAIN][label], 20, 21);
        assert_int_equal(census[LATENT_TEST][label], 10);
    }
    assert_true(changes > 200); /* and shuffled */
    for (int i = 1; i < 203; i++) {
        assert_memory_not_equal(data->images[0], data->images[0] + i * LT_CIFAR_IMAGE, LT_CIFAR_IMAGE);
    }
    assert_memory_not_equal(data->images[0], data->images[1], LT_CIFAR_IMAGE);
    latent_dataset_destroy(data);
}

/* Fewer images than files; and a smaller set leaves no file of the larger one behind. */
static void test_synth_small(void **state) {
    scratch *s = *state;
    latent_dataset *data = NULL;
    assert_int_equal(latent_dataset_synthesize(s->ctx, s->folder, 12, 2, 1), LATENT_OK);
    assert_int_equal(scratch_entries(s->folder), 8);
    assert_int_equal(latent_dataset_synthesize(s->ctx, s->folder, 3, 1, 1), LATENT_OK);
    assert_int_equal(scratch_entries(s->folder), 6);
    assert_int_equal(latent_dataset_open(s->ctx, s->folder, &data), LATENT_OK);
    assert_int_equal(data->count[LATENT_TRAIN], 3);
    assert_int_equal(data->count[LATENT_TEST], 1);
    latent_dataset_destroy(data);
}

static void test_synth_refuses(void **state) {
    scratch *s = *state;
    assert_fails(s->ctx, latent_dataset_synthesize(s->ctx, s->folder, 0, 1, 1), LATENT_ERROR_ARGUMENT,
                 "1 to 1048576");
    assert_fails(s->ctx, latent_dataset_synthesize(s->ctx, s->folder, 1, -1, 1), LATENT_ERROR_ARGUMENT,
                 "-1 test");
    assert_fails(s->ctx, latent_dataset_synthesize(s->ctx, "", 1, 1, 1), LATENT_ERROR_ARGUMENT, "folder");
    const char *file = scratch_file(s, "file", "x", 1);
    assert_fails(s->ctx, latent_dataset_synthesize(s->ctx, file, 1, 1, 1), LATENT_ERROR_IO, "is a file");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(scratch_entries(s->folder), 0);

    scratch_file(s, "data_batch_1.bin", "real", 4); /* real data, even half of it, stays */
    assert_fails(s->ctx, latent_dataset_synthesize(s->ctx, s->folder, 1, 1, 1), LATENT_ERROR_ARGUMENT,
                 "never overwritten");
    assert_int_equal(scratch_entries(s->folder), 1);
    assert_int_equal(mkdir(scratch_path(s, "outer"), 0755), 0);
    assert_int_equal(mkdir(scratch_path(s, "outer/cifar-10-batches-bin"), 0755), 0);
    scratch_file(s, "outer/cifar-10-batches-bin/test_batch.bin", "real", 4);
    assert_fails(s->ctx, latent_dataset_synthesize(s->ctx, scratch_path(s, "outer"), 1, 1, 1),
                 LATENT_ERROR_ARGUMENT, "outer/cifar-10-batches-bin: holds a data set");
    assert_int_equal(scratch_entries(scratch_path(s, "outer")), 1);
}

/* Neither an interruption nor a full disk leaves anything, and a set that was there stays whole. */
static void test_synth_breaks(void **state) {
    scratch *s = *state;
    const char *folder = scratch_path(s, "set");
    struct rlimit old, small;
    char before[33], after[33];
    s->ctx->interrupted = 1;
    assert_fails(s->ctx, latent_dataset_synthesize(s->ctx, folder, 20, 5, 1), LATENT_INTERRUPTED,
                 "interrupted");
    s->ctx->interrupted = 0;
    assert_int_equal(scratch_entries(s->folder), 0);

    assert_int_equal(latent_dataset_synthesize(s->ctx, folder, 20, 5, 1), LATENT_OK);
    hash_set(s, folder, before);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 20000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    latent_status status = latent_dataset_synthesize(s->ctx, folder, 200, 50, 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, LATENT_ERROR_IO);
    assert_says(s->ctx, "File too large");
    assert_int_equal(scratch_entries(folder), 8);
    hash_set(s, folder, after);
    assert_string_equal(before, after);
}

/* What a killed process left in the staging folder is swept; a set it left half moved is made whole. */
static void test_synth_repairs(void **state) {
    scratch *s = *state;
    latent_dataset *data = NULL;
    assert_int_equal(latent_dataset_synthesize(s->ctx, s->folder, 20, 5, 1), LATENT_OK);
    assert_int_equal(unlink(scratch_path(s, "test_batch.bin")), 0);
    assert_int_equal(mkdir(scratch_path(s, ".latent-unfinished"), 0755), 0);
    scratch_file(s, ".latent-unfinished/data_batch_9.bin", "half", 4);
    assert_fails(s->ctx, latent_dataset_open(s->ctx, s->folder, &data), LATENT_ERROR_FORMAT,
                 "test_batch.bin");
    assert_int_equal(latent_dataset_synthesize(s->ctx, s->folder, 20, 5, 1), LATENT_OK);
    assert_int_equal(latent_dataset_open(s->ctx, s->folder, &data), LATENT_OK);
    latent_dataset_destroy(data);
    assert_int_equal(scratch_entries(s->folder), 8);
}

/* Two processes never write the same set. */
static void test_synth_busy(void **state) {
    scratch *s = *state;
    const char *staging = scratch_path(s, ".latent-unfinished");
    assert_int_equal(mkdir(staging, 0755), 0);
    scratch_file(s, ".latent-unfinished/data_batch_1.bin", "theirs", 6);
    int fd = open(staging, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_fails(s->ctx, latent_dataset_synthesize(s->ctx, s->folder, 5, 1, 1), LATENT_ERROR_IO,
                 "another process");
    assert_int_equal(scratch_entries(staging), 1); /* their work is untouched */
    close(fd);
    assert_int_equal(latent_dataset_synthesize(s->ctx, s->folder, 5, 1, 1), LATENT_OK);
    assert_int_equal(scratch_entries(s->folder), 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_synth_same_bytes), SCRATCH_TEST(test_synth_reads_back),
        SCRATCH_TEST(test_synth_small),      SCRATCH_TEST(test_synth_refuses),
        SCRATCH_TEST(test_synth_breaks),     SCRATCH_TEST(test_synth_repairs),
        SCRATCH_TEST(test_synth_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
