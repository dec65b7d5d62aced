/* file.c: reading whole files, folders and paths.
 *
 * A file is read until the system says that it ends, not until the size that stat() once gave: files grow
 * and shrink under a reader, and pipes have no size. What bounds the memory is the caller's limit.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_BYTES = 1 << 16 };

static latent_status cannot_read(latent_context *ctx, const char *path, int error) {
    return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: %s", path, strerror(error));
}

static latent_status too_large(latent_context *ctx, const char *path, size_t limit) {
    return lt_fail(ctx, LATENT_ERROR_FORMAT,
                   "%s: larger than %zu bytes, the most that is read from such a file", path, limit);
}

/* Opens for reading and says how many bytes to expect (0: unknown). */
static latent_status open_to_read(latent_context *ctx, const char *path, size_t limit, int *fd_out,
                                  size_t *expected) {
    struct stat info;
    *expected = 0;
    *fd_out = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd_out < 0 || fstat(*fd_out, &info) != 0) {
        return cannot_read(ctx, path, errno);
    }
    if (S_ISDIR(info.st_mode)) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: it is a folder; give the path of a file",
                       path);
    }
    if (S_ISREG(info.st_mode)) {
        if ((uintmax_t)info.st_size > limit) {
            return too_large(ctx, path, limit);
        }
        *expected = (size_t)info.st_size;
    }
    return LATENT_OK;
}

latent_status lt_file_read(latent_context *ctx, const char *path, size_t limit, char **data, size_t *bytes) {
    latent_status status = LATENT_OK;
    char *buffer = NULL;
    int fd = -1;
    size_t used = 0, capacity = 0;
    *data = NULL;
    *bytes = 0;
    limit = limit < SIZE_MAX / 4 ? limit : SIZE_MAX / 4; /* so that the sums below cannot overflow */
    LT_TRY(open_to_read(ctx, path, limit, &fd, &capacity));
    /* One byte for the final 0 and one more, so that a file of the expected size needs no second buffer. */
    capacity = capacity > 0 ? capacity + 2 : FIRST_BYTES;
    LT_TRY(lt_alloc(ctx, capacity, path, (void **)&buffer));
    for (;;) {
        if (capacity - used < 2) {
            size_t larger = capacity * 2;
            char *grown = realloc(buffer, larger);
            if (!grown) {
                status = lt_fail(ctx, LATENT_ERROR_MEMORY, "%s: no memory for %zu bytes", path, larger);
                goto done;
            }
            buffer = grown;
            capacity = larger;
        }
        ssize_t n = read(fd, buffer + used, capacity - used - 1);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            status = cannot_read(ctx, path, errno);
            goto done;
        }
        if (n == 0) {
            break;
        }
        used += (size_t)n;
        if (used > limit) {
            status = too_large(ctx, path, limit);
            goto done;
        }
    }
    buffer[used] = 0;
    *data = buffer;
    *bytes = used;
    buffer = NULL;
done:
    free(buffer);
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

int lt_file_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

int lt_folder_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* `part` is `path` up to some component. A mkdir() that fails on a folder that is there is no failure,
 * whatever its reason was: EEXIST, or no permission above it. */
static latent_status create_part(latent_context *ctx, const char *path, const char *part) {
    if (mkdir(part, 0777) == 0) {
        return LATENT_OK;
    }
    int error = errno;
    if (lt_folder_exists(part)) {
        return LATENT_OK;
    }
    if (lt_file_exists(part)) {
        return lt_fail(ctx, LATENT_ERROR_IO,
                       "%s: cannot create the folder: %s is a file; remove it or choose another path", path,
                       part);
    }
    return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot create the folder %s: %s", path, part, strerror(error));
}

latent_status lt_folder_create(latent_context *ctx, const char *path) {
    latent_status status = LATENT_OK;
    char *part = NULL;
    if (!*path) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "cannot create a folder: the path is empty");
    }
    LT_TRY(lt_strdup(ctx, path, &part));
    for (char *at = part + 1; *at; at++) {
        if (*at == '/' && at[-1] != '/') {
            *at = 0;
            LT_TRY(create_part(ctx, path, part));
            *at = '/';
        }
    }
    LT_TRY(create_part(ctx, path, part));
done:
    free(part);
    return status;
}

latent_status lt_path_join(latent_context *ctx, const char *folder, const char *name, char **out) {
    size_t length = strlen(folder), size = strlen(name) + 1;
    int slash = length > 0 && folder[length - 1] != '/';
    latent_status status = lt_alloc(ctx, length + size + 1, "a path", (void **)out);
    if (status == LATENT_OK) {
        memcpy(*out, folder, length);
        (*out)[length] = '/';
        memcpy(*out + length + slash, name, size);
    }
    return status;
}
