/* pictures.c: images that the report shows, kept as numbers beside the run.
 *
 *     original, output    uint8 [n][height][width][channels]: images and what the net makes of them
 *     label               uint8 [n]
 *     confused            uint8 [m][height][width][channels]: images that were taken for another class,
 *     truth, predicted    uint8 [m]; the most frequent pair of classes comes first
 *
 * The report needs no model and no data set then, and looks the same wherever the run is copied.
 */
#include "model/model.h"

#include "io/safetensors.h"

#include <stdlib.h>
#include <string.h>

enum { PER_CLASS = 2, PAIRS = 6, PER_PAIR = 8 };

typedef struct pictures {
    const latent_dataset *data;
    latent_split split;
    latent_dataset_info info;
    size_t image; /* bytes */
    int count;    /* shown with their output */
    int confused;
    uint8_t *original, *output, *label;
    uint8_t *taken, *truth, *predicted; /* of `confused` */
} pictures;

static void put_image(const pictures *p, uint8_t *to, int at, int index) {
    const uint8_t *from = latent_dataset_images(p->data, p->split) + (size_t)index * p->image;
    memcpy(to + (size_t)at * p->image, from, p->image);
}

/* The first images of each class: class by class once, then the next of each. */
static void choose_samples(pictures *p) {
    const uint8_t *labels = latent_dataset_labels(p->data, p->split);
    for (int turn = 0; turn < PER_CLASS; turn++) {
        for (int k = 0; k < p->info.classes; k++) {
            int seen = 0;
            for (int i = 0; i < p->info.count[p->split]; i++) {
                if (labels[i] == k && seen++ == turn) {
                    put_image(p, p->original, p->count, i);
                    p->label[p->count++] = (uint8_t)k;
                    break;
                }
            }
        }
    }
}

/* Takes up to PER_PAIR images of class `truth` that were taken for `answer`. */
static void take_pair(pictures *p, const int32_t *predicted, int truth, int answer) {
    const uint8_t *labels = latent_dataset_labels(p->data, p->split);
    int taken = 0;
    for (int i = 0; i < p->info.count[p->split] && taken < PER_PAIR; i++) {
        if (labels[i] == truth && predicted[i] == answer) {
            put_image(p, p->taken, p->confused, i);
            p->truth[p->confused] = (uint8_t)truth;
            p->predicted[p->confused++] = (uint8_t)answer;
            taken++;
        }
    }
}

static latent_status choose_confused(latent_context *ctx, pictures *p, const int32_t *predicted) {
    latent_status status = LATENT_OK;
    size_t classes = (size_t)p->info.classes;
    const uint8_t *labels = latent_dataset_labels(p->data, p->split);
    int *counts = NULL;
    LT_TRY(lt_calloc(ctx, classes * classes, sizeof *counts, "a confusion matrix", (void **)&counts));
    for (int i = 0; i < p->info.count[p->split]; i++) {
        if (predicted[i] >= 0 && predicted[i] < p->info.classes && predicted[i] != labels[i]) {
            counts[(size_t)labels[i] * classes + (size_t)predicted[i]]++;
        }
    }
    for (int pair = 0; pair < PAIRS; pair++) {
        size_t best = 0;
        for (size_t i = 1; i < classes * classes; i++) {
            best = counts[i] > counts[best] ? i : best;
        }
        if (counts[best] == 0) {
            break;
        }
        take_pair(p, predicted, (int)(best / classes), (int)(best % classes));
        counts[best] = 0;
    }
done:
    free(counts);
    return status;
}

/* The net's output for the samples, as bytes. */
static latent_status compute_outputs(latent_context *ctx, latent_model *model, pictures *p) {
    latent_status status = LATENT_OK;
    float *values = NULL;
    size_t count = (size_t)p->count * p->image;
    LT_TRY(lt_alloc(ctx, count * sizeof *values, "reconstructions", (void **)&values));
    LT_TRY(latent_model_reconstruct(ctx, model, p->original, p->count, values));
    for (size_t i = 0; i < count; i++) {
        float value = values[i] > 0 ? values[i] : 0; /* a NaN becomes black */
        p->output[i] = (uint8_t)((value < 1 ? value : 1) * 255.0f + 0.5f);
    }
done:
    free(values);
    return status;
}

static latent_status write_pictures(latent_context *ctx, const pictures *p, const char *weights,
                                    const char *path) {
    const struct {
        const char *name;
        const void *data;
        int count, is_image;
    } parts[] = {{"original", p->original, p->count, 1}, {"output", p->output, p->count, 1},
                 {"label", p->label, p->count, 0},       {"confused", p->taken, p->confused, 1},
                 {"truth", p->truth, p->confused, 0},    {"predicted", p->predicted, p->confused, 0}};
    lt_st_tensor tensors[6];
    int count = p->confused > 0 ? 6 : 3;
    for (int i = 0; i < count; i++) {
        uint64_t n = (uint64_t)parts[i].count;
        tensors[i] = (lt_st_tensor){
            .name = parts[i].name,
            .type = LT_ST_U8,
            .dims = parts[i].is_image ? 4 : 1,
            .shape = {n, (uint64_t)p->info.height, (uint64_t)p->info.width, (uint64_t)p->info.channels},
            .count = n * (parts[i].is_image ? p->image : 1),
            .data = parts[i].data};
    }
    const lt_st_pair metadata[] = {{"format", "latent-pictures 1"}, {"weights", weights}};
    return lt_st_write(ctx, path, tensors, count, metadata, 2);
}

latent_status latent_pictures_write(latent_context *ctx, latent_model *model, const latent_dataset *data,
                                    latent_split split, const int32_t *predicted, const char *path) {
    latent_status status = LATENT_OK;
    pictures p = {.data = data, .split = split};
    uint8_t *memory = NULL;
    char weights[33];
    latent_dataset_get_info(data, &p.info);
    LT_TRY(lt_model_check_data(ctx, model->net, data));
    if (p.info.count[split] < 1) {
        status = lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: no %s images to show", p.info.path,
                         split == LATENT_TEST ? "test" : "training");
        goto done;
    }
    p.image = lt_shape_count(model->net->ops[0].out);
    size_t samples = PER_CLASS * (size_t)p.info.classes, confused = PAIRS * PER_PAIR;
    size_t bytes = samples * (2 * p.image + 1) + confused * (p.image + 2);
    LT_TRY(lt_alloc(ctx, bytes, "pictures", (void **)&memory));
    p.original = memory;
    p.output = p.original + samples * p.image;
    p.taken = p.output + samples * p.image;
    p.label = p.taken + confused * p.image;
    p.truth = p.label + samples;
    p.predicted = p.truth + confused;
    choose_samples(&p);
    if (predicted) {
        LT_TRY(choose_confused(ctx, &p, predicted));
    }
    LT_TRY(compute_outputs(ctx, model, &p));
    LT_TRY(latent_model_digest(ctx, model, weights));
    LT_TRY(write_pictures(ctx, &p, weights, path));
done:
    free(memory);
    return status;
}
