/* train_fixture.h: what the tests of training share: a net small enough for the reference, a few made-up
 * images, a folder that is removed afterwards, and a backend that can be tampered with.
 */
#ifndef TRAIN_FIXTURE_H
#define TRAIN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/rng.h"
#include "data/dataset.h"
#include "model/model.h"
#include "scratch_folder.h"
#include "train/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIXTURE_NET                                                                                          \
    "input 32x32x3\n"                                                                                        \
    "conv down 4 3x3 relu pool2\n"                                                                           \
    "latent\n"                                                                                               \
    "conv up 3 3x3 up2\n"                                                                                    \
    "loss mse\n"                                                                                             \
    "train epochs 3 batch 4 optimizer adam lr 1e-2\n"

enum { FIXTURE_IMAGES = 10 }; /* batches of 4, 4 and 2 */

typedef struct fixture {
    latent_context *ctx;
    latent_dataset *data;
    latent_net *net;
    char folder[40];
    char run[96], other[96];
} fixture;

#define OK(fx, call) assert_ok((fx)->ctx, (call), #call)

static inline void assert_ok(latent_context *ctx, latent_status status, const char *what) {
    if (status != LATENT_OK) {
        fail_msg("%s: %d, %s", what, (int)status, latent_context_message(ctx));
    }
}

/* The call failed with this status, and the sentence says this. */
static inline void assert_refused(const fixture *fx, latent_status status, latent_status want,
                                  const char *part) {
    const char *message = latent_context_message(fx->ctx);
    if (status != want || !strstr(message, part)) {
        fail_msg("status %d, \"%s\"; wanted %d and \"%s\"", (int)status, message, (int)want, part);
    }
}

/* Smooth made-up images: a ramp of its own direction and colour each. */
static inline latent_dataset *fixture_data(int count) {
    latent_dataset *data = calloc(1, sizeof *data);
    data->path = strdup("/tmp");
    data->count[LATENT_TRAIN] = data->count[LATENT_TEST] = count;
    for (int split = 0; split < 2; split++) {
        data->images[split] = malloc((size_t)count * LT_CIFAR_IMAGE);
        data->labels[split] = calloc((size_t)count, 1);
        for (int i = 0; i < count; i++) {
            lt_random random = lt_philox(7, LT_RNG_TEST, (uint32_t)split, (uint64_t)i);
            for (int at = 0; at < LT_CIFAR_IMAGE; at++) {
                int y = at / 96, x = at / 3 % 32, c = at % 3;
                int dy = (int)(random.v[c] % 7) - 3, dx = (int)(random.v[3] >> (4 * c)) % 4;
                int value = 128 + dy * (y - 16) + dx * (x - 16) + (int)(random.v[c] >> 8) % 40;
                data->images[split][(size_t)i * LT_CIFAR_IMAGE + (size_t)at] =
                    (uint8_t)(value < 0     ? 0
                              : value > 255 ? 255
                                            : value);
            }
        }
    }
    return data;
}

static inline int fixture_open(void **state) {
    fixture *fx = calloc(1, sizeof *fx);
    *state = fx;
    if (scratch_folder_make(fx->folder) != 0 || latent_context_create(&fx->ctx) != LATENT_OK) {
        return -1;
    }
    snprintf(fx->run, sizeof fx->run, "%s/run", fx->folder);
    snprintf(fx->other, sizeof fx->other, "%s/other", fx->folder);
    fx->data = fixture_data(FIXTURE_IMAGES);
    return latent_net_parse(fx->ctx, FIXTURE_NET, strlen(FIXTURE_NET), "tiny", &fx->net) == LATENT_OK ? 0
                                                                                                      : -1;
}

static inline int fixture_close(void **state) {
    fixture *fx = *state;
    scratch_folder_remove(fx->folder);
    latent_dataset_destroy(fx->data);
    latent_net_destroy(fx->net);
    latent_context_destroy(fx->ctx);
    free(fx);
    return 0;
}

static inline latent_model *fixture_model(const fixture *fx, uint64_t seed) {
    latent_engine_options engine;
    memset(&engine, 0, sizeof engine);
    engine.backend = "ref";
    latent_model *model = NULL;
    OK(fx, latent_model_create(fx->ctx, fx->net, &engine, seed, &model));
    return model;
}

static inline latent_train_options fixture_options(const fixture *fx, const char *run) {
    latent_train_options options;
    latent_train_defaults(fx->net, &options);
    options.run = run;
    return options;
}

static inline float *fixture_params(const fixture *fx, latent_model *model) {
    float *params = malloc(model->net->param_count * sizeof *params);
    OK(fx, lt_model_download(fx->ctx, model, params));
    return params;
}

/* Trains a new model and gives its weights, to be freed. */
static inline float *fixture_train(const fixture *fx, const latent_train_options *options) {
    latent_model *model = fixture_model(fx, options->seed);
    OK(fx, latent_train(fx->ctx, model, fx->data, options));
    float *params = fixture_params(fx, model);
    latent_model_destroy(model);
    return params;
}

static inline void assert_same_params(const fixture *fx, const float *a, const float *b) {
    assert_memory_equal(a, b, fx->net->param_count * sizeof *a);
}

static inline char *fixture_path(const char *folder, const char *name) {
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static inline char *fixture_file(const fixture *fx, const char *folder, const char *name, size_t *bytes) {
    char *data = NULL;
    OK(fx, lt_file_read(fx->ctx, fixture_path(folder, name), (size_t)1 << 28, &data, bytes));
    return data;
}

/* A model whose backend is a copy of its type, so that a test can put its own functions in. There is one at a
 * time; `real` is what was there. */
typedef struct tampered {
    lt_backend_type type;
    const lt_backend_type *real;
    latent_context *ctx;
    int count; /* calls seen */
    int at;    /* the call that the test is after */
    lt_step steps[64];
    int step_count;
} tampered;

static tampered tamper;

static inline void fixture_tamper(latent_context *ctx, latent_model *model) {
    memset(&tamper, 0, sizeof tamper);
    tamper.real = model->backend->type;
    tamper.type = *tamper.real;
    tamper.ctx = ctx;
    model->backend->type = &tamper.type;
}

static inline latent_status step_next_interrupts(latent_context *ctx, lt_backend *backend) {
    if (++tamper.count == tamper.at) {
        latent_context_interrupt(ctx);
    }
    return tamper.real->step_next(ctx, backend);
}

#endif
