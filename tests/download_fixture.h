/* download_fixture.h: what the tests of the download share: a small archive in the official layout and the
 * assertions about what a call leaves behind.
 */
#ifndef DOWNLOAD_FIXTURE_H
#define DOWNLOAD_FIXTURE_H

#include "scratch.h"
#include "tar_maker.h"

#include "base/hash.h"
#include "data/dataset.h"

#define PART "data/cifar-10-binary.tar.gz.part"
#define SET  "data/cifar-10-batches-bin"

/* ---- Archives ---- */

static inline void add_batch(tar_maker *t, const char *name, int count, int last_label) {
    size_t size = (size_t)count * LT_CIFAR_RECORD;
    unsigned char *bytes = malloc(size);
    uint32_t noise = 1;
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) { /* bytes that do not compress: the archive is worth cutting */
        noise = noise * 1664525u + 1013904223u;
        bytes[i] = i % LT_CIFAR_RECORD == 0 ? 3 : (unsigned char)(noise >> 24);
    }
    bytes[size - LT_CIFAR_RECORD] = (unsigned char)last_label;
    tar_add(t, name, '0', bytes, size);
    free(bytes);
}

/* A small set in the official layout, with things beside it that must not be unpacked. */
static inline void make_set(tar_maker *t) {
    memset(t, 0, sizeof *t);
    tar_add(t, "cifar-10-batches-bin/", '5', "", 0);
    add_batch(t, "cifar-10-batches-bin/data_batch_1.bin", 4, 1);
    add_batch(t, "cifar-10-batches-bin/data_batch_2.bin", 3, 2);
    add_batch(t, "cifar-10-batches-bin/test_batch.bin", 2, 9);
    tar_add(t, "cifar-10-batches-bin/batches.meta.txt", '0', "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", 20);
    tar_add(t, "cifar-10-batches-bin/readme.html", '0', "<p>", 3);
    tar_add(t, "cifar-10-batches-bin/extra.sh", '0', "rm", 2);
    tar_add(t, "elsewhere/test_batch.bin", '0', "x", 1);
    tar_gzip(t, 1);
}

static inline latent_download_options options_for(const tar_maker *t, const char *url, char hex[33]) {
    latent_download_options options = {.url = url, .md5 = hex, .size = t->packed_length};
    lt_md5 md5;
    lt_md5_init(&md5);
    lt_md5_update(&md5, t->packed, t->packed_length);
    lt_md5_final(&md5, hex);
    return options;
}

/* ---- What is left ---- */

static inline void assert_set(scratch *s) {
    latent_dataset *data = NULL;
    if (latent_dataset_open(s->ctx, scratch_path(s, "data"), &data) != LATENT_OK) {
        fail_msg("%s", latent_context_message(s->ctx));
    }
    assert_int_equal(data->count[LATENT_TRAIN], 7);
    assert_int_equal(data->count[LATENT_TEST], 2);
    assert_int_equal(data->labels[LATENT_TRAIN][6], 2);
    assert_string_equal(latent_dataset_class_name(data, 9), "j");
    latent_dataset_destroy(data);
    assert_int_equal(scratch_entries(scratch_path(s, SET)), 5);    /* nothing that a set does not have */
    assert_int_equal(scratch_entries(scratch_path(s, "data")), 1); /* no .part, no staging folder */
}

static inline void assert_nothing(scratch *s) {
    assert_int_equal(scratch_entries(scratch_path(s, "data")), -1);
}

static inline size_t part_size(scratch *s) {
    struct stat about;
    return stat(scratch_path(s, PART), &about) == 0 ? (size_t)about.st_size : 0;
}

static inline latent_status download(scratch *s, const latent_download_options *options) {
    return latent_dataset_download(s->ctx, scratch_path(s, "data"), options);
}

#endif
