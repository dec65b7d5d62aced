/* feature_files.c: the folder of features.
 *
 *     train.npy, test.npy                  float32 [images][features]; train.f32, test.f32 in the raw format
 *     train_labels.npy, test_labels.npy    uint8 [images]; train_labels.u8, test_labels.u8
 *     scaling.safetensors                  mean and deviation of the columns, when they were standardized
 *     features.json                        what they were made from, and the sizes of the files above
 *
 * features.json is removed first and written last: where it is, the files are its own and whole.
 */
#include "model/features.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 4, JSON_MAX = 1 << 20 };

#define FORMAT_NAME "latent-features 1"

static const char *const names[2][FILES] = {{"train.npy", "test.npy", "train_labels.npy", "test_labels.npy"},
                                            {"train.f32", "test.f32", "train_labels.u8", "test_labels.u8"}};

latent_status lt_feature_paths_make(latent_context *ctx, const char *folder, latent_feature_format format,
                                    lt_feature_paths *out) {
    latent_status status = LATENT_OK;
    const char *const *own = names[format == LATENT_RAW];
    memset(out, 0, sizeof *out);
    for (int split = 0; split < 2; split++) {
        LT_TRY(lt_path_join(ctx, folder, own[split], &out->x[split]));
        LT_TRY(lt_path_join(ctx, folder, own[2 + split], &out->labels[split]));
    }
    LT_TRY(lt_path_join(ctx, folder, "scaling.safetensors", &out->scaling));
    LT_TRY(lt_path_join(ctx, folder, "features.json", &out->json));
done:
    if (status != LATENT_OK) {
        lt_feature_paths_free(out);
    }
    return status;
}

void lt_feature_paths_free(lt_feature_paths *paths) {
    for (int split = 0; split < 2; split++) {
        free(paths->x[split]);
        free(paths->labels[split]);
    }
    free(paths->scaling);
    free(paths->json);
    memset(paths, 0, sizeof *paths);
}

latent_status latent_features_path(latent_context *ctx, const char *folder, latent_split split, int labels,
                                   latent_feature_format format, char **out) {
    return lt_path_join(ctx, folder, names[format == LATENT_RAW][(labels ? 2 : 0) + (int)split], out);
}

static latent_status remove_file(latent_context *ctx, const char *path) {
    if (unlink(path) != 0 && errno != ENOENT) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot remove: %s", path, strerror(errno));
    }
    return LATENT_OK;
}

void lt_feature_files_sweep(latent_context *ctx, const char *folder) {
    for (int i = 0; i < 2 * FILES; i++) {
        char *path = NULL;
        if (lt_path_join(ctx, folder, names[i / FILES][i % FILES], &path) == LATENT_OK) {
            lt_file_sweep(path);
        }
        free(path);
    }
}

latent_status lt_feature_files_begin(latent_context *ctx, const char *folder) {
    char *path = NULL;
    latent_status status = lt_path_join(ctx, folder, "features.json", &path);
    if (status == LATENT_OK) {
        status = remove_file(ctx, path);
    }
    free(path);
    return status;
}

static latent_status file_bytes(latent_context *ctx, const char *path, uint64_t *out) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: %s", path, strerror(errno));
    }
    *out = (uint64_t)info.st_size;
    return LATENT_OK;
}

static void put_pair(lt_json_writer *w, const char *key, const char *value) {
    lt_json_key(w, key);
    lt_json_string(w, value);
}

static void put_number(lt_json_writer *w, const char *key, double value) {
    lt_json_key(w, key);
    lt_json_number(w, value);
}

static void put_info(lt_json_writer *w, const latent_features_info *info) {
    put_pair(w, "format", FORMAT_NAME);
    put_pair(w, "version", LATENT_VERSION);
    put_pair(w, "weights", info->weights);
    put_pair(w, "data", info->data);
    put_pair(w, "data_digest", info->digest);
    put_pair(w, "scaling", info->scaling);
    put_pair(w, "precision", info->precision);
    const struct {
        const char *key;
        int value;
    } counts[] = {{"train", info->count[0]},
                  {"test", info->count[1]},
                  {"width", info->width},
                  {"flip", info->flip},
                  {"standardize", info->standardize},
                  {"l2", info->l2},
                  {"raw", info->format == LATENT_RAW}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        lt_json_key(w, counts[i].key);
        lt_json_integer(w, counts[i].value);
    }
    put_number(w, "compute_seconds", info->compute_seconds);
    put_number(w, "copy_seconds", info->copy_seconds);
    put_number(w, "write_seconds", info->write_seconds);
}

latent_status lt_feature_files_end(latent_context *ctx, const char *folder,
                                   const latent_features_info *info) {
    latent_status status = LATENT_OK;
    char *path = NULL;
    lt_json_writer w;
    memset(&w, 0, sizeof w);
    lt_json_begin_object(&w);
    put_info(&w, info);
    lt_json_key(&w, "bytes");
    lt_json_begin_object(&w);
    for (int i = 0; i < 2 * FILES; i++) {
        int own = i / FILES == (info->format == LATENT_RAW);
        uint64_t bytes = 0;
        free(path);
        path = NULL;
        LT_TRY(lt_path_join(ctx, folder, names[i / FILES][i % FILES], &path));
        if (!own) {
            LT_TRY(remove_file(ctx, path));
            continue;
        }
        LT_TRY(file_bytes(ctx, path, &bytes));
        lt_json_key(&w, names[i / FILES][i % FILES]);
        lt_json_unsigned(&w, bytes);
    }
    lt_json_end_object(&w);
    lt_json_end_object(&w);
    LT_TRY(lt_json_finish(ctx, &w));
    free(path);
    path = NULL;
    LT_TRY(lt_path_join(ctx, folder, "features.json", &path));
    LT_TRY(lt_file_write(ctx, path, w.text, w.length));
done:
    free(path);
    free(w.text);
    return status;
}

/* A whole number of the record; -1 when it is missing or no such number. */
static int get_int(const lt_json_node *root, const char *key) {
    uint64_t value = 0;
    return lt_json_u64(lt_json_get(root, key), &value) && value <= INT_MAX ? (int)value : -1;
}

static double get_number(const lt_json_node *root, const char *key) {
    const lt_json_node *node = lt_json_get(root, key);
    return node && node->kind == LT_JSON_NUMBER ? node->number : 0;
}

static int get_text(const lt_json_node *root, const char *key, char *out, size_t size) {
    const lt_json_node *node = lt_json_get(root, key);
    return node && node->kind == LT_JSON_STRING && snprintf(out, size, "%s", node->string) < (int)size;
}

static latent_status parse_info(latent_context *ctx, const lt_json_node *root, const char *path,
                                latent_features_info *out) {
    char format[sizeof FORMAT_NAME + 16];
    if (!get_text(root, "format", format, sizeof format) || strcmp(format, FORMAT_NAME) != 0) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: \"format\" must be \"" FORMAT_NAME "\"", path);
    }
    int raw = get_int(root, "raw");
    out->count[0] = get_int(root, "train");
    out->count[1] = get_int(root, "test");
    out->width = get_int(root, "width");
    out->flip = get_int(root, "flip");
    out->standardize = get_int(root, "standardize");
    out->l2 = get_int(root, "l2");
    if (out->count[0] < 1 || out->count[1] < 0 || out->width < 1 || (unsigned)out->flip > 1 ||
        (unsigned)out->standardize > 1 || (unsigned)out->l2 > 1 || (unsigned)raw > 1 ||
        !get_text(root, "weights", out->weights, sizeof out->weights) ||
        !get_text(root, "data", out->data, sizeof out->data)) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: not a whole record of features; make them again with 'latent features'", path);
    }
    out->format = raw ? LATENT_RAW : LATENT_NPY;
    if (!get_text(root, "data_digest", out->digest, sizeof out->digest)) {
        out->digest[0] = 0;
    }
    if (!get_text(root, "precision", out->precision, sizeof out->precision)) {
        out->precision[0] = 0;
    }
    if (!get_text(root, "scaling", out->scaling, sizeof out->scaling)) {
        out->scaling[0] = 0;
    }
    out->compute_seconds = get_number(root, "compute_seconds");
    out->copy_seconds = get_number(root, "copy_seconds");
    out->write_seconds = get_number(root, "write_seconds");
    return LATENT_OK;
}

static latent_status check_files(latent_context *ctx, const char *folder, const lt_json_node *sizes,
                                 latent_feature_format format) {
    latent_status status = LATENT_OK;
    char *path = NULL;
    for (int i = 0; i < FILES; i++) {
        const char *name = names[format == LATENT_RAW][i];
        uint64_t wanted = 0, found = 0;
        free(path);
        path = NULL;
        LT_TRY(lt_path_join(ctx, folder, name, &path));
        LT_TRY(file_bytes(ctx, path, &found));
        if (!lt_json_u64(lt_json_get(sizes, name), &wanted) || wanted != found) {
            status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                             "%s: %llu bytes, but features.json beside it says %llu; make the features again "
                             "with 'latent features'",
                             path, (unsigned long long)found, (unsigned long long)wanted);
            goto done;
        }
    }
done:
    free(path);
    return status;
}

latent_status latent_features_read(latent_context *ctx, const char *folder, latent_features_info *out) {
    latent_status status = LATENT_OK;
    char *path = NULL, *text = NULL;
    size_t bytes = 0;
    lt_json *json = NULL;
    memset(out, 0, sizeof *out);
    LT_TRY(lt_path_join(ctx, folder, "features.json", &path));
    LT_TRY(lt_file_read(ctx, path, JSON_MAX, &text, &bytes));
    LT_TRY(lt_json_parse(ctx, text, bytes, path, &json));
    LT_TRY(parse_info(ctx, lt_json_root(json), path, out));
    LT_TRY(check_files(ctx, folder, lt_json_get(lt_json_root(json), "bytes"), out->format));
done:
    lt_json_destroy(json);
    free(text);
    free(path);
    return status;
}
