/* picture.c: what the net makes of one image of each class, as a PNG a person can look at.
 *
 * Three rows (original, reconstruction, difference x3), one column per class, every pixel enlarged.
 */
#include "model/model.h"

#include "io/png.h"

#include <stdlib.h>
#include <string.h>

enum { ZOOM = 4, GAP = 4, ROWS = 3, BACKGROUND = 32, DIFFERENCE_GAIN = 3 };

typedef struct canvas {
    uint8_t *rgb;
    int width, height;
    int side_h, side_w; /* of one image */
} canvas;

static uint8_t to_byte(double value) {
    value = value < 0 ? 0 : value > 1 ? 1 : value;
    return (uint8_t)(value * 255 + 0.5);
}

/* One image, values in [0, 1] as HWC. */
static void paint(canvas *c, int row, int column, const float *image) {
    int top = GAP + row * (c->side_h * ZOOM + GAP), left = GAP + column * (c->side_w * ZOOM + GAP);
    for (int y = 0; y < c->side_h * ZOOM; y++) {
        for (int x = 0; x < c->side_w * ZOOM; x++) {
            const float *from = image + ((size_t)(y / ZOOM) * (size_t)c->side_w + (size_t)(x / ZOOM)) * 3;
            uint8_t *to = c->rgb + ((size_t)(top + y) * (size_t)c->width + (size_t)(left + x)) * 3;
            for (int channel = 0; channel < 3; channel++) {
                to[channel] = to_byte(from[channel]);
            }
        }
    }
}

/* The first image of each class, one after another; returns how many, with their columns. */
static int choose(const latent_dataset *data, latent_split split, size_t image_bytes, uint8_t *images,
                  int *columns) {
    latent_dataset_info info;
    latent_dataset_get_info(data, &info);
    const uint8_t *labels = latent_dataset_labels(data, split), *all = latent_dataset_images(data, split);
    int found = 0;
    for (int label = 0; label < info.classes; label++) {
        for (int i = 0; i < info.count[split]; i++) {
            if (labels[i] == label) {
                memcpy(images + (size_t)found * image_bytes, all + (size_t)i * image_bytes, image_bytes);
                columns[found++] = label;
                break;
            }
        }
    }
    return found;
}

/* Paints a column and returns its sum of squared differences. */
static double paint_column(canvas *c, int column, const uint8_t *original, float *values, size_t count,
                           float *work) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        work[i] = (float)original[i] / 255.0f;
    }
    paint(c, 0, column, work);
    paint(c, 1, column, values);
    for (size_t i = 0; i < count; i++) {
        double difference = (double)values[i] - work[i];
        sum += difference * difference;
        work[i] = (float)(DIFFERENCE_GAIN * (difference < 0 ? -difference : difference));
    }
    paint(c, 2, column, work);
    return sum;
}

latent_status latent_model_picture(latent_context *ctx, latent_model *model, const latent_dataset *data,
                                   latent_split split, const char *path, latent_evaluation *out) {
    latent_status status = LATENT_OK;
    latent_dataset_info info;
    uint8_t *images = NULL;
    float *values = NULL, *work = NULL;
    int *columns = NULL;
    canvas c = {0};
    memset(out, 0, sizeof *out);
    latent_dataset_get_info(data, &info);
    LT_TRY(lt_model_check_data(ctx, model->net, data));
    size_t count = lt_shape_count(model->net->ops[0].out), classes = (size_t)info.classes;
    c.side_h = info.height;
    c.side_w = info.width;
    c.width = GAP + info.classes * (info.width * ZOOM + GAP);
    c.height = GAP + ROWS * (info.height * ZOOM + GAP);
    size_t bytes = (size_t)c.width * (size_t)c.height * 3;
    LT_TRY(lt_alloc(ctx, bytes, "the picture", (void **)&c.rgb));
    LT_TRY(lt_alloc(ctx, classes * count, "images", (void **)&images));
    LT_TRY(lt_alloc(ctx, classes * sizeof *columns, "images", (void **)&columns));
    LT_TRY(lt_alloc(ctx, classes * count * sizeof *values, "images", (void **)&values));
    LT_TRY(lt_alloc(ctx, count * sizeof *work, "images", (void **)&work));
    memset(c.rgb, BACKGROUND, bytes);
    int found = choose(data, split, count, images, columns);
    LT_TRY(latent_model_reconstruct(ctx, model, images, found, values));
    double sum = 0;
    for (int i = 0; i < found; i++) {
        sum +=
            paint_column(&c, columns[i], images + (size_t)i * count, values + (size_t)i * count, count, work);
    }
    LT_TRY(lt_png_write(ctx, path, c.rgb, c.width, c.height));
    out->count = found;
    out->loss = sum / (double)(count * (size_t)found);
done:
    free(c.rgb);
    free(images);
    free(columns);
    free(values);
    free(work);
    return status;
}
