/* conv.c: the conv's passes over the kernels: memory, packed weights, forward, input gradient.
 *
 * A task is a chunk: pack, multiply, finish, all in the thread's own part of the scratch, which is sized to
 * stay in its L2 cache. The form `columns` wants its neighbours, so there a task is an image.
 */
#include "backend/cpu/cpu.h"

#include <string.h>

static size_t round_line(size_t bytes) {
    return (bytes + LT_CPU_LINE - 1) / LT_CPU_LINE * LT_CPU_LINE;
}

/* One thread's scratch: packed operand, products, and the lists of blocks. */
typedef struct bench {
    void *in;
    float *out;
    const void **blocks;
    size_t *offsets;
} bench;

static size_t out_bytes(const lt_cpu_pass *pass) {
    size_t lines = pass->out_lines;
    if (pass->form == LT_CPU_COLUMNS && pass->role == LT_CPU_FORWARD) {
        lines = (size_t)pass->width_blocks * lt_cpu_image_rows(pass) + 1;
    }
    return lines * LT_CPU_LINE;
}

static size_t bench_bytes(const lt_cpu_pass *pass) {
    size_t lists = (size_t)pass->blocks_max * (sizeof(void *) + sizeof(size_t));
    return round_line(pass->in_lines * LT_CPU_LINE + out_bytes(pass) + lists);
}

static bench bench_at(const lt_cpu_pass *pass, void *scratch, int thread) {
    char *base = (char *)scratch + (size_t)thread * bench_bytes(pass);
    char *out = base + pass->in_lines * LT_CPU_LINE, *lists = out + out_bytes(pass);
    bench b = {base, (float *)(void *)out, (const void **)(void *)lists,
               (size_t *)(void *)(lists + (size_t)pass->blocks_max * sizeof(void *))};
    return b;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

void lt_cpu_conv_memory(const lt_cpu *cpu, const lt_conv *conv, int batch, int training, lt_op_memory *out) {
    lt_cpu_pass pass;
    int block = cpu->kernels->block;
    lt_cpu_pass_make(&pass, conv, LT_CPU_FORWARD, block);
    out->persist = round_line(pass.weight_bytes);
    out->scratch = (size_t)cpu->threads * bench_bytes(&pass) + round_line((size_t)batch * sizeof(double));
    if (training) {
        out->mask = conv->pool2 ? (size_t)batch * (size_t)conv->PH * (size_t)conv->PW * (size_t)conv->K : 0;
        lt_cpu_pass_make(&pass, conv, LT_CPU_DGRAD, block);
        out->persist += round_line(pass.weight_bytes);
        out->scratch = larger(out->scratch, (size_t)cpu->threads * bench_bytes(&pass));
        out->scratch = larger(out->scratch, lt_cpu_wgrad_scratch(cpu, conv));
    }
}

/* ---- Weights ----------------------------------------------------------------------------------- */

/* The panels of both passes, so that many threads find work. */
typedef struct prepare_job {
    const lt_cpu *cpu;
    lt_cpu_pass pass[2];
    void *packed[2];
    int panels; /* of the first pass */
    const float *w;
} prepare_job;

static void prepare_task(void *arg, int task, int thread) {
    const prepare_job *job = arg;
    int which = task >= job->panels;
    (void)thread;
    job->cpu->kernels->pack_weights(&job->pass[which], job->w, task - (which ? job->panels : 0),
                                    job->packed[which]);
}

latent_status lt_cpu_conv_prepare(latent_context *ctx, lt_backend *backend, const lt_conv_call *call) {
    const lt_cpu *cpu = (const lt_cpu *)backend;
    prepare_job job = {.cpu = cpu, .w = call->w};
    (void)ctx;
    lt_cpu_pass_make(&job.pass[0], call->conv, LT_CPU_FORWARD, cpu->kernels->block);
    job.packed[0] = call->persist;
    job.panels = lt_cpu_panels(job.pass[0].width_blocks);
    int tasks = job.panels;
    if (call->dx) { /* nobody asks a first layer for its input gradient */
        lt_cpu_pass_make(&job.pass[1], call->conv, LT_CPU_DGRAD, cpu->kernels->block);
        job.packed[1] = (char *)call->persist + round_line(job.pass[0].weight_bytes);
        tasks += lt_cpu_panels(job.pass[1].width_blocks);
    }
    lt_cpu_parallel(cpu, tasks, prepare_task, &job);
    return LATENT_OK;
}

/* ---- Forward and input gradient ---------------------------------------------------------------- */

typedef struct pass_job {
    const lt_cpu *cpu;
    lt_cpu_pass pass;
    int n;
    lt_cpu_source source;
    lt_cpu_result result;
    const void *packed;
    void *scratch;
    const lt_loss_call *loss;
    double *losses; /* per image */
} pass_job;

static void pass_task(void *arg, int task, int thread) {
    const pass_job *job = arg;
    const lt_cpu_kernels *kernels = job->cpu->kernels;
    bench b = bench_at(&job->pass, job->scratch, thread);
    lt_cpu_chunk chunk = lt_cpu_chunk_at(&job->pass, job->n, task);
    for (int stage = 0; stage < job->pass.stages; stage++) {
        kernels->pack(&job->pass, &job->source, &chunk, stage, b.in);
        kernels->multiply(&job->pass, stage, chunk.cells, b.in, job->packed, b.out, job->pass.out_rows,
                          b.blocks, b.offsets);
    }
    kernels->finish(&job->pass, &chunk, b.out, &job->result);
}

/* Few filters: the columns of a whole image, chunk by chunk, then their shifted sums. */
static void columns_task(void *arg, int task, int thread) {
    const pass_job *job = arg;
    const lt_cpu_pass *pass = &job->pass;
    const lt_cpu_kernels *kernels = job->cpu->kernels;
    bench b = bench_at(pass, job->scratch, thread);
    size_t rows = lt_cpu_image_rows(pass);
    lt_cpu_chunk chunk = {task, 1, 0, 1, 0, 1, 1};
    float *out = b.out;
    for (int y = 0; y < pass->grid_h; y += pass->chunk_rows) {
        for (int x = 0; x < pass->grid_w; x += pass->chunk_columns) {
            chunk.y = y;
            chunk.x = x;
            chunk.rows = pass->grid_h - y < pass->chunk_rows ? pass->grid_h - y : pass->chunk_rows;
            chunk.columns = pass->grid_w - x < pass->chunk_columns ? pass->grid_w - x : pass->chunk_columns;
            chunk.cells = chunk.rows * chunk.columns;
            kernels->pack(pass, &job->source, &chunk, 0, b.in);
            kernels->multiply(pass, 0, chunk.cells, b.in, job->packed, out, rows, b.blocks, b.offsets);
            out += (size_t)chunk.cells * 16;
        }
    }
    const lt_loss_call *loss = job->loss;
    double scale = loss ? 2 / ((double)loss->n * (double)loss->values) : 0;
    job->losses[task] = kernels->shift(pass, b.out, &job->result, task, loss ? loss->target : NULL, scale,
                                       loss ? loss->dy : NULL);
}

static void run_pass(pass_job *job) {
    if (job->pass.form == LT_CPU_COLUMNS && job->pass.role == LT_CPU_FORWARD) {
        lt_cpu_parallel(job->cpu, job->n, columns_task, job);
    } else {
        lt_cpu_parallel(job->cpu, lt_cpu_chunks(&job->pass, job->n), pass_task, job);
    }
}

latent_status lt_cpu_conv_forward(latent_context *ctx, lt_backend *backend, const lt_conv_call *call) {
    lt_cpu *cpu = (lt_cpu *)backend;
    const lt_conv *conv = call->conv;
    pass_job job = {.cpu = cpu, .n = call->n, .packed = call->persist, .loss = call->loss};
    lt_cpu_pass_make(&job.pass, conv, LT_CPU_FORWARD, cpu->kernels->block);
    job.source = (lt_cpu_source){.kind = LT_CPU_PLAIN,
                                 .type = call->x_type,
                                 .data = call->x,
                                 .height = conv->H,
                                 .width = conv->W,
                                 .channels = conv->C};
    job.result = (lt_cpu_result){.data = call->y,
                                 .type = cpu->host.base.activation,
                                 .bias = call->b,
                                 .mask = call->mask,
                                 .relu = conv->relu,
                                 .pool = conv->pool2,
                                 .height = conv->PH,
                                 .width = conv->PW,
                                 .channels = conv->K};
    job.losses = call->scratch;
    job.scratch = (char *)call->scratch + round_line((size_t)call->n * sizeof(double));
    run_pass(&job);
    if (!call->loss) {
        return LATENT_OK;
    }
    double sum = 0;
    for (int i = 0; i < call->n; i++) {
        sum += job.losses[i];
    }
    return lt_host_set_loss(ctx, &cpu->host, (float)(sum / ((double)call->n * (double)call->loss->values)));
}

latent_status lt_cpu_conv_backward(latent_context *ctx, lt_backend *backend, const lt_conv_call *call) {
    const lt_cpu *cpu = (const lt_cpu *)backend;
    const lt_conv *conv = call->conv;
    pass_job job = {.cpu = cpu, .n = call->n, .scratch = call->scratch};
    (void)ctx;
    job.source = (lt_cpu_source){.kind = conv->pool2  ? LT_CPU_POOL
                                         : conv->relu ? LT_CPU_RELU
                                                      : LT_CPU_PLAIN,
                                 .type = cpu->host.base.activation,
                                 .data = call->dy,
                                 .y = call->y,
                                 .mask = call->mask,
                                 .height = conv->OH,
                                 .width = conv->OW,
                                 .channels = conv->K,
                                 .pooled_h = conv->PH,
                                 .pooled_w = conv->PW};
    if (call->dx) {
        lt_cpu_pass_make(&job.pass, conv, LT_CPU_FORWARD, cpu->kernels->block);
        job.packed = (const char *)call->persist + round_line(job.pass.weight_bytes);
        lt_cpu_pass_make(&job.pass, conv, LT_CPU_DGRAD, cpu->kernels->block);
        job.result = (lt_cpu_result){.data = call->dx,
                                     .type = call->x_type,
                                     .add = call->dx_add,
                                     .height = conv->H,
                                     .width = conv->W,
                                     .channels = conv->C};
        run_pass(&job);
    }
    lt_cpu_wgrad(cpu, call, &job.source);
    return LATENT_OK;
}
