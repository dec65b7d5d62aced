/* dataset.c: opens a data set: finds its folder, reads its files and its class names.
 *
 * A folder is taken as people have it: the batch files straight in it, or in the subfolder that the official
 * archive unpacks to. The subfolder wins, so that a downloaded set is never hidden by a synthetic one.
 */
#include "data/dataset.h"
#include "base/file.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { META_MAX = 4096, NAME_LENGTH_MAX = 32 };

static const char *const cifar_names[LT_CIFAR_CLASSES] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                          "dog",      "frog",       "horse", "ship", "truck"};

/* Finds the folder with the batch files: the official subfolder where it has any, else the folder itself. */
static latent_status find_folder(latent_context *ctx, const char *folder, char **out) {
    char *inner = NULL;
    latent_status status = LATENT_OK;
    if (!lt_folder_exists(folder)) {
        return lt_fail(
            ctx, LATENT_ERROR_IO,
            "%s: no such folder; a data set is a folder with data_batch_1.bin ... and %s, or with a "
            "folder %s that has them",
            folder, LT_CIFAR_TEST, LT_CIFAR_FOLDER);
    }
    LT_TRY(lt_path_join(ctx, folder, LT_CIFAR_FOLDER, &inner));
    if (lt_cifar_has_batches(inner)) {
        *out = inner;
        return LATENT_OK;
    }
    if (!lt_cifar_has_batches(folder)) {
        status = lt_fail(
            ctx, LATENT_ERROR_IO,
            "%s: no data set here; expected data_batch_1.bin ... and %s, or a folder %s that has them",
            folder, LT_CIFAR_TEST, LT_CIFAR_FOLDER);
        goto done;
    }
    status = lt_strdup(ctx, folder, out);
done:
    free(inner);
    return status;
}

/* ---- Class names -------------------------------------------------------------------------------- */

/* Takes ten lines of 1 to 32 printable ASCII characters; blank lines may follow. 0 when it is anything else:
 * names end up on terminals and in reports. */
static int split_names(char *text, size_t length, const char *names[LT_CIFAR_CLASSES]) {
    int count = 0;
    if (strlen(text) != length) {
        return 0;
    }
    for (char *line = text, *next = NULL; line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        size_t size = strlen(line);
        if (size > 0 && line[size - 1] == '\r') {
            line[--size] = '\0';
        }
        if (size == 0 && count == LT_CIFAR_CLASSES) {
            continue;
        }
        if (size == 0 || size > NAME_LENGTH_MAX || count == LT_CIFAR_CLASSES) {
            return 0;
        }
        for (size_t i = 0; i < size; i++) {
            if (line[i] < ' ' || line[i] > '~') {
                return 0;
            }
        }
        names[count++] = line;
    }
    return count == LT_CIFAR_CLASSES;
}

static latent_status read_names(latent_context *ctx, latent_dataset *data) {
    const char *names[LT_CIFAR_CLASSES];
    char path[LT_CIFAR_PATH], *text = NULL;
    size_t length = 0;
    latent_status status = LATENT_OK;
    memcpy(names, cifar_names, sizeof names);
    if (lt_cifar_has_file(data->path, LT_CIFAR_META, path)) {
        if (lt_file_read(ctx, path, META_MAX, &text, &length) != LATENT_OK ||
            !split_names(text, length, names)) {
            lt_log(ctx, LATENT_LOG_WARNING,
                   "%s: not ten lines of plain class names; CIFAR-10's names are used", path);
            memcpy(names, cifar_names, sizeof names);
        }
    }
    for (int i = 0; i < LT_CIFAR_CLASSES; i++) {
        LT_TRY(lt_strdup(ctx, names[i], &data->names[i]));
    }
done:
    free(text);
    return status;
}

/* ---- The public part ---------------------------------------------------------------------------- */

latent_status latent_dataset_open(latent_context *ctx, const char *folder, latent_dataset **out) {
    latent_dataset *data = NULL;
    void *memory = NULL;
    latent_status status = LATENT_OK;
    *out = NULL;
    if (!folder || !*folder) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "the data folder has no name; give the folder of a data set");
    }
    LT_TRY(lt_calloc(ctx, 1, sizeof *data, "a data set", &memory));
    data = memory;
    LT_TRY(find_folder(ctx, folder, &data->path));
    LT_TRY(lt_cifar_read(ctx, data));
    LT_TRY(read_names(ctx, data));
    data->synthetic = lt_cifar_is_synthetic(data->path);
    *out = data;
    data = NULL;
done:
    latent_dataset_destroy(data);
    return status;
}

void latent_dataset_destroy(latent_dataset *data) {
    if (!data) {
        return;
    }
    for (int split = 0; split < 2; split++) {
        free(data->images[split]);
        free(data->labels[split]);
    }
    for (int i = 0; i < LT_CIFAR_CLASSES; i++) {
        free(data->names[i]);
    }
    free(data->path);
    free(data);
}

void latent_dataset_get_info(const latent_dataset *data, latent_dataset_info *out) {
    memset(out, 0, sizeof *out);
    out->path = data->path;
    out->height = data->shape[0] ? data->shape[0] : LT_CIFAR_SIDE;
    out->width = data->shape[1] ? data->shape[1] : LT_CIFAR_SIDE;
    out->channels = data->shape[2] ? data->shape[2] : LT_CIFAR_CHANNELS;
    out->classes = LT_CIFAR_CLASSES;
    out->count[LATENT_TRAIN] = data->count[LATENT_TRAIN];
    out->count[LATENT_TEST] = data->count[LATENT_TEST];
    out->synthetic = data->synthetic;
}

const char *latent_dataset_class_name(const latent_dataset *data, int label) {
    return label >= 0 && label < LT_CIFAR_CLASSES ? data->names[label] : NULL;
}

const uint8_t *latent_dataset_images(const latent_dataset *data, latent_split split) {
    return data->images[split];
}

const uint8_t *latent_dataset_labels(const latent_dataset *data, latent_split split) {
    return data->labels[split];
}

void latent_dataset_digest(const latent_dataset *data, char out[33]) {
    latent_dataset_info info;
    latent_dataset_get_info(data, &info);
    const int sizes[] = {info.height, info.width, info.channels, info.count[0], info.count[1]};
    size_t image = (size_t)info.height * (size_t)info.width * (size_t)info.channels;
    lt_digest digest;
    lt_digest_init(&digest);
    for (int i = 0; i < 5; i++) {
        const uint8_t bytes[4] = {(uint8_t)sizes[i], (uint8_t)(sizes[i] >> 8), (uint8_t)(sizes[i] >> 16),
                                  (uint8_t)(sizes[i] >> 24)};
        lt_digest_update(&digest, bytes, sizeof bytes);
    }
    for (int split = 0; split < 2; split++) {
        size_t count = (size_t)info.count[split];
        if (count > 0) {
            lt_digest_update(&digest, data->images[split], count * image);
            lt_digest_update(&digest, data->labels[split], count);
        }
    }
    lt_digest_final(&digest, out);
}
