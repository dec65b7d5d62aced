/* cuda.h: the opened backend, as the host files of this folder share it.
 *
 * One compute stream carries everything in the order of the calls; a second one carries copies of images
 * that are streamed from the host. Whatever a kernel needs to know about the step it reads from
 * lt_cuda_state in device memory; the host keeps a shadow of the table and the cursor, because streaming
 * has to know which images come next.
 */
#ifndef LT_BACKEND_CUDA_CUDA_H
#define LT_BACKEND_CUDA_CUDA_H

#include "backend/backend.h"
#include "backend/cuda/kernels.h"

typedef struct lt_generation lt_generation;
typedef struct lt_libraries lt_libraries;

/* What one kernel took within one slot. */
typedef struct lt_cuda_kernel_time {
    const char *kernel; /* a literal; NULL: work that was launched by a library */
    int slot;
    double seconds;
} lt_cuda_kernel_time;

enum { LT_CUDA_KERNELS_MAX = 512 };

/* profile.c: every launch and every mark is an event; their distances are booked when the ring is nearly full
 * or the profile is read. */
typedef struct lt_cuda_profile {
    int on;
    int slots;
    double *seconds;
    cudaEvent_t *events; /* events[0] is where the first booked stretch begins */
    int *slot_of;        /* of the stretch that ends at the event; -1: the next mark tells */
    const char **kernel_of;
    int marked;        /* events recorded so far */
    cudaError_t error; /* the first that a mark ran into; told by profile_read */
    lt_cuda_kernel_time kernels[LT_CUDA_KERNELS_MAX];
    int kernel_count;
} lt_cuda_profile;

typedef struct lt_cuda {
    lt_backend base;
    int device;
    char name[96];       /* "NVIDIA H200" */
    cudaStream_t stream; /* everything */
    cudaStream_t copies; /* streamed images */
    const lt_generation *generation;
    lt_libraries *libraries; /* cuBLAS and cuDNN, opened when a generation wants them */
    int stream_data;         /* data sets stay on the host */

    lt_cuda_state *state; /* in device memory */
    lt_step *steps;       /* in device memory, room for `capacity` */
    float *losses;
    int capacity;
    lt_step *host_steps;  /* the table once more */
    lt_cuda_shown *shown; /* in pinned memory, room for `capacity` */
    int step_count;
    int cursor; /* where the device's cursor will be when everything issued so far is done */
    int table;  /* counts steps_begin: which table a staged batch belongs to */

    unsigned long long *bad_row; /* in device memory, or NULL: for rows.c */

    int capturing;
    int captured_steps;      /* step_next calls recorded in the capture under way */
    const char *last_kernel; /* the latest launch: the best hint when an error comes late */
    lt_cuda_profile profile;
} lt_cuda;

/* Fail with the CUDA message, the call or kernel and its place. Both clear the runtime's last error. */
latent_status lt_cuda_fail(latent_context *ctx, const lt_cuda *cuda, cudaError_t error, const char *call,
                           const char *file, int line);
latent_status lt_cuda_launch_fail(latent_context *ctx, cudaError_t error, const char *kernel,
                                  const char *file, int line);

/* Leave for `done:` when a runtime call failed, or when the launch just made was refused. They want locals
 * `ctx`, `cuda` and `status`. */
#define LT_CUDA(call)                                                                                        \
    do {                                                                                                     \
        cudaError_t error_ = (call);                                                                         \
        if (error_ != cudaSuccess) {                                                                         \
            status = lt_cuda_fail(ctx, cuda, error_, #call, __FILE__, __LINE__);                             \
            goto done;                                                                                       \
        }                                                                                                    \
    } while (0)
#define LT_LAUNCHED(kernel)                                                                                  \
    do {                                                                                                     \
        cudaError_t error_ = cudaGetLastError();                                                             \
        cuda->last_kernel = (kernel);                                                                        \
        lt_cuda_mark_kernel(cuda, kernel);                                                                   \
        if (error_ != cudaSuccess) {                                                                         \
            status = lt_cuda_launch_fail(ctx, error_, kernel, __FILE__, __LINE__);                           \
            goto done;                                                                                       \
        }                                                                                                    \
    } while (0)

/* profile.c: books the time since the last event to a kernel, while profiling. */
void lt_cuda_mark_kernel(lt_cuda *cuda, const char *kernel);

/* Bytes, rounded up so that the next tensor starts aligned. */
static inline size_t lt_cuda_round(size_t bytes) {
    return (bytes + LT_ALIGN - 1) / LT_ALIGN * LT_ALIGN;
}

/* device.c */
int lt_cuda_probe(char *detail, size_t size);
latent_status lt_cuda_device_open(latent_context *ctx, lt_cuda *cuda, int device);
void lt_cuda_device_close(lt_cuda *cuda);
/* Makes the backend's device the calling thread's. */
latent_status lt_cuda_device_use(latent_context *ctx, lt_cuda *cuda);

/* memory.c */
latent_status lt_cuda_alloc(latent_context *ctx, lt_backend *backend, size_t bytes, void **out);
void lt_cuda_free(lt_backend *backend, void *memory);
uint64_t lt_cuda_memory_free(lt_backend *backend);
latent_status lt_cuda_zero(latent_context *ctx, lt_backend *backend, void *memory, size_t bytes);
latent_status lt_cuda_upload(latent_context *ctx, lt_backend *backend, void *to, const void *from,
                             size_t bytes);
latent_status lt_cuda_download(latent_context *ctx, lt_backend *backend, void *to, const void *from,
                               size_t bytes);
latent_status lt_cuda_synchronize(latent_context *ctx, lt_backend *backend);

/* data.c */
latent_status lt_cuda_data_load(latent_context *ctx, lt_backend *backend, const uint8_t *images, int count,
                                size_t image_bytes, lt_backend_data **out);
void lt_cuda_data_free(lt_backend *backend, lt_backend_data *data);
uint64_t lt_cuda_data_bytes(const lt_backend_data *data);
int lt_cuda_data_streams(const lt_backend_data *data);
latent_status lt_cuda_gather(latent_context *ctx, lt_backend *backend, const lt_gather_call *call);

/* steps.c */
latent_status lt_cuda_steps_begin(latent_context *ctx, lt_backend *backend, const lt_step *steps, int count);
latent_status lt_cuda_step_next(latent_context *ctx, lt_backend *backend);
latent_status lt_cuda_losses_read(latent_context *ctx, lt_backend *backend, int first, int count, float *out,
                                  int *bad_step);
latent_status lt_cuda_losses_poll(latent_context *ctx, lt_backend *backend, int first, float *out, int *count,
                                  int *bad_step);
void lt_cuda_steps_close(lt_cuda *cuda);
/* Fails when there is no step at the cursor. */
latent_status lt_cuda_step_check(latent_context *ctx, const lt_cuda *cuda);

extern const lt_rows_ops lt_cuda_rows_ops; /* rows.c */

/* graph.c */
latent_status lt_cuda_graph_begin(latent_context *ctx, lt_backend *backend);
latent_status lt_cuda_graph_end(latent_context *ctx, lt_backend *backend, void **graph);
latent_status lt_cuda_graph_launch(latent_context *ctx, lt_backend *backend, void *graph);
void lt_cuda_graph_free(lt_backend *backend, void *graph);

/* ceiling.c */
latent_status lt_cuda_ceiling(latent_context *ctx, lt_backend *backend, lt_ceiling *out);

/* profile.c */
latent_status lt_cuda_profile_start(latent_context *ctx, lt_backend *backend, int slots);
void lt_cuda_mark(lt_backend *backend, int slot);
latent_status lt_cuda_profile_read(latent_context *ctx, lt_backend *backend, double *seconds, int slots);
const char *lt_cuda_kernel_time_at(lt_backend *backend, int index, int *slot, double *seconds);
void lt_cuda_profile_close(lt_cuda *cuda);
/* A named range for Nsight around launches, named as the profile names them: the op and "forward" or
 * "backward", or the name alone (pass ""). Nothing while profiling is off. */
void lt_cuda_range_begin(lt_cuda *cuda, const char *name, const char *pass);
void lt_cuda_range_end(lt_cuda *cuda);

#endif
