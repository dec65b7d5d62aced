/* svm_show.c: what is told about a support vector machine, whoever trains it, `latent svm` or `latent run`:
 * how far it is, what went short, and the figures as JSON.
 */
#include "format.h"
#include "svm_job.h"

#include <stdio.h>

void cli_svm_progress(void *user, latent_svm_stage stage, uint64_t done, uint64_t total, uint64_t memory) {
    static const char *const names[] = {"kernel matrix", "pairs", "rows"};
    cli_session *session = user;
    char right[160];
    if (stage == LATENT_SVM_MATRIX && done == 0 && memory > 0) {
        cli_note(session, "memory  %s for the kernel matrix", cli_bytes(memory).s);
    }
    snprintf(right, sizeof right, "%s of %s", cli_count(done).s, cli_count(total).s);
    if (cli_progress_due(&session->progress, 30)) {
        cli_progress_line(&session->progress, "%s  %s", names[stage], right);
    } else {
        cli_progress_bar(&session->progress, total > 0 ? (double)done / (double)total : 0, names[stage],
                         right);
    }
}

void cli_svm_warn(cli_session *session, const latent_svm_report *report) {
    if (report->unconverged > 0) {
        cli_note(session, "%d of %d pairs stopped short of the tolerance; the largest gap is %.3g",
                 report->unconverged, report->pairs, report->gap);
    }
}

const char *cli_svm_kernel_name(latent_svm_kernel kernel) {
    return kernel == LATENT_SVM_RBF ? "rbf" : "linear";
}

void cli_svm_setting_json(cli_json *json, const latent_svm_options *options,
                          const latent_svm_report *report) {
    cli_json_string(json, "kernel", cli_svm_kernel_name(options->kernel));
    cli_json_number(json, "c", options->c);
    cli_json_number(json, "gamma", report->gamma);
    cli_json_number(json, "tolerance", options->tolerance);
}

void cli_svm_report_json(cli_json *json, const latent_svm_report *report) {
    cli_json_integer(json, "classes", (uint64_t)report->classes);
    cli_json_integer(json, "support", report->support);
    cli_json_integer(json, "iterations", report->iterations);
    cli_json_number(json, "gap", report->gap);
    cli_json_number(json, "objective", report->objective);
    cli_json_integer(json, "unconverged", (uint64_t)report->unconverged);
    cli_json_integer(json, "memory", report->memory);
    cli_json_number(json, "seconds", report->seconds);
    cli_json_number(json, "prepare_seconds", report->prepare_seconds);
    cli_json_number(json, "matrix_seconds", report->matrix_seconds);
    cli_json_number(json, "solve_seconds", report->solve_seconds);
}
