/* staging.h: the folder in which a data set grows before anyone can see it.
 *
 * Files are written into a hidden folder beside their place and moved when all of them are whole and
 * checked. The folder has a fixed name and is locked while it is in use: what a killed process left there is
 * swept by the next one, and two processes never write the same set.
 */
#ifndef LT_DATA_STAGING_H
#define LT_DATA_STAGING_H

#include "base/status.h"

typedef struct lt_staging { /* zero it first */
    char *folder, *path;    /* where the set goes; the staging folder within */
    int fd;                 /* of the staging folder; holds the lock */
    int open;
    int made_folder; /* `folder` was not there before */
} lt_staging;

/* Makes `folder` if need be, and an empty, locked staging folder in it. */
latent_status lt_staging_open(latent_context *ctx, const char *folder, lt_staging *staging);
/* Moves the whole staging folder to `folder`/name, where nothing or an empty folder is. */
latent_status lt_staging_publish(latent_context *ctx, lt_staging *staging, const char *name);
/* Moves one file of the staging folder to `folder`/name, over what is there. */
latent_status lt_staging_move(latent_context *ctx, lt_staging *staging, const char *name);
/* Removes what is left of it, and `folder` if it was made for it and is empty. */
void lt_staging_close(lt_staging *staging);

#endif
