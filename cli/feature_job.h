/* feature_job.h: what is done to features, as `latent features` and `latent run` are told. */
#ifndef CLI_FEATURE_JOB_H
#define CLI_FEATURE_JOB_H

#include "cli.h"

extern const cli_group cli_features_group;

/* Fills flip, standardize and l2; the rest are the library's defaults. Returns an exit code. */
int cli_features_settle(const cli_arguments *arguments, latent_features_options *out);
/* A latent_features_fn; user is the session. */
void cli_features_progress(void *user, latent_split split, int done, int total);
/* "8,192 features, flip, standardize, l2" */
const char *cli_features_text(const latent_features_info *info, char *out, size_t size);
/* The path of the rows of a split in such a folder (latent_free). A folder that holds raw features, or a
 * folder of features, is refused with what would be right. Returns an exit code. */
int cli_features_file(cli_session *session, const char *folder, latent_split split, char **out);
/* The rows of a split in a folder of 'latent features', and their labels (latent_rows_free, latent_free).
 * `width` says how wide they must be; 0: as wide as they are. Returns an exit code. */
int cli_features_read(cli_session *session, const char *folder, latent_split split, size_t width,
                      latent_rows *rows, int32_t **labels);

#endif
