/* rows.c: rows of features on the device: the host's side of rows.cu. */
#include "backend/cuda/cuda.h"

static latent_status gather(latent_context *ctx, lt_backend *backend, const lt_rows_gather_call *call) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    if (call->n > 0) {
        lt_launch_rows_gather(cuda->stream, backend->activation, call);
        LT_LAUNCHED("gather_rows");
    }
done:
    return status;
}

static latent_status columns(latent_context *ctx, lt_backend *backend, const lt_rows_columns_call *call) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    if (call->n > 0) {
        lt_launch_rows_columns(cuda->stream, call);
        LT_LAUNCHED("add_columns");
    }
done:
    return status;
}

static latent_status finish(latent_context *ctx, lt_backend *backend, const lt_rows_finish_call *call,
                            size_t *bad) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    unsigned long long first = call->n;
    if (!cuda->bad_row) {
        LT_TRY(lt_cuda_alloc(ctx, backend, sizeof first, (void **)&cuda->bad_row));
    }
    LT_TRY(lt_cuda_upload(ctx, backend, cuda->bad_row, &first, sizeof first));
    if (call->n > 0) {
        lt_launch_rows_finish(cuda->stream, call, cuda->bad_row);
        LT_LAUNCHED("finish_rows");
    }
    LT_TRY(lt_cuda_download(ctx, backend, &first, cuda->bad_row, sizeof first));
    *bad = (size_t)first;
done:
    return status;
}

const lt_rows_ops lt_cuda_rows_ops = {.gather = gather, .columns = columns, .finish = finish};
