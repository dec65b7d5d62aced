/* test_data.c: the reader of the CIFAR-10 layout, good and bad, and the synthetic set. */
#include "scratch.h"

#include "base/hash.h"
#include "data/dataset.h"

#include <signal.h>
#include <sys/resource.h>

/* The value of a byte of image i: different in every place that could be mixed up. */
static uint8_t pixel(int i, int c, int y, int x) {
    return (uint8_t)(31 * i + 97 * c + 7 * y + 3 * x + y * x);
}

/* A batch of `count` records; record i has label (first + i) % 10 and the image number first + i. */
static void write_batch(scratch *s, const char *name, int first, int count) {
    uint8_t *bytes = malloc((size_t)count * LT_CIFAR_RECORD + 1), *at = bytes;
    assert_non_null(bytes);
    for (int i = first; i < first + count; i++) {
        *at++ = (uint8_t)(i % 10);
        for (int p = 0; p < LT_CIFAR_IMAGE; p++) {
            *at++ = pixel(i, p / 1024, p % 1024 / 32, p % 32);
        }
    }
    scratch_file(s, name, bytes, (size_t)(at - bytes));
    free(bytes);
}

static void write_good(scratch *s) {
    write_batch(s, "data_batch_1.bin", 0, 3);
    write_batch(s, "data_batch_2.bin", 3, 2);
    write_batch(s, "test_batch.bin", 100, 4);
}

static void damage(scratch *s, const char *name, long offset, uint8_t value) {
    FILE *file = fopen(scratch_path(s, name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_int_equal(fputc(value, file), value);
    assert_int_equal(fclose(file), 0);
}

static void assert_open_fails(scratch *s, const char *folder, latent_status wanted, const char *part) {
    latent_dataset *data = (latent_dataset *)s;
    assert_fails(s->ctx, latent_dataset_open(s->ctx, folder, &data), wanted, part);
    assert_null(data);
}

static void count_warning(void *user, latent_log_level level, const char *message) {
    *(int *)user += level == LATENT_LOG_WARNING && strstr(message, "batches.meta.txt") != NULL;
}

/* ---- The reader ---- */

static void assert_split(const latent_dataset *data, latent_split split, int first, int count) {
    const uint8_t *images = latent_dataset_images(data, split), *labels = latent_dataset_labels(data, split);
    for (int i = 0; i < count; i++) {
        assert_int_equal(labels[i], (first + i) % 10);
        for (int p = 0; p < LT_CIFAR_IMAGE; p++) { /* [y][x][c] */
            assert_int_equal(images[i * LT_CIFAR_IMAGE + p], pixel(first + i, p % 3, p / 96, p / 3 % 32));
        }
    }
}

static void test_reads(void **state) {
    scratch *s = *state;
    latent_dataset *data = NULL;
    latent_dataset_info info;
    write_good(s);
    assert_int_equal(latent_dataset_open(s->ctx, s->folder, &data), LATENT_OK);
    latent_dataset_get_info(data, &info);
    assert_string_equal(info.path, s->folder);
    assert_int_equal(info.height, 32);
    assert_int_equal(info.width, 32);
    assert_int_equal(info.channels, 3);
    assert_int_equal(info.classes, 10);
    assert_int_equal(info.count[LATENT_TRAIN], 5);
    assert_int_equal(info.count[LATENT_TEST], 4);
    assert_int_equal(info.synthetic, 0);
    assert_split(data, LATENT_TRAIN, 0, 5);
    assert_split(data, LATENT_TEST, 100, 4);
    assert_string_equal(latent_dataset_class_name(data, 0), "airplane");
    assert_string_equal(latent_dataset_class_name(data, 9), "truck");
    assert_null(latent_dataset_class_name(data, 10));
    assert_null(latent_dataset_class_name(data, -1));
    latent_dataset_destroy(data);
    latent_dataset_destroy(NULL);
}

/* The official subfolder is found, and wins over files beside it. */
static void test_subfolder(void **state) {
    scratch *s = *state;
    latent_dataset *data = NULL;
    assert_int_equal(mkdir(scratch_path(s, "cifar-10-batches-bin"), 0755), 0);
    write_good(s); /* an empty subfolder hides nothing */
    assert_int_equal(latent_dataset_open(s->ctx, s->folder, &data), LATENT_OK);
    assert_int_equal(data->count[LATENT_TRAIN], 5);
    latent_dataset_destroy(data);
    write_batch(s, "cifar-10-batches-bin/data_batch_1.bin", 7, 1);
    write_batch(s, "cifar-10-batches-bin/test_batch.bin", 8, 1);
    assert_int_equal(latent_dataset_open(s->ctx, s->folder, &data), LATENT_OK);
    assert_string_equal(data->path, scratch_path(s, "cifar-10-batches-bin"));
    assert_split(data, LATENT_TRAIN, 7, 1);
    assert_split(data, LATENT_TEST, 8, 1);
    latent_dataset_destroy(data);
}

/* data_batch_10.bin comes after data_batch_9.bin; names that only look alike are left alone. */
static void test_many_batches(void **state) {
    scratch *s = *state;
    latent_dataset *data = NULL;
    char name[64];
    for (int i = 1; i <= 11; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        write_batch(s, name, 10 * i, 1);
    }
    write_batch(s, "test_batch.bin", 0, 1);
    scratch_file(s, "data_batch_13.bin.bak", "x", 1);
    scratch_file(s, "data_batch_.bin", "x", 1);
    scratch_file(s, "data_batch_012.bin", "x", 1);
    scratch_file(s, "data_batch_99999999999999999999.bin", "x", 1);
    assert_int_equal(latent_dataset_open(s->ctx, s->folder, &data), LATENT_OK);
    assert_int_equal(data->count[LATENT_TRAIN], 11);
    for (int i = 0; i < 11; i++) {
        assert_int_equal(data->images[LATENT_TRAIN][i * LT_CIFAR_IMAGE], pixel(10 * (i + 1), 0, 0, 0));
    }
    latent_dataset_destroy(data);
}

static void test_missing(void **state) {
    scratch *s = *state;
    const char *nowhere = scratch_path(s, "nowhere");
    assert_open_fails(s, nowhere, LATENT_ERROR_IO, "no such folder");
    assert_says(s->ctx, nowhere);
    assert_open_fails(s, "", LATENT_ERROR_ARGUMENT, "folder");
    assert_open_fails(s, s->folder, LATENT_ERROR_IO, "no data set here");
    assert_says(s->ctx, "data_batch_1.bin");
    write_batch(s, "test_batch.bin", 0, 1);
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "data_batch_1.bin: missing");
    write_batch(s, "data_batch_1.bin", 0, 1);
    assert_int_equal(unlink(scratch_path(s, "test_batch.bin")), 0);
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "test_batch.bin: missing");
    assert_int_equal(mkdir(scratch_path(s, "test_batch.bin"), 0755), 0);
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "test_batch.bin: missing or no regular file");
}

static void test_gap(void **state) {
    scratch *s = *state;
    write_good(s);
    write_batch(s, "data_batch_5.bin", 0, 1);
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "data_batch_3.bin: missing");
    assert_says(s->ctx, "data_batch_5.bin is there");
}

static void test_truncated(void **state) {
    scratch *s = *state;
    write_good(s);
    assert_int_equal(truncate(scratch_path(s, "data_batch_2.bin"), 2 * 3073 - 1), 0);
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "data_batch_2.bin: 6145 bytes");
    assert_says(s->ctx, "byte offset 3073");
    assert_says(s->ctx, "3072 of 3073");
    assert_says(s->ctx, "multiple of 3073");
    assert_int_equal(truncate(scratch_path(s, "data_batch_2.bin"), 1), 0);
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "byte offset 0");
}

static void test_empty(void **state) {
    scratch *s = *state;
    write_good(s);
    assert_int_equal(truncate(scratch_path(s, "test_batch.bin"), 0), 0);
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "test_batch.bin: the file is empty");
    assert_says(s->ctx, "3073");
}

static void test_label(void **state) {
    scratch *s = *state;
    write_good(s);
    damage(s, "data_batch_1.bin", 2 * 3073, 17);
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "data_batch_1.bin: record 2 (byte offset 6146)");
    assert_says(s->ctx, "label 17");
    assert_says(s->ctx, "0 to 9");
    damage(s, "data_batch_1.bin", 2 * 3073, 10);
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "label 10");
    damage(s, "data_batch_1.bin", 2 * 3073, 9);
    latent_dataset *data = NULL;
    assert_int_equal(latent_dataset_open(s->ctx, s->folder, &data), LATENT_OK);
    latent_dataset_destroy(data);
}

/* A file with a hole claims terabytes; it is refused by its size, before memory is asked for. */
static void test_too_large(void **state) {
    scratch *s = *state;
    write_good(s);
    if (truncate(scratch_path(s, "data_batch_1.bin"), 3073LL << 21) != 0) {
        skip(); /* a file system without large files */
    }
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "2097152 records");
    assert_says(s->ctx, "at most 1048576");
}

static void assert_names(scratch *s, const char *text, size_t length, const char *third, int warnings) {
    latent_dataset *data = NULL;
    int heard = 0;
    scratch_file(s, "batches.meta.txt", text, length);
    latent_context_set_log(s->ctx, count_warning, &heard);
    assert_int_equal(latent_dataset_open(s->ctx, s->folder, &data), LATENT_OK);
    assert_string_equal(latent_dataset_class_name(data, 2), third);
    assert_int_equal(heard, warnings);
    latent_dataset_destroy(data);
    latent_context_set_log(s->ctx, NULL, NULL);
}

#define NAMES(text) text, sizeof text - 1

static void test_class_names(void **state) {
    scratch *s = *state;
    static char huge[10000];
    write_good(s);
    assert_names(s, NAMES("a\nb\nsea lion\nd\ne\nf\ng\nh\ni\nj\n\n"), "sea lion", 0);
    assert_names(s, NAMES("a\r\nb\r\nc3\r\nd\r\ne\r\nf\r\ng\r\nh\r\ni\r\nj"), "c3", 0);
    assert_names(s, NAMES("a\nb\nc3\nd\ne\nf\ng\nh\ni\n"), "bird", 1);          /* nine */
    assert_names(s, NAMES("a\nb\nc3\nd\ne\nf\ng\nh\ni\nj\nk\n"), "bird", 1);    /* eleven */
    assert_names(s, NAMES("a\n\nc3\nd\ne\nf\ng\nh\ni\nj\nk\n"), "bird", 1);     /* one without a name */
    assert_names(s, NAMES("a\nb\n\033[2J\nd\ne\nf\ng\nh\ni\nj\n"), "bird", 1);  /* a terminal command */
    assert_names(s, NAMES("a\nb\nc\0x\nd\ne\nf\ng\nh\ni\nj\n"), "bird", 1);     /* a 0 byte */
    assert_names(s, NAMES("a\nb\n\xFF\xFE\nd\ne\nf\ng\nh\ni\nj\n"), "bird", 1); /* no ASCII */
    assert_names(s, NAMES(""), "bird", 1);
    memset(huge, 'a', sizeof huge);
    assert_names(s, huge, sizeof huge, "bird", 1);
    memcpy(huge + 33, "\na\nb\nc\nd\ne\nf\ng\nh\ni\n", 19); /* the first name has 33 characters */
    assert_names(s, huge, 52, "bird", 1);
    assert_names(s, huge + 1, 51, "b", 0);
}

/* ---- The synthetic set ---- */

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

    write_batch(s, "data_batch_1.bin", 0, 2); /* real data, even half of it, stays */
    assert_fails(s->ctx, latent_dataset_synthesize(s->ctx, s->folder, 1, 1, 1), LATENT_ERROR_ARGUMENT,
                 "never overwritten");
    assert_int_equal(scratch_entries(s->folder), 1);
    assert_int_equal(mkdir(scratch_path(s, "outer"), 0755), 0);
    assert_int_equal(mkdir(scratch_path(s, "outer/cifar-10-batches-bin"), 0755), 0);
    write_batch(s, "outer/cifar-10-batches-bin/test_batch.bin", 0, 2);
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
    assert_open_fails(s, s->folder, LATENT_ERROR_FORMAT, "test_batch.bin");
    assert_int_equal(latent_dataset_synthesize(s->ctx, s->folder, 20, 5, 1), LATENT_OK);
    assert_int_equal(latent_dataset_open(s->ctx, s->folder, &data), LATENT_OK);
    latent_dataset_destroy(data);
    assert_int_equal(scratch_entries(s->folder), 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_reads),
        SCRATCH_TEST(test_subfolder),
        SCRATCH_TEST(test_many_batches),
        SCRATCH_TEST(test_missing),
        SCRATCH_TEST(test_gap),
        SCRATCH_TEST(test_truncated),
        SCRATCH_TEST(test_empty),
        SCRATCH_TEST(test_label),
        SCRATCH_TEST(test_too_large),
        SCRATCH_TEST(test_class_names),
        SCRATCH_TEST(test_synth_same_bytes),
        SCRATCH_TEST(test_synth_reads_back),
        SCRATCH_TEST(test_synth_small),
        SCRATCH_TEST(test_synth_refuses),
        SCRATCH_TEST(test_synth_breaks),
        SCRATCH_TEST(test_synth_repairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
