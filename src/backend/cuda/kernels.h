/* kernels.h: the launchers of every kernel, the one border between the host's C and the device code.
 *
 * A launcher chooses the grid, launches on the stream and returns; it checks nothing. The host follows each
 * with LT_LAUNCHED, which turns a refused launch into a sentence. Pointers are device memory. Where a
 * launcher takes `add`, it adds to what is there instead of writing. The header is the subset that C and
 * C++ share.
 */
#ifndef LT_BACKEND_CUDA_KERNELS_H
#define LT_BACKEND_CUDA_KERNELS_H

#include "backend/backend.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Steps ------------------------------------------------------------------------------------- */

/* What kernels read of the step table. It lives at one place in device memory for as long as the backend
 * does, so that a captured graph finds a new table as well as the old one. */
typedef struct lt_cuda_state {
    const lt_step *steps;
    float *losses;
    int cursor;
    int bad_step; /* the first, or LT_NO_BAD_STEP */
    struct lt_cuda_shown *shown;
} lt_cuda_state;

/* How far the device is, in pinned memory of the host, which looks at it without asking. */
typedef struct lt_cuda_shown {
    int steps; /* done; written after everything that it stands for */
    int bad_step;
    float losses[]; /* of the steps done */
} lt_cuda_shown;

enum { LT_NO_BAD_STEP = 0x7FFFFFFF };

/* Moves the cursor and shows the host the step that is done. */
void lt_launch_step_next(cudaStream_t stream, lt_cuda_state *state);
/* Does this build hold code for the current device? cudaErrorNoKernelImageForDevice: no. */
cudaError_t lt_cuda_code_check(void);

/* ---- Data, loss, optimizer --------------------------------------------------------------------- */

/* Where a batch's images are: all of them resident, or the batch itself in one of two slots, by the step's
 * parity. */
typedef struct lt_gather_source {
    const uint8_t *images;       /* [count][image_bytes], or NULL: streamed */
    const uint8_t *const *slots; /* [2] in device memory */
} lt_gather_source;

void lt_launch_gather(cudaStream_t stream, const lt_cuda_state *state, lt_gather_source source,
                      int image_bytes, const lt_gather_call *call);

/* dy = 2 (y - target) / count, and partial sums of (y - target)^2, lt_loss_blocks(count) of them. */
enum { LT_LOSS_BLOCKS_MAX = 512, LT_LOSS_THREADS = 256 };
static inline int lt_loss_blocks(size_t count) {
    size_t blocks = (count + 4 * LT_LOSS_THREADS - 1) / (4 * LT_LOSS_THREADS);
    return blocks > LT_LOSS_BLOCKS_MAX ? LT_LOSS_BLOCKS_MAX : (int)blocks;
}
void lt_launch_loss(cudaStream_t stream, lt_dtype type, const void *y, const float *target, void *dy,
                    size_t count, double *partials);
/* The loss of the step at the cursor = sum of the partials / count. */
void lt_launch_loss_finish(cudaStream_t stream, const lt_cuda_state *state, const double *partials,
                           int partial_count, size_t count);

void lt_launch_optimizer(cudaStream_t stream, lt_cuda_state *state, const lt_optimizer_call *call);

/* ---- Stages that are kernels of their own where nothing is fused (stages.cu) ----------------------- */

/* The mask, one byte per output of the op: which of its window's four values the gradient goes to, in row
 * order (0 where there is no pool), or LT_DEAD where relu let nothing through. */
enum { LT_DEAD = 4 };

/* u = x with every pixel doubled in both directions, and the way back: dx = sums over 2x2 of du. */
void lt_launch_upsample(cudaStream_t stream, int n, int H, int W, int C, const float *x, float *u);
void lt_launch_upsample_back(cudaStream_t stream, int n, int H, int W, int C, const float *du, float *dx,
                             int add);
/* a = max(z, 0), in place; mask (unless NULL): live or dead. */
void lt_launch_relu(cudaStream_t stream, float *z, uint8_t *mask, size_t count);
/* y = 2x2 maxima of a; mask as above. */
void lt_launch_pool(cudaStream_t stream, lt_conv conv, int n, const float *a, float *y, uint8_t *mask);
/* y = pool2(relu(z + b)) in one pass, as far as the conv has them; in place without pool2. b may be NULL. */
void lt_launch_finish(cudaStream_t stream, lt_conv conv, int n, const float *z, const float *b, float *y,
                      uint8_t *mask);
/* dz = dy back through pool2 and relu: everything but what the mask lets through is 0. */
void lt_launch_expand(cudaStream_t stream, lt_conv conv, int n, const float *dy, const uint8_t *mask,
                      float *dz);

/* out[i] += partials[0][i] + partials[1][i] + ...: the second half of every split sum, in fixed order. */
void lt_launch_sum(cudaStream_t stream, const float *partials, int splits, size_t count, float *out);
/* Sums of dz over pixels: partials[LT_BIAS_SPLITS][K]. */
enum { LT_BIAS_SPLITS = 256 };
void lt_launch_bias_partials(cudaStream_t stream, const float *dz, size_t pixels, int K, float *partials);

/* ---- Rows of features (rows.cu) ------------------------------------------------------------------ */

void lt_launch_rows_gather(cudaStream_t stream, lt_dtype type, const lt_rows_gather_call *call);
void lt_launch_rows_columns(cudaStream_t stream, const lt_rows_columns_call *call);
/* *bad: the first row that is not finite, if it is before what is there. */
void lt_launch_rows_finish(cudaStream_t stream, const lt_rows_finish_call *call, unsigned long long *bad);

/* ---- Ceiling ----------------------------------------------------------------------------------- */

/* Returns the operations of the launch; out has room for lt_multiply_add_values(blocks). */
double lt_launch_multiply_add(cudaStream_t stream, int blocks, int rounds, float *out);
size_t lt_multiply_add_values(int blocks);

/* ---- basic ------------------------------------------------------------------------------------- */

enum { LT_BASIC_SPLITS = 16 };
void lt_launch_basic_transpose(cudaStream_t stream, int K, int taps, const float *w, float *wt);
void lt_launch_basic_forward(cudaStream_t stream, lt_conv conv, int n, const float *u, const float *wt,
                             const float *b, float *z);
void lt_launch_basic_input_gradient(cudaStream_t stream, lt_conv conv, int n, const float *dz, const float *w,
                                    float *du, int add);
void lt_launch_basic_weight_gradient(cudaStream_t stream, lt_conv conv, int n, const float *u,
                                     const float *dz, float *partials);

/* ---- gemm and cudnn ---------------------------------------------------------------------------- */

void lt_launch_im2col(cudaStream_t stream, lt_conv conv, int n, const float *x, float *col);
void lt_launch_col2im(cudaStream_t stream, lt_conv conv, int n, const float *dcol, float *dx, int add);
/* Is it an upsample and a conv that equal a transposed conv of stride 2 (k4s2.cuh)? */
static inline int lt_is_k4s2(const lt_conv *conv) {
    return conv->up2 && conv->R == 3 && conv->S == 3 && conv->stride == 1 && conv->pad_top == 1 &&
           conv->pad_bottom == 1 && conv->pad_left == 1 && conv->pad_right == 1;
}
/* packed and gradient: [C][4][4][K] */
void lt_launch_k4s2_pack(cudaStream_t stream, int K, int C, const float *w, float *packed);
void lt_launch_k4s2_unpack(cudaStream_t stream, int K, int C, const float *gradient, float *dw);

/* ---- tiled ------------------------------------------------------------------------------------- */

/* z = relu(conv(u) + b); b and mask may be NULL. */
void lt_launch_tiled_forward(cudaStream_t stream, lt_conv conv, int n, const float *u, const float *w,
                             const float *b, float *z, uint8_t *mask);
void lt_launch_tiled_input_gradient(cudaStream_t stream, lt_conv conv, int n, const float *dz, const float *w,
                                    float *du, int add);
/* partials[lt_tiled_splits(conv)][K*R*S*C] */
int lt_tiled_splits(const lt_conv *conv);
void lt_launch_tiled_weight_gradient(cudaStream_t stream, lt_conv conv, int n, const float *u,
                                     const float *dz, float *partials);

#ifdef __cplusplus
}
#endif
#endif
