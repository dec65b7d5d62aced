/* svm_job.h: what the commands of `latent svm` and the svm stage of `latent run` share: their options, their
 * input files, what they show.
 */
#ifndef CLI_SVM_JOB_H
#define CLI_SVM_JOB_H

#include "cli.h"
#include "json.h"

extern const cli_command cli_command_svm_train, cli_command_svm_predict, cli_command_svm_grid,
    cli_command_svm_convert;

extern const cli_group cli_svm_input_group;   /* --labels, --data, --split, --subset */
extern const cli_group cli_svm_problem_group; /* --kernel, --gamma, weights: what is solved */
extern const cli_group cli_svm_solver_group;  /* tolerance, cache, precision: how it is solved */

typedef struct cli_svm_setting { /* zero it first */
    latent_svm_options options;
    latent_svm_weight *weights;
} cli_svm_setting;

/* The two groups as options of the library; --c and --gamma stay the command's. */
int cli_svm_settle(cli_session *session, const cli_arguments *arguments, cli_svm_setting *out);
void cli_svm_setting_free(cli_svm_setting *setting);
/* --kernel */
latent_svm_kernel cli_svm_kernel(const cli_arguments *arguments);
/* Refuses a --gamma beside a kernel that has none. Returns an exit code. */
int cli_svm_check_gamma(const cli_arguments *arguments);
/* --c and --gamma of a command that takes one of each. Returns an exit code. */
int cli_svm_point(const cli_arguments *arguments, latent_svm_options *out);

typedef struct cli_svm_input { /* zero it first */
    char *path;                /* of the features */
    char *labels_path;         /* of labels that lie elsewhere, or NULL */
    size_t n, d;
    float *x;
    int32_t *labels; /* or NULL */
    latent_rows rows;
    int32_t *own_labels;
} cli_svm_input;

/* Reads the operand (an .npy file, sparse text, or a folder of 'latent features') and the labels that go with
 * it. `split` is what is meant when --split is not given; `model` says how wide rows must be, or NULL. */
int cli_svm_read(cli_session *session, const cli_arguments *arguments, const char *operand,
                 latent_split split, int needs_labels, const latent_svm_info *model, cli_svm_input *out);
void cli_svm_input_free(cli_svm_input *input);
/* As cli_status, for work on these rows: a sentence about values or labels names the file that they are of.
 */
int cli_svm_status(cli_session *session, const cli_svm_input *input, latent_status status);

/* ---- svm_show.c ---- */

/* A latent_svm_fn; user is the session. */
void cli_svm_progress(void *user, latent_svm_stage stage, uint64_t done, uint64_t total, uint64_t memory);
/* A note when pairs stopped short of the tolerance. */
void cli_svm_warn(cli_session *session, const latent_svm_report *report);
const char *cli_svm_kernel_name(latent_svm_kernel kernel);
/* Keys of an object that is open: what was asked for, with the gamma that a rule gave, and what came of it.
 */
void cli_svm_setting_json(cli_json *json, const latent_svm_options *options, const latent_svm_report *report);
void cli_svm_report_json(cli_json *json, const latent_svm_report *report);

#endif
