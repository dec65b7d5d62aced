/* test_data.c: the reader of the CIFAR-10 layout, good and bad. */
#include "scratch.h"

#include "data/dataset.h"

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

static void digest_of(scratch *s, const char *folder, char out[33]) {
    latent_dataset *data = NULL;
    assert_int_equal(latent_dataset_open(s->ctx, folder, &data), LATENT_OK);
    latent_dataset_digest(data, out);
    latent_dataset_destroy(data);
}

/* Contents are known wherever they lie; any image and any label of either split counts. */
static void test_digest(void **state) {
    scratch *s = *state;
    char was[33], is[33];
    write_good(s);
    digest_of(s, s->folder, was);
    assert_int_equal(strlen(was), 32);
    assert_int_equal(lt_folder_create(s->ctx, scratch_path(s, "copy")), LATENT_OK);
    write_batch(s, "copy/data_batch_1.bin", 0, 5); /* one batch or two, the set is the same */
    write_batch(s, "copy/test_batch.bin", 100, 4);
    digest_of(s, scratch_path(s, "copy"), is);
    assert_string_equal(was, is);
    static const struct {
        const char *name;
        long offset;
    } places[] = {{"data_batch_1.bin", 0},
                  {"data_batch_1.bin", 1},
                  {"data_batch_2.bin", 2 * LT_CIFAR_RECORD - 1},
                  {"test_batch.bin", 3 * LT_CIFAR_RECORD},
                  {"test_batch.bin", 4 * LT_CIFAR_RECORD - 1}};
    for (int i = 0; i < 5; i++) {
        damage(s, places[i].name, places[i].offset, 9);
        digest_of(s, s->folder, is);
        assert_string_not_equal(was, is);
        write_good(s);
    }
    digest_of(s, s->folder, is);
    assert_string_equal(was, is);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_reads),       SCRATCH_TEST(test_subfolder), SCRATCH_TEST(test_many_batches),
        SCRATCH_TEST(test_missing),     SCRATCH_TEST(test_gap),       SCRATCH_TEST(test_truncated),
        SCRATCH_TEST(test_empty),       SCRATCH_TEST(test_label),     SCRATCH_TEST(test_too_large),
        SCRATCH_TEST(test_class_names), SCRATCH_TEST(test_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
