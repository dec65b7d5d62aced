/* test_net.c: net files: what they mean, and the sentence each mistake gets. */
#include "base/status.h"
#include "net/layout.h"
#include "net/net.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static latent_context *ctx;

static latent_net *parse(const char *text) {
    latent_net *net = NULL;
    if (latent_net_parse(ctx, text, strlen(text), "my.net", &net) != LATENT_OK) {
        fail_msg("%s", latent_context_message(ctx));
    }
    return net;
}

static void test_autoencoder(void **state) {
    (void)state;
    latent_net *net = NULL;
    assert_int_equal(latent_net_load(ctx, "autoencoder", &net), LATENT_OK);
    latent_net_info info;
    latent_net_get_info(net, &info);
    assert_int_equal(info.parameters, 751875);
    assert_int_equal(info.latent[0] * info.latent[1] * info.latent[2], 8192);
    assert_int_equal(info.latent[2], 128);
    /* By hand: 32*32*27*256 + 16*16*2304*128 + 8*8*1152*128 + 16*16*1152*256 + 32*32*2304*3 */
    assert_int_equal(info.macs, 7077888 + 75497472 + 9437184 + 75497472 + 7077888);
    assert_int_equal(info.recipe.epochs, 20);
    assert_int_equal(info.recipe.batch, 64);
    assert_int_equal(info.recipe.optimizer, LATENT_ADAM);
    assert_true(info.recipe.lr == 1e-3);
    latent_layer_info layer;
    latent_net_get_layer(net, 2, &layer);
    assert_string_equal(layer.name, "enc_conv2");
    assert_int_equal(layer.parameters, 256 * 9 * 128 + 128);
    assert_int_equal(layer.output[0], 8);
    assert_int_equal(layer.latent, 1);
    latent_net_destroy(net);
}

static void check_conv(const char *line, int OH, int OW, int PH, int PW) {
    char text[256];
    snprintf(text, sizeof text, "input 9x7x2\n%s\nloss mse\n", line);
    latent_net *net = NULL;
    /* The loss seldom fits these shapes; the shape is read from the message then. */
    if (latent_net_parse(ctx, text, strlen(text), "s.net", &net) == LATENT_OK) {
        assert_int_equal(net->ops[1].conv.OH, OH);
        assert_int_equal(net->ops[1].conv.OW, OW);
        assert_int_equal(net->ops[1].out.h, PH);
        assert_int_equal(net->ops[1].out.w, PW);
    } else {
        char part[64];
        snprintf(part, sizeof part, "gives %dx%dx2", PH, PW);
        if (!strstr(latent_context_message(ctx), part)) {
            fail_msg("%s: wanted '%s' in: %s", line, part, latent_context_message(ctx));
        }
    }
    latent_net_destroy(net);
}

static void test_shapes(void **state) {
    (void)state;
    check_conv("conv a 2 3x3", 9, 7, 9, 7);
    check_conv("conv a 2 3x3 same", 9, 7, 9, 7);
    check_conv("conv a 2 2x2", 9, 7, 9, 7);
    check_conv("conv a 2 4x4 same", 9, 7, 9, 7);
    check_conv("conv a 2 3x3 valid", 7, 5, 7, 5);
    check_conv("conv a 2 3x3 stride 2", 5, 4, 5, 4);
    check_conv("conv a 2 3x3 stride 3 valid", 3, 2, 3, 2);
    check_conv("conv a 2 5x3 pad 1", 7, 7, 7, 7);
    check_conv("conv a 2 3x3 pool2", 9, 7, 4, 3);
    check_conv("conv a 2 3x3 up2", 18, 14, 18, 14);
    check_conv("conv a 2 3x3 up2 pool2 relu nobias", 18, 14, 9, 7);
}

static void test_parameters(void **state) {
    (void)state;
    latent_net *net = parse("input 4x4x3\nconv a 5 3x3 nobias\nconv b 3 1x1\nloss mse\n");
    assert_int_equal(net->parameters, 5 * 27 + 3 * 5 + 3);
    assert_int_equal(net->ops[1].bias_count, 0);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(net->ops[i].weight % LT_PARAM_ALIGN, 0);
        assert_int_equal(net->ops[i].bias % LT_PARAM_ALIGN, 0);
    }
    latent_net_destroy(net);
}

static void test_init(void **state) {
    (void)state;
    latent_net *net = parse("input 8x8x64\nconv a 64 3x3\nloss mse\n");
    float *p = calloc(net->param_count, sizeof *p), *q = calloc(net->param_count, sizeof *q);
    lt_net_init(net, 7, p);
    lt_net_init(net, 7, q);
    assert_memory_equal(p, q, net->param_count * sizeof *p);
    lt_net_init(net, 8, q);
    assert_memory_not_equal(p, q, net->param_count * sizeof *p);
    double sum = 0, square = 0;
    size_t n = net->ops[1].weight_count;
    for (size_t i = 0; i < n; i++) {
        sum += p[i];
        square += (double)p[i] * p[i];
    }
    double variance = 2.0 / (64 * 9); /* He; the bounds are five standard errors */
    assert_true(fabs(sum / (double)n) < 5 * sqrt(variance / (double)n));
    assert_true(fabs(square / (double)n / variance - 1) < 5 * sqrt(2.0 / (double)n));
    assert_true(p[net->ops[1].bias] == 0.0f);
    free(p);
    free(q);
    latent_net_destroy(net);
}

static void test_recipe(void **state) {
    (void)state;
    latent_net *net =
        parse("input 4x4x3\nconv a 3 3x3\nloss mse\n"
              "train epochs 3 batch 7 optimizer sgd lr 0.5 momentum 0 schedule onecycle weight_decay 0.1\n");
    assert_int_equal(net->recipe.epochs, 3);
    assert_int_equal(net->recipe.batch, 7);
    assert_int_equal(net->recipe.optimizer, LATENT_SGD);
    assert_int_equal(net->recipe.schedule, LATENT_ONECYCLE);
    assert_true(net->recipe.lr == 0.5 && net->recipe.momentum == 0 && net->recipe.weight_decay == 0.1);
    latent_net_destroy(net);
}

/* Each mistake, and two parts of the sentence: where, and what is wrong or right. */
static const char *const mistakes[][3] = {
    {"", "my.net:1", "ends without a loss"},
    {"input 32x32x3\n", "my.net:2", "ends without a loss"},
    {"inptu 32x32x3\n", "my.net:1", "did you mean 'input'"},
    {"input 32x32\n", "my.net:1", "HEIGHTxWIDTHxCHANNELS"},
    {"input 0x32x3\n", "my.net:1", "'0x32x3'"},
    {"input 5000x32x3\n", "my.net:1", "too large"},
    {"input 99999999999999999999x3x3\n", "my.net:1", "no image size"},
    {"input 8x8x3 extra\n", "my.net:1", "'extra'"},
    {"input 8x8x3\ninput 8x8x3\n", "my.net:2", "second input"},
    {"conv a 3 3x3\n", "my.net:1", "before the input"},
    {"input 8x8x3\nconv a 3\n", "my.net:2", "not complete"},
    {"input 8x8x3\nconv 9a 3 3x3\n", "my.net:2", "'9a' is no name"},
    {"input 8x8x3\nconv a many 3x3\n", "my.net:2", "'many' is no number of filters"},
    {"input 8x8x3\nconv a 3 3\n", "my.net:2", "'3' is no filter size"},
    {"input 8x8x3\nconv a 3 3x3 rellu\n", "my.net:2", "did you mean 'relu'"},
    {"input 8x8x3\nconv a 3 3x3 stride\n", "my.net:2", "stride ''"},
    {"input 8x8x3\nconv a 3 3x3 stride 0\n", "my.net:2", "stride '0'"},
    {"input 8x8x3\nconv a 3 3x3 pad 3\n", "my.net:2", "padding 3 cannot be used"},
    {"input 8x8x3\nconv a 3 9x9 valid\n", "my.net:2", "does not fit into 8x8"},
    {"input 1x1x3\nconv a 3 1x1 pool2\n", "my.net:2", "pool2 needs at least 2x2"},
    {"input 8x8x3\nconv a 70000 3x3\n", "my.net:2", "number of filters 70000"},
    {"input 8x8x3\nconv a 3 65x65\n", "my.net:2", "filter height 65"},
    {"input 4096x4096x3\nconv a 60000 3x3\n", "my.net:2", "2^31"},
    {"input 8x8x3\nconv a 3 3x3\nconv a 3 3x3\n", "my.net:3", "taken by line 2"},
    {"input 8x8x3\nlatent\n", "my.net:2", "put a conv line first"},
    {"input 8x8x3\nconv a 3 3x3\nlatent\nlatent\n", "my.net:4", "second latent"},
    {"input 8x8x3\nconv a 3 3x3\nlatent here\n", "my.net:3", "stands alone"},
    {"input 8x8x3\nconv a 3 3x3\nloss l1\n", "my.net:3", "'l1' is no loss"},
    {"input 8x8x3\nloss mse\n", "my.net:2", "after the ops"},
    {"input 8x8x3\nconv a 4 3x3\nloss mse\n", "my.net:3", "gives 8x8x4 and the input is 8x8x3"},
    {"input 8x8x3\nconv a 3 3x3\nloss mse\nconv b 3 3x3\n", "my.net:4", "after the loss"},
    {"input 8x8x3\nconv a 3 3x3\nloss mse\ntrain epochs\n", "my.net:4", "'epochs' has no value"},
    {"input 8x8x3\nconv a 3 3x3\nloss mse\ntrain epoch 3\n", "my.net:4", "did you mean 'epochs'"},
    {"input 8x8x3\nconv a 3 3x3\nloss mse\ntrain lr -1\n", "my.net:4", "above 0"},
    {"input 8x8x3\nconv a 3 3x3\nloss mse\ntrain lr nan\n", "my.net:4", "above 0"},
    {"input 8x8x3\nconv a 3 3x3\nloss mse\ntrain batch 0\n", "my.net:4", "batch '0'"},
    {"input 8x8x3\nconv a 3 3x3\nloss mse\ntrain momentum 1\n", "my.net:4", "momentum '1'"},
    {"input 8x8x3\nconv a 3 3x3\nloss mse\ntrain optimizer lion\n", "my.net:4", "sgd, adam or adamw"},
    {"input 8x8x3\nconv a 3 3x3\nloss mse\ntrain lr 1\ntrain lr 1\n", "my.net:5", "second train"},
};

static void test_mistakes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        latent_net *net = NULL;
        const char *text = mistakes[i][0];
        assert_int_equal(latent_net_parse(ctx, text, strlen(text), "my.net", &net), LATENT_ERROR_FORMAT);
        assert_null(net);
        const char *message = latent_context_message(ctx);
        if (strncmp(message, mistakes[i][1], strlen(mistakes[i][1])) != 0 ||
            !strstr(message, mistakes[i][2])) {
            fail_msg("case %zu: wanted '%s ... %s' in: %s", i, mistakes[i][1], mistakes[i][2], message);
        }
    }
    latent_net *net = NULL;
    assert_int_equal(latent_net_parse(ctx, "input\0", 6, "my.net", &net), LATENT_ERROR_FORMAT);
    assert_int_equal(latent_net_load(ctx, "autoencodre", &net), LATENT_ERROR_ARGUMENT);
    assert_non_null(strstr(latent_context_message(ctx), "did you mean 'autoencoder'"));
    assert_int_equal(latent_net_load(ctx, "/nonexistent/x.net", &net), LATENT_ERROR_ARGUMENT);
    assert_int_equal(latent_net_load(ctx, "/tmp", &net), LATENT_ERROR_IO);
}

/* Random lifetimes: no two items that are alive together may share a byte. */
static void test_layout(void **state) {
    (void)state;
    unsigned seed = 1;
    for (int round = 0; round < 200; round++) {
        lt_item items[20];
        int count = 1 + rand_r(&seed) % 20;
        for (int i = 0; i < count; i++) {
            int from = rand_r(&seed) % 10;
            items[i] = (lt_item){
                .bytes = (size_t)(rand_r(&seed) % 5000), .from = from, .to = from + rand_r(&seed) % 5};
        }
        size_t size = lt_layout(items, count, 256);
        for (int i = 0; i < count; i++) {
            assert_int_equal(items[i].offset % 256, 0);
            assert_true(items[i].offset + items[i].bytes <= size);
            for (int j = 0; j < i; j++) {
                int together = items[i].from <= items[j].to && items[j].from <= items[i].to;
                int overlap = items[i].offset < items[j].offset + items[j].bytes &&
                              items[j].offset < items[i].offset + items[i].bytes;
                assert_false(together && overlap && items[i].bytes && items[j].bytes);
            }
        }
    }
    /* Three in a row, each alive with its neighbour alone: the first and the last share. */
    lt_item chain[3] = {{100, 0, 1, 0}, {100, 1, 2, 0}, {100, 2, 3, 0}};
    assert_int_equal(lt_layout(chain, 3, 256), 512);
}

static int setup(void **state) {
    (void)state;
    return latent_context_create(&ctx) != LATENT_OK;
}

static int teardown(void **state) {
    (void)state;
    latent_context_destroy(ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_autoencoder), cmocka_unit_test(test_shapes), cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_init),        cmocka_unit_test(test_recipe), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_layout),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
