/* net.c: loading, describing and freeing nets. */
#include "net/net.h"

#include "base/file.h"
#include "net/parse.h"
#include "net/presets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NET_FILE_MAX = 1 << 20 };

const char *latent_preset_name(int index) {
    int count = 0;
    while (lt_presets[count].name) {
        count++;
    }
    return index >= 0 && index < count ? lt_presets[index].name : NULL;
}

const char *latent_preset_text(const char *name) {
    for (int i = 0; lt_presets[i].name; i++) {
        if (strcmp(lt_presets[i].name, name) == 0) {
            return lt_presets[i].text;
        }
    }
    return NULL;
}

/* "dir/my.net" is called "my". */
static latent_status name_of(latent_context *ctx, const char *origin, char **out) {
    const char *slash = strrchr(origin, '/');
    latent_status status = lt_strdup(ctx, slash ? slash + 1 : origin, out);
    if (status == LATENT_OK) {
        char *dot = strrchr(*out, '.');
        if (dot && dot != *out) {
            *dot = 0;
        }
    }
    return status;
}

latent_status latent_net_parse(latent_context *ctx, const char *text, size_t length, const char *origin,
                               latent_net **out) {
    latent_status status = LATENT_OK;
    latent_net *net = NULL;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *net, "a net", (void **)&net));
    LT_TRY(lt_calloc(ctx, LT_OPS_MAX, sizeof *net->ops, "a net", (void **)&net->ops));
    LT_TRY(lt_net_read(ctx, text, length, origin, net));
    LT_TRY(name_of(ctx, origin, &net->name));
    LT_TRY(lt_calloc(ctx, length + 1, 1, "a net", (void **)&net->text));
    memcpy(net->text, text, length);
    *out = net;
    net = NULL;
done:
    latent_net_destroy(net);
    return status;
}

static latent_status unknown_net(latent_context *ctx, const char *name) {
    const char *names[64];
    size_t count = 0;
    for (; count < 64 && lt_presets[count].name; count++) {
        names[count] = lt_presets[count].name;
    }
    const char *near = latent_suggest(name, names, count);
    return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: no such preset or net file%s%s%s", name,
                   near ? "; did you mean '" : "; `latent info` lists the presets", near ? near : "",
                   near ? "'?" : "");
}

latent_status latent_net_load(latent_context *ctx, const char *name, latent_net **out) {
    *out = NULL;
    const char *preset = latent_preset_text(name);
    if (preset) {
        return latent_net_parse(ctx, preset, strlen(preset), name, out);
    }
    if (!lt_file_exists(name) && !lt_folder_exists(name)) {
        return unknown_net(ctx, name);
    }
    char *text = NULL;
    size_t length = 0;
    latent_status status = LATENT_OK;
    LT_TRY(lt_file_read(ctx, name, NET_FILE_MAX, &text, &length));
    LT_TRY(latent_net_parse(ctx, text, length, name, out));
done:
    free(text);
    return status;
}

void latent_net_destroy(latent_net *net) {
    if (net) {
        free(net->name);
        free(net->text);
        free(net->ops);
        free(net);
    }
}

static void put_shape(int out[3], lt_shape shape) {
    out[0] = shape.h;
    out[1] = shape.w;
    out[2] = shape.c;
}

void latent_net_get_info(const latent_net *net, latent_net_info *out) {
    memset(out, 0, sizeof *out);
    out->name = net->name;
    out->text = net->text;
    put_shape(out->input, net->ops[0].out);
    if (net->latent >= 0) {
        put_shape(out->latent, net->ops[net->latent].out);
    }
    out->parameters = net->parameters;
    for (int i = 0; i < net->op_count; i++) {
        out->macs += net->ops[i].macs;
    }
    out->recipe = net->recipe;
}

int latent_net_layer_count(const latent_net *net) {
    return net->op_count;
}

static void describe_conv(const lt_conv *conv, char *out, size_t size) {
    char extra[64] = "";
    int same = conv->pad_top == (conv->R - 1) / 2 && conv->pad_bottom == conv->R - 1 - conv->pad_top &&
               conv->pad_left == (conv->S - 1) / 2 && conv->pad_right == conv->S - 1 - conv->pad_left;
    if (conv->stride > 1) {
        snprintf(extra, sizeof extra, ", stride %d", conv->stride);
    }
    if (!same) {
        size_t used = strlen(extra);
        snprintf(extra + used, sizeof extra - used, ", pad %d", conv->pad_top);
    }
    snprintf(out, size, "%s%dx%d%s%s%s%s", conv->up2 ? "up2, " : "", conv->R, conv->S, extra,
             conv->bias ? "" : ", no bias", conv->relu ? ", relu" : "", conv->pool2 ? ", pool2" : "");
}

void latent_net_get_layer(const latent_net *net, int index, latent_layer_info *out) {
    static const char *const kinds[] = {"input", "conv", "loss"};
    const lt_op *op = &net->ops[index];
    memset(out, 0, sizeof *out);
    out->name = op->name;
    out->kind = kinds[op->kind];
    if (op->kind == LT_OP_CONV) {
        describe_conv(&op->conv, out->description, sizeof out->description);
    } else if (op->kind == LT_OP_LOSS_MSE) {
        snprintf(out->description, sizeof out->description, "mean squared error");
    }
    put_shape(out->input, op->in);
    put_shape(out->output, op->out);
    out->parameters = op->weight_count + op->bias_count;
    out->macs = op->macs;
    out->activation_bytes = op->kind == LT_OP_LOSS_MSE ? 0 : lt_shape_count(op->out) * sizeof(float);
    out->latent = index == net->latent;
}
