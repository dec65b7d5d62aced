/* download.c: brings the official CIFAR-10 archive, checks it and unpacks it.
 *
 * The order is what makes it safe: the transfer goes to a .part file, which is kept for the next try; size
 * and MD5 are checked before a byte is unpacked; only files that the set has are unpacked, into a staging
 * folder; the reader must accept all of them; one rename makes the set appear. A failure at any step leaves
 * either nothing or a .part file.
 */
#include "base/file.h"
#include "base/hash.h"
#include "data/dataset.h"
#include "data/staging.h"
#include "data/tar.h"
#include "data/transfer.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define OFFICIAL_URL "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
#define OFFICIAL_MD5 "c32a1d4ab5d03f1284b67883e8d87530"
#define PART_NAME    "cifar-10-binary.tar.gz.part"

static const uint64_t official_size = 170052171, unpacked_max = (uint64_t)1 << 32;

typedef struct archive { /* the file that is checked and unpacked */
    const char *path;
    FILE *file;
} archive;

/* ---- Checking ---- */

static latent_status read_archive(latent_context *ctx, void *user, void *buffer, size_t bytes, size_t *got) {
    archive *a = user;
    if (ctx->interrupted) {
        return lt_fail(ctx, LATENT_INTERRUPTED, "%s: interrupted; the set was not unpacked", a->path);
    }
    *got = fread(buffer, 1, bytes, a->file);
    if (*got == 0 && ferror(a->file)) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: %s", a->path, strerror(errno));
    }
    return LATENT_OK;
}

static latent_status check_archive(latent_context *ctx, archive *a, uint64_t size, const char *md5) {
    struct stat about;
    unsigned char buffer[1 << 16];
    size_t got = 0;
    lt_md5 hash;
    char hex[33];
    latent_status status = LATENT_OK;
    if (fstat(fileno(a->file), &about) != 0 || !S_ISREG(about.st_mode)) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: not a regular file; give the path of the archive",
                       a->path);
    }
    if ((uint64_t)about.st_size != size) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: %llu bytes; the archive has %llu", a->path,
                       (unsigned long long)about.st_size, (unsigned long long)size);
    }
    lt_md5_init(&hash);
    do {
        LT_TRY(read_archive(ctx, a, buffer, sizeof buffer, &got));
        lt_md5_update(&hash, buffer, got);
    } while (got > 0);
    lt_md5_final(&hash, hex);
    if (strcasecmp(hex, md5) != 0) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                         "%s: its MD5 is %s, the archive's is %s; the file is damaged", a->path, hex, md5);
        goto done;
    }
    rewind(a->file);
done:
    return status;
}

/* ---- Unpacking ---- */

/* The place of a file of the set in the list below, or -1: anything else in an archive is passed over. */
static int wanted_file(const char *name, const char **base) {
    static const char *const files[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", LT_CIFAR_TEST,
                                        LT_CIFAR_META,      "readme.html"};
    static const char prefix[] = LT_CIFAR_FOLDER "/";
    *base = strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
    for (int i = 0; i < (int)(sizeof files / sizeof *files); i++) {
        if (strcmp(*base, files[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static latent_status unpack_file(latent_context *ctx, lt_tar *tar, const char *path) {
    char buffer[1 << 16];
    size_t got = 0;
    lt_writer *writer = NULL;
    latent_status status = LATENT_OK;
    LT_TRY(lt_writer_open(ctx, path, &writer));
    do {
        LT_TRY(lt_tar_read(ctx, tar, buffer, sizeof buffer, &got));
        LT_TRY(lt_writer_put(ctx, writer, buffer, got));
    } while (got > 0);
    status = lt_writer_commit(ctx, writer);
    writer = NULL;
done:
    lt_writer_abort(writer);
    return status;
}

static latent_status unpack(latent_context *ctx, archive *a, const char *folder) {
    lt_tar *tar = NULL;
    lt_tar_entry entry;
    char *path = NULL;
    int more = 0, seen = 0;
    latent_status status = LATENT_OK;
    LT_TRY(lt_tar_open(ctx, read_archive, a, a->path, unpacked_max, &tar));
    for (;;) {
        const char *base = NULL;
        LT_TRY(lt_tar_next(ctx, tar, &entry, &more));
        if (!more) {
            break;
        }
        int which = entry.folder ? -1 : wanted_file(entry.name, &base);
        if (which < 0) {
            continue;
        }
        if (seen & 1 << which) {
            status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: has %s twice; a set has it once", a->path, base);
            goto done;
        }
        seen |= 1 << which;
        LT_TRY(lt_path_join(ctx, folder, base, &path));
        LT_TRY(unpack_file(ctx, tar, path));
        free(path);
        path = NULL;
    }
done:
    free(path);
    lt_tar_close(tar);
    return status;
}

/* Unpacks into the staging folder, lets the reader judge, and publishes. */
static latent_status install(latent_context *ctx, archive *a, lt_staging *staging) {
    latent_dataset *data = NULL;
    latent_status status = LATENT_OK;
    LT_TRY(unpack(ctx, a, staging->path));
    status = latent_dataset_open(ctx, staging->path, &data);
    if (status != LATENT_OK) {
        char reason[LT_MESSAGE_MAX / 2];
        snprintf(reason, sizeof reason, "%s", latent_context_message(ctx));
        /* Whatever the reader missed, the fault is in the archive. */
        status = lt_fail(ctx, status == LATENT_ERROR_MEMORY ? status : LATENT_ERROR_FORMAT,
                         "%s: what it unpacks to is no data set: %s", a->path, reason);
        goto done;
    }
    LT_TRY(lt_staging_publish(ctx, staging, LT_CIFAR_FOLDER));
done:
    latent_dataset_destroy(data);
    return status;
}

/* ---- The whole ---- */

static latent_status check_md5_text(latent_context *ctx, const char *md5) {
    size_t digits = 0;
    while (isxdigit((unsigned char)md5[digits])) {
        digits++;
    }
    if (digits != 32 || md5[digits] != '\0') {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "\"%.64s\" is not an MD5; that is 32 hexadecimal digits",
                       md5);
    }
    return LATENT_OK;
}

/* *present = 1 when a set is there already; an error when what is there is in the way. */
static latent_status look_for_set(latent_context *ctx, const char *folder, int *present) {
    latent_dataset *data = NULL;
    char *inner = NULL;
    latent_status status = LATENT_OK;
    *present = 0;
    LT_TRY(lt_path_join(ctx, folder, LT_CIFAR_FOLDER, &inner));
    int flat = lt_cifar_has_batches(folder) && !lt_cifar_is_synthetic(folder);
    const char *place = lt_cifar_has_batches(inner) ? inner : flat ? folder : NULL;
    if (place) {
        status = latent_dataset_open(ctx, place, &data);
        if (status != LATENT_OK) {
            char reason[LT_MESSAGE_MAX / 2];
            snprintf(reason, sizeof reason, "%s", latent_context_message(ctx));
            status = lt_fail(ctx, status,
                             "%s: a damaged data set is in the way; remove it and download again (%s)", place,
                             reason);
            goto done;
        }
        lt_log(ctx, LATENT_LOG_INFO, "%s: the data set is already there (%d + %d images)", place,
               data->count[LATENT_TRAIN], data->count[LATENT_TEST]);
        *present = 1;
    }
done:
    latent_dataset_destroy(data);
    free(inner);
    return status;
}

/* Checks and unpacks an archive on disk. A transferred one that turns out wrong is removed: to resume it
 * would only bring the same bytes again. */
static latent_status use_archive(latent_context *ctx, const char *path, int transferred, uint64_t size,
                                 const char *md5, lt_staging *staging) {
    archive a = {path, fopen(path, "rb")};
    latent_status status = LATENT_OK;
    if (!a.file) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot open the archive: %s", path, strerror(errno));
    }
    LT_TRY(check_archive(ctx, &a, size, md5));
    LT_TRY(install(ctx, &a, staging));
done:
    fclose(a.file);
    if (transferred && (status == LATENT_OK || status == LATENT_ERROR_FORMAT)) {
        unlink(path);
    }
    if (transferred && status == LATENT_ERROR_FORMAT) {
        char reason[LT_MESSAGE_MAX - 64];
        snprintf(reason, sizeof reason, "%s", latent_context_message(ctx));
        lt_fail(ctx, status, "%s; it was removed, so the next try starts afresh", reason);
    }
    return status;
}

latent_status latent_dataset_download(latent_context *ctx, const char *folder,
                                      const latent_download_options *options) {
    static const latent_download_options defaults;
    const latent_download_options *o = options ? options : &defaults;
    const char *url = o->url ? o->url : OFFICIAL_URL, *md5 = o->md5 ? o->md5 : OFFICIAL_MD5;
    uint64_t size = o->size > 0 ? o->size : official_size;
    lt_staging staging;
    char *part = NULL;
    int present = 0;
    latent_status status = LATENT_OK;
    memset(&staging, 0, sizeof staging);
    if (!folder || !*folder) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "the folder for the data set has no name; give a folder");
    }
    LT_TRY(check_md5_text(ctx, md5));
    LT_TRY(look_for_set(ctx, folder, &present));
    if (present) {
        goto done;
    }
    LT_TRY(lt_staging_open(ctx, folder, &staging));
    if (o->from) {
        LT_TRY(use_archive(ctx, o->from, 0, size, md5, &staging));
    } else {
        LT_TRY(lt_path_join(ctx, folder, PART_NAME, &part));
        LT_TRY(lt_transfer(ctx, url, part, size, o->progress, o->user));
        LT_TRY(use_archive(ctx, part, 1, size, md5, &staging));
    }
done:
    lt_staging_close(&staging);
    free(part);
    return status;
}
