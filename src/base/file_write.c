/* file_write.c: writing that never leaves half a file.
 *
 * A writer puts its bytes into "<path>.tmp.<pid>" in the folder of the target, so that the final rename
 * stays within one file system and is atomic. The order is: write, fsync, close, rename, fsync of the
 * folder. Any failure removes the temporary file and leaves the target as it was. A symbolic link is
 * followed first, so that what it points to is replaced and not the link.
 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16 };

struct lt_writer {
    char *path;      /* as the caller wrote it, for messages */
    char *target;    /* where the file really goes */
    char *temporary; /* where the bytes are until then */
    int fd;
    int failed; /* the errno of the first failed write; later calls repeat it */
    size_t used;
    unsigned char buffer[BUFFER_BYTES];
};

/* Everything, or the errno of what went wrong. */
static int write_all(int fd, const void *data, size_t bytes) {
    const unsigned char *at = data;
    while (bytes > 0) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : EIO;
        }
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* Some file systems cannot sync what they hold and say EINVAL; that is no loss of data. */
static int sync_to_disk(int fd) {
    while (fsync(fd) != 0) {
        if (errno != EINTR) {
            return errno == EINVAL || errno == ENOTSUP ? 0 : errno;
        }
    }
    return 0;
}

/* Makes the rename itself durable. A folder that may not be opened for reading cannot be synced; the file
 * is whole all the same. */
static int sync_folder_of(const char *target) {
    char *slash = strrchr(target, '/');
    char *folder = slash == target ? strdup("/")
                   : slash         ? strndup(target, (size_t)(slash - target))
                                   : strdup(".");
    if (!folder) {
        return ENOMEM;
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0) {
        return 0;
    }
    int error = sync_to_disk(fd);
    close(fd);
    return error;
}

static latent_status cannot_write(latent_context *ctx, const char *path, int error) {
    return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot write: %s; the old file, if any, is unchanged", path,
                   strerror(error));
}

/* A rename would replace a device or fail late on a folder: both are refused before a byte is written.
 * *mode: the permissions of the file that is there, so that its successor is no more open than it was. */
static latent_status check_target(latent_context *ctx, const char *path, mode_t *mode) {
    struct stat info;
    size_t length = strlen(path);
    if (length == 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "cannot write a file: the path is empty");
    }
    if (stat(path, &info) == 0) {
        if (!S_ISREG(info.st_mode)) {
            return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot write: it is %s; give the path of a file", path,
                           S_ISDIR(info.st_mode) ? "a folder" : "not a regular file");
        }
        *mode = info.st_mode & 0777;
    }
    if (path[length - 1] == '/') {
        return lt_fail(ctx, LATENT_ERROR_IO,
                       "%s: cannot write: the path ends in '/'; give the path of a file", path);
    }
    return LATENT_OK;
}

/* A link that leads nowhere, or round, cannot be followed, and a rename would replace it. */
static latent_status check_link(latent_context *ctx, const char *path) {
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        return lt_fail(
            ctx, LATENT_ERROR_IO,
            "%s: cannot write: it is a link that leads to no file; remove it, or make the file that "
            "it names",
            path);
    }
    return LATENT_OK;
}

/* 1 when `name` is a temporary name of `base` and the process that it tells of is no more. A folder that is
 * shared by hosts may hold one of another host's process; that one's write then fails, as if the disk had. */
static int is_leftover(const char *name, const char *base) {
    size_t length = strlen(base);
    if (strncmp(name, base, length) != 0 || strncmp(name + length, ".tmp.", 5) != 0) {
        return 0;
    }
    const char *digits = name + length + 5;
    if (*digits < '1' || *digits > '9' || digits[strspn(digits, "0123456789")] || strlen(digits) > 9) {
        return 0;
    }
    return kill((pid_t)atol(digits), 0) != 0 && errno == ESRCH;
}

void lt_file_sweep(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t length = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    char *folder = length ? strndup(path, length) : strdup(".");
    DIR *entries = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (is_leftover(entry->d_name, base)) {
            unlinkat(dirfd(entries), entry->d_name, 0);
        }
    }
    if (entries) {
        closedir(entries);
    }
    free(folder);
}

static void writer_free(lt_writer *writer) {
    if (writer) {
        free(writer->path);
        free(writer->target);
        free(writer->temporary);
        free(writer);
    }
}

latent_status lt_writer_open(latent_context *ctx, const char *path, lt_writer **out) {
    latent_status status = LATENT_OK;
    lt_writer *writer = NULL;
    mode_t mode = 0666;
    *out = NULL;
    LT_TRY(check_target(ctx, path, &mode));
    LT_TRY(lt_calloc(ctx, 1, sizeof *writer, "a file writer", (void **)&writer));
    writer->fd = -1;
    LT_TRY(lt_strdup(ctx, path, &writer->path));
    writer->target = realpath(path, NULL);
    if (!writer->target) {
        LT_TRY(check_link(ctx, path));
        LT_TRY(lt_strdup(ctx, path, &writer->target));
    }
    size_t size = strlen(writer->target) + 32;
    LT_TRY(lt_alloc(ctx, size, "a file name", (void **)&writer->temporary));
    snprintf(writer->temporary, size, "%s.tmp.%ld", writer->target, (long)getpid());
    lt_file_sweep(writer->target);
    /* A killed process may have left one, or someone may have put a link there: start from nothing. */
    unlink(writer->temporary);
    writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (writer->fd < 0) {
        status = cannot_write(ctx, path, errno);
        goto done;
    }
    *out = writer;
    writer = NULL;
done:
    writer_free(writer);
    return status;
}

static int writer_flush(lt_writer *writer) {
    if (!writer->failed && writer->used > 0) {
        writer->failed = write_all(writer->fd, writer->buffer, writer->used);
        writer->used = 0;
    }
    return writer->failed;
}

latent_status lt_writer_put(latent_context *ctx, lt_writer *writer, const void *data, size_t bytes) {
    if (bytes > BUFFER_BYTES - writer->used) {
        writer_flush(writer);
    }
    if (!writer->failed && bytes >= BUFFER_BYTES) {
        writer->failed = write_all(writer->fd, data, bytes);
    } else if (!writer->failed && bytes > 0) {
        memcpy(writer->buffer + writer->used, data, bytes);
        writer->used += bytes;
    }
    return writer->failed ? cannot_write(ctx, writer->path, writer->failed) : LATENT_OK;
}

latent_status lt_writer_sync(latent_context *ctx, lt_writer *writer) {
    if (!writer_flush(writer)) {
        writer->failed = sync_to_disk(writer->fd);
    }
    return writer->failed ? cannot_write(ctx, writer->path, writer->failed) : LATENT_OK;
}

latent_status lt_writer_commit(latent_context *ctx, lt_writer *writer) {
    latent_status status = LATENT_OK;
    int error = writer_flush(writer);
    if (!error) {
        error = sync_to_disk(writer->fd);
    }
    if (close(writer->fd) != 0 && !error && errno != EINTR) {
        error = errno;
    }
    writer->fd = -1;
    if (!error && rename(writer->temporary, writer->target) != 0) {
        error = errno;
    }
    if (error) {
        status = cannot_write(ctx, writer->path, error);
        lt_writer_abort(writer);
        return status;
    }
    error = sync_folder_of(writer->target);
    if (error) {
        status = lt_fail(ctx, LATENT_ERROR_IO, "%s: written, but its folder could not be flushed to disk: %s",
                         writer->path, strerror(error));
    }
    writer_free(writer);
    return status;
}

void lt_writer_abort(lt_writer *writer) {
    if (writer) {
        if (writer->fd >= 0) {
            close(writer->fd);
        }
        unlink(writer->temporary);
        writer_free(writer);
    }
}

latent_status lt_file_write(latent_context *ctx, const char *path, const void *data, size_t bytes) {
    lt_writer *writer = NULL;
    latent_status status = lt_writer_open(ctx, path, &writer);
    if (status != LATENT_OK) {
        return status;
    }
    status = lt_writer_put(ctx, writer, data, bytes);
    if (status != LATENT_OK) {
        lt_writer_abort(writer);
        return status;
    }
    return lt_writer_commit(ctx, writer);
}

latent_status latent_file_write(latent_context *ctx, const char *path, const void *data, size_t bytes) {
    return lt_file_write(ctx, path, data, bytes);
}

latent_status latent_file_check(latent_context *ctx, const char *path) {
    lt_writer *writer = NULL;
    latent_status status = lt_writer_open(ctx, path, &writer);
    lt_writer_abort(writer);
    return status;
}

latent_status lt_file_append(latent_context *ctx, const char *path, const void *data, size_t bytes) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot append: %s", path, strerror(errno));
    }
    struct stat before;
    int error = fstat(fd, &before) == 0 ? 0 : errno;
    if (!error) {
        error = write_all(fd, data, bytes);
        if (error && S_ISREG(before.st_mode) && ftruncate(fd, before.st_size) != 0) {
            error = errno; /* the half line stays; that is the worse news */
        }
    }
    if (!error) {
        error = sync_to_disk(fd);
    }
    if (close(fd) != 0 && !error && errno != EINTR) {
        error = errno;
    }
    if (error) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot append: %s", path, strerror(error));
    }
    return LATENT_OK;
}
