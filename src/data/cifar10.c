/* cifar10.c: reads the binary layout of CIFAR-10: data_batch_1.bin, data_batch_2.bin, ... and test_batch.bin.
 *
 * A file is nothing but records of 3,073 bytes: a label, then the red, green and blue planes of a 32x32
 * image. There is no header, so the size and the labels are all that can be checked, and both are, before
 * anyone sees an image. The official set has 5 + 1 files of 10,000 records; any other number of files and
 * records reads as well. In memory the planes become NHWC, the order in which everything computes.
 */
#include "base/file.h"
#include "data/dataset.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BATCH_DIGITS = 6 };

/* ---- One file ----------------------------------------------------------------------------------- */

static latent_status check_size(latent_context *ctx, const char *origin, uint64_t size) {
    if (size == 0) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: the file is empty; a batch file holds at least one record of %d bytes", origin,
                       LT_CIFAR_RECORD);
    }
    uint64_t rest = size % LT_CIFAR_RECORD;
    if (rest != 0) {
        return lt_fail(
            ctx, LATENT_ERROR_FORMAT,
            "%s: %llu bytes, and the record at byte offset %llu is cut short (%llu of %d bytes); a "
            "batch file is a multiple of %d bytes, the official ones are 30730000",
            origin, (unsigned long long)size, (unsigned long long)(size - rest), (unsigned long long)rest,
            LT_CIFAR_RECORD, LT_CIFAR_RECORD);
    }
    return LATENT_OK;
}

latent_status lt_cifar_parse(latent_context *ctx, const uint8_t *bytes, size_t size, const char *origin,
                             uint8_t *images, uint8_t *labels) {
    enum { PLANE = LT_CIFAR_SIDE * LT_CIFAR_SIDE };
    latent_status status = check_size(ctx, origin, size);
    if (status != LATENT_OK) {
        return status;
    }
    size_t count = size / LT_CIFAR_RECORD;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = bytes + i * LT_CIFAR_RECORD, *planes = record + 1; /* [3][32*32] */
        if (record[0] >= LT_CIFAR_CLASSES) {
            return lt_fail(ctx, LATENT_ERROR_FORMAT,
                           "%s: record %zu (byte offset %zu) has label %d; labels are 0 to %d", origin, i,
                           i * LT_CIFAR_RECORD, record[0], LT_CIFAR_CLASSES - 1);
        }
        labels[i] = record[0];
        uint8_t *image = images + i * LT_CIFAR_IMAGE; /* [32*32][3] */
        for (int p = 0; p < PLANE; p++) {
            image[3 * p] = planes[p];
            image[3 * p + 1] = planes[PLANE + p];
            image[3 * p + 2] = planes[2 * PLANE + p];
        }
    }
    return LATENT_OK;
}

/* The number of records in a file, by its size alone. */
static latent_status measure(latent_context *ctx, const char *path, int *count) {
    struct stat about;
    if (stat(path, &about) != 0) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: %s", path, strerror(errno));
    }
    latent_status status = check_size(ctx, path, (uint64_t)about.st_size);
    if (status != LATENT_OK) {
        return status;
    }
    uint64_t records = (uint64_t)about.st_size / LT_CIFAR_RECORD;
    if (records > LT_CIFAR_COUNT_MAX) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: %llu records; a set has at most %d images", path,
                       (unsigned long long)records, LT_CIFAR_COUNT_MAX);
    }
    *count = (int)records;
    return LATENT_OK;
}

static latent_status read_batch(latent_context *ctx, const char *path, int count, uint8_t *images,
                                uint8_t *labels) {
    char *bytes = NULL;
    size_t size = 0, wanted = (size_t)count * LT_CIFAR_RECORD;
    latent_status status = LATENT_OK;
    LT_TRY(lt_file_read(ctx, path, wanted, &bytes, &size));
    if (size != wanted) {
        status = lt_fail(ctx, LATENT_ERROR_IO, "%s: changed from %zu to %zu bytes while it was being read",
                         path, wanted, size);
        goto done;
    }
    LT_TRY(lt_cifar_parse(ctx, (const uint8_t *)bytes, size, path, images, labels));
done:
    free(bytes);
    return status;
}

/* ---- The files of a folder ---------------------------------------------------------------------- */

/* The number in "data_batch_<number>.bin"; 0 for any other name. */
static int batch_number(const char *name) {
    static const char prefix[] = "data_batch_";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) {
        return 0;
    }
    int number = 0, digits = 0;
    for (name += sizeof prefix - 1; *name >= '0' && *name <= '9' && digits < BATCH_DIGITS; name++, digits++) {
        if (number == 0 && *name == '0') {
            return 0;
        }
        number = 10 * number + (*name - '0');
    }
    return strcmp(name, ".bin") == 0 ? number : 0;
}

/* The highest batch number in a folder; 0 without any. */
static int last_batch(const char *folder) {
    DIR *listing = opendir(folder);
    if (!listing) {
        return 0;
    }
    int last = 0;
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        int number = batch_number(entry->d_name);
        last = number > last ? number : last;
    }
    closedir(listing);
    return last;
}

int lt_cifar_has_file(const char *folder, const char *name, char path[LT_CIFAR_PATH]) {
    int length = snprintf(path, LT_CIFAR_PATH, "%s/%s", folder, name);
    struct stat about;
    return length > 0 && length < LT_CIFAR_PATH && stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

int lt_cifar_has_batches(const char *folder) {
    char path[LT_CIFAR_PATH];
    return lt_cifar_has_file(folder, LT_CIFAR_TEST, path) || last_batch(folder) > 0;
}

int lt_cifar_is_synthetic(const char *folder) {
    char path[LT_CIFAR_PATH], start[sizeof LT_SYNTHETIC_SENTENCE] = {0};
    FILE *marker = lt_cifar_has_file(folder, LT_SYNTHETIC_MARKER, path) ? fopen(path, "rb") : NULL;
    if (!marker) {
        return 0;
    }
    size_t got = fread(start, 1, sizeof start - 1, marker);
    fclose(marker);
    return got == sizeof start - 1 && memcmp(start, LT_SYNTHETIC_SENTENCE, got) == 0;
}

/* Adds the records of one file to the end of a split. */
static latent_status append_batch(latent_context *ctx, latent_dataset *data, latent_split split,
                                  const char *name) {
    char *path = NULL;
    int count = 0, before = data->count[split];
    latent_status status = LATENT_OK;
    LT_TRY(lt_path_join(ctx, data->path, name, &path));
    LT_TRY(measure(ctx, path, &count));
    if (count > LT_CIFAR_COUNT_MAX - before) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                         "%s: with its %d records the set has more than %d images, the most "
                         "that can be read",
                         path, count, LT_CIFAR_COUNT_MAX);
        goto done;
    }
    size_t total = (size_t)before + (size_t)count;
    uint8_t *images = realloc(data->images[split], total * LT_CIFAR_IMAGE);
    data->images[split] = images ? images : data->images[split];
    uint8_t *labels = realloc(data->labels[split], total);
    data->labels[split] = labels ? labels : data->labels[split];
    if (!images || !labels) {
        status = lt_fail(ctx, LATENT_ERROR_MEMORY, "%s: no memory for %zu images", path, total);
        goto done;
    }
    LT_TRY(read_batch(ctx, path, count, images + (size_t)before * LT_CIFAR_IMAGE, labels + before));
    data->count[split] = (int)total;
done:
    free(path);
    return status;
}

latent_status lt_cifar_read(latent_context *ctx, latent_dataset *data) {
    char name[32], path[LT_CIFAR_PATH];
    int last = last_batch(data->path);
    latent_status status = LATENT_OK;
    for (int i = 1; i <= last; i++) { /* all of them before any is read: a gap is found at once */
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        if (!lt_cifar_has_file(data->path, name, path)) {
            return lt_fail(
                ctx, LATENT_ERROR_FORMAT,
                "%s/%s: missing or no regular file, though data_batch_%d.bin is there; batches are "
                "numbered from 1 without a gap",
                data->path, name, last);
        }
    }
    if (last <= 0) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s/data_batch_1.bin: missing; a data set has data_batch_1.bin ... "
                       "and %s",
                       data->path, LT_CIFAR_TEST);
    }
    if (!lt_cifar_has_file(data->path, LT_CIFAR_TEST, path)) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s/%s: missing or no regular file; a data set has data_batch_1.bin ... and %s",
                       data->path, LT_CIFAR_TEST, LT_CIFAR_TEST);
    }
    for (int i = 1; i <= last; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        LT_TRY(append_batch(ctx, data, LATENT_TRAIN, name));
    }
    LT_TRY(append_batch(ctx, data, LATENT_TEST, LT_CIFAR_TEST));
done:
    return status;
}
