/* latent.h: learn from small images, on a CPU or a GPU, from C.
 *
 * The whole public interface of liblatent. The rules are the same everywhere:
 *   - A function that can fail returns a latent_status; its result comes through the last pointer.
 *     The sentence that explains a failure is latent_context_message().
 *   - The library never prints, never exits and never reads the environment. It reports through the
 *     callbacks below, which run on the calling thread.
 *   - create/destroy come in pairs; destroy takes NULL. An object owns its memory; a const pointer that
 *     an object hands out lives as long as the object.
 *   - Images are uint8, [height][width][channel]. Tensors leave in PyTorch's order (OIHW, CHW).
 *   - A context and the objects made with it belong to one thread at a time.
 */
#ifndef LATENT_H
#define LATENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LATENT_API __attribute__((visibility("default")))
#else
#define LATENT_API
#endif

#define LATENT_VERSION "0.1.0"

LATENT_API const char *latent_version(void);

/* ---- Status and context ------------------------------------------------------------------------ */

typedef enum latent_status {
    LATENT_OK = 0,
    LATENT_ERROR_ARGUMENT,    /* a value the caller gave cannot be used */
    LATENT_ERROR_IO,          /* the operating system refused a read, a write or a transfer */
    LATENT_ERROR_FORMAT,      /* a file is not what it should be */
    LATENT_ERROR_MEMORY,      /* out of host or device memory */
    LATENT_ERROR_UNSUPPORTED, /* not compiled in, or not possible on this machine */
    LATENT_ERROR_NUMERIC,     /* a loss or a gradient is no longer a finite number */
    LATENT_ERROR_DEVICE,      /* the GPU reported an error */
    LATENT_INTERRUPTED        /* stopped by latent_context_interrupt(); what could be saved was saved */
} latent_status;

typedef struct latent_context latent_context;

typedef enum latent_log_level { LATENT_LOG_INFO, LATENT_LOG_WARNING } latent_log_level;
typedef void (*latent_log_fn)(void *user, latent_log_level level, const char *message);

LATENT_API latent_status latent_context_create(latent_context **out);
LATENT_API void latent_context_destroy(latent_context *ctx);
/* The sentence about the last failure; "" when nothing failed yet. */
LATENT_API const char *latent_context_message(const latent_context *ctx);
LATENT_API void latent_context_set_log(latent_context *ctx, latent_log_fn log, void *user);
/* Async-signal-safe. Whatever long work runs on this context stops at its next safe point, saves what
 * it can and returns LATENT_INTERRUPTED. */
LATENT_API void latent_context_interrupt(latent_context *ctx);

/* Writes a file whole or not at all: under a temporary name beside it, to the disk, then in its place. A link
 * is followed; a folder or a device is refused. */
LATENT_API latent_status latent_file_write(latent_context *ctx, const char *path, const void *data,
                                           size_t bytes);
/* Whether such a file could be written there now: for callers who do long work first. Changes nothing. */
LATENT_API latent_status latent_file_check(latent_context *ctx, const char *path);

/* To know a file by, as hexadecimal digits: its length and its contents, those of a large file in samples. */
LATENT_API latent_status latent_file_fingerprint(latent_context *ctx, const char *path, char out[33]);

/* The candidate nearest to a mistyped word by edit distance, or NULL when none is near. */
LATENT_API const char *latent_suggest(const char *word, const char *const *candidates, size_t count);

/* ---- Nets -------------------------------------------------------------------------------------- */

typedef struct latent_net latent_net;

typedef enum latent_optimizer { LATENT_SGD, LATENT_ADAM, LATENT_ADAMW } latent_optimizer;
typedef enum latent_schedule { LATENT_CONSTANT, LATENT_COSINE, LATENT_ONECYCLE } latent_schedule;

/* How to train: the `train` line of a net file, which options may override. */
typedef struct latent_recipe {
    int epochs;
    int batch;
    latent_optimizer optimizer;
    latent_schedule schedule;
    double lr;           /* the peak rate for cosine and one-cycle */
    double momentum;     /* SGD; for Adam, beta1 */
    double beta2;        /* Adam, AdamW */
    double epsilon;      /* Adam, AdamW */
    double weight_decay; /* added to the gradient for SGD and Adam, decoupled for AdamW */
} latent_recipe;

typedef struct latent_net_info {
    const char *name;    /* preset name or the file's base name */
    const char *text;    /* the net file itself */
    int input[3];        /* height, width, channels */
    int latent[3];       /* height, width, channels at the `latent` line; zeros without one */
    uint64_t parameters; /* in all */
    uint64_t macs;       /* multiply-adds of one image's forward pass */
    latent_recipe recipe;
} latent_net_info;

typedef struct latent_layer_info {
    const char *name;
    const char *kind;        /* "input", "conv", "loss" */
    char description[96];    /* "3x3, relu, pool2" */
    int input[3], output[3]; /* height, width, channels */
    uint64_t parameters;
    uint64_t macs;             /* per image, forward */
    uint64_t activation_bytes; /* of the output in fp32, per image */
    int latent;                /* 1 when the `latent` line follows this layer */
} latent_layer_info;

/* `name` is a preset ("autoencoder") or the path of a net file. */
LATENT_API latent_status latent_net_load(latent_context *ctx, const char *name, latent_net **out);
/* `origin` is what error messages call the text. */
LATENT_API latent_status latent_net_parse(latent_context *ctx, const char *text, size_t length,
                                          const char *origin, latent_net **out);
LATENT_API void latent_net_destroy(latent_net *net);
LATENT_API void latent_net_get_info(const latent_net *net, latent_net_info *out);
LATENT_API int latent_net_layer_count(const latent_net *net);
LATENT_API void latent_net_get_layer(const latent_net *net, int index, latent_layer_info *out);

/* Presets are net files compiled into the library. NULL past the last one. */
LATENT_API const char *latent_preset_name(int index);
LATENT_API const char *latent_preset_text(const char *name);

LATENT_API const char *latent_optimizer_name(latent_optimizer optimizer);
LATENT_API const char *latent_schedule_name(latent_schedule schedule);
/* Sets one key of a recipe from text, as the `train` line does: ("lr", "1e-3"). */
LATENT_API latent_status latent_recipe_set(latent_context *ctx, latent_recipe *recipe, const char *key,
                                           const char *value);

/* ---- Data sets --------------------------------------------------------------------------------- */

typedef struct latent_dataset latent_dataset;
typedef enum latent_split { LATENT_TRAIN, LATENT_TEST } latent_split;

typedef struct latent_dataset_info {
    const char *path;
    int height, width, channels, classes;
    int count[2];  /* images in LATENT_TRAIN and LATENT_TEST */
    int synthetic; /* 1 when latent_dataset_synthesize() wrote it */
} latent_dataset_info;

/* `folder` holds data_batch_*.bin and test_batch.bin, or a folder cifar-10-batches-bin that does. */
LATENT_API latent_status latent_dataset_open(latent_context *ctx, const char *folder, latent_dataset **out);
LATENT_API void latent_dataset_destroy(latent_dataset *data);
LATENT_API void latent_dataset_get_info(const latent_dataset *data, latent_dataset_info *out);
LATENT_API const char *latent_dataset_class_name(const latent_dataset *data, int label);
/* All images of a split, [count][height][width][channel], and their labels. */
LATENT_API const uint8_t *latent_dataset_images(const latent_dataset *data, latent_split split);
LATENT_API const uint8_t *latent_dataset_labels(const latent_dataset *data, latent_split split);
/* To know the contents by, wherever they lie, as hexadecimal digits: images and labels of both splits. */
LATENT_API void latent_dataset_digest(const latent_dataset *data, char out[33]);

/* Writes a synthetic set of ten classes of textured shapes: same arguments, same bytes. */
LATENT_API latent_status latent_dataset_synthesize(latent_context *ctx, const char *folder, int train_count,
                                                   int test_count, uint64_t seed);

typedef void (*latent_transfer_fn)(void *user, uint64_t done, uint64_t total);

typedef struct latent_download_options {
    const char *url;             /* NULL: the official address */
    const char *from;            /* a local archive instead of a transfer, or NULL */
    const char *md5;             /* NULL: the official archive's */
    uint64_t size;               /* 0: the official archive's */
    latent_transfer_fn progress; /* or NULL */
    void *user;
} latent_download_options;

/* Fetches the official archive, checks it and unpacks it into `folder`/cifar-10-batches-bin. A broken
 * transfer is resumed by the next call; a half set is never left behind. */
LATENT_API latent_status latent_dataset_download(latent_context *ctx, const char *folder,
                                                 const latent_download_options *options);

/* ---- Models: a net, its weights and the backend that holds them ------------------------------------ */

typedef struct latent_model latent_model;

/* Where and how a model computes. Zeroed means: the best backend at hand and its defaults. */
typedef struct latent_engine_options {
    const char *backend;   /* "ref", "cpu", "cuda"; NULL or "auto": the fastest that works here */
    const char *precision; /* "fp32", "bf16"; NULL: the backend's default */
    const char *isa;       /* cpu: "amx", "avx512", "avx2", "plain"; NULL: the best */
    const char *kernels;   /* cuda: the kernel generation; NULL: the best */
    int threads;           /* cpu: 0 = the cores this process may use */
    int device;            /* cuda: device number */
    int stream_data;       /* cuda: 1 = keep the data set in host memory and stream it */
} latent_engine_options;

typedef struct latent_backend_info {
    const char *name;    /* "ref" */
    const char *summary; /* one line for a person */
    int available;       /* 1 when it can run on this machine now */
    char detail[160];    /* what was found: instruction set, GPU name; or why it cannot run */
} latent_backend_info;

/* The backends compiled in, best first. Returns 0 past the last one. */
LATENT_API int latent_backend_get_info(int index, latent_backend_info *out);

typedef struct latent_tensor_info {
    const char *name;
    int dims;
    int shape[4]; /* PyTorch's order: OIHW for a conv weight */
    uint64_t count;
} latent_tensor_info;

/* A model with freshly drawn weights (He initialization, biases zero): same net and seed, same bits. */
LATENT_API latent_status latent_model_create(latent_context *ctx, const latent_net *net,
                                             const latent_engine_options *engine, uint64_t seed,
                                             latent_model **out);
/* `path` is a run folder or a .safetensors file. `net` may be NULL when the file names its own net. */
LATENT_API latent_status latent_model_load(latent_context *ctx, const char *path, const latent_net *net,
                                           const latent_engine_options *engine, latent_model **out);
LATENT_API void latent_model_destroy(latent_model *model);
LATENT_API const latent_net *latent_model_net(const latent_model *model);
/* What computes: "cpu, avx512, fp32, 2 threads". */
LATENT_API const char *latent_model_engine(const latent_model *model);

LATENT_API int latent_model_tensor_count(const latent_model *model);
LATENT_API void latent_model_get_tensor(const latent_model *model, int index, latent_tensor_info *out);
LATENT_API latent_status latent_model_read_tensor(latent_context *ctx, latent_model *model, int index,
                                                  float *out);
LATENT_API latent_status latent_model_write_tensor(latent_context *ctx, latent_model *model, int index,
                                                   const float *values);

typedef enum latent_weight_format {
    LATENT_SAFETENSORS, /* loads into a PyTorch module of the same names */
    LATENT_AE2024       /* magic 0xAE2024: the five convs of the autoencoder, for student projects */
} latent_weight_format;

LATENT_API latent_status latent_model_export(latent_context *ctx, latent_model *model, const char *path,
                                             latent_weight_format format);
LATENT_API latent_status latent_model_import(latent_context *ctx, latent_model *model, const char *path,
                                             latent_weight_format format);

/* out: [count][height][width][channel], values as the net gives them (1.0 is white). */
LATENT_API latent_status latent_model_reconstruct(latent_context *ctx, latent_model *model,
                                                  const uint8_t *images, int count, float *out);
/* out: [count][channels*height*width] at the `latent` line, CHW-flattened. */
LATENT_API latent_status latent_model_encode(latent_context *ctx, latent_model *model, const uint8_t *images,
                                             int count, float *out);

typedef struct latent_evaluation {
    double loss; /* mean over all values of all images */
    int count;
    double seconds;
} latent_evaluation;

LATENT_API latent_status latent_model_evaluate(latent_context *ctx, latent_model *model,
                                               const latent_dataset *data, latent_split split,
                                               latent_evaluation *out);

/* A PNG: one column per class; rows: original, reconstruction, difference x3. */
LATENT_API latent_status latent_model_picture(latent_context *ctx, latent_model *model,
                                              const latent_dataset *data, latent_split split,
                                              const char *path, latent_evaluation *out);

/* ---- Training and runs --------------------------------------------------------------------------- */

typedef struct latent_memory_info { /* bytes */
    uint64_t weights, gradients, optimizer, activations, masks, scratch;
    uint64_t data;        /* images, where the backend keeps them */
    uint64_t checkpoints; /* on the host, to write them; 0 without a run folder */
} latent_memory_info;

typedef enum latent_event_kind {
    LATENT_EVENT_START, /* engine, memory and sizes are known; resumed_epoch > 0 after --resume */
    LATENT_EVENT_STEP,  /* now and then within an epoch */
    LATENT_EVENT_EPOCH, /* an epoch is complete */
    LATENT_EVENT_SAVED  /* a checkpoint is on disk */
} latent_event_kind;

typedef struct latent_train_event {
    latent_event_kind kind;
    int epoch, epochs; /* epochs count from 1 */
    int step, steps;   /* within the epoch; step is 0 when it begins */
    int images;        /* per epoch */
    int resumed_epoch; /* epochs that were already complete */
    double loss;       /* mean so far in this epoch */
    double lr;         /* of the latest step */
    double seconds;    /* in this epoch */
    double images_per_second;
    double forward_seconds, backward_seconds, optimizer_seconds; /* EPOCH only */
    latent_memory_info memory;
} latent_train_event;

typedef void (*latent_train_fn)(void *user, const latent_train_event *event);

/* Where the time of training steps went: a row for each op and pass, or for each kernel within them where
 * the backend times those. */
typedef struct latent_op_time {
    const char *name;   /* of the op; or "gather", "loss", "optimizer", "prepare", "other" */
    const char *pass;   /* "forward", "backward" or "" */
    const char *kind;   /* of work: "convolution forward", "convolution backward", "activation", "pooling",
                           "upsampling", "loss", "optimizer", "copies", "other" */
    const char *kernel; /* what ran it; "" where the backend does not say */
    int parts;          /* how many of the rows that follow are its kernels, one by one; rows of 0 parts add
                           up to the step */
    double seconds;     /* per step */
    double flops;       /* per step: the arithmetic that the op needs at least; 0 outside the convs */
} latent_op_time;

typedef void (*latent_op_time_fn)(void *user, const latent_op_time *time);

typedef struct latent_train_options {
    latent_recipe recipe;
    uint64_t seed;
    int subset;           /* train on the first `subset` images; 0: all */
    const char *run;      /* run folder to write; NULL: keep nothing on disk */
    int checkpoint_every; /* epochs; 0: only at the end and on interruption */
    int resume;           /* 1: continue the run in `run` */
    latent_train_fn progress;
    void *user;
    latent_op_time_fn profile; /* or NULL. Called at the end, a row for each op and pass; ops are then
                                  launched one by one, which is slower */
    void *profile_user;
} latent_train_options;

/* Defaults: the net's recipe, seed 1, a checkpoint every epoch. */
LATENT_API void latent_train_defaults(const latent_net *net, latent_train_options *out);
/* Trains the model in place. With a run folder it writes config.json, metrics.jsonl,
 * checkpoint.safetensors and model.safetensors there. The resumed run ends in the same bits as one that
 * never stopped. */
LATENT_API latent_status latent_train(latent_context *ctx, latent_model *model, const latent_dataset *data,
                                      const latent_train_options *options);
/* Reads what a run was started with, to resume it: its net, its training options (the recipe, seed and
 * subset; the rest zero) and its data folder (NULL when it had none; free with latent_free). */
LATENT_API latent_status latent_run_read(latent_context *ctx, const char *run, latent_net **net,
                                         latent_train_options *options, char **data_folder);
/* latent_dataset_digest() of the data that a run was started on; "" when it is older and does not say. */
LATENT_API latent_status latent_run_read_digest(latent_context *ctx, const char *run, char out[33]);
/* What a run's engine was asked for; "" where the choice was left open. Resuming with the same gives the
 * same bits. */
typedef struct latent_engine_record {
    char backend[16], precision[16], isa[16], kernels[16];
} latent_engine_record;
LATENT_API latent_status latent_run_read_engine(latent_context *ctx, const char *run,
                                                latent_engine_record *out);
LATENT_API void latent_free(void *memory);

/* ---- Features: what the encoder makes of every image, for a classifier ------------------------------ */

typedef enum latent_feature_format {
    LATENT_NPY, /* train.npy, test.npy: float32, a row per image */
    LATENT_RAW  /* train.f32, test.f32: the same floats, little-endian, and nothing else */
} latent_feature_format;

/* Images done so far; the passes over a split count together. */
typedef void (*latent_features_fn)(void *user, latent_split split, int done, int total);

/* The three steps happen in this order. */
typedef struct latent_features_options {
    int flip;        /* 1: add the features of the mirrored image */
    int standardize; /* 1: column by column, less the training mean, over the training deviation + 1e-3 */
    int l2;          /* 1: every row to length 1 */
    latent_feature_format format;
    int subset;      /* only the first `subset` training images; 0: all */
    uint64_t memory; /* bytes of the backend's memory in which training features may wait for their mean; 0:
                        4 GiB, and on a device never more than half of what is free. With less than they need
                        the encoder runs twice, to the same bits */
    const char *scaling; /* standardize by the mean and deviation in this scaling.safetensors (or in this
                            folder of features), for a classifier that was trained on features of it; NULL: by
                            the training rows' own */
    latent_features_fn progress; /* or NULL */
    void *user;
} latent_features_options;

typedef struct latent_features_info {
    int count[2]; /* rows, by latent_split */
    int width;    /* features of an image */
    int flip, standardize, l2;
    latent_feature_format format;
    char weights[33];   /* latent_model_digest() of the model that made them */
    char data[1024];    /* path of the data set */
    char digest[33];    /* and latent_dataset_digest() of it; "": older features do not say */
    char precision[8];  /* of the engine that made them: "fp32", "bf16"; "": older features do not say */
    char scaling[1024]; /* path of the scaling that was given; "": the training rows' own */
    /* The encoder and what is done to its rows; copies to and from the device; what the writing thread was
     * waited for (it works beside the other two), and the disk at the end. */
    double compute_seconds, copy_seconds, write_seconds;
} latent_features_info;

/* Defaults: all three steps, .npy, all images. */
LATENT_API void latent_features_defaults(latent_features_options *out);
/* Encodes both splits into `folder`: the features in data order, CHW-flattened, train_labels.npy and
 * test_labels.npy (uint8; .u8 beside raw features), scaling.safetensors (mean and deviation) and, last,
 * features.json. A failure leaves no half file, and no features.json over files that are not its own. */
LATENT_API latent_status latent_features_extract(latent_context *ctx, latent_model *model,
                                                 const latent_dataset *data,
                                                 const latent_features_options *options, const char *folder,
                                                 latent_features_info *out);
/* Reads features.json and checks that the files beside it are there in the sizes it says. */
LATENT_API latent_status latent_features_read(latent_context *ctx, const char *folder,
                                              latent_features_info *out);
/* The path of a file of `folder`: "folder/train.npy"; free with latent_free. */
LATENT_API latent_status latent_features_path(latent_context *ctx, const char *folder, latent_split split,
                                              int labels, latent_feature_format format, char **out);
/* MD5 of all weights in the order of latent_model_get_tensor(), as hexadecimal digits. */
LATENT_API latent_status latent_model_digest(latent_context *ctx, latent_model *model, char out[33]);

/* ---- Scores, the journal of a run, reports ----------------------------------------------------------- */

typedef struct latent_class_score {
    uint64_t count, predicted, correct; /* images of the class, answers of the class, both at once */
    double accuracy, precision, f1;     /* accuracy: the share of its images that were recognized */
} latent_class_score;

typedef struct latent_score {
    uint64_t count, correct;
    double accuracy;
    double macro_f1; /* mean over the classes that occur */
} latent_score;

/* confusion: [classes][classes], rows are the truth; each: [classes]. */
LATENT_API latent_status latent_score_compute(latent_context *ctx, const int32_t *truth,
                                              const int32_t *predicted, int count, int classes,
                                              uint64_t *confusion, latent_class_score *each,
                                              latent_score *out);

/* Keeps images for the report in `path` (safetensors, uint8): of each class one or two with what the net
 * makes of them; and, with the `predicted` labels of the whole split (or NULL), images of the pairs of
 * classes that are confused most. */
LATENT_API latent_status latent_pictures_write(latent_context *ctx, latent_model *model,
                                               const latent_dataset *data, latent_split split,
                                               const int32_t *predicted, const char *path);

/* run.json of a run folder: what each stage of `latent run` was made from and how long it took. */
typedef struct latent_journal latent_journal;

typedef struct latent_stage {
    const char *name;
    const char *inputs;  /* everything that decides its output, as text */
    const char *summary; /* one line for a person */
    double seconds;
    int unfinished; /* 1: begun, and not completed */
    /* To record: the files it wrote, named from the run folder, ending with NULL (at most 16). Those that are
     * there are recorded with their fingerprints. */
    const char *const *files;
} latent_stage;

/* Without a run.json the journal is empty. */
LATENT_API latent_status latent_journal_open(latent_context *ctx, const char *run, latent_journal **out);
/* Empty, whatever run.json holds; the first record replaces it. */
LATENT_API latent_status latent_journal_create(latent_context *ctx, const char *run, latent_journal **out);
LATENT_API void latent_journal_destroy(latent_journal *journal);
/* NULL when the stage was never completed. */
LATENT_API const latent_stage *latent_journal_find(const latent_journal *journal, const char *name);
/* The first of the files that the stage wrote which is gone or another by now; NULL: all are as they were. */
LATENT_API const char *latent_journal_changed(const latent_journal *journal, const char *name);
/* Seconds that a stage has taken so far, completed or not. */
LATENT_API double latent_journal_spent(const latent_journal *journal, const char *name);
/* Records a stage, or (stage->inputs NULL) forgets it, and writes run.json. */
LATENT_API latent_status latent_journal_record(latent_context *ctx, latent_journal *journal,
                                               const latent_stage *stage);
/* How to make the run again and on what machine: written with the next stage. */
LATENT_API latent_status latent_journal_describe(latent_context *ctx, latent_journal *journal,
                                                 const char *command, const char *machine);

typedef struct latent_target {
    const char *name;    /* "training" */
    char goal[80];       /* "under 10 minutes" */
    char measured[160];  /* "84.1 s: 20 epochs of 50,000 images" */
    int met;             /* 1 yes, 0 no, -1 open */
    const char *reached; /* "yes", "no", "not measured"; "not comparable": under other conditions */
    char reason[96];     /* which: "2 of 20 epochs"; "" unless it is not comparable */
} latent_target;

enum { LATENT_TARGETS = 4 };

/* A run against the targets: training, features, accuracy, GPU against CPU. `ladder` is the path of a
 * ladder.json, or NULL: the run's own. */
LATENT_API latent_status latent_run_targets(latent_context *ctx, const char *run, const char *ladder,
                                            latent_target out[LATENT_TARGETS]);

/* Whether the file is one that can stand for `ladder`: JSON with rungs. */
LATENT_API latent_status latent_ladder_check(latent_context *ctx, const char *path);

/* One self-contained HTML file about one run, or several side by side (at most 8). */
LATENT_API latent_status latent_report_write(latent_context *ctx, const char *const *runs, int count,
                                             const char *ladder, const char *path);

/* ---- Measuring ------------------------------------------------------------------------------------- */

typedef struct latent_bench_options {
    int batch;                  /* 0: the recipe's */
    int steps;                  /* timed steps; 0: as many as fit into `seconds` */
    double seconds;             /* time for the measured steps; 0: about 5 */
    const latent_dataset *data; /* NULL: 4,096 images of noise */
    uint64_t seed;
    latent_op_time_fn each; /* or NULL: no per-op pass */
    void *user;
} latent_bench_options;

typedef struct latent_bench_result {
    char engine[160];
    int batch, steps;
    double step_seconds;      /* median */
    double best_seconds;      /* of a step */
    double images_per_second; /* at the median */
    double flops;             /* per image: forward and backward, upsample+conv as its transposed form */
    double gflops;            /* per second, at the median */
    double ceiling_gflops;    /* a register-resident multiply-add loop on this machine; 0: not measured */
    double ceiling_gbytes;    /* a memory copy, bytes read plus written; 0: not measured */
    double loss;              /* of the last timed step */
    latent_memory_info memory;
} latent_bench_result;

/* Trains for a moment and measures it: warm-up, timed steps, then (with `each`) steps timed op by op. */
LATENT_API latent_status latent_bench_train(latent_context *ctx, const latent_net *net,
                                            const latent_engine_options *engine,
                                            const latent_bench_options *options, latent_bench_result *out);

typedef struct latent_selftest_options {
    int steps;        /* first part: this many steps ... */
    int batch;        /* ... at this batch on `ref` and on the tested engine, then every tensor is compared */
    int epoch_images; /* second part: an epoch of this many images, losses compared; 0: left out */
    int epoch_batch;
    int every; /* batches between two compared losses */
    uint64_t seed;
    const char *weights; /* where to write the one weight file that both load; NULL: no file */
} latent_selftest_options;

typedef struct latent_selftest_row {
    const char *part;  /* "weights" or "loss" */
    const char *name;  /* the tensor, or the engine that the losses are compared with */
    int step;          /* of the loss */
    double difference; /* largest |a - b| of the tensor; relative, of the loss */
    double bound;      /* that it must not exceed */
    int good;
} latent_selftest_row;

typedef void (*latent_selftest_fn)(void *user, const latent_selftest_row *row);

LATENT_API void latent_selftest_defaults(latent_selftest_options *out);
/* Proves an engine against the reference: the same weights, the same images, the same steps. The second part
 * is compared with the fastest other host backend, since the reference would take an hour. *failed: rows
 * that were not good. */
LATENT_API latent_status latent_selftest(latent_context *ctx, const latent_net *net,
                                         const latent_engine_options *engine,
                                         const latent_selftest_options *options, latent_selftest_fn each,
                                         void *user, int *failed);

/* ---- Support vector machines ------------------------------------------------------------------------- */

/* C-SVC, one binary problem for each pair of classes, as LIBSVM defines it. Features are rows of floats,
 * x[i*d + column]; labels are any whole numbers. Class order is the order in which labels are first seen in
 * the training set (LIBSVM's exception included: -1 and +1 come as +1, -1). The pairs of k classes are
 * (0,1), (0,2) .. (0,k-1), (1,2) ..; a decision value above 0 speaks for the first class of its pair. */
typedef struct latent_svm latent_svm; /* a trained model; owns its support vectors */

typedef enum latent_svm_kernel {
    LATENT_SVM_RBF,   /* exp(-gamma |a-b|^2) */
    LATENT_SVM_LINEAR /* a . b */
} latent_svm_kernel;

typedef enum latent_svm_gamma {
    LATENT_GAMMA_SCALE, /* 1 / (d * variance of all features) */
    LATENT_GAMMA_AUTO,  /* 1 / d */
    LATENT_GAMMA_VALUE  /* the number given */
} latent_svm_gamma;

/* Of the products that make the kernel matrix. On the host all three are fp32. */
typedef enum latent_svm_precision {
    LATENT_SVM_STRICT,
    LATENT_SVM_FAST,
    LATENT_SVM_FP32
} latent_svm_precision;

typedef enum latent_svm_vote {
    LATENT_VOTE_LIBSVM,    /* most pairs won; a tie goes to the class that comes first */
    LATENT_VOTE_CONFIDENCE /* a tie goes to the larger sum of decision values */
} latent_svm_vote;

typedef struct latent_svm_weight {
    int32_t label;
    double weight; /* times C for the rows of this label */
} latent_svm_weight;

typedef enum latent_svm_stage {
    LATENT_SVM_MATRIX,   /* the kernel matrix */
    LATENT_SVM_SOLVE,    /* binary problems */
    LATENT_SVM_DECISIONS /* rows predicted */
} latent_svm_stage;

/* `done` of `total` steps of a stage; `memory` is what the kernel matrix or its cache will take, bytes. */
typedef void (*latent_svm_fn)(void *user, latent_svm_stage stage, uint64_t done, uint64_t total,
                              uint64_t memory);

typedef struct latent_svm_options {
    latent_svm_kernel kernel;
    double c;
    latent_svm_gamma gamma_rule;
    double gamma; /* LATENT_GAMMA_VALUE */
    const latent_svm_weight *weights;
    int weight_count;
    int balanced;            /* weight n / (classes * rows of the class), times `weights` */
    double tolerance;        /* of the optimality gap */
    uint64_t iterations_max; /* per binary problem; 0: the larger of 10,000,000 and 100 n, as LIBSVM */
    int shrinking;           /* leave rows that rest at a bound out for a while */
    int probability;         /* fit probabilities by cross-validation over five folds */
    uint64_t cache_bytes;    /* for the kernel matrix; 0: half of the memory that is free */
    latent_svm_precision precision;
    latent_svm_vote vote;
    int gamma_per_pair; /* LATENT_GAMMA_SCALE from the rows of each pair, as some others do */
    uint64_t seed;      /* of the folds */
    latent_svm_fn progress;
    void *user;
} latent_svm_options;

/* RBF, C = 1, gamma by scale, tolerance 1e-3, shrinking, LIBSVM's votes, seed 1. */
LATENT_API void latent_svm_defaults(latent_svm_options *out);

typedef struct latent_svm_pair { /* one binary problem */
    int32_t first, second;       /* labels */
    uint64_t rows, iterations;
    uint64_t support, bounded; /* rows with alpha > 0, and those among them at C */
    double objective, gap;     /* from gradients computed afresh */
    double rho, gamma;
    int converged; /* 0: the iteration cap or the arithmetic's precision came first */
} latent_svm_pair;

typedef struct latent_svm_report {
    char engine[160];
    size_t n, d;
    int classes, pairs;
    double gamma;
    uint64_t support; /* distinct vectors */
    uint64_t iterations;
    double gap;       /* the largest */
    double objective; /* the sum */
    int unconverged;  /* pairs */
    uint64_t memory;  /* bytes of the kernel matrix or its cache */
    int resident;     /* 1: the matrix was whole */
    double seconds;   /* in all, and its parts: */
    double prepare_seconds, matrix_seconds, solve_seconds, probability_seconds;
} latent_svm_report;

/* `report` may be NULL. `engine` NULL: the best backend at hand. */
LATENT_API latent_status latent_svm_train(latent_context *ctx, const float *x, size_t n, size_t d,
                                          const int32_t *labels, const latent_svm_options *options,
                                          const latent_engine_options *engine, latent_svm **out,
                                          latent_svm_report *report);
LATENT_API void latent_svm_destroy(latent_svm *svm);

typedef struct latent_svm_info {
    latent_svm_kernel kernel;
    double gamma;             /* RBF; of the first pair when gammas differ */
    int gamma_per_pair;       /* 1: they differ */
    int classes, pairs;       /* pairs = classes * (classes-1) / 2 */
    const int32_t *labels;    /* [classes], in class order */
    size_t d;                 /* features of a row */
    int open_width;           /* 1: it came from LIBSVM's text, which does not say d: rows may be wider */
    uint64_t support;         /* support vectors in all */
    const uint64_t *supports; /* [classes] */
    const double *rho;        /* [pairs] */
    int probability;          /* 1: it can give probabilities */
    latent_svm_vote vote;
    const char *engine; /* what predicts */
} latent_svm_info;

LATENT_API void latent_svm_get_info(const latent_svm *svm, latent_svm_info *out);
/* Binary problem `pair` of a model that was trained here; 0 when the model came from a file. */
LATENT_API int latent_svm_get_pair(const latent_svm *svm, int pair, latent_svm_pair *out);

/* Any of the three may be NULL. labels[n]; decisions[n][pairs]; probabilities[n][classes], columns in class
 * order. The labels are those of the votes, whether probabilities are asked for or not. */
LATENT_API latent_status latent_svm_predict(latent_context *ctx, latent_svm *svm, const float *x, size_t n,
                                            size_t d, int32_t *labels, double *decisions,
                                            double *probabilities);

/* Stratified folds, the same for the same seed; predictions[n] of each row by the model that did not see
 * it, or NULL. */
LATENT_API latent_status latent_svm_cross_validate(latent_context *ctx, const float *x, size_t n, size_t d,
                                                   const int32_t *labels, const latent_svm_options *options,
                                                   int folds, const latent_engine_options *engine,
                                                   int32_t *predictions, double *accuracy);

typedef struct latent_svm_point {
    double c, gamma;
    double accuracy; /* of cross-validation */
    uint64_t iterations;
    double seconds;
} latent_svm_point;

typedef void (*latent_svm_point_fn)(void *user, const latent_svm_point *point);

/* Cross-validates every C with every gamma (the linear kernel: with gammas NULL and gamma_count 0; with RBF
 * that means options->gamma_rule alone). The squared distances are computed once, the matrix once per gamma,
 * and each C starts from the solution of the one below it. points[c_count * max(gamma_count, 1)], gamma by
 * gamma, C as given; *best is the place of the best one: of equals the smallest C, then the smallest gamma.
 * `each` is called after each point, or NULL. */
LATENT_API latent_status latent_svm_grid(latent_context *ctx, const float *x, size_t n, size_t d,
                                         const int32_t *labels, const latent_svm_options *options, int folds,
                                         const double *cs, int c_count, const double *gammas, int gamma_count,
                                         const latent_engine_options *engine, latent_svm_point_fn each,
                                         void *user, latent_svm_point *points, int *best);

typedef enum latent_svm_format {
    LATENT_SVM_SAFETENSORS, /* exact and compact: the default */
    LATENT_SVM_TEXT         /* LIBSVM's model file, which svm-predict reads */
} latent_svm_format;

LATENT_API latent_status latent_svm_save(latent_context *ctx, const latent_svm *svm, const char *path,
                                         latent_svm_format format);
/* Either format; the file's first bytes tell. */
LATENT_API latent_status latent_svm_load(latent_context *ctx, const char *path,
                                         const latent_engine_options *engine, latent_svm **out);

/* ---- Feature and label files --------------------------------------------------------------------------- */

typedef struct latent_rows {
    float *x; /* [n][d] */
    size_t n, d;
    int32_t *labels; /* [n], or NULL: the file has none */
} latent_rows;

/* An .npy array of two dimensions, or LIBSVM's sparse text with its labels. `columns` is the width that is
 * wanted: a file of another width is an error, sparse text may be narrower. 0: any. */
LATENT_API latent_status latent_rows_read(latent_context *ctx, const char *path, size_t columns,
                                          latent_rows *out);
LATENT_API void latent_rows_free(latent_rows *rows); /* what it points to */
/* Sparse text when `labels` are given, else .npy. */
LATENT_API latent_status latent_rows_write(latent_context *ctx, const char *path, const float *x, size_t n,
                                           size_t d, const int32_t *labels);
/* An .npy array of one dimension, or text with one whole number a line. Free with latent_free. */
LATENT_API latent_status latent_labels_read(latent_context *ctx, const char *path, int32_t **labels,
                                            size_t *n);

/* ---- Comparing ------------------------------------------------------------------------------------- */

typedef struct latent_difference {
    const char *name;
    int shape[4], dims;
    uint64_t count;
    double max_abs, max_rel;
    int64_t first;   /* flat index of the first value beyond the tolerance; -1: none */
    double a, b;     /* the two values there */
    uint64_t beyond; /* how many values lie beyond the tolerance */
} latent_difference;

typedef void (*latent_difference_fn)(void *user, const latent_difference *difference);

/* Compares two runs or weight files tensor by tensor. A value is beyond the tolerance when
 * |a-b| > absolute + relative*max(|a|,|b|) or either is NaN. *beyond_out: how many tensors have one. */
LATENT_API latent_status latent_compare(latent_context *ctx, const char *path_a, const char *path_b,
                                        double absolute, double relative, latent_difference_fn each,
                                        void *user, int *beyond_out);

#ifdef __cplusplus
}
#endif
#endif
