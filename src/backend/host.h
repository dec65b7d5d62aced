/* host.h: what every backend on the host shares: memory, the step table, losses, gather, time.
 *
 * A host backend embeds lt_host as its first member, so an lt_backend pointer of it is an lt_host pointer,
 * and the functions below with a contract's signature go straight into its lt_backend_type. Gather and
 * the optimizer are given as ranges that touch nothing outside themselves: the reference runs one range,
 * a threaded backend many, and the bits are the same.
 */
#ifndef LT_BACKEND_HOST_H
#define LT_BACKEND_HOST_H

#include "backend/backend.h"

typedef struct lt_host {
    lt_backend base;
    lt_step *steps; /* the table, copied */
    float *losses;  /* one per step of the table */
    int step_count;
    int cursor;
    int bad_step;    /* first bad step of the table; -1: none */
    double *seconds; /* per profile slot */
    int slots;
    int booking;   /* profiling is on */
    double marked; /* when the last mark was made */
} lt_host;

/* Refuses what only a GPU has: kernel generations, devices, data sets that are streamed. */
latent_status lt_host_check_options(latent_context *ctx, const lt_backend_type *type,
                                    const latent_engine_options *options);
/* Fills the shared part of a zeroed backend, and frees it again (not the backend itself). */
void lt_host_init(lt_host *host, const lt_backend_type *type);
void lt_host_release(lt_host *host);

latent_status lt_host_alloc(latent_context *ctx, lt_backend *backend, size_t bytes, void **out);
void lt_host_free(lt_backend *backend, void *memory);
latent_status lt_host_zero(latent_context *ctx, lt_backend *backend, void *memory, size_t bytes);
/* upload and download are the same copy here. */
latent_status lt_host_copy(latent_context *ctx, lt_backend *backend, void *to, const void *from,
                           size_t bytes);
latent_status lt_host_synchronize(latent_context *ctx, lt_backend *backend);

/* The images stay where the caller has them. */
latent_status lt_host_data_load(latent_context *ctx, lt_backend *backend, const uint8_t *images, int count,
                                size_t image_bytes, lt_backend_data **out);
void lt_host_data_free(lt_backend *backend, lt_backend_data *data);
uint64_t lt_host_data_bytes(const lt_backend_data *data);

/* Checks the call against the step at the cursor and the data, once; then ranges of the batch's images
 * [begin, end) may be gathered in any order. */
latent_status lt_host_gather_check(latent_context *ctx, const lt_host *host, const lt_gather_call *call);
void lt_host_gather_range(const lt_host *host, const lt_gather_call *call, int begin, int end);

/* One optimizer step over values [begin, end) of the block. Returns 1 when all gradients were finite. */
int lt_host_optimizer_range(const lt_optimizer_call *call, const lt_step *step, size_t begin, size_t end);
void lt_host_mark_bad(lt_host *host); /* the step at the cursor had a gradient that is not finite */

/* The record at the cursor; fails when the table has no more. */
latent_status lt_host_step(latent_context *ctx, const lt_host *host, const lt_step **out);
/* The loss of the step at the cursor. */
latent_status lt_host_set_loss(latent_context *ctx, lt_host *host, float loss);

latent_status lt_host_steps_begin(latent_context *ctx, lt_backend *backend, const lt_step *steps, int count);
latent_status lt_host_step_next(latent_context *ctx, lt_backend *backend);
latent_status lt_host_losses_read(latent_context *ctx, lt_backend *backend, int first, int count, float *out,
                                  int *bad_step);

extern const lt_rows_ops lt_host_rows_ops; /* host_rows.c */

latent_status lt_host_profile_start(latent_context *ctx, lt_backend *backend, int slots);
void lt_host_mark(lt_backend *backend, int slot);
latent_status lt_host_profile_read(latent_context *ctx, lt_backend *backend, double *seconds, int slots);

#endif
