/* cpu.h: the inside of the backend `cpu`: how a conv becomes matrix products that stay in cache.
 *
 * Every pass of a conv (forward, input gradient, weight gradient) runs over a grid of cells, cut into chunks
 * of about 64 cells. For a chunk, a thread packs its operand (pixels, or sums of pixels) into lines of 64
 * bytes, 16 floats or 32 bf16 numbers of neighbouring channels each, ordered [block of channels][cell];
 * multiplies by weights packed beforehand, once per `point`; and finishes: bias, relu, pool, store.
 * What a point is depends on the form:
 *   taps      one output phase: all filter taps of a pixel, any geometry (axis.c)
 *   flat      the same with few channels: taps and channels side by side, so that no lane is wasted
 *   winograd  3x3, stride 1: F(2x2, 3x3), 16 products where 36 multiply-adds were
 *   upsample  up2 and 3x3, padded by 1: 9 products instead of 36, see forms.c
 *   columns   few filters: one product with all taps of all filters side by side, then shifted sums
 * A value is computed by one thread in an order that only the op's geometry fixes, so results have the same
 * bits on any number of threads.
 */
#ifndef LT_BACKEND_CPU_CPU_H
#define LT_BACKEND_CPU_CPU_H

#include "backend/cpu/pool.h"
#include "backend/host.h"

enum {
    LT_CPU_LINE = 64,   /* bytes */
    LT_CPU_CELLS = 64,  /* per chunk, about */
    LT_CPU_GROUP = 16,  /* chunks in a group, at most */
    LT_CPU_AXIS = 130,  /* entries of an axis: two per tap of the widest filter, and two more */
    LT_CPU_PHASES = 64, /* the largest stride */
    LT_CPU_FEW = 64     /* columns up to which the form `columns` is taken */
};

typedef enum lt_cpu_form {
    LT_CPU_TAPS,
    LT_CPU_FLAT,
    LT_CPU_WINOGRAD,
    LT_CPU_UPSAMPLE,
    LT_CPU_COLUMNS
} lt_cpu_form;

/* One axis of a pass. Cell i gives outputs i*out_step + phase; output phase p sums, over the entries
 * first[p] to first[p+1], the input at i*in_step + offset times the filter taps from..to added up. */
typedef struct lt_cpu_axis {
    int cells, phases;
    int in, out; /* pixels */
    int in_step, out_step;
    int first[LT_CPU_PHASES + 1];
    int taps; /* entries in all */
    int offset[LT_CPU_AXIS], from[LT_CPU_AXIS], to[LT_CPU_AXIS];
    /* Packed copies of the input ("sources") that the entries read, shifted by whole cells. */
    int sources;
    int source[LT_CPU_AXIS], shift[LT_CPU_AXIS], source_offset[LT_CPU_AXIS];
    int extra; /* cells that the largest shift reaches past the chunk */
} lt_cpu_axis;

/* axis.c. `quads`: outputs in pairs, as pooling wants them. */
void lt_cpu_axis_forward(lt_cpu_axis *axis, int in, int filter, int pad, int stride, int up2, int out,
                         int quads);
void lt_cpu_axis_backward(lt_cpu_axis *axis, int in, int filter, int pad, int stride, int up2, int out);
/* Finds the sources; `share`: entries that differ by whole cells read the same one. */
void lt_cpu_axis_sources(lt_cpu_axis *axis, int share);

typedef enum lt_cpu_role { LT_CPU_FORWARD, LT_CPU_DGRAD, LT_CPU_WGRAD } lt_cpu_role;

/* One pass, made concrete: which form, how it is cut and how large its parts are. */
typedef struct lt_cpu_pass {
    const lt_conv *conv;
    lt_cpu_role role;
    lt_cpu_form form;
    lt_cpu_axis y, x;
    int grid_h, grid_w;
    int chunk_images, chunk_rows, chunk_columns; /* of cells */
    int chunks_h, chunks_w;                      /* per image, or 1 with several images to a chunk */
    int room;                                    /* cells of a chunk, rounded up */
    int block;                                   /* channels in a line: 16 or 32 */
    int depth, depth_blocks;                     /* channels of the packed operand */
    int width, width_blocks;                     /* columns of the product, in blocks of 16 */
    int depth_first, width_first;                /* where a part begins (lt_cpu_pass_part), in blocks */
    int points, stages, stage_points;            /* points are packed a stage at a time */
    int weight_points;                           /* points with weights of their own: all, or the first */
    size_t in_rows;                              /* lines of one packed block of channels */
    size_t in_lines;                             /* of the packed operand of a chunk, one stage */
    size_t out_rows, out_lines;                  /* of the products of a chunk, all points */
    int blocks_max;                              /* packed blocks that one point multiplies */
    size_t weight_bytes;                         /* packed; of wgrad: the sums, as floats */
} lt_cpu_pass;

typedef struct lt_cpu_chunk {
    int image, images;
    int y, rows;
    int x, columns;
    int cells; /* images * rows * columns */
} lt_cpu_chunk;

/* forms.c */
lt_cpu_form lt_cpu_choose(const lt_conv *conv, lt_cpu_role role, int block);
void lt_cpu_pass_make(lt_cpu_pass *pass, const lt_conv *conv, lt_cpu_role role, int block);
/* Narrows a weight gradient to some blocks of its channels (depth) and columns (width). */
void lt_cpu_pass_part(lt_cpu_pass *pass, int depth_first, int depth_blocks, int width_first,
                      int width_blocks);
int lt_cpu_chunks(const lt_cpu_pass *pass, int n);
lt_cpu_chunk lt_cpu_chunk_at(const lt_cpu_pass *pass, int n, int index);
/* Lines of the packed operand that point p multiplies, as offsets; returns how many blocks. */
int lt_cpu_blocks(const lt_cpu_pass *pass, int p, size_t *offset);
/* Depth of point p's product, in channels of blocks: the last block of `flat` may be short. */
int lt_cpu_depth(const lt_cpu_pass *pass, int p);
/* Floats (or bf16 numbers) of packed weights before point p's; with p = points: of all. */
size_t lt_cpu_weights_before(const lt_cpu_pass *pass, int p);

/* Lines after the packed blocks of `flat` to lay out one cell in floats. */
size_t lt_cpu_cell_lines(const lt_cpu_pass *pass);
/* Columns are taken three blocks of 16 at a time, the width of a register tile; the last may be two or one.
 * Returns the first block of a panel, and its width in blocks. */
int lt_cpu_panels(int blocks);
int lt_cpu_panel(int blocks, int index, int *width);
/* Lines of an image's columns; see lt_cpu_kernels.shift. */
size_t lt_cpu_image_rows(const lt_cpu_pass *pass);

/* What a pass reads: x, or dz, which is dy where relu and pool let it through. */
typedef enum lt_cpu_kind { LT_CPU_PLAIN, LT_CPU_RELU, LT_CPU_POOL } lt_cpu_kind;

typedef struct lt_cpu_source {
    lt_cpu_kind kind;
    lt_dtype type;
    const void *data; /* x or dy */
    const void *y;    /* relu */
    const uint8_t *mask;
    int height, width, channels; /* of x or dz */
    int pooled_h, pooled_w;
} lt_cpu_source;

enum { LT_CPU_DEAD = 4 }; /* in a pool mask: relu killed the window */

/* Where a pass writes. */
typedef struct lt_cpu_result {
    void *data; /* y or dx */
    lt_dtype type;
    const float *bias;
    uint8_t *mask;
    int relu, pool, add;
    int height, width, channels; /* of data */
} lt_cpu_result;

/* A few chunks of the weight gradient, packed side by side for one stage. */
typedef struct lt_cpu_group {
    const char *left;  /* dz, [chunk] */
    const char *right; /* x, [chunk] */
    size_t left_bytes, right_bytes;
    int chunks;
    int cells[LT_CPU_GROUP]; /* of each chunk */
} lt_cpu_group;

/* The loops, once per instruction set. All pointers are to whole lines. */
typedef struct lt_cpu_kernels {
    const char *name;
    int block;
    int group;         /* chunks that a weight gradient packs at a time */
    size_t sums_bytes; /* of a weight gradient's sums that stay in cache besides */
    lt_dtype activation;
    /* One stage of a chunk's operand into lines. */
    void (*pack)(const lt_cpu_pass *pass, const lt_cpu_source *source, const lt_cpu_chunk *chunk, int stage,
                 void *in);
    /* Panel `panel` of the packed weights of all points. */
    void (*pack_weights)(const lt_cpu_pass *pass, const float *w, int panel, void *packed);
    /* The points of a stage: out = in * weights, where out has out_rows lines per block. `blocks` and
     * `offsets` are room for lists. */
    void (*multiply)(const lt_cpu_pass *pass, int stage, int cells, const void *in, const void *packed,
                     float *out, size_t out_rows, const void **blocks, size_t *offsets);
    void (*finish)(const lt_cpu_pass *pass, const lt_cpu_chunk *chunk, const float *out,
                   const lt_cpu_result *result);
    /* Weight gradient: one stage of either operand of a chunk, sums += left^T right for a stage of a group,
     * and dw += sums for filter k. pack_left adds the chunk's dz to db, 16 floats per block; or NULL. */
    void (*pack_left)(const lt_cpu_pass *pass, const lt_cpu_source *dz, const lt_cpu_chunk *chunk, int stage,
                      void *left, float *db);
    void (*pack_right)(const lt_cpu_pass *pass, const lt_cpu_source *x, const lt_cpu_chunk *chunk, int stage,
                       void *right);
    void (*correlate)(const lt_cpu_pass *pass, const lt_cpu_group *group, int stage, float *sums,
                      size_t *offsets);
    void (*reduce)(const lt_cpu_pass *pass, const float *sums, int k, float *dw);
    /* Shifted sums of an image's columns: y, and with `target` the squared error and dy. */
    double (*shift)(const lt_cpu_pass *pass, const float *out, const lt_cpu_result *result, int image,
                    const float *target, double scale, void *dy);
    /* Multiplies and adds in registers for `rounds` rounds. Returns the operations done. */
    double (*spin)(int rounds, float *result);
} lt_cpu_kernels;

typedef struct lt_cpu {
    lt_host host; /* first */
    const lt_cpu_kernels *kernels;
    int threads;
    lt_cpu_pool *pool; /* the threads but the caller's; NULL: there are none */
} lt_cpu;

extern const lt_backend_type lt_backend_cpu;

/* Rounded to the nearest bf16, ties to even; a NaN stays one. */
static inline uint16_t lt_cpu_bf16(float value) {
    union {
        float f;
        uint32_t u;
    } bits = {value};
    if ((bits.u & 0x7FFFFFFFu) > 0x7F800000u) {
        return (uint16_t)(bits.u >> 16 | 0x40u);
    }
    return (uint16_t)((bits.u + 0x7FFFu + (bits.u >> 16 & 1)) >> 16);
}

/* isa.c */
extern const lt_cpu_kernels lt_cpu_kernels_plain, lt_cpu_kernels_avx2, lt_cpu_kernels_avx512,
    lt_cpu_kernels_amx, lt_cpu_kernels_emulated, lt_cpu_kernels_emulated_avx512;
typedef enum lt_cpu_isa { LT_CPU_ISA_PLAIN, LT_CPU_ISA_AVX2, LT_CPU_ISA_AVX512, LT_CPU_ISA_AMX } lt_cpu_isa;
lt_cpu_isa lt_cpu_isa_best(void);
const char *lt_cpu_isa_name(lt_cpu_isa isa);
latent_status lt_cpu_isa_choose(latent_context *ctx, const latent_engine_options *options,
                                const lt_cpu_kernels **kernels, const char **name);

/* threads.c */
int lt_cpu_cores(void); /* that this process may use */
typedef void (*lt_cpu_task_fn)(void *arg, int task, int thread);
/* Runs tasks 0 to count - 1 in any order on the backend's threads, and waits for them. */
void lt_cpu_parallel(const lt_cpu *cpu, int count, lt_cpu_task_fn run, void *arg);

/* conv.c */
void lt_cpu_conv_memory(const lt_cpu *cpu, const lt_conv *conv, int batch, int training, lt_op_memory *out);
latent_status lt_cpu_conv_prepare(latent_context *ctx, lt_backend *backend, const lt_conv_call *call);
latent_status lt_cpu_conv_forward(latent_context *ctx, lt_backend *backend, const lt_conv_call *call);
latent_status lt_cpu_conv_backward(latent_context *ctx, lt_backend *backend, const lt_conv_call *call);
/* ceiling.c */
latent_status lt_cpu_ceiling(latent_context *ctx, lt_backend *backend, lt_ceiling *out);
/* wgrad.c */
size_t lt_cpu_wgrad_scratch(const lt_cpu *cpu, const lt_conv *conv);
void lt_cpu_wgrad(const lt_cpu *cpu, const lt_conv_call *call, const lt_cpu_source *dz);

/* gemm.c */
latent_status lt_cpu_gemm_nt(latent_context *ctx, lt_backend *backend, size_t m, size_t n, size_t k,
                             const float *a, size_t lda, const float *b, size_t ldb, float *c, size_t ldc);
void lt_cpu_run(lt_backend *backend, int count, void (*run)(void *arg, int task, int thread), void *arg);
int lt_cpu_threads(const lt_backend *backend);

#endif
