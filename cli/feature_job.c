/* feature_job.c: each step of the features is on by default and has a flag either way; --raw-features turns
 * all of them off, and a flag beside it turns one on again.
 */
#include "feature_job.h"

#include "format.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "flip", .type = CLI_FLAG, .help = "add the features of the mirrored image (on by default)"},
    {.name = "no-flip", .type = CLI_FLAG, .help = "leave the mirrored image out"},
    {.name = "standardize",
     .type = CLI_FLAG,
     .help = "column by column, less the training mean, over the training deviation (on by default)"},
    {.name = "no-standardize", .type = CLI_FLAG, .help = "leave the columns as they are"},
    {.name = "l2", .type = CLI_FLAG, .help = "bring every row to length 1 (on by default)"},
    {.name = "no-l2", .type = CLI_FLAG, .help = "leave the rows as long as they are"},
    {.name = "raw-features",
     .type = CLI_FLAG,
     .help = "none of the three: what the encoder gives, as the published recipe has it"},
};

const cli_group cli_features_group = {"Features", options, sizeof options / sizeof *options};

int cli_features_settle(const cli_arguments *arguments, latent_features_options *out) {
    latent_features_defaults(out);
    const struct {
        const char *on, *off;
        int *value;
    } steps[] = {{"flip", "no-flip", &out->flip},
                 {"standardize", "no-standardize", &out->standardize},
                 {"l2", "no-l2", &out->l2}};
    for (int i = 0; i < 3; i++) {
        int on = cli_flag(arguments, steps[i].on), off = cli_flag(arguments, steps[i].off);
        if (on && off) {
            return cli_usage(arguments->command, "--%s and --%s contradict each other: give one", steps[i].on,
                             steps[i].off);
        }
        if (on || off || cli_flag(arguments, "raw-features")) {
            *steps[i].value = on;
        }
    }
    return CLI_OK;
}

void cli_features_progress(void *user, latent_split split, int done, int total) {
    cli_session *session = user;
    char right[160];
    (void)split;
    snprintf(right, sizeof right, "%s of %s images", cli_count((uint64_t)done).s,
             cli_count((uint64_t)total).s);
    if (cli_progress_due(&session->progress, 30)) {
        cli_progress_line(&session->progress, "features  %s", right);
    } else {
        cli_progress_bar(&session->progress, (double)done / total, "features", right);
    }
}

const char *cli_features_text(const latent_features_info *info, char *out, size_t size) {
    snprintf(out, size, "%s features%s%s%s%s", cli_count((uint64_t)info->width).s, info->flip ? ", flip" : "",
             info->standardize ? ", standardize" : "", info->l2 ? ", l2" : "",
             info->flip || info->standardize || info->l2 ? "" : ", raw");
    return out;
}

int cli_features_file(cli_session *session, const char *folder, latent_split split, char **out) {
    char *raw = NULL, *below = cli_join(folder, "features");
    int code = cli_status(session, latent_features_path(session->ctx, folder, split, 0, LATENT_NPY, out));
    if (code == CLI_OK && access(*out, F_OK) != 0) {
        code = cli_status(session, latent_features_path(session->ctx, folder, split, 0, LATENT_RAW, &raw));
        if (code == CLI_OK && access(raw, F_OK) == 0) {
            code = cli_fail(session,
                            "%s: these features are raw floats, and .npy arrays are read here; make them "
                            "again with 'latent features --format npy'",
                            raw);
        } else if (code == CLI_OK && cli_is_folder(below)) {
            code = cli_fail(session, "%s: no features lie in it, but %s does: give that folder", *out, below);
        }
    }
    if (code != CLI_OK) {
        latent_free(*out);
        *out = NULL;
    }
    latent_free(raw);
    free(below);
    return code;
}

int cli_features_read(cli_session *session, const char *folder, latent_split split, size_t width,
                      latent_rows *rows, int32_t **labels) {
    char *x = NULL, *y = NULL;
    size_t labelled = 0;
    int code = cli_features_file(session, folder, split, &x);
    if (code != CLI_OK) {
        return code;
    }
    latent_status status = latent_features_path(session->ctx, folder, split, 1, LATENT_NPY, &y);
    if (status == LATENT_OK) {
        status = latent_rows_read(session->ctx, x, width, rows);
    }
    if (status == LATENT_OK) {
        status = latent_labels_read(session->ctx, y, labels, &labelled);
    }
    code = cli_status(session, status);
    if (code == CLI_OK && labelled != rows->n) {
        code = cli_fail(session,
                        "%s: %zu labels for %zu rows of features; make both again with 'latent "
                        "features'",
                        y, labelled, rows->n);
    }
    latent_free(x);
    latent_free(y);
    return code;
}
