/* parse.c: net files.
 *
 * One op a line, words between blanks, # to the end of the line is a comment:
 *     input HxWxC                     first, once
 *     conv NAME FILTERS RxS [relu] [pool2] [up2] [stride N] [pad N | same | valid] [nobias]
 *     latent                          the output of the line before is the latent tensor
 *     loss mse                        after the ops, once
 *     train KEY VALUE ...             the default recipe, once
 * A mistake is told with file and line, the word that is wrong and what would be right.
 */
#include "net/parse.h"

#include "net/recipe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 64, TEXT_MAX = 1 << 20, WHERE_MAX = 320, NUMBER_MAX = 1000000 };

typedef struct parser {
    latent_context *ctx;
    latent_net *net;
    char where[WHERE_MAX]; /* "file:line" */
    int line;
    char *words[WORDS_MAX];
    int count;
    int has_train;
} parser;

static latent_status wrong(parser *p, const char *format, ...) LT_PRINTF(2, 3);
static latent_status wrong(parser *p, const char *format, ...) {
    char text[LT_MESSAGE_MAX - WHERE_MAX - 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return lt_fail(p->ctx, LATENT_ERROR_FORMAT, "%s: %s", p->where, text);
}

/* Reads a whole number from 0 to NUMBER_MAX; returns what follows it, or NULL. */
static const char *read_number(const char *text, int *out) {
    if (*text < '0' || *text > '9') {
        return NULL;
    }
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || value > NUMBER_MAX) {
        return NULL;
    }
    *out = (int)value;
    return end;
}

/* "32x32x3" into `count` numbers. */
static int read_sizes(const char *word, int *out, int count) {
    for (int i = 0; i < count; i++) {
        word = read_number(word, &out[i]);
        char separator = i + 1 < count ? 'x' : 0;
        if (!word || *word != separator || out[i] < 1) {
            return 0;
        }
        word += i + 1 < count;
    }
    return 1;
}

static latent_status add_op(parser *p, lt_op_kind kind, const char *name, lt_op **out) {
    latent_net *net = p->net;
    if (net->op_count == LT_OPS_MAX) {
        return wrong(p, "more than %d ops; a net has at most that many", LT_OPS_MAX);
    }
    for (int i = 0; i < net->op_count; i++) {
        if (strcmp(net->ops[i].name, name) == 0) {
            return wrong(p, "the name '%s' is taken by line %d; every op needs its own", name,
                         net->ops[i].line);
        }
    }
    lt_op *op = &net->ops[net->op_count];
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->line = p->line;
    op->input = net->op_count - 1;
    snprintf(op->name, sizeof op->name, "%s", name);
    if (net->op_count > 0) {
        op->in = net->ops[net->op_count - 1].out;
    }
    *out = op;
    return LATENT_OK;
}

static latent_status parse_input(parser *p) {
    int sizes[3];
    if (p->net->op_count > 0) {
        return wrong(p, "a second input; a net has one, and it is line %d", p->net->ops[0].line);
    }
    if (p->count != 2 || !read_sizes(p->words[1], sizes, 3)) {
        return wrong(p, "'%s' is no image size; right is: input HEIGHTxWIDTHxCHANNELS, as in input 32x32x3",
                     p->count > 1 ? p->words[p->count > 2 ? 2 : 1] : "input");
    }
    if (sizes[0] > 4096 || sizes[1] > 4096 || sizes[2] > 65536) {
        return wrong(p, "'%s' is too large; height and width go to 4096, channels to 65536", p->words[1]);
    }
    lt_op *op = NULL;
    latent_status status = add_op(p, LT_OP_INPUT, "input", &op);
    if (status == LATENT_OK) {
        op->out.h = sizes[0];
        op->out.w = sizes[1];
        op->out.c = sizes[2];
        p->net->op_count++;
    }
    return status;
}

static int is_name(const char *word) {
    size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return length > 0 && length < LT_NAME_MAX && word[length] == 0 && (*word < '0' || *word > '9');
}

static const char *const conv_words[] = {"relu", "pool2", "up2", "stride", "pad", "same", "valid", "nobias"};

/* The value of `stride` or `pad` at words[*at + 1]; moves *at onto it. */
static latent_status parse_value(parser *p, int *at, int low, int *out) {
    const char *word = p->words[*at], *end = NULL;
    if (*at + 1 < p->count) {
        end = read_number(p->words[*at + 1], out);
    }
    if (!end || *end || *out < low) {
        return wrong(p, "%s '%s': a whole number of at least %d must follow, as in %s %d", word,
                     *at + 1 < p->count ? p->words[*at + 1] : "", low, word, low ? low : 1);
    }
    (*at)++;
    return LATENT_OK;
}

static latent_status parse_attributes(parser *p, lt_conv *conv) {
    int pad = -1, valid = 0;
    for (int i = 4; i < p->count; i++) {
        const char *word = p->words[i];
        latent_status status = LATENT_OK;
        if (strcmp(word, "relu") == 0) {
            conv->relu = 1;
        } else if (strcmp(word, "pool2") == 0) {
            conv->pool2 = 1;
        } else if (strcmp(word, "up2") == 0) {
            conv->up2 = 1;
        } else if (strcmp(word, "nobias") == 0) {
            conv->bias = 0;
        } else if (strcmp(word, "valid") == 0) {
            valid = 1;
        } else if (strcmp(word, "stride") == 0) {
            status = parse_value(p, &i, 1, &conv->stride);
        } else if (strcmp(word, "pad") == 0) {
            status = parse_value(p, &i, 0, &pad);
        } else if (strcmp(word, "same") != 0) {
            const char *near = latent_suggest(word, conv_words, sizeof conv_words / sizeof conv_words[0]);
            status = wrong(p,
                           "'%s' is no word of conv%s%s%s; right are relu, pool2, up2, stride N, pad N, "
                           "same, valid, nobias",
                           word, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
        }
        if (status != LATENT_OK) {
            return status;
        }
    }
    if (pad >= 0 || valid) {
        conv->pad_top = conv->pad_bottom = conv->pad_left = conv->pad_right = pad >= 0 ? pad : 0;
    } else { /* same: the output has ceil(size / stride) pixels; an even filter looks further ahead */
        conv->pad_top = (conv->R - 1) / 2;
        conv->pad_bottom = conv->R - 1 - conv->pad_top;
        conv->pad_left = (conv->S - 1) / 2;
        conv->pad_right = conv->S - 1 - conv->pad_left;
    }
    return LATENT_OK;
}

/* Where a tensor of `count` floats starts in the parameter block. */
static size_t place(latent_net *net, size_t count) {
    size_t at = net->param_count;
    net->param_count += (count + LT_PARAM_ALIGN - 1) / LT_PARAM_ALIGN * LT_PARAM_ALIGN;
    net->parameters += count;
    return at;
}

static latent_status parse_conv(parser *p) {
    int sizes[2], filters = 0;
    lt_op *op = NULL;
    latent_status status = LATENT_OK;
    if (p->count < 4) {
        return wrong(
            p,
            "conv is not complete; right is: conv NAME FILTERS RxS ..., as in conv enc_conv1 256 3x3 relu");
    }
    if (!is_name(p->words[1])) {
        return wrong(
            p, "'%s' is no name; a name has letters, digits and _, starts with no digit and is under %d long",
            p->words[1], LT_NAME_MAX);
    }
    const char *end = read_number(p->words[2], &filters);
    if (!end || *end || filters < 1) {
        return wrong(
            p,
            "'%s' is no number of filters; a whole number of at least 1 belongs here, as in conv %s 64 3x3",
            p->words[2], p->words[1]);
    }
    if (!read_sizes(p->words[3], sizes, 2)) {
        return wrong(p, "'%s' is no filter size; right is HEIGHTxWIDTH, as in 3x3", p->words[3]);
    }
    LT_TRY(add_op(p, LT_OP_CONV, p->words[1], &op));
    op->conv.K = filters;
    op->conv.R = sizes[0];
    op->conv.S = sizes[1];
    op->conv.stride = 1;
    op->conv.bias = 1;
    LT_TRY(parse_attributes(p, &op->conv));
    LT_TRY(lt_shape_conv(p->ctx, p->where, op));
    op->weight = place(p->net, op->weight_count);
    op->bias = place(p->net, op->bias_count);
    if (p->net->param_count >= (size_t)1 << 31) {
        return wrong(p, "more than 2^31 parameters in all; use fewer filters");
    }
    p->net->op_count++;
done:
    return status;
}

static latent_status parse_latent(parser *p) {
    if (p->count > 1) {
        return wrong(p, "'%s' after latent; the word stands alone", p->words[1]);
    }
    if (p->net->op_count < 2) {
        return wrong(p,
                     "latent marks the output of the op before it, and there is none; put a conv line first");
    }
    if (p->net->latent >= 0) {
        return wrong(p, "a second latent; the first follows op '%s'", p->net->ops[p->net->latent].name);
    }
    p->net->latent = p->net->op_count - 1;
    return LATENT_OK;
}

static latent_status parse_loss(parser *p) {
    if (p->count != 2 || strcmp(p->words[1], "mse") != 0) {
        return wrong(p, "'%s' is no loss; right is: loss mse", p->count > 1 ? p->words[p->count - 1] : "");
    }
    if (p->net->op_count < 2) {
        return wrong(p, "the loss comes after the ops; put at least one conv line before it");
    }
    lt_shape in = p->net->ops[0].out, out = p->net->ops[p->net->op_count - 1].out;
    if (in.h != out.h || in.w != out.w || in.c != out.c) {
        return wrong(p,
                     "mse compares the output with the input, but '%s' gives %dx%dx%d and the input is "
                     "%dx%dx%d; change the last op (up2 doubles, pool2 halves)",
                     p->net->ops[p->net->op_count - 1].name, out.h, out.w, out.c, in.h, in.w, in.c);
    }
    lt_op *op = NULL;
    latent_status status = add_op(p, LT_OP_LOSS_MSE, "loss", &op);
    if (status == LATENT_OK) {
        op->out = op->in;
        p->net->op_count++;
    }
    return status;
}

static latent_status parse_train(parser *p) {
    if (p->has_train) {
        return wrong(p, "a second train line; put all settings on one");
    }
    p->has_train = 1;
    if (p->count % 2 == 0) {
        return wrong(p, "train: '%s' has no value; settings come in pairs, as in train epochs 20 batch 64",
                     p->words[p->count - 1]);
    }
    for (int i = 1; i < p->count; i += 2) {
        if (latent_recipe_set(p->ctx, &p->net->recipe, p->words[i], p->words[i + 1]) != LATENT_OK) {
            return wrong(p, "train: %s", p->ctx->message);
        }
    }
    return LATENT_OK;
}

static latent_status parse_line(parser *p) {
    static const char *const firsts[] = {"input", "conv", "latent", "loss", "train"};
    static latent_status (*const parse[])(parser *) = {parse_input, parse_conv, parse_latent, parse_loss,
                                                       parse_train};
    enum { INPUT, TRAIN = 4 };
    const char *word = p->words[0];
    for (int i = 0; i < 5; i++) {
        if (strcmp(word, firsts[i]) != 0) {
            continue;
        }
        int ops = p->net->op_count;
        if (i != INPUT && i != TRAIN && ops == 0) {
            return wrong(p, "'%s' before the input; the first op of a net is its input, as in input 32x32x3",
                         word);
        }
        if (i != TRAIN && ops > 0 && p->net->ops[ops - 1].kind == LT_OP_LOSS_MSE) {
            return wrong(p, "'%s' after the loss; the loss is the last op", word);
        }
        return parse[i](p);
    }
    const char *near = latent_suggest(word, firsts, 5);
    return wrong(p, "'%s' is no op%s%s%s; right are input, conv, latent, loss, train", word,
                 near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* Cuts a comment off and splits at blanks, in place. */
static latent_status split(parser *p, char *line) {
    p->count = 0;
    line[strcspn(line, "#")] = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\r\v\f", &rest); word; word = strtok_r(NULL, " \t\r\v\f", &rest)) {
        if (p->count == WORDS_MAX) {
            return wrong(p, "more than %d words on a line", WORDS_MAX);
        }
        p->words[p->count++] = word;
    }
    return LATENT_OK;
}

latent_status lt_net_read(latent_context *ctx, const char *text, size_t length, const char *origin,
                          latent_net *net) {
    latent_status status = LATENT_OK;
    parser p = {.ctx = ctx, .net = net};
    char *copy = NULL;
    if (length > TEXT_MAX || memchr(text, 0, length)) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: this is no net file (%s)", origin,
                       length > TEXT_MAX ? "it is larger than 1 MiB" : "it holds a 0 byte");
    }
    LT_TRY(lt_calloc(ctx, length + 1, 1, "a net file", (void **)&copy));
    memcpy(copy, text, length);
    lt_recipe_defaults(&net->recipe);
    net->latent = -1;
    for (char *line = copy; line;) {
        char *next = strchr(line, '\n');
        if (next) {
            *next++ = 0;
        }
        p.line++;
        snprintf(p.where, sizeof p.where, "%.300s:%d", origin, p.line);
        LT_TRY(split(&p, line));
        if (p.count > 0) {
            LT_TRY(parse_line(&p));
        }
        line = next;
    }
    if (net->op_count == 0 || net->ops[net->op_count - 1].kind != LT_OP_LOSS_MSE) {
        status = wrong(&p, "the net ends without a loss; its last op must be: loss mse");
    }
done:
    free(copy);
    return status;
}
