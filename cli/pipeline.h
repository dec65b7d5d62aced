/* pipeline.h: the stages of `latent run` and what they hand on to each other. */
#ifndef CLI_PIPELINE_H
#define CLI_PIPELINE_H

#include "cli.h"
#include "score_job.h"

enum { CLI_SUMMARY_MAX = 200 };

typedef struct cli_pipeline { /* zero it first */
    cli_session *session;
    const cli_arguments *arguments;
    char *run; /* the folder */
    latent_journal *journal;
    latent_engine_options engine;
    latent_net *net;
    latent_train_options train;
    latent_features_options features;
    latent_svm_options svm;
    int overwrite; /* do every stage again */

    /* Made by a stage, or loaded when a later one needs it. */
    latent_dataset *data;
    latent_dataset_info data_info;
    char digest[33]; /* of the data */
    int made;        /* 1: the set is the synthetic one of the run folder */
    latent_model *model;
    latent_svm *machine;
    char weights[33]; /* digest of the trained model */

    double data_seconds;           /* finding or making the set, before the first stage */
    int worked;                    /* stages that had to do something */
    int goes_on;                   /* the stage at work goes on from where it was stopped */
    char summary[CLI_SUMMARY_MAX]; /* of that stage, as it was completed before; "": it was not */
} cli_pipeline;

typedef struct cli_stage {
    const char *name;
    const char *doing; /* "training the autoencoder" */
    /* Everything that decides the output of the stage, as text to be freed; NULL with an exit code in
     * *code. Called when all stages before are complete. */
    char *(*inputs)(cli_pipeline *p, int *code);
    /* 1 when the output is there; called when its files are as the stage left them. */
    int (*there)(cli_pipeline *p);
    /* Finds out what would be refused, before the record of the stage is touched; or NULL. Returns an exit
     * code. */
    int (*ready)(cli_pipeline *p);
    /* 1 when the work would go on from where it was stopped; NULL: it always begins anew. */
    int (*continues)(cli_pipeline *p);
    /* Does the work and says in a line what came of it. Returns an exit code. */
    int (*work)(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]);
    const char *const *files; /* that it writes, from the run folder, ending with NULL; or NULL */
} cli_stage;

enum { CLI_STAGES = 6 };
extern const cli_stage cli_stages[CLI_STAGES];

/* stages_data.c */
/* Opens the data set that is asked for or at hand; none leaves p->data NULL. Returns an exit code. */
int cli_data_open(cli_pipeline *p);
int cli_data_make(cli_pipeline *p); /* or else makes a synthetic one in the run folder. */
char *cli_data_inputs(cli_pipeline *p, int *code);
int cli_data_there(cli_pipeline *p);
int cli_data_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]);

/* stages.c */
char *cli_train_inputs(cli_pipeline *p, int *code);
int cli_train_there(cli_pipeline *p);
int cli_train_ready(cli_pipeline *p);
int cli_train_continues(cli_pipeline *p);
int cli_train_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]);
char *cli_features_inputs(cli_pipeline *p, int *code);
int cli_features_there(cli_pipeline *p);
int cli_features_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]);

/* stages_svm.c */
char *cli_svm_inputs(cli_pipeline *p, int *code);
int cli_svm_there(cli_pipeline *p);
int cli_svm_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]);
char *cli_eval_inputs(cli_pipeline *p, int *code);
int cli_eval_there(cli_pipeline *p);
int cli_eval_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]);
char *cli_report_inputs(cli_pipeline *p, int *code);
int cli_report_there(cli_pipeline *p);
int cli_report_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]);

/* pipeline.c */
/* The trained model on the engine of this call. Returns an exit code. */
int cli_pipeline_model(cli_pipeline *p);
int cli_pipeline_has(const cli_pipeline *p, const char *name); /* a file of the run folder */
/* Of a file of the run folder; "" when it cannot be read. */
void cli_pipeline_fingerprint(const cli_pipeline *p, const char *name, char out[33]);
/* printf into memory to be freed. */
char *cli_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_pipeline_free(cli_pipeline *p);

/* run_summary.c: prints what came of the stages. Returns an exit code. */
int cli_run_summary(cli_pipeline *p);

/* machine.c: "Intel Xeon ..., 2 cores, 24.6 GB memory, Linux 6.1; cuda: NVIDIA H200", to be freed. */
char *cli_machine(void);
/* The command line that asks for the same again, to be freed. `data` NULL: the set is a synthetic one. */
char *cli_command_line(const cli_arguments *arguments, const char *run, const char *data);

#endif
