/* score_job.h: what an SVM makes of features, scored against the labels beside them. */
#ifndef CLI_SCORE_JOB_H
#define CLI_SCORE_JOB_H

#include "cli.h"
#include "json.h"

typedef struct cli_scores { /* zero it first */
    int classes;
    const char **names; /* [classes], of the data set */
    uint64_t *confusion;
    latent_class_score *each;
    latent_score score;
    int32_t *truth, *predicted; /* [count] */
    size_t count;
    double read_seconds, predict_seconds;
    char engine[160];
} cli_scores;

/* Predicts the rows of a split in a features folder. `data` names the classes; its split must have as many
 * images as there are rows. Returns an exit code. */
int cli_scores_compute(cli_session *session, latent_svm *svm, const char *features, latent_split split,
                       const latent_dataset *data, cli_scores *out);
void cli_scores_free(cli_scores *scores);
/* Keys of an object that is open. */
void cli_scores_json(cli_json *json, const cli_scores *scores);
void cli_scores_print(const cli_scores *scores);

/* Everything that is known about a model on a split: the loss and, where there is an SVM, its scores. */
typedef struct cli_evaluation {
    const char *model, *split, *engine;
    latent_dataset_info data;
    const latent_dataset *set;
    char digest[33]; /* of the set */
    char weights[33];
    latent_evaluation loss;
    const char *svm;          /* path, or NULL */
    const cli_scores *scores; /* or NULL */
    const char *unscored;     /* why there are none, where an SVM is at hand; or NULL */
} cli_evaluation;

/* A cli_record_fn; user is the cli_evaluation. RUN/eval.json is such an object. */
void cli_evaluation_fill(cli_json *json, void *user);

#endif
