/* op_run.h: runs ops of any backend through the contract, for tests.
 *
 * Numbers travel as double and are converted to what the backend stores. Every buffer is filled with NaN
 * bytes before it is used and fenced with the same bytes on both sides: what a kernel leaves unwritten,
 * reads outside or writes outside shows. Images past the call's n are poisoned too and must stay so.
 */
#ifndef OP_RUN_H
#define OP_RUN_H

#include "op_cases.h"

#include "backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that cmocka wants first */
#include <cmocka.h>

enum { POISON = 0xFF, FENCE = LT_ALIGN };

typedef struct variant {
    const char *backend, *precision, *isa, *kernels; /* NULL: the default */
} variant;

/* Every way to compute that a build may have. What a backend of this build cannot do on this machine is
 * reported as skipped; its defaults it must do wherever its probe says yes. */
static const variant variants[] = {
    {"ref", NULL, NULL, NULL},
    {"cpu", NULL, NULL, NULL},
    {"cpu", "fp32", "plain", NULL},
    {"cpu", "fp32", "avx2", NULL},
    {"cpu", "fp32", "avx512", NULL},
    {"cpu", "bf16", "amx", NULL},
    {"cpu", "bf16", "amx-emulated", NULL},
    {"cuda", NULL, NULL, NULL},
    {"cuda", "fp32", NULL, "basic"},
    {"cuda", "fp32", NULL, "tiled"},
    {"cuda", "fp32", NULL, "fused"},
    {"cuda", "fp32", NULL, "gemm"},
    {"cuda", "fp32", NULL, "cudnn"},
    {"cuda", "bf16", NULL, "tensor"},
};

enum { VARIANTS = sizeof variants / sizeof variants[0] };

/* ---- An opened backend ------------------------------------------------------------------------- */

typedef struct rig {
    latent_context *ctx;
    lt_backend *backend;
    const lt_backend_type *type;
    int bf16; /* operands are rounded to bf16 */
} rig;

#define RIG_OK(r, call)                                                                                      \
    do {                                                                                                     \
        if ((call) != LATENT_OK) {                                                                           \
            fail_msg("%s: %s", #call, latent_context_message((r)->ctx));                                     \
        }                                                                                                    \
    } while (0)

static inline void rig_close(rig *r) {
    lt_backend_close(r->backend);
    latent_context_destroy(r->ctx);
    memset(r, 0, sizeof *r);
}

/* Skips the test when the machine or the build lacks the variant. threads 0: the default. */
static inline void rig_open(rig *r, const variant *v, int threads) {
    latent_engine_options options = {.backend = v->backend,
                                     .precision = v->precision,
                                     .isa = v->isa,
                                     .kernels = v->kernels,
                                     .threads = strcmp(v->backend, "cpu") == 0 ? threads : 0};
    memset(r, 0, sizeof *r);
    if (latent_context_create(&r->ctx) != LATENT_OK) {
        abort();
    }
    latent_status status = lt_backend_open(r->ctx, &options, &r->backend);
    int defaults = !v->precision && !v->isa && !v->kernels;
    if (status == LATENT_ERROR_UNSUPPORTED && !defaults) {
        print_message("           %s\n", latent_context_message(r->ctx));
        rig_close(r);
        skip();
    }
    RIG_OK(r, status);
    r->type = r->backend->type;
    r->bf16 = r->backend->activation == LT_BF16 || (v->precision && strcmp(v->precision, "bf16") == 0);
}

/* ---- Fenced memory ----------------------------------------------------------------------------- */

typedef struct fenced {
    uint8_t *base; /* [b] FENCE bytes, the data, FENCE bytes */
    uint8_t *host; /* the same, as last written or read */
    size_t bytes;  /* of data; 0: no memory, and its pointer is NULL */
} fenced;

/* Poisons everything, then puts `filled` bytes at the front of the data. */
static inline void fenced_write(rig *r, fenced *f, const void *data, size_t filled) {
    if (f->bytes) {
        memset(f->host, POISON, f->bytes + 2 * FENCE);
        if (filled) {
            memcpy(f->host + FENCE, data, filled);
        }
        RIG_OK(r, r->type->upload(r->ctx, r->backend, f->base, f->host, f->bytes + 2 * FENCE));
    }
}

static inline fenced fenced_make(rig *r, size_t bytes, const void *data, size_t filled) {
    fenced f = {NULL, NULL, bytes};
    if (bytes) {
        void *base = NULL;
        RIG_OK(r, r->type->alloc(r->ctx, r->backend, bytes + 2 * FENCE, &base));
        f.base = base;
        f.host = malloc(bytes + 2 * FENCE);
        assert_non_null(f.host);
        fenced_write(r, &f, data, filled);
    }
    return f;
}

static inline void *fenced_at(const fenced *f) {
    return f->bytes ? f->base + FENCE : NULL;
}

/* Reads back and checks that the fences, and the data past `used` bytes, are as they were. */
static inline const void *fenced_read(rig *r, fenced *f, const char *what, size_t used) {
    if (!f->bytes) {
        return NULL;
    }
    RIG_OK(r, r->type->download(r->ctx, r->backend, f->host, f->base, f->bytes + 2 * FENCE));
    for (size_t i = 0; i < f->bytes + 2 * FENCE; i++) {
        if (i == FENCE) {
            i += used;
        }
        if (f->host[i] != POISON) {
            fail_msg("%s: byte %lld of %zu was written", what, (long long)i - FENCE, used);
        }
    }
    return f->host + FENCE;
}

static inline void fenced_free(rig *r, fenced *f) {
    if (f->bytes) {
        r->type->free(r->backend, f->base);
        free(f->host);
    }
}

/* ---- Numbers in a backend's types -------------------------------------------------------------- */

/* To be freed. Values must be exact in the type. */
static inline void *typed_from(const double *values, size_t count, lt_dtype type) {
    char *out = malloc(count * lt_dtype_size(type) + 1);
    assert_non_null(out);
    for (size_t i = 0; i < count; i++) {
        float value = (float)values[i];
        if (type == LT_F32) {
            memcpy(out + 4 * i, &value, 4);
        } else {
            uint32_t bits;
            memcpy(&bits, &value, 4);
            uint16_t high = (uint16_t)(bits >> 16);
            memcpy(out + 2 * i, &high, 2);
        }
    }
    return out;
}

static inline void typed_to(const void *typed, size_t count, lt_dtype type, double *out) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        if (type == LT_F32) {
            memcpy(&bits, (const char *)typed + 4 * i, 4);
        } else {
            uint16_t high;
            memcpy(&high, (const char *)typed + 2 * i, 2);
            bits = (uint32_t)high << 16;
        }
        float value;
        memcpy(&value, &bits, 4);
        out[i] = (double)value;
    }
}

/* A fenced tensor of `room` values whose first `count` are given; NULL values: all poison. */
static inline fenced fenced_tensor(rig *r, size_t room, const double *values, size_t count, lt_dtype type) {
    void *typed = values ? typed_from(values, count, type) : NULL;
    size_t filled = values ? count * lt_dtype_size(type) : 0;
    fenced f = fenced_make(r, room * lt_dtype_size(type), typed, filled);
    free(typed);
    return f;
}

static inline void fenced_values(rig *r, fenced *f, const char *what, size_t count, lt_dtype type,
                                 double *out) {
    const void *data = fenced_read(r, f, what, count * lt_dtype_size(type));
    typed_to(data, count, type, out);
}

/* ---- A conv through the contract --------------------------------------------------------------- */

typedef struct conv_io {
    const lt_op *op;
    int n, batch; /* images of the call, and of the plan that the memory is for */
    lt_dtype x_type;
    const double *x, *w, *b; /* b NULL without bias */
    const double *dy;        /* NULL: forward only, as in a plan for inference */
    double *y;
    double *dx;           /* NULL: not wanted */
    int dx_add;           /* dx holds what to add to */
    double *dw;           /* hold what to add to, and then the sum */
    double *db;           /* or NULL: not wanted */
    const double *target; /* not NULL: the loss is fused. Its gradient comes in loss_dy */
    double *loss_dy;
    double loss;
} conv_io;

typedef struct conv_memory {
    size_t in, out, weights; /* values per image; of the weight */
    lt_dtype y_type;
    fenced x, w, b, y, dy, dx, dw, db, mask, persist, scratch, target;
} conv_memory;

static inline void conv_begin(rig *r, const conv_io *io, conv_memory *m) {
    const lt_conv *conv = &io->op->conv;
    size_t batch = (size_t)io->batch, n = (size_t)io->n;
    int training = io->dy || io->target;
    lt_op_memory want;
    memset(&want, POISON, sizeof want);
    r->type->op_memory(r->backend, io->op, io->x_type, io->batch, training, &want);
    assert_true(training || want.mask == 0);
    memset(m, 0, sizeof *m);
    m->in = lt_shape_count(io->op->in);
    m->out = lt_shape_count(io->op->out);
    m->weights = io->op->weight_count;
    m->y_type = r->backend->activation;
    m->x = fenced_tensor(r, batch * m->in, io->x, n * m->in, io->x_type);
    m->w = fenced_tensor(r, m->weights, io->w, m->weights, LT_F32);
    m->b = fenced_tensor(r, io->b ? (size_t)conv->K : 0, io->b, (size_t)conv->K, LT_F32);
    m->y = fenced_tensor(r, batch * m->out, NULL, 0, m->y_type);
    m->dy = fenced_tensor(r, training ? batch * m->out : 0, io->dy, n * m->out, m->y_type);
    m->dx = fenced_tensor(r, io->dx ? batch * m->in : 0, io->dx_add ? io->dx : NULL, n * m->in, io->x_type);
    m->dw = fenced_tensor(r, io->dy ? m->weights : 0, io->dw, m->weights, LT_F32);
    m->db = fenced_tensor(r, io->db ? (size_t)conv->K : 0, io->db, (size_t)conv->K, LT_F32);
    m->target = fenced_tensor(r, io->target ? batch * m->out : 0, io->target, n * m->out, LT_F32);
    m->mask = fenced_make(r, want.mask, NULL, 0);
    m->persist = fenced_make(r, want.persist, NULL, 0);
    m->scratch = fenced_make(r, want.scratch, NULL, 0);
}

static inline void conv_end(rig *r, conv_memory *m) {
    fenced *all[] = {&m->x,  &m->w,  &m->b,    &m->y,       &m->dy,      &m->dx,
                     &m->dw, &m->db, &m->mask, &m->persist, &m->scratch, &m->target};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        fenced_free(r, all[i]);
    }
}

/* Inputs are inputs: they must come back as they went. */
static inline void conv_check_inputs(rig *r, const conv_io *io, conv_memory *m) {
    struct {
        fenced *f;
        const double *values;
        size_t count;
        lt_dtype type;
        const char *what;
    } inputs[] = {{&m->x, io->x, (size_t)io->n * m->in, io->x_type, "x"},
                  {&m->w, io->w, m->weights, LT_F32, "w"},
                  {&m->b, io->b, (size_t)io->op->conv.K, LT_F32, "b"},
                  {&m->dy, io->dy, (size_t)io->n * m->out, m->y_type, "dy"}};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (inputs[i].values) {
            void *typed = typed_from(inputs[i].values, inputs[i].count, inputs[i].type);
            size_t bytes = inputs[i].count * lt_dtype_size(inputs[i].type);
            assert_memory_equal(fenced_read(r, inputs[i].f, inputs[i].what, bytes), typed, bytes);
            free(typed);
        }
    }
}

static inline void conv_forward(rig *r, conv_io *io, conv_memory *m, lt_conv_call *call) {
    lt_loss_call loss = {.n = io->n,
                         .values = m->out,
                         .y = call->y,
                         .target = fenced_at(&m->target),
                         .dy = fenced_at(&m->dy),
                         .scratch = call->scratch};
    call->loss = io->target ? &loss : NULL;
    if (m->persist.bytes) {
        RIG_OK(r, r->type->conv_prepare(r->ctx, r->backend, call));
        fenced_read(r, &m->scratch, "scratch, by prepare", m->scratch.bytes);
        fenced_write(r, &m->scratch, NULL, 0);
    }
    RIG_OK(r, r->type->conv_forward(r->ctx, r->backend, call));
    call->loss = NULL;
    fenced_values(r, &m->y, "y", (size_t)io->n * m->out, m->y_type, io->y);
    fenced_read(r, &m->mask, "mask", m->mask.bytes);
    fenced_read(r, &m->persist, "persist", m->persist.bytes);
    fenced_read(r, &m->scratch, "scratch, by forward", m->scratch.bytes);
    if (io->target) {
        float value = NAN;
        int bad = 0;
        fenced_values(r, &m->dy, "dy", (size_t)io->n * m->out, m->y_type, io->loss_dy);
        RIG_OK(r, r->type->losses_read(r->ctx, r->backend, 0, 1, &value, &bad));
        assert_int_equal(bad, -1);
        io->loss = (double)value;
    }
}

static inline void conv_backward(rig *r, conv_io *io, conv_memory *m, lt_conv_call *call) {
    fenced_write(r, &m->scratch, NULL, 0);
    RIG_OK(r, r->type->conv_backward(r->ctx, r->backend, call));
    if (io->dx) {
        fenced_values(r, &m->dx, "dx", (size_t)io->n * m->in, io->x_type, io->dx);
    }
    fenced_values(r, &m->dw, "dw", m->weights, LT_F32, io->dw);
    if (io->db) {
        fenced_values(r, &m->db, "db", (size_t)io->op->conv.K, LT_F32, io->db);
    }
    fenced_read(r, &m->mask, "mask", m->mask.bytes);
    fenced_read(r, &m->persist, "persist", m->persist.bytes);
    fenced_read(r, &m->scratch, "scratch, by backward", m->scratch.bytes);
}

/* prepare, forward and, with dy, backward, as the executor does it. Where the backend has no way back for the
 * op, io loses its dy and everything else of the backward pass. */
static inline void rig_conv(rig *r, conv_io *io) {
    conv_memory m;
    if (io->dy && !r->type->op_variant(r->ctx, r->backend, io->op, LT_BACKWARD)) {
        assert_non_null(strstr(latent_context_message(r->ctx), "the kernels 'tensor'")); /* alone */
        io->dy = NULL;
        io->dx = io->dw = io->db = NULL;
    }
    conv_begin(r, io, &m);
    lt_conv_call call = {.conv = &io->op->conv,
                         .n = io->n,
                         .x_type = io->x_type,
                         .x = fenced_at(&m.x),
                         .w = fenced_at(&m.w),
                         .b = fenced_at(&m.b),
                         .y = fenced_at(&m.y),
                         .mask = fenced_at(&m.mask),
                         .persist = fenced_at(&m.persist),
                         .scratch = fenced_at(&m.scratch),
                         .dy = fenced_at(&m.dy),
                         .dx = fenced_at(&m.dx),
                         .dx_add = io->dx_add,
                         .dw = fenced_at(&m.dw),
                         .db = fenced_at(&m.db)};
    conv_forward(r, io, &m, &call);
    if (io->dy) {
        conv_backward(r, io, &m, &call);
    }
    conv_check_inputs(r, io, &m);
    conv_end(r, &m);
}

/* ---- A test program over the variants ---------------------------------------------------------- */

/* 1 when the backend is compiled in and can run here. */
static inline int backend_available(const char *name) {
    latent_backend_info info;
    for (int i = 0; latent_backend_get_info(i, &info); i++) {
        if (strcmp(info.name, name) == 0) {
            return info.available;
        }
    }
    return 0;
}

/* Is the variant one to run, given `--backend only --kernels kernels`? GPUs run when they are asked for by
 * name. */
static inline int variant_wanted(const variant *v, const char *only, const char *kernels) {
    int wanted = only ? strcmp(v->backend, only) == 0 : strcmp(v->backend, "cuda") != 0;
    wanted = wanted && (!kernels || (v->kernels && strcmp(v->kernels, kernels) == 0));
    return wanted && backend_available(v->backend);
}

/* `--small`: without the cases of full size, for tools that make every instruction a hundred times slower. */
static int small_only;

/* Runs each function once per wanted variant. 77, skipped, when the backend asked for cannot run here. */
static inline int run_variants(int argc, char **argv, const struct CMUnitTest *functions, size_t count) {
    small_only = argc > 1 && strcmp(argv[argc - 1], "--small") == 0;
    argc -= small_only;
    const char *only = argc >= 3 && strcmp(argv[1], "--backend") == 0 ? argv[2] : NULL;
    const char *kernels = argc == 5 && strcmp(argv[3], "--kernels") == 0 ? argv[4] : NULL;
    if (argc != 1 + (only ? 2 : 0) + (kernels ? 2 : 0)) {
        fprintf(stderr, "usage: %s [--backend NAME [--kernels NAME]] [--small]\n", argv[0]);
        return 2;
    }
    if (only && !backend_available(only)) {
        fprintf(stderr, "skipped: the backend '%s' cannot run here\n", only);
        return 77;
    }
    static struct CMUnitTest tests[VARIANTS * 16];
    static char names[VARIANTS * 16][128];
    size_t total = 0;
    for (size_t i = 0; i < VARIANTS; i++) {
        const variant *v = &variants[i];
        for (size_t j = 0; variant_wanted(v, only, kernels) && j < count; j++) {
            snprintf(names[total], sizeof names[total], "%s: %s %s %s", functions[j].name, v->backend,
                     v->precision ? v->precision : "default",
                     v->isa       ? v->isa
                     : v->kernels ? v->kernels
                                  : "");
            tests[total] = functions[j];
            tests[total].name = names[total];
            tests[total++].initial_state = (void *)(uintptr_t)v;
        }
    }
    return _cmocka_run_group_tests(argv[0], tests, total, NULL, NULL);
}

#endif
