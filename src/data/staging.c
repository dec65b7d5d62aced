/* staging.c: see staging.h. The lock is flock() on the folder itself: the system drops it when the process
 * dies, however it dies. Between opening the folder and locking it another process may have published it
 * under its final name, so after the lock the name is looked up again: it must still be the same folder. */
#include "data/staging.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAGING_NAME ".latent-unfinished"

/* Removes every file in the folder. It holds no folders: nobody but us writes there. */
static void sweep(const char *folder) {
    DIR *listing = opendir(folder);
    if (!listing) {
        return;
    }
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            unlinkat(dirfd(listing), entry->d_name, 0);
        }
    }
    closedir(listing);
}

static latent_status lock(latent_context *ctx, lt_staging *staging) {
    struct stat locked, named;
    staging->fd = open(staging->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (staging->fd < 0) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot write into the folder: %s: %s", staging->folder,
                       staging->path, strerror(errno));
    }
    int busy = flock(staging->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (busy || fstat(staging->fd, &locked) != 0 || lstat(staging->path, &named) != 0 ||
        locked.st_ino != named.st_ino || locked.st_dev != named.st_dev) {
        close(staging->fd);
        return lt_fail(ctx, LATENT_ERROR_IO,
                       "%s: another process is writing a data set here; wait for it or give another folder",
                       staging->folder);
    }
    staging->open = 1;
    return LATENT_OK;
}

latent_status lt_staging_open(latent_context *ctx, const char *folder, lt_staging *staging) {
    latent_status status = LATENT_OK;
    LT_TRY(lt_strdup(ctx, folder, &staging->folder));
    LT_TRY(lt_path_join(ctx, folder, STAGING_NAME, &staging->path));
    staging->made_folder = !lt_folder_exists(folder);
    LT_TRY(lt_folder_create(ctx, folder));
    if (mkdir(staging->path, 0777) != 0 && errno != EEXIST) {
        status =
            lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot write into the folder: %s", folder, strerror(errno));
        goto done;
    }
    LT_TRY(lock(ctx, staging));
    sweep(staging->path);
done:
    if (status != LATENT_OK) {
        lt_staging_close(staging);
    }
    return status;
}

static latent_status move(latent_context *ctx, lt_staging *staging, const char *from, const char *name) {
    char *to = NULL;
    latent_status status = LATENT_OK;
    LT_TRY(lt_path_join(ctx, staging->folder, name, &to));
    if (rename(from, to) != 0) {
        status = lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot be moved into place: %s", to, strerror(errno));
        goto done;
    }
    /* Makes the rename durable; a file system that cannot sync a folder loses nothing by it. */
    int fd = open(staging->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
done:
    free(to);
    return status;
}

latent_status lt_staging_publish(latent_context *ctx, lt_staging *staging, const char *name) {
    latent_status status = move(ctx, staging, staging->path, name);
    if (status == LATENT_OK) {
        close(staging->fd);
        staging->open = 0; /* nothing is left to sweep */
    }
    return status;
}

latent_status lt_staging_move(latent_context *ctx, lt_staging *staging, const char *name) {
    char *from = NULL;
    latent_status status = lt_path_join(ctx, staging->path, name, &from);
    if (status == LATENT_OK) {
        status = move(ctx, staging, from, name);
    }
    free(from);
    return status;
}

void lt_staging_close(lt_staging *staging) {
    if (staging->open) {
        sweep(staging->path);
        rmdir(staging->path);
        close(staging->fd);
    }
    if (staging->made_folder) {
        rmdir(staging->folder); /* refused, rightly, when something is in it */
    }
    free(staging->folder);
    free(staging->path);
    memset(staging, 0, sizeof *staging);
}
