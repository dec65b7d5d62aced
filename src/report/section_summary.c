/* section_summary.c: what came out, against what was wanted, and how to get it again. */
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void card(lt_text *t, const char *value, const char *name) {
    lt_put(t, "<div class=\"card\"><b>");
    lt_escape(t, value);
    lt_put(t, "</b><span>");
    lt_escape(t, name);
    lt_put(t, "</span></div>");
}

void lt_section_cards(lt_text *t, const lt_report_run *run) {
    char text[LT_SHORT];
    lt_put(t, "<div class=\"cards\">");
    if (run->classes > 0) {
        snprintf(text, sizeof text, "%.2f%%", 100 * run->score.accuracy);
        card(t, text, "accuracy");
        snprintf(text, sizeof text, "%.4f", run->score.macro_f1);
        card(t, text, "macro F1");
    }
    if (isfinite(lt_report_last_loss(run))) {
        snprintf(text, sizeof text, "%.5f", lt_report_last_loss(run));
        card(t, text, "training loss");
    }
    double test_loss = lt_get_number(run->part[LT_PART_EVAL], "loss");
    if (isfinite(test_loss)) {
        const char *split = lt_get_text(run->part[LT_PART_EVAL], "split");
        snprintf(text, sizeof text, "%.5f", test_loss);
        card(t, text, split && strcmp(split, "train") == 0 ? "loss on the training images" : "test loss");
    }
    if (run->epoch_count > 0) {
        card(t, lt_show_seconds(text, lt_report_train_seconds(run)), "training");
        double rate = run->epochs[run->epoch_count - 1].images_per_second;
        if (isfinite(rate)) {
            card(t, lt_show_count(text, rate), "images/s in training");
        }
    }
    const lt_json_node *svm = run->part[LT_PART_SVM];
    if (isfinite(lt_get_number(svm, "support"))) {
        card(t, lt_show_count(text, lt_get_number(svm, "support")), "support vectors");
    }
    lt_put(t, "</div>");
}

void lt_section_targets(lt_text *t, lt_place place, const lt_report_run *run) {
    latent_target targets[LATENT_TARGETS];
    lt_targets(run, targets);
    lt_heading(t, place, "targets", "Targets");
    lt_put(t, "<div class=\"scroll\"><table class=\"data text\"><thead><tr><th>what</th><th>target</th>"
              "<th>measured</th><th>reached</th></tr></thead><tbody>");
    for (int i = 0; i < LATENT_TARGETS; i++) {
        static const char *const begins[] = {"open\">", "no\">✗ ", "yes\">✓ "};
        lt_putf(t, "<tr><th scope=\"row\">%s</th><td>", targets[i].name);
        lt_escape(t, targets[i].goal);
        lt_put(t, "</td><td>");
        lt_escape(t, targets[i].measured);
        lt_putf(t, "</td><td><span class=\"%s%s</span>%s", begins[targets[i].met + 1], targets[i].reached,
                targets[i].reason[0] ? ": " : "");
        lt_escape(t, targets[i].reason);
        lt_put(t, "</td></tr>");
    }
    lt_put(t, "</tbody></table></div><p class=\"note\">What is not comparable was measured under other "
              "conditions than the target's: the figure is shown and decides nothing.</p>");
}

static void fact(lt_text *t, const char *name, const char *value) {
    if (value && *value) {
        lt_putf(t, "<tr><th scope=\"row\">%s</th><td>", name);
        lt_escape(t, value);
        lt_put(t, "</td></tr>");
    }
}

static void recipe_facts(lt_text *t, const lt_json_node *config) {
    const lt_json_node *recipe = config ? lt_json_get(config, "recipe") : NULL;
    const char *optimizer = lt_get_text(recipe, "optimizer"), *schedule = lt_get_text(recipe, "schedule");
    char text[256];
    if (recipe && optimizer && schedule) {
        snprintf(text, sizeof text,
                 "%.0f epoch%s, batch %.0f, %.20s, learning rate %g, %.20s schedule, seed %.0f",
                 lt_get_number(recipe, "epochs"), lt_get_number(recipe, "epochs") == 1 ? "" : "s",
                 lt_get_number(recipe, "batch"), optimizer, lt_get_number(recipe, "lr"), schedule,
                 lt_get_number(config, "seed"));
        fact(t, "recipe", text);
    }
}

static void feature_facts(lt_text *t, const lt_json_node *features) {
    char text[256];
    if (features) {
        snprintf(text, sizeof text, "%.0f per image%s%s%s", lt_get_number(features, "width"),
                 lt_get_true(features, "flip") ? ", plus those of the mirror image" : "",
                 lt_get_true(features, "standardize") ? ", standardized" : "",
                 lt_get_true(features, "l2") ? ", rows of length 1" : "");
        fact(t, "features", text);
    }
}

static void svm_facts(lt_text *t, const lt_json_node *svm) {
    const char *kernel = lt_get_text(svm, "kernel");
    char text[256];
    if (svm && kernel) {
        snprintf(text, sizeof text, "%.20s kernel, C %g, gamma %.6g, %.0f support vectors, largest gap %.2g",
                 kernel, lt_get_number(svm, "c"), lt_get_number(svm, "gamma"), lt_get_number(svm, "support"),
                 lt_get_number(svm, "gap"));
        fact(t, "SVM", text);
    }
}

/* A word of a command line, quoted where a shell would take it apart. */
static void put_word(lt_text *t, const char *word) {
    if (*word && strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=%+:,@") ==
                     strlen(word)) {
        lt_put(t, word);
        return;
    }
    lt_put(t, "&#39;");
    for (; *word; word++) {
        char one[2] = {*word, 0};
        if (*word == '\'') {
            lt_put(t, "&#39;\\&#39;&#39;");
        } else if ((unsigned char)*word >= 0x80) {
            lt_put_bytes(t, word, 1); /* part of a character that the caller's file was checked for */
        } else {
            lt_escape(t, one);
        }
    }
    lt_put(t, "&#39;");
}

/* From what a training records: the net is the preset of that name or the text below it. */
static void train_command(lt_text *t, const lt_report_run *run) {
    static const char *const keys[][2] = {{"epochs", "epochs"},
                                          {"batch", "batch"},
                                          {"optimizer", "optimizer"},
                                          {"schedule", "schedule"},
                                          {"lr", "lr"}};
    const lt_json_node *config = run->part[LT_PART_CONFIG], *recipe = lt_json_get(config, "recipe");
    const char *net = lt_get_text(config, "net"), *data = lt_get_text(config, "data");
    lt_put(t, "latent train ");
    put_word(t, net ? net : "autoencoder");
    for (int i = 0; recipe && i < 5; i++) {
        const lt_json_node *node = lt_json_get(recipe, keys[i][0]);
        const char *value = !node ? NULL : node->kind == LT_JSON_NUMBER ? node->number_text : node->string;
        if (value) {
            lt_putf(t, " --%s ", keys[i][1]);
            put_word(t, value);
        }
    }
    lt_putf(t, " --seed %.0f", lt_get_number(config, "seed"));
    if (lt_get_number(config, "subset") > 0) {
        lt_putf(t, " --subset %.0f", lt_get_number(config, "subset"));
    }
    if (data) {
        lt_put(t, " --data ");
        put_word(t, data);
    }
    lt_put(t, " --run ");
    lt_escape(t, run->folder);
}

/* Word by word, so that a line breaks between words and not at a hyphen. */
static void put_command(lt_text *t, const char *command) {
    while (*command) {
        size_t length = strcspn(command, " ");
        char *word = strndup(command, length);
        if (!word) {
            t->failed = 1;
            return;
        }
        lt_put(t, "<span class=\"word\">");
        lt_escape(t, word);
        lt_put(t, "</span>");
        free(word);
        command += length;
        length = strspn(command, " ");
        lt_put_bytes(t, command, length);
        command += length;
    }
}

void lt_section_reproduce(lt_text *t, lt_place place, const lt_report_run *run) {
    const lt_json_node *config = run->part[LT_PART_CONFIG], *journal = run->part[LT_PART_JOURNAL];
    const char *command = lt_get_text(journal, "command"), *net_text = lt_get_text(config, "net_text");
    lt_heading(t, place, "reproduce", "Hardware and how to make it again");
    if (command || config) {
        lt_put(t, "<pre>");
        if (command) {
            put_command(t, command);
        } else {
            train_command(t, run);
        }
        lt_put(t, "</pre>");
    }
    lt_put(t, "<div class=\"scroll\"><table class=\"data text\"><tbody>");
    fact(t, "run", run->folder);
    fact(t, "machine", lt_get_text(journal, "machine"));
    fact(t, "engine", lt_get_text(config, "engine"));
    fact(t, "data", lt_get_text(config, "data"));
    fact(t, "net", lt_get_text(config, "net"));
    recipe_facts(t, config);
    feature_facts(t, run->part[LT_PART_FEATURES]);
    svm_facts(t, run->part[LT_PART_SVM]);
    fact(t, "latent", lt_get_text(config, "version"));
    lt_put(t, "</tbody></table></div>");
    if (net_text) {
        lt_put(t, "<details><summary>The net file</summary><pre>");
        lt_escape(t, net_text);
        lt_put(t, "</pre></details>");
    }
}
