/* wgrad.c: the weight gradient, a sum over all cells of all images.
 *
 * A task owns a part of the sums (a stage of the points, some channels, some filters) and walks the whole
 * batch for it, a few chunks at a time: packs both operands, multiplies, adds. What it packs stays in its
 * cache, nothing is shared, and every sum is one chain of additions from the first cell to the last: how
 * the work is cut changes no bit. The bias gradient is summed on the way, chunk by chunk, then in double.
 *
 * Where a layer is thin (few channels or few filters) there is little to cut, and each part would pack the
 * other operand again. There the batch is cut instead, into SLICES slices whatever the number of threads;
 * each has sums of its own, added up in order afterwards.
 */
#include "backend/cpu/cpu.h"

#include <string.h>

enum {
    FILTERS = 8, /* per task of the last step */
    SLICES = 16,
    MERGE = 4096
}; /* floats per task that adds up slices */

static size_t round_line(size_t bytes) {
    return (bytes + LT_CPU_LINE - 1) / LT_CPU_LINE * LT_CPU_LINE;
}

static int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}

/* How the sums are cut, and where everything lies in the scratch. */
typedef struct cuts {
    lt_cpu_pass whole;
    int depth_parts, width_parts;   /* of channels and of filters */
    int depth_step, width_step;     /* blocks in each */
    int slices;                     /* of the batch */
    size_t left_bytes, right_bytes; /* of one chunk */
    size_t chunk_db, lists;         /* of one thread, after its chunks */
    size_t part_bytes, slice_bytes; /* sums of one part, of all parts of a slice */
    size_t thread_bytes, threads, sums, db, total;
} cuts;

static void part_pass(const cuts *c, int part, lt_cpu_pass *pass) {
    int d = part % c->depth_parts * c->depth_step, w = part / c->depth_parts * c->width_step;
    int depth = c->whole.depth_blocks - d, width = c->whole.width_blocks - w;
    *pass = c->whole;
    lt_cpu_pass_part(pass, d, depth < c->depth_step ? depth : c->depth_step, w,
                     width < c->width_step ? width : c->width_step);
}

/* Halves the longer side until a stage's sums stay in the L2 cache and every thread has a task. The other
 * operand is packed again for each part, which is why it is the shorter one. */
static void choose_cuts(const lt_cpu *cpu, cuts *c) {
    const lt_cpu_pass *whole = &c->whole;
    int can_depth = whole->form != LT_CPU_FLAT, can_width = whole->form != LT_CPU_COLUMNS;
    c->slices = whole->form == LT_CPU_FLAT || whole->form == LT_CPU_COLUMNS ? SLICES : 1;
    c->depth_parts = c->width_parts = 1;
    c->depth_step = whole->depth_blocks;
    c->width_step = whole->width_blocks;
    for (;;) {
        int parts = c->depth_parts * c->width_parts;
        int small = whole->weight_bytes / (size_t)(parts * whole->stages) <= cpu->kernels->sums_bytes;
        int depth = can_depth && c->depth_step > 1 ? c->depth_step * whole->block : 0;
        int width = can_width && c->width_step > 1 ? c->width_step * 16 : 0;
        if ((small && parts * whole->stages * c->slices >= cpu->threads) || (!depth && !width)) {
            break;
        }
        int *step = depth >= width ? &c->depth_step : &c->width_step;
        *step = ceil_div(*step, 2);
        c->depth_parts = ceil_div(whole->depth_blocks, c->depth_step);
        c->width_parts = ceil_div(whole->width_blocks, c->width_step);
    }
}

static void make_cuts(const lt_cpu *cpu, const lt_conv *conv, cuts *c) {
    lt_cpu_pass part;
    memset(c, 0, sizeof *c);
    lt_cpu_pass_make(&c->whole, conv, LT_CPU_WGRAD, cpu->kernels->block);
    choose_cuts(cpu, c);
    part_pass(c, 0, &part); /* the first is as large as any */
    c->left_bytes = (size_t)part.stage_points * ((size_t)part.width_blocks * part.out_rows + 1) * LT_CPU_LINE;
    c->right_bytes = part.in_lines * LT_CPU_LINE;
    c->part_bytes = round_line(part.weight_bytes);
    c->chunk_db = (size_t)cpu->kernels->group * (c->left_bytes + c->right_bytes);
    c->lists = c->chunk_db + (size_t)part.width_blocks * 16 * sizeof(float);
    c->thread_bytes = round_line(c->lists + (size_t)part.blocks_max * sizeof(size_t));
    c->sums = (size_t)cpu->threads * c->thread_bytes;
    c->slice_bytes = (size_t)(c->depth_parts * c->width_parts) * c->part_bytes;
    c->db = c->sums + (size_t)c->slices * c->slice_bytes;
    c->total =
        c->db + (size_t)(c->slices * c->whole.stages) * (size_t)c->whole.width_blocks * 16 * sizeof(double);
}

size_t lt_cpu_wgrad_scratch(const lt_cpu *cpu, const lt_conv *conv) {
    cuts c;
    make_cuts(cpu, conv, &c);
    return c.total;
}

typedef struct wgrad_job {
    const lt_cpu *cpu;
    const lt_conv_call *call;
    const lt_cpu_source *dz;
    lt_cpu_source x;
    cuts c;
} wgrad_job;

/* Does this stage see a part of dz that no other counts? Phases are each one's own; of the stages of quads,
 * the second reads them whole. */
static int counts_db(const lt_cpu_pass *pass, int stage) {
    int quads = pass->form == LT_CPU_WINOGRAD || pass->form == LT_CPU_UPSAMPLE;
    return !quads || stage == 1;
}

static double *db_sums(const wgrad_job *job, int slice, int stage) {
    return (double *)(void *)((char *)job->call->scratch + job->c.db) +
           (size_t)(slice * job->c.whole.stages + stage) * (size_t)job->c.whole.width_blocks * 16;
}

/* Left operand of a chunk, and its share of db where this task is the one to count it. */
static void pack_left(const wgrad_job *job, const lt_cpu_pass *pass, const lt_cpu_chunk *chunk, int stage,
                      void *left, double *db, float *sums) {
    size_t count = (size_t)pass->width_blocks * 16;
    memset(sums, 0, count * sizeof *sums);
    job->cpu->kernels->pack_left(pass, job->dz, chunk, stage, left, db ? sums : NULL);
    for (size_t i = 0; db && i < count; i++) {
        db[i] += (double)sums[i];
    }
}

static void part_task(void *arg, int task, int thread) {
    const wgrad_job *job = arg;
    const cuts *c = &job->c;
    const lt_cpu_kernels *kernels = job->cpu->kernels;
    int parts = c->depth_parts * c->width_parts;
    int stage = task % c->whole.stages, index = task / c->whole.stages % parts;
    int slice = task / c->whole.stages / parts;
    char *scratch = job->call->scratch, *mine = scratch + (size_t)thread * c->thread_bytes;
    float *sums =
        (float *)(void *)(scratch + c->sums + (size_t)slice * c->slice_bytes + (size_t)index * c->part_bytes);
    lt_cpu_group group = {.left = mine, .right = mine + (size_t)kernels->group * c->left_bytes};
    lt_cpu_pass pass;
    part_pass(c, index, &pass);
    int first_point = stage * pass.stage_points;
    size_t before = lt_cpu_weights_before(&pass, first_point);
    memset(sums + before, 0,
           (lt_cpu_weights_before(&pass, first_point + pass.stage_points) - before) * sizeof(float));
    double *db = pass.depth_first == 0 && counts_db(&pass, stage)
                     ? db_sums(job, slice, stage) + (size_t)pass.width_first * 16
                     : NULL;
    for (int i = 0; db && i < pass.width_blocks * 16; i++) {
        db[i] = 0;
    }
    float *chunk_db = (float *)(void *)(mine + c->chunk_db);
    group.left_bytes = c->left_bytes;
    group.right_bytes = c->right_bytes;
    int chunks = lt_cpu_chunks(&pass, job->call->n);
    int begin = (int)((int64_t)chunks * slice / c->slices),
        end = (int)((int64_t)chunks * (slice + 1) / c->slices);
    for (int first = begin; first < end; first += group.chunks) {
        group.chunks = end - first < kernels->group ? end - first : kernels->group;
        for (int i = 0; i < group.chunks; i++) {
            lt_cpu_chunk chunk = lt_cpu_chunk_at(&pass, job->call->n, first + i);
            char *left = mine + (size_t)i * c->left_bytes;
            char *right = mine + (size_t)kernels->group * c->left_bytes + (size_t)i * c->right_bytes;
            group.cells[i] = chunk.cells;
            kernels->pack_right(&pass, &job->x, &chunk, stage, right);
            pack_left(job, &pass, &chunk, stage, left, db, chunk_db);
        }
        kernels->correlate(&pass, &group, stage, sums, (size_t *)(void *)(mine + c->lists));
    }
}

/* Adds the other slices' sums to the first one's, in order. */
static void merge_task(void *arg, int task, int thread) {
    const wgrad_job *job = arg;
    const cuts *c = &job->c;
    size_t count = c->slice_bytes / sizeof(float), begin = (size_t)task * MERGE;
    size_t end = begin + MERGE < count ? begin + MERGE : count;
    float *sums = (float *)(void *)((char *)job->call->scratch + c->sums);
    (void)thread;
    for (int slice = 1; slice < c->slices; slice++) {
        const float *other = sums + (size_t)slice * count;
        for (size_t i = begin; i < end; i++) {
            sums[i] += other[i];
        }
    }
}

/* dw and db of a few filters, from the parts that hold them. */
static void reduce_task(void *arg, int task, int thread) {
    const wgrad_job *job = arg;
    const cuts *c = &job->c;
    const lt_conv_call *call = job->call;
    const lt_conv *conv = call->conv;
    const char *sums = (const char *)call->scratch + c->sums;
    size_t filter = (size_t)conv->R * (size_t)conv->S * (size_t)conv->C;
    (void)thread;
    for (int k = task * FILTERS; k < (task + 1) * FILTERS && k < conv->K; k++) {
        int row = k / 16 / c->width_step;
        for (int i = 0; i < c->depth_parts; i++) {
            int part = row * c->depth_parts + i;
            lt_cpu_pass pass;
            part_pass(c, part, &pass);
            job->cpu->kernels->reduce(&pass,
                                      (const float *)(const void *)(sums + (size_t)part * c->part_bytes),
                                      k - pass.width_first * 16, call->dw + (size_t)k * filter);
        }
        double sum = 0;
        for (int i = 0; i < c->slices * c->whole.stages; i++) {
            int stage = i % c->whole.stages;
            sum += counts_db(&c->whole, stage) ? db_sums(job, i / c->whole.stages, stage)[k] : 0;
        }
        if (call->db) {
            call->db[k] = (float)((double)call->db[k] + sum);
        }
    }
}

void lt_cpu_wgrad(const lt_cpu *cpu, const lt_conv_call *call, const lt_cpu_source *dz) {
    const lt_conv *conv = call->conv;
    wgrad_job job = {.cpu = cpu, .call = call, .dz = dz};
    make_cuts(cpu, conv, &job.c);
    job.x = (lt_cpu_source){.kind = LT_CPU_PLAIN,
                            .type = call->x_type,
                            .data = call->x,
                            .height = conv->H,
                            .width = conv->W,
                            .channels = conv->C};
    int parts = job.c.depth_parts * job.c.width_parts;
    lt_cpu_parallel(cpu, parts * job.c.whole.stages * job.c.slices, part_task, &job);
    if (job.c.slices > 1) {
        lt_cpu_parallel(cpu, (int)((job.c.slice_bytes / sizeof(float) + MERGE - 1) / MERGE), merge_task,
                        &job);
    }
    lt_cpu_parallel(cpu, ceil_div(conv->K, FILTERS), reduce_task, &job);
}
