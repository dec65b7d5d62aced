/* svm_device.h: a backend with a memory of its own, for tests without a GPU: the host's support vector
 * machines behind a table that counts. What alloc() gives cannot be touched but by the table's own entries:
 * whoever reads it elsewhere crashes. Memory, the kernel matrix and the machine can be refused.
 */
#ifndef SVM_DEVICE_H
#define SVM_DEVICE_H

#include "svm/host.h"
#include "svm_sets.h"

#include <sys/mman.h>

enum { DEVICE_BLOCKS = 4 };

typedef struct device {
    lt_backend_type type; /* first: the way back from a backend */
    const lt_backend_type *real;
    lt_svm_ops ops;
    void *blocks[DEVICE_BLOCKS];
    size_t bytes[DEVICE_BLOCKS];
    int live;        /* blocks that were not freed */
    int closed;      /* times that the backend was closed */
    size_t uploaded; /* bytes */
    int from_host;   /* passes over rows of the host: on a real device each one sends them all */
    uint64_t memory; /* that is said to be free */
    int no_memory, no_upload, no_matrix, no_machine;
    int interrupt; /* in the middle of an upload */
} device;

static inline device *device_of(const lt_backend *backend) {
    return (device *)(uintptr_t)backend->type;
}

static inline void device_open(const device *d, int protection) {
    for (int i = 0; i < DEVICE_BLOCKS; i++) {
        assert_true(!d->blocks[i] || mprotect(d->blocks[i], d->bytes[i], protection) == 0);
    }
}

static inline latent_status device_alloc(latent_context *ctx, lt_backend *backend, size_t bytes, void **out) {
    device *d = device_of(backend);
    int place = 0;
    *out = NULL;
    if (d->no_memory) {
        return lt_fail(ctx, LATENT_ERROR_MEMORY, "the device is out of memory");
    }
    while (d->blocks[place]) {
        assert_true(++place < DEVICE_BLOCKS);
    }
    *out = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(*out != MAP_FAILED);
    d->blocks[place] = *out;
    d->bytes[place] = bytes;
    d->live++;
    return LATENT_OK;
}

static inline void device_free(lt_backend *backend, void *memory) {
    device *d = device_of(backend);
    for (int i = 0; memory && i < DEVICE_BLOCKS; i++) {
        if (d->blocks[i] == memory) {
            munmap(memory, d->bytes[i]);
            d->blocks[i] = NULL;
            d->live--;
            return;
        }
    }
    assert_null(memory);
}

static inline uint64_t device_memory(lt_backend *backend) {
    return device_of(backend)->memory;
}

static inline latent_status device_upload(latent_context *ctx, lt_backend *backend, void *to,
                                          const void *from, size_t bytes) {
    device *d = device_of(backend);
    if (d->no_upload) {
        return lt_fail(ctx, LATENT_ERROR_DEVICE, "the device fell off the bus");
    }
    device_open(d, PROT_READ | PROT_WRITE);
    memcpy(to, from, bytes);
    device_open(d, PROT_NONE);
    d->uploaded += bytes;
    ctx->interrupted = d->interrupt;
    return LATENT_OK;
}

static inline latent_status device_download(latent_context *ctx, lt_backend *backend, void *to,
                                            const void *from, size_t bytes) {
    (void)ctx;
    device_open(device_of(backend), PROT_READ);
    memcpy(to, from, bytes);
    device_open(device_of(backend), PROT_NONE);
    return LATENT_OK;
}

static inline latent_status device_statistics(latent_context *ctx, lt_backend *backend,
                                              const lt_svm_rows *rows, float *mean, lt_svm_statistics *out) {
    device *d = device_of(backend);
    d->from_host += !rows->on_backend;
    device_open(d, PROT_READ);
    latent_status status = lt_svm_host_ops.statistics(ctx, backend, rows, mean, out);
    device_open(d, PROT_NONE);
    return status;
}

static inline latent_status device_matrix(latent_context *ctx, lt_backend *backend,
                                          const lt_svm_matrix_call *call, lt_svm_matrix **out) {
    device *d = device_of(backend);
    *out = NULL;
    if (d->no_matrix) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "the device cannot hold the kernel matrix");
    }
    d->from_host += !call->rows.on_backend;
    device_open(d, PROT_READ);
    latent_status status = lt_svm_host_ops.matrix_create(ctx, backend, call, out);
    device_open(d, PROT_NONE);
    return status;
}

static inline latent_status device_machine(latent_context *ctx, lt_backend *backend,
                                           const lt_svm_machine_call *call, lt_svm_machine **out) {
    device *d = device_of(backend);
    *out = NULL;
    if (d->no_machine) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "the device cannot hold the vectors");
    }
    d->from_host += !call->vectors.on_backend;
    device_open(d, PROT_READ);
    latent_status status = lt_svm_host_ops.machine_create(ctx, backend, call, out);
    device_open(d, PROT_NONE);
    return status;
}

static inline void device_close(lt_backend *backend) {
    device *d = device_of(backend);
    assert_int_equal(d->live, 0);
    d->closed++;
    backend->type = d->real;
    d->real->close(backend);
}

/* `d` must outlive the engine. */
static inline lt_svm_engine device_make(latent_context *ctx, device *d) {
    lt_svm_engine engine = {0};
    memset(d, 0, sizeof *d);
    assert_int_equal(lt_backend_open(ctx, SVM_HOST, &engine.backend), LATENT_OK);
    d->real = engine.backend->type;
    d->memory = UINT64_MAX;
    d->ops = lt_svm_host_ops;
    d->ops.statistics = device_statistics;
    d->ops.matrix_create = device_matrix;
    d->ops.machine_create = device_machine;
    d->type = *d->real;
    d->type.host_memory = 0;
    d->type.alloc = device_alloc;
    d->type.free = device_free;
    d->type.memory_free = device_memory;
    d->type.upload = device_upload;
    d->type.download = device_download;
    d->type.close = device_close;
    d->type.svm = &d->ops;
    engine.backend->type = &d->type;
    engine.ops = &d->ops;
    return engine;
}

#endif
