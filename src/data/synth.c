/* synth.c: writes a synthetic set in the layout of CIFAR-10.
 *
 * The files grow in a staging folder and are moved when all are whole: the marker first, test_batch.bin last.
 * A set without test_batch.bin is refused by the reader, so whatever interrupts this, nobody trains on half a
 * set; and the marker tells the next call that it may repair it. Data without the marker is someone's real
 * data and is never touched. Image i of a split depends on the seed and i, its label also on the count.
 */
#include "base/file.h"
#include "base/rng.h"
#include "data/shapes.h"
#include "data/staging.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRAIN_FILES = 5, VERSION = 1 };

/* Labels run round the classes in the order of a keyed permutation: shuffled, and balanced within one. The
 * permutation's number is one that no training epoch uses. */
static int label_of(uint64_t seed, latent_split split, int count, int i) {
    uint32_t number = 0xFFFFFFF0u + (uint32_t)split;
    return (int)(lt_permute(seed, number, (uint32_t)count, (uint32_t)i) % LT_CIFAR_CLASSES);
}

/* Writes the images [first, end) of a split of `count` images. */
static latent_status write_batch(latent_context *ctx, const char *path, uint64_t seed, latent_split split,
                                 int count, int first, int end) {
    lt_writer *writer = NULL;
    latent_status status = LATENT_OK;
    LT_TRY(lt_writer_open(ctx, path, &writer));
    for (int i = first; i < end; i++) {
        uint8_t record[LT_CIFAR_RECORD];
        if (ctx->interrupted) {
            status = lt_fail(ctx, LATENT_INTERRUPTED,
                             "interrupted while writing %s; nothing is left of the set", path);
            goto done;
        }
        int label = label_of(seed, split, count, i);
        record[0] = (uint8_t)label;
        lt_shape_paint(seed, (uint64_t)split << 32 | (uint64_t)i, label, record + 1);
        LT_TRY(lt_writer_put(ctx, writer, record, sizeof record));
    }
    status = lt_writer_commit(ctx, writer);
    writer = NULL;
done:
    lt_writer_abort(writer);
    return status;
}

static void batch_name(int number, char name[32]) {
    if (number == 0) {
        strcpy(name, LT_CIFAR_TEST);
    } else {
        snprintf(name, 32, "data_batch_%d.bin", number);
    }
}

static latent_status write_text(latent_context *ctx, const char *folder, const char *name, const char *text) {
    char *path = NULL;
    latent_status status = lt_path_join(ctx, folder, name, &path);
    if (status == LATENT_OK) {
        status = lt_file_write(ctx, path, text, strlen(text));
    }
    free(path);
    return status;
}

static latent_status write_set(latent_context *ctx, const char *folder, int train_count, int files,
                               int test_count, uint64_t seed) {
    char text[512] = "", *path = NULL;
    latent_status status = LATENT_OK;
    for (int k = 0; k <= files; k++) {
        char name[32];
        batch_name(k, name);
        LT_TRY(lt_path_join(ctx, folder, name, &path));
        if (k == 0) {
            LT_TRY(write_batch(ctx, path, seed, LATENT_TEST, test_count, 0, test_count));
        } else {
            int first = (int)((int64_t)train_count * (k - 1) / files),
                end = (int)((int64_t)train_count * k / files);
            LT_TRY(write_batch(ctx, path, seed, LATENT_TRAIN, train_count, first, end));
        }
        free(path);
        path = NULL;
    }
    for (int i = 0; i < LT_CIFAR_CLASSES; i++) {
        strcat(strcat(text, lt_shape_names[i]), "\n");
    }
    LT_TRY(write_text(ctx, folder, LT_CIFAR_META, text));
    snprintf(text, sizeof text, "%s\nversion %d\nseed %llu\ntrain %d\ntest %d\n", LT_SYNTHETIC_SENTENCE,
             VERSION, (unsigned long long)seed, train_count, test_count);
    LT_TRY(write_text(ctx, folder, LT_SYNTHETIC_MARKER, text));
done:
    free(path);
    return status;
}

static latent_status remove_file(latent_context *ctx, const char *folder, const char *name) {
    char *path = NULL;
    latent_status status = lt_path_join(ctx, folder, name, &path);
    if (status == LATENT_OK && unlink(path) != 0 && errno != ENOENT) {
        status =
            lt_fail(ctx, LATENT_ERROR_IO, "%s: the old file cannot be removed: %s", path, strerror(errno));
    }
    free(path);
    return status;
}

/* Replaces what an earlier call wrote. The first step makes the old set unreadable, the last one the new set
 * readable. */
static latent_status place(latent_context *ctx, lt_staging *staging, int files) {
    latent_status status = LATENT_OK;
    char name[32], path[LT_CIFAR_PATH];
    LT_TRY(remove_file(ctx, staging->folder, LT_CIFAR_TEST));
    LT_TRY(lt_staging_move(ctx, staging, LT_SYNTHETIC_MARKER));
    LT_TRY(lt_staging_move(ctx, staging, LT_CIFAR_META));
    int old = files + 1;
    for (batch_name(old, name); lt_cifar_has_file(staging->folder, name, path); batch_name(++old, name)) {
        LT_TRY(remove_file(ctx, staging->folder, name));
    }
    for (int k = files; k >= 0; k--) {
        batch_name(k, name);
        LT_TRY(lt_staging_move(ctx, staging, name));
    }
done:
    return status;
}

/* Real data stays: both where the files would go and where they would be hidden by it. */
static latent_status check_folder(latent_context *ctx, const char *folder) {
    char *inner = NULL;
    latent_status status = LATENT_OK;
    LT_TRY(lt_path_join(ctx, folder, LT_CIFAR_FOLDER, &inner));
    const char *taken = lt_cifar_has_batches(inner)                                      ? inner
                        : lt_cifar_has_batches(folder) && !lt_cifar_is_synthetic(folder) ? folder
                                                                                         : NULL;
    if (taken) {
        status = lt_fail(
            ctx, LATENT_ERROR_ARGUMENT,
            "%s: holds a data set that is not synthetic, which is never overwritten; give a new folder "
            "for the synthetic one",
            taken);
    }
done:
    free(inner);
    return status;
}

latent_status latent_dataset_synthesize(latent_context *ctx, const char *folder, int train_count,
                                        int test_count, uint64_t seed) {
    lt_staging staging;
    latent_status status = LATENT_OK;
    memset(&staging, 0, sizeof staging);
    if (!folder || !*folder) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "the folder of the synthetic set has no name; give a folder");
    }
    if (train_count < 1 || train_count > LT_CIFAR_COUNT_MAX || test_count < 1 ||
        test_count > LT_CIFAR_COUNT_MAX) {
        return lt_fail(
            ctx, LATENT_ERROR_ARGUMENT,
            "a synthetic set of %d training and %d test images cannot be made; each count is 1 to %d",
            train_count, test_count, LT_CIFAR_COUNT_MAX);
    }
    int files = train_count < TRAIN_FILES ? train_count : TRAIN_FILES;
    LT_TRY(check_folder(ctx, folder));
    LT_TRY(lt_staging_open(ctx, folder, &staging));
    LT_TRY(write_set(ctx, staging.path, train_count, files, test_count, seed));
    LT_TRY(place(ctx, &staging, files));
done:
    lt_staging_close(&staging);
    return status;
}
