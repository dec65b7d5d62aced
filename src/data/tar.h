/* tar.h: reads a gzipped tar archive, entry by entry, as something hostile.
 *
 * Understood: ustar, GNU (long names, base-256 sizes) and pax (path and size; other records are skipped).
 * Refused with a sentence: links, devices and every other special entry, absolute paths, paths with "..",
 * control characters, a wrong checksum, an archive that ends too early or unpacks to more than the limit.
 * Nothing is allocated by what the archive says: memory is fixed.
 */
#ifndef LT_DATA_TAR_H
#define LT_DATA_TAR_H

#include "base/status.h"

enum { LT_TAR_NAME_MAX = 1024 };

typedef struct lt_tar lt_tar;

/* Where the compressed bytes come from: fills `buffer` with up to `bytes`, *got = 0 at the end. */
typedef latent_status (*lt_tar_source_fn)(latent_context *ctx, void *user, void *buffer, size_t bytes,
                                          size_t *got);

typedef struct lt_tar_entry {
    char name[LT_TAR_NAME_MAX]; /* relative, without "./" in front, without "/" at the end */
    uint64_t size;              /* 0 for a folder */
    int folder;                 /* 1: a folder, 0: a regular file */
} lt_tar_entry;

/* `origin` names the archive in messages; `limit` is the most bytes it may unpack to. */
latent_status lt_tar_open(latent_context *ctx, lt_tar_source_fn source, void *user, const char *origin,
                          uint64_t limit, lt_tar **out);
/* The next entry, past whatever was not read of the last one. *more = 0 at the end of the archive. */
latent_status lt_tar_next(latent_context *ctx, lt_tar *tar, lt_tar_entry *entry, int *more);
/* Up to `bytes` of the current file; *got = 0 at its end. */
latent_status lt_tar_read(latent_context *ctx, lt_tar *tar, void *buffer, size_t bytes, size_t *got);
void lt_tar_close(lt_tar *tar); /* takes NULL */

#endif
