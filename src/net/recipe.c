/* recipe.c: how to train, as text: the keys of a net file's `train` line and of the program's flags.
 *
 * One table says what each key may hold; the parser of net files, the command line and messages read it.
 */
#include "net/recipe.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { INTEGER, REAL, OPTIMIZER, SCHEDULE } kind;

typedef struct setting {
    const char *name;
    kind kind;
    size_t offset;
    double low, high;
    int open_low, open_high; /* the bound itself is not allowed */
    const char *right;       /* completes "it must be ..." */
} setting;

#define AT(field) offsetof(latent_recipe, field)

static const setting keys[] = {
    {"epochs", INTEGER, AT(epochs), 1, 1000000, 0, 0, "a whole number from 1 to 1000000"},
    {"batch", INTEGER, AT(batch), 1, 65536, 0, 0, "a whole number from 1 to 65536"},
    {"optimizer", OPTIMIZER, AT(optimizer), 0, 0, 0, 0, "sgd, adam or adamw"},
    {"schedule", SCHEDULE, AT(schedule), 0, 0, 0, 0, "constant, cosine or onecycle"},
    {"lr", REAL, AT(lr), 0, 1e6, 1, 0, "a number above 0"},
    {"momentum", REAL, AT(momentum), 0, 1, 0, 1, "a number from 0 up to, not including, 1"},
    {"beta2", REAL, AT(beta2), 0, 1, 0, 1, "a number from 0 up to, not including, 1"},
    {"epsilon", REAL, AT(epsilon), 0, 1, 1, 0, "a number above 0, at most 1"},
    {"weight_decay", REAL, AT(weight_decay), 0, 1e6, 0, 0, "a number of at least 0"},
};
enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

static const char *const optimizers[] = {"sgd", "adam", "adamw"};
static const char *const schedules[] = {"constant", "cosine", "onecycle"};

const char *latent_optimizer_name(latent_optimizer optimizer) {
    return optimizers[optimizer];
}
const char *latent_schedule_name(latent_schedule schedule) {
    return schedules[schedule];
}

void lt_recipe_defaults(latent_recipe *recipe) {
    memset(recipe, 0, sizeof *recipe);
    recipe->epochs = 20;
    recipe->batch = 64;
    recipe->optimizer = LATENT_ADAM;
    recipe->schedule = LATENT_CONSTANT;
    recipe->lr = 1e-3;
    recipe->momentum = 0.9;
    recipe->beta2 = 0.999;
    recipe->epsilon = 1e-8;
}

static int in_range(const setting *key, double value) {
    return isfinite(value) && (key->open_low ? value > key->low : value >= key->low) &&
           (key->open_high ? value < key->high : value <= key->high);
}

latent_status lt_recipe_check(latent_context *ctx, const latent_recipe *recipe) {
    for (int i = 0; i < KEY_COUNT; i++) {
        const void *at = (const char *)recipe + keys[i].offset;
        double value = 0;
        int good = 1;
        if (keys[i].kind == INTEGER) {
            value = *(const int *)at;
            good = in_range(&keys[i], value);
        } else if (keys[i].kind == REAL) {
            value = *(const double *)at;
            good = in_range(&keys[i], value);
        } else if (keys[i].kind == OPTIMIZER) {
            value = recipe->optimizer;
            good = value >= LATENT_SGD && value <= LATENT_ADAMW;
        } else {
            value = recipe->schedule;
            good = value >= LATENT_CONSTANT && value <= LATENT_ONECYCLE;
        }
        if (!good) {
            return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s %g cannot be used; it must be %s", keys[i].name,
                           value, keys[i].right);
        }
    }
    return LATENT_OK;
}

static int find(const char *word, const char *const *words, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static latent_status unknown_key(latent_context *ctx, const char *name) {
    const char *names[KEY_COUNT];
    for (int i = 0; i < KEY_COUNT; i++) {
        names[i] = keys[i].name;
    }
    const char *near = latent_suggest(name, names, KEY_COUNT);
    return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                   "unknown setting '%s'%s%s%s; the settings are epochs, batch, "
                   "optimizer, schedule, lr, momentum, beta2, epsilon, weight_decay",
                   name, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

latent_status latent_recipe_set(latent_context *ctx, latent_recipe *recipe, const char *name,
                                const char *value) {
    const setting *key = NULL;
    for (int i = 0; i < KEY_COUNT && !key; i++) {
        key = strcmp(name, keys[i].name) == 0 ? &keys[i] : NULL;
    }
    if (!key) {
        return unknown_key(ctx, name);
    }
    void *at = (char *)recipe + key->offset;
    char *end = NULL;
    errno = 0;
    int good = 0;
    if (key->kind == INTEGER) {
        long number = strtol(value, &end, 10);
        good = end != value && *end == 0 && errno == 0 && in_range(key, (double)number);
        *(int *)at = good ? (int)number : *(int *)at;
    } else if (key->kind == REAL) {
        double number = strtod(value, &end);
        good = end != value && *end == 0 && in_range(key, number);
        *(double *)at = good ? number : *(double *)at;
    } else if (key->kind == OPTIMIZER) {
        int found = find(value, optimizers, 3);
        good = found >= 0;
        recipe->optimizer = good ? (latent_optimizer)found : recipe->optimizer;
    } else {
        int found = find(value, schedules, 3);
        good = found >= 0;
        recipe->schedule = good ? (latent_schedule)found : recipe->schedule;
    }
    if (!good) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s '%s' cannot be used; it must be %s", name, value,
                       key->right);
    }
    return LATENT_OK;
}
