/* cpu.c: the backend `cpu`: the contract's table, opening, and the ops that are not convs.
 *
 * What is the same for every backend on the host comes from backend/host.c; here its ranges are spread over
 * threads. Ranges and partial sums have fixed sizes, so the bits do not depend on the threads.
 */
#include "backend/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 1024, RANGE = 16384 /* values of an optimizer task */ };

static int cpu_probe(char *detail, size_t size) {
    int cores = lt_cpu_cores();
    snprintf(detail, size, "%s, %d %s", lt_cpu_isa_name(lt_cpu_isa_best()), cores,
             cores == 1 ? "thread" : "threads");
    return 1;
}

static latent_status check_options(latent_context *ctx, const latent_engine_options *options) {
    if (options->threads < 0 || options->threads > THREADS_MAX) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "%d threads cannot be used; it must be 1 to %d, or 0 for all", options->threads,
                       THREADS_MAX);
    }
    return lt_host_check_options(ctx, &lt_backend_cpu, options);
}

static latent_status cpu_open(latent_context *ctx, const latent_engine_options *options, lt_backend **out) {
    latent_status status = LATENT_OK;
    const lt_cpu_kernels *kernels = NULL;
    const char *isa = NULL;
    void *memory = NULL;
    *out = NULL;
    LT_TRY(check_options(ctx, options));
    LT_TRY(lt_cpu_isa_choose(ctx, options, &kernels, &isa));
    LT_TRY(lt_calloc(ctx, 1, sizeof(lt_cpu), "the backend", &memory));
    lt_cpu *cpu = memory;
    lt_host_init(&cpu->host, &lt_backend_cpu);
    cpu->kernels = kernels;
    cpu->threads = options->threads ? options->threads : lt_cpu_cores();
    cpu->pool = lt_cpu_pool_create(cpu->threads - 1);
    cpu->host.base.activation = kernels->activation;
    snprintf(cpu->host.base.engine, sizeof cpu->host.base.engine, "cpu, %s, %s, %d %s", isa,
             kernels->activation == LT_BF16 ? "bf16" : "fp32", cpu->threads,
             cpu->threads == 1 ? "thread" : "threads");
    *out = memory;
done:
    return status;
}

static void cpu_close(lt_backend *backend) {
    lt_cpu_pool_destroy(((lt_cpu *)backend)->pool);
    lt_host_release((lt_host *)backend);
    free(backend);
}

/* ---- Gather, loss, optimizer ------------------------------------------------------------------- */

typedef struct gather_job {
    const lt_host *host;
    const lt_gather_call *call;
} gather_job;

static void gather_task(void *arg, int task, int thread) {
    const gather_job *job = arg;
    (void)thread;
    lt_host_gather_range(job->host, job->call, task, task + 1);
}

static latent_status cpu_gather(latent_context *ctx, lt_backend *backend, const lt_gather_call *call) {
    gather_job job = {(const lt_host *)backend, call};
    latent_status status = lt_host_gather_check(ctx, job.host, call);
    if (status == LATENT_OK) {
        lt_cpu_parallel((const lt_cpu *)backend, call->n, gather_task, &job);
    }
    return status;
}

static float stored(const void *values, lt_dtype type, size_t at) {
    if (type == LT_F32) {
        return ((const float *)values)[at];
    }
    uint32_t bits = (uint32_t)((const uint16_t *)values)[at] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void store(void *values, lt_dtype type, size_t at, float value) {
    if (type == LT_F32) {
        ((float *)values)[at] = value;
    } else {
        ((uint16_t *)values)[at] = lt_cpu_bf16(value);
    }
}

typedef struct loss_job {
    const lt_loss_call *call;
    lt_dtype type;
    double *sums; /* per image */
} loss_job;

static void loss_task(void *arg, int task, int thread) {
    const loss_job *job = arg;
    const lt_loss_call *call = job->call;
    double scale = 2 / ((double)call->n * (double)call->values), sum = 0;
    size_t first = (size_t)task * call->values;
    (void)thread;
    for (size_t i = first; i < first + call->values; i++) {
        double difference = (double)stored(call->y, job->type, i) - (double)call->target[i];
        sum += difference * difference;
        if (call->dy) {
            store(call->dy, job->type, i, (float)(scale * difference));
        }
    }
    job->sums[task] = sum;
}

static latent_status cpu_loss_mse(latent_context *ctx, lt_backend *backend, const lt_loss_call *call) {
    loss_job job = {call, backend->activation, call->scratch};
    double sum = 0;
    lt_cpu_parallel((const lt_cpu *)backend, call->n, loss_task, &job);
    for (int i = 0; i < call->n; i++) {
        sum += job.sums[i];
    }
    return lt_host_set_loss(ctx, (lt_host *)backend, (float)(sum / ((double)call->n * (double)call->values)));
}

typedef struct optimizer_job {
    const lt_optimizer_call *call;
    const lt_step *step;
    int bad;
} optimizer_job;

static void optimizer_task(void *arg, int task, int thread) {
    optimizer_job *job = arg;
    size_t begin = (size_t)task * RANGE, end = begin + RANGE;
    (void)thread;
    if (!lt_host_optimizer_range(job->call, job->step, begin,
                                 end < job->call->count ? end : job->call->count)) {
        __atomic_store_n(&job->bad, 1, __ATOMIC_RELAXED);
    }
}

static latent_status cpu_optimizer(latent_context *ctx, lt_backend *backend, const lt_optimizer_call *call) {
    optimizer_job job = {call, NULL, 0};
    latent_status status = lt_host_step(ctx, (lt_host *)backend, &job.step);
    if (status == LATENT_OK) {
        lt_cpu_parallel((const lt_cpu *)backend, (int)((call->count + RANGE - 1) / RANGE), optimizer_task,
                        &job);
        if (job.bad) {
            lt_host_mark_bad((lt_host *)backend);
        }
    }
    return status;
}

/* ---- Ops --------------------------------------------------------------------------------------- */

static const char *const form_names[] = {"taps", "flat", "winograd", "upsample", "columns"};

static const char *cpu_op_variant(latent_context *ctx, lt_backend *backend, const lt_op *op, lt_pass pass) {
    const lt_cpu *cpu = (const lt_cpu *)backend;
    switch (op->kind) {
    case LT_OP_INPUT:
    case LT_OP_LOSS_MSE:
        return "plain";
    case LT_OP_CONV:
        return form_names[lt_cpu_choose(&op->conv, pass == LT_FORWARD ? LT_CPU_FORWARD : LT_CPU_WGRAD,
                                        cpu->kernels->block)];
    }
    lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "the backend 'cpu' does not know the op '%s'", op->name);
    return NULL;
}

static void cpu_op_memory(lt_backend *backend, const lt_op *op, lt_dtype x_type, int batch, int training,
                          lt_op_memory *out) {
    (void)x_type;
    memset(out, 0, sizeof *out);
    if (op->kind == LT_OP_CONV) {
        lt_cpu_conv_memory((const lt_cpu *)backend, &op->conv, batch, training, out);
    } else if (op->kind == LT_OP_LOSS_MSE) {
        out->scratch = (size_t)batch * sizeof(double);
    }
}

static int cpu_fuses_loss(lt_backend *backend, const lt_op *op) {
    const lt_cpu *cpu = (const lt_cpu *)backend;
    return op->kind == LT_OP_CONV &&
           lt_cpu_choose(&op->conv, LT_CPU_FORWARD, cpu->kernels->block) == LT_CPU_COLUMNS;
}

const lt_backend_type lt_backend_cpu = {
    .name = "cpu",
    .summary = "fast on x86-64: AMX, AVX-512, AVX2 or plain C, on all cores",
    .probe = cpu_probe,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = lt_host_alloc,
    .free = lt_host_free,
    .zero = lt_host_zero,
    .upload = lt_host_copy,
    .download = lt_host_copy,
    .synchronize = lt_host_synchronize,
    .data_load = lt_host_data_load,
    .data_free = lt_host_data_free,
    .data_bytes = lt_host_data_bytes,
    .gather = cpu_gather,
    .op_variant = cpu_op_variant,
    .op_memory = cpu_op_memory,
    .fuses_loss = cpu_fuses_loss,
    .conv_prepare = lt_cpu_conv_prepare,
    .conv_forward = lt_cpu_conv_forward,
    .conv_backward = lt_cpu_conv_backward,
    .loss_mse = cpu_loss_mse,
    .optimizer = cpu_optimizer,
    .steps_begin = lt_host_steps_begin,
    .step_next = lt_host_step_next,
    .losses_read = lt_host_losses_read,
    .profile_start = lt_host_profile_start,
    .mark = lt_host_mark,
    .profile_read = lt_host_profile_read,
    .ceiling = lt_cpu_ceiling,
    .gemm_nt = lt_cpu_gemm_nt,
    .parallel = lt_cpu_run,
    .threads = lt_cpu_threads,
    .host_memory = 1,
    .rows = &lt_host_rows_ops,
};
