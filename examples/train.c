/* train.c: the library in one page. Makes a small synthetic data set, trains a narrow autoencoder on it
 * for an epoch, and saves the weights where PyTorch finds them. Build it against the installed library:
 *     cc train.c $(pkg-config --cflags --libs latent) -o train && ./train some-folder
 */
#include <latent.h>
#include <stdio.h>
#include <string.h>

static const char net_text[] = "input 32x32x3\n"
                               "conv enc 8 3x3 relu pool2\n"
                               "latent\n"
                               "conv dec 3 3x3 up2\n"
                               "loss mse\n"
                               "train epochs 1 batch 16 optimizer adam lr 3e-3\n";

static void show(void *user, const latent_train_event *event) {
    (void)user;
    if (event->kind == LATENT_EVENT_EPOCH) {
        printf("epoch %d of %d: loss %.5f\n", event->epoch, event->epochs, event->loss);
    }
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "example";
    latent_context *ctx = NULL;
    latent_net *net = NULL;
    latent_dataset *data = NULL;
    latent_model *model = NULL;
    latent_train_options options;
    latent_evaluation test = {0};
    char weights[4096];
    snprintf(weights, sizeof weights, "%s/weights.safetensors", folder);

    /* Every call returns LATENT_OK or leaves a sentence in the context, so a program can chain them. */
    int fine = latent_context_create(&ctx) == LATENT_OK &&
               latent_dataset_synthesize(ctx, folder, 200, 50, 1) == LATENT_OK &&
               latent_dataset_open(ctx, folder, &data) == LATENT_OK &&
               latent_net_parse(ctx, net_text, strlen(net_text), "net", &net) == LATENT_OK &&
               latent_model_create(ctx, net, NULL, 1, &model) == LATENT_OK;
    if (fine) {
        latent_train_defaults(net, &options);
        options.progress = show;
        fine = latent_train(ctx, model, data, &options) == LATENT_OK &&
               latent_model_evaluate(ctx, model, data, LATENT_TEST, &test) == LATENT_OK &&
               latent_model_export(ctx, model, weights, LATENT_SAFETENSORS) == LATENT_OK;
    }
    if (fine) {
        printf("loss on %d test images: %.5f\nweights: %s\n", test.count, test.loss, weights);
    } else {
        fprintf(stderr, "train: %s\n", ctx ? latent_context_message(ctx) : "no memory");
    }
    latent_model_destroy(model);
    latent_net_destroy(net);
    latent_dataset_destroy(data);
    latent_context_destroy(ctx);
    return fine ? 0 : 1;
}
