/* transfer.h: brings a file of known size from a web server, in as many attempts as it takes. */
#ifndef LT_DATA_TRANSFER_H
#define LT_DATA_TRANSFER_H

#include "base/status.h"

/* Adds to the file `part` until it has `size` bytes. What is there already is not asked for again; a file
 * that is too large, or a server that cannot resume, starts over. After a failure `part` holds what came, for
 * the next call, or is gone when that was nothing or cannot be right. Without libcurl:
 * LATENT_ERROR_UNSUPPORTED. */
latent_status lt_transfer(latent_context *ctx, const char *url, const char *part, uint64_t size,
                          latent_transfer_fn progress, void *user);

#endif
