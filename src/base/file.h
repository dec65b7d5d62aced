/* file.h: files that are either the old one or the new one.
 *
 * A file is written under a temporary name beside its place, flushed to disk, then renamed over it: a
 * reader, or a machine that loses power, sees a whole file. Errors name the path and say what the system
 * said.
 */
#ifndef LT_BASE_FILE_H
#define LT_BASE_FILE_H

#include "base/status.h"

typedef struct lt_writer lt_writer;

latent_status lt_writer_open(latent_context *ctx, const char *path, lt_writer **out);
latent_status lt_writer_put(latent_context *ctx, lt_writer *writer, const void *data, size_t bytes);
/* Everything so far is on the disk, still under the temporary name: what can fail for want of room has. */
latent_status lt_writer_sync(latent_context *ctx, lt_writer *writer);
/* Flushes, syncs and renames; frees the writer either way. A failure leaves the old file as it was. */
latent_status lt_writer_commit(latent_context *ctx, lt_writer *writer);
void lt_writer_abort(lt_writer *writer); /* removes the temporary file; takes NULL */

/* All three steps at once. */
latent_status lt_file_write(latent_context *ctx, const char *path, const void *data, size_t bytes);
/* Appends and flushes to disk: for logs whose last line may be lost but whose lines stay whole. */
latent_status lt_file_append(latent_context *ctx, const char *path, const void *data, size_t bytes);
/* Reads a whole file of at most `limit` bytes; *data gets a 0 byte after the last one. Free with free(). */
latent_status lt_file_read(latent_context *ctx, const char *path, size_t limit, char **data, size_t *bytes);
/* Removes what writers of `path` left under their temporary names, where their processes are no more. A
 * writer does it when it opens; do it before where the room on the disk is looked at. */
void lt_file_sweep(const char *path);
/* With its parents; fine if it is there. */
latent_status lt_folder_create(latent_context *ctx, const char *path);
int lt_file_exists(const char *path);
int lt_folder_exists(const char *path);
/* "folder/name", to be freed. */
latent_status lt_path_join(latent_context *ctx, const char *folder, const char *name, char **out);

#endif
