/* stages_data.c: the first stage of `latent run`: a data set that is found, or a synthetic one that is made.
 * The others cannot say what they want without it, so it is open before the first stage is looked at.
 */
#include "format.h"
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>

/* The synthetic set of the run folder; the same arguments give the same bytes. */
static int make_synthetic(cli_pipeline *p, const char *folder) {
    int train = (int)cli_get(p->arguments, "synthetic-train")->integer;
    int test = (int)cli_get(p->arguments, "synthetic-test")->integer;
    cli_note(p->session, "making a synthetic set of %s training and %s test images in %s",
             cli_count((uint64_t)train).s, cli_count((uint64_t)test).s, folder);
    return cli_status(p->session, latent_dataset_synthesize(p->session->ctx, folder, train, test, 1));
}

/* Whether the set in the folder is the one that the options ask for. */
static int synthetic_fits(cli_pipeline *p) {
    latent_dataset_get_info(p->data, &p->data_info);
    return p->data_info.synthetic &&
           p->data_info.count[LATENT_TRAIN] == cli_get(p->arguments, "synthetic-train")->integer &&
           p->data_info.count[LATENT_TEST] == cli_get(p->arguments, "synthetic-test")->integer;
}

/* Under its absolute path, so that the run finds its data from any folder. */
static int open_absolute(cli_pipeline *p, const char *folder) {
    char *path = realpath(folder, NULL);
    int code = cli_status(p->session, latent_dataset_open(p->session->ctx, path ? path : folder, &p->data));
    free(path);
    return code;
}

static int open_synthetic(cli_pipeline *p) {
    char *folder = cli_join(p->run, "data");
    int code = CLI_OK;
    if (cli_folder_has_data(folder) && !p->overwrite) {
        code = open_absolute(p, folder);
        if (code == CLI_OK && !synthetic_fits(p)) {
            latent_dataset_destroy(p->data);
            p->data = NULL;
        } else if (code != CLI_OK) {
            cli_fail(p->session, "the same command with --overwrite makes the synthetic set anew");
        }
    }
    if (code == CLI_OK && !p->data) {
        code = make_synthetic(p, folder);
        if (code == CLI_OK) {
            code = open_absolute(p, folder);
        }
    }
    free(folder);
    return code;
}

int cli_data_open(cli_pipeline *p) {
    char *folder =
        cli_flag(p->arguments, "synthetic") ? NULL : cli_find_data(cli_string(p->arguments, "data"), NULL);
    int code = folder ? open_absolute(p, folder) : CLI_OK;
    free(folder);
    return code;
}

int cli_data_make(cli_pipeline *p) {
    if (!cli_flag(p->arguments, "synthetic")) {
        cli_note(p->session, "no data set at hand, so a synthetic one is made ('latent data download "
                             "./data' fetches CIFAR-10)");
    }
    p->made = 1;
    return open_synthetic(p);
}

char *cli_data_inputs(cli_pipeline *p, int *code) {
    *code = CLI_OK;
    return cli_print("%s; %d training and %d test images; digest %s", p->data_info.path,
                     p->data_info.count[LATENT_TRAIN], p->data_info.count[LATENT_TEST], p->digest);
}

int cli_data_there(cli_pipeline *p) {
    return p->data != NULL;
}

int cli_data_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]) {
    snprintf(summary, CLI_SUMMARY_MAX, "%s, %s training and %s test images",
             p->data_info.synthetic ? "synthetic" : "found",
             cli_count((uint64_t)p->data_info.count[LATENT_TRAIN]).s,
             cli_count((uint64_t)p->data_info.count[LATENT_TEST]).s);
    return CLI_OK;
}
