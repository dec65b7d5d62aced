/* backend.h: THE contract between the engine and whatever computes.
 *
 * A backend is a table of functions (lt_backend_type) and an opened instance (lt_backend, whose first
 * member is `type`; the rest is the backend's own). The engine (net/exec.c) walks a plan and calls the
 * ops; it never looks inside the memory that a backend hands out.
 *
 * The rules, said once:
 *   - Memory. Pointers marked [b] are in the backend's memory, from alloc(). Activations are NHWC, weights
 *     OHWI. Every tensor starts on a multiple of LT_ALIGN bytes. Element types are those of the plan.
 *   - Order. Calls take effect in the order they are made, as on one stream. Op calls, gather, optimizer,
 *     zero and step_next may return before the work is done; upload, download, losses_read, synchronize
 *     and profile_read wait for everything before them. The host buffers of upload and download may be
 *     reused on return.
 *   - Gradients. Parameter gradients accumulate: dw and db are added to what is there, and the optimizer
 *     leaves the gradient block zero. Activation gradients are written, unless the call says dx_add.
 *   - Bits. The same calls with the same inputs give the same bits, whatever the number of threads or
 *     multiprocessors: no float atomics, reductions in a fixed order.
 *   - Steps. What changes from step to step (learning rate, which images, the epoch) does not travel as
 *     an argument: the engine hands over a table for many steps at once, the ops read the record at the
 *     cursor, and step_next moves the cursor. So a step captured once as a graph replays unchanged.
 *   - Losses and faults stay in the backend, a value per step, until losses_read.
 *   - Capture. Between graph_begin and graph_end only op calls, gather, optimizer, zero and step_next are
 *     made; they are recorded, not run. Backends without graphs leave the four entries NULL.
 *   - Failure. Whatever fails leaves a sentence in the context and the backend usable or closable.
 */
#ifndef LT_BACKEND_BACKEND_H
#define LT_BACKEND_BACKEND_H

#include "backend/rows.h"
#include "backend/svm.h"
#include "base/status.h"
#include "net/op.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LT_ALIGN = 256 };

typedef enum lt_dtype { LT_F32, LT_BF16 } lt_dtype;

static inline size_t lt_dtype_size(lt_dtype type) {
    return type == LT_F32 ? 4 : 2;
}

typedef enum lt_pass { LT_FORWARD, LT_BACKWARD } lt_pass;

typedef struct lt_backend_type lt_backend_type;

typedef struct lt_backend {
    const lt_backend_type *type;
    lt_dtype activation; /* element type of every activation but the input, which is fp32 */
    char engine[160];    /* for a person: "cpu, avx512, fp32, 2 threads" */
} lt_backend;

/* What a backend wants for one op at a batch size: asked once, when the plan is made. Bytes. */
typedef struct lt_op_memory {
    size_t mask;    /* kept from forward to backward: pool positions, relu bits. 0 in plans for inference */
    size_t persist; /* kept as long as the plan: packed or rounded weights, made by conv_prepare */
    size_t scratch; /* undefined before and after each call; all ops share the largest */
} lt_op_memory;

/* Loss of the last op's output y against target, over n images of `values` numbers each. Writes the mean
 * over all of them to the loss of the step at the cursor, and dy = d loss / d y unless dy is NULL. */
typedef struct lt_loss_call {
    int n;
    size_t values;
    const void *y;       /* [b] */
    const float *target; /* [b] */
    void *dy;            /* [b] or NULL */
    void *scratch;       /* [b] */
} lt_loss_call;

typedef struct lt_conv_call {
    const lt_conv *conv;
    int n;                    /* images in this call, at most the plan's batch */
    lt_dtype x_type;          /* of x and dx; y and dy have the backend's activation type */
    const void *x;            /* [b] [n][H][W][C] */
    const float *w;           /* [b] [K][R][S][C] */
    const float *b;           /* [b] [K], or NULL */
    void *y;                  /* [b] [n][PH][PW][K] */
    uint8_t *mask;            /* [b] or NULL: nothing will go backward */
    void *persist;            /* [b] */
    void *scratch;            /* [b] */
    const lt_loss_call *loss; /* forward: not NULL only where fuses_loss() said so; its y and dy are this
                                 op's y and dy, and the loss is computed in the same pass */
    /* backward only */
    const void *dy; /* [b] [n][PH][PW][K] */
    void *dx;       /* [b] [n][H][W][C], or NULL: not wanted */
    int dx_add;     /* add to dx instead of writing it */
    float *dw;      /* [b] [K][R][S][C], added to */
    float *db;      /* [b] [K], added to, or NULL */

    const char *name; /* of the op, for profilers; or NULL */
} lt_conv_call;

/* A data set as a backend keeps it: made by data_load, opaque. */
typedef struct lt_backend_data lt_backend_data;

/* x[i] = image[order(first + i)] * scale + shift, channel by channel, where order is the epoch's
 * permutation of [0, limit), or the identity. first, n and epoch come from the step at the cursor; the
 * call's n is the same number, known to the host. */
typedef struct lt_gather_call {
    const lt_backend_data *data;
    int n;
    int limit;   /* the permutation covers the first `limit` images */
    int shuffle; /* 0: identity */
    uint64_t seed;
    float scale, shift;
    int mirror;          /* 1: every row of pixels from right to left */
    int width, channels; /* of an image; read for mirror only */
    float *x;            /* [b] [n][H][W][C] */
} lt_gather_call;

/* One record of the step table. beta1 and beta2 are meant as the floats of the optimizer call: 1 - beta2 of a
 * rounded beta2 differs in the fifth digit, and the correction must undo that very number. */
typedef struct lt_step {
    uint32_t epoch; /* counts from 0 */
    uint32_t first; /* place in the epoch's order where the batch begins */
    uint32_t n;
    float lr;
    float correction1; /* Adam: 1 / (1 - beta1^t) */
    float correction2; /* Adam: 1 / sqrt(1 - beta2^t) */
} lt_step;

/* One step over the flat block. With g the gradient and the record's lr:
 *   sgd    g += decay*p;  m = momentum*m + g;  p -= lr*m                       (momentum 0: p -= lr*g)
 *   adam   g += decay*p;  m = momentum*m + (1-momentum)*g;  v = beta2*v + (1-beta2)*g*g
 *          p -= lr * (m*correction1) / (sqrt(v)*correction2 + epsilon)
 *   adamw  p -= lr*decay*p first, then adam without decay in g
 * A gradient that is not finite marks the step as bad (see losses_read). Leaves grads zero. */
typedef struct lt_optimizer_call {
    latent_optimizer kind;
    float momentum, beta2, epsilon, decay;
    float *params, *grads; /* [b] */
    float *m, *v;          /* [b]; v is NULL for sgd, m too without momentum */
    size_t count;
} lt_optimizer_call;

/* Where time is booked: the time since the previous mark goes to the slot; at LT_SLOT_NOWHERE to none. */
enum { LT_SLOT_GATHER, LT_SLOT_LOSS, LT_SLOT_OPTIMIZER, LT_SLOT_PREPARE, LT_SLOT_OTHER, LT_SLOT_OPS };
enum { LT_SLOT_NOWHERE = 0x7FFFFFFF };
static inline int lt_slot(int op, lt_pass pass) {
    return LT_SLOT_OPS + 2 * op + (pass == LT_BACKWARD);
}

/* What the machine could do at best, measured. */
typedef struct lt_ceiling {
    double flops; /* per second: a register-resident multiply-add loop at the backend's precision */
    double bytes; /* per second: a copy much larger than the caches, read plus written */
} lt_ceiling;

struct lt_backend_type {
    const char *name;
    const char *summary; /* one line for a person */

    /* Can it run here? Writes what was found, or why not, for a person. Cheap, never fails. */
    int (*probe)(char *detail, size_t size);
    latent_status (*open)(latent_context *ctx, const latent_engine_options *options, lt_backend **out);
    void (*close)(lt_backend *backend);

    /* Memory */
    latent_status (*alloc)(latent_context *ctx, lt_backend *backend, size_t bytes, void **out);
    void (*free)(lt_backend *backend, void *memory);
    uint64_t (*memory_free)(lt_backend *backend); /* bytes alloc could still give; NULL: not known */
    latent_status (*zero)(latent_context *ctx, lt_backend *backend, void *memory, size_t bytes);
    latent_status (*upload)(latent_context *ctx, lt_backend *backend, void *to, const void *from,
                            size_t bytes);
    latent_status (*download)(latent_context *ctx, lt_backend *backend, void *to, const void *from,
                              size_t bytes);
    latent_status (*synchronize)(latent_context *ctx, lt_backend *backend);

    /* Data. `images` stays the caller's and must outlive the lt_backend_data. */
    latent_status (*data_load)(latent_context *ctx, lt_backend *backend, const uint8_t *images, int count,
                               size_t image_bytes, lt_backend_data **out);
    void (*data_free)(lt_backend *backend, lt_backend_data *data);
    uint64_t (*data_bytes)(const lt_backend_data *data); /* of backend memory that it takes */
    /* 1: the host has a part in every gather of it, which then cannot be captured. NULL: never. */
    int (*data_streams)(const lt_backend_data *data);
    latent_status (*gather)(latent_context *ctx, lt_backend *backend, const lt_gather_call *call);

    /* Ops. op_variant names the kernel that would run the op ("direct", "tiled 3x3"), or returns NULL and
     * leaves the reason in the context: the plan then fails with that sentence. */
    const char *(*op_variant)(latent_context *ctx, lt_backend *backend, const lt_op *op, lt_pass pass);
    void (*op_memory)(lt_backend *backend, const lt_op *op, lt_dtype x_type, int batch, int training,
                      lt_op_memory *out);
    int (*fuses_loss)(lt_backend *backend, const lt_op *op);
    latent_status (*conv_prepare)(latent_context *ctx, lt_backend *backend, const lt_conv_call *call);
    latent_status (*conv_forward)(latent_context *ctx, lt_backend *backend, const lt_conv_call *call);
    latent_status (*conv_backward)(latent_context *ctx, lt_backend *backend, const lt_conv_call *call);
    latent_status (*loss_mse)(latent_context *ctx, lt_backend *backend, const lt_loss_call *call);
    latent_status (*optimizer)(latent_context *ctx, lt_backend *backend, const lt_optimizer_call *call);

    /* Steps: the table is copied; the cursor starts at 0 and losses of the table's steps are undefined
     * until computed. losses_read waits, gives losses [first, first+count) of the table and the first bad
     * step among all so far (-1: none). losses_poll does not wait: it gives those from `first` on that are
     * there, and how many. NULL: when a call returns, its step is done. */
    latent_status (*steps_begin)(latent_context *ctx, lt_backend *backend, const lt_step *steps, int count);
    latent_status (*step_next)(latent_context *ctx, lt_backend *backend);
    latent_status (*losses_read)(latent_context *ctx, lt_backend *backend, int first, int count, float *out,
                                 int *bad_step);
    latent_status (*losses_poll)(latent_context *ctx, lt_backend *backend, int first, float *out, int *count,
                                 int *bad_step);

    /* Time. mark() books the time since the last mark; inside a capture, or while profiling is off on a
     * backend where marks cost, it may do nothing. profile_read waits and returns the seconds per slot
     * since profile_start. With 0 slots profile_start ends the booking; what was booked can still be read. */
    latent_status (*profile_start)(latent_context *ctx, lt_backend *backend, int slots);
    void (*mark)(lt_backend *backend, int slot);
    latent_status (*profile_read)(latent_context *ctx, lt_backend *backend, double *seconds, int slots);

    /* Row `index` of the kernels timed one by one since profile_start: the name ("": what the op's variant
     * says), its slot and seconds; NULL past the last row. Valid after profile_read. NULL: the backend times
     * whole slots only. */
    const char *(*kernel_time)(lt_backend *backend, int index, int *slot, double *seconds);
    latent_status (*ceiling)(latent_context *ctx, lt_backend *backend, lt_ceiling *out); /* NULL: unknown */

    /* Graphs: all four or none. */
    latent_status (*graph_begin)(latent_context *ctx, lt_backend *backend);
    latent_status (*graph_end)(latent_context *ctx, lt_backend *backend, void **graph);
    latent_status (*graph_launch)(latent_context *ctx, lt_backend *backend, void *graph);
    void (*graph_free)(lt_backend *backend, void *graph);

    /* C[i][j] = sum over l of A[i][l] * B[j][l]: all fp32, row-major, [b]; lda, ldb and ldc are floats from
     * row to row. C overlaps neither A nor B. The bits of a C[i][j] depend on its two rows and k alone, not
     * on m, n or its place. NULL: not supplied. */
    latent_status (*gemm_nt)(latent_context *ctx, lt_backend *backend, size_t m, size_t n, size_t k,
                             const float *a, size_t lda, const float *b, size_t ldb, float *c, size_t ldc);

    /* Host backends with threads: runs tasks 0 to count-1 in any order and waits for them; `thread` is under
     * threads(). Both or neither; without them the caller has one thread. */
    void (*parallel)(lt_backend *backend, int count, void (*run)(void *arg, int task, int thread), void *arg);
    int (*threads)(const lt_backend *backend);

    int host_memory; /* 1: [b] memory is the host's own */

    const lt_rows_ops *rows;

    const lt_svm_ops *svm; /* NULL: support vector machines run on a host backend */
};

/* registry.c: the backends compiled in, best first; NULL past the last one. */
const lt_backend_type *lt_backend_at(int index);
/* Opens options->backend, or the first that works for "auto" or NULL. */
latent_status lt_backend_open(latent_context *ctx, const latent_engine_options *options, lt_backend **out);
void lt_backend_close(lt_backend *backend);

#ifdef __cplusplus
}
#endif
#endif
