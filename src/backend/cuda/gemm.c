/* gemm.c: the generation `gemm`: im2col, and cuBLAS for the rest. The route that many projects end on.
 *
 * Against the tiled kernels it wins cuBLAS's inner loop and loses the memory: the matrix col repeats every
 * input R*S times, is written and read back, and at batch 64 takes hundreds of megabytes. So it is made for
 * a few images at a time. With M = n*OH*OW rows and T = R*S*C columns, all row-major:
 *     z[M][K] = col[M][T] w[K][T]^T      dw[K][T] += dz[M][K]^T col[M][T]      dcol[M][T] = dz[M][K] w[K][T]
 * cuBLAS counts by columns, so it sees every matrix transposed and the factors change places.
 */
#include "backend/cuda/generation.h"
#include "backend/cuda/libraries.h"

#ifdef LATENT_HAVE_CUBLAS

static const size_t col_limit = (size_t)256 << 20; /* bytes, unless one image needs more */

static size_t row_length(const lt_conv *conv) {
    return (size_t)conv->R * (size_t)conv->S * (size_t)conv->C;
}

static size_t image_rows(const lt_conv *conv) {
    return (size_t)conv->OH * (size_t)conv->OW;
}

/* Images per product. Depends on the shape alone, so that the sums' order does. */
static int images_at_once(const lt_conv *conv, int n) {
    size_t fit = col_limit / (image_rows(conv) * row_length(conv) * sizeof(float));
    return fit < 1 ? 1 : fit < (size_t)n ? (int)fit : n;
}

static int upsamples(lt_cuda *cuda, const lt_conv *conv) {
    (void)cuda;
    (void)conv;
    return 1; /* im2col reads through halved coordinates */
}

static const char *variant(lt_cuda *cuda, const lt_conv *conv, lt_pass pass) {
    (void)cuda;
    (void)conv;
    return pass == LT_FORWARD ? "im2col, cuBLAS sgemm" : "cuBLAS sgemm, col2im";
}

static void memory(lt_cuda *cuda, const lt_conv *conv, int batch, int training, size_t *persist,
                   size_t *scratch) {
    (void)cuda;
    (void)training;
    *persist = 0;
    *scratch = (size_t)images_at_once(conv, batch) * image_rows(conv) * row_length(conv) * sizeof(float);
}

/* C[m][n] = op(A) op(B) + beta C in cuBLAS's terms: by columns, with leading dimensions. */
typedef struct product {
    cublasOperation_t op_a, op_b;
    int m, n, k;
    const float *a;
    int lda;
    const float *b;
    int ldb;
    float beta;
    float *c;
    int ldc;
} product;

static latent_status multiply(latent_context *ctx, lt_cuda *cuda, const product *p) {
    const float one = 1;
    cublasStatus_t result = cuda->libraries->cublas.cublasSgemm_v2(
        cuda->libraries->cublas.handle, p->op_a, p->op_b, p->m, p->n, p->k, &one, p->a, p->lda, p->b, p->ldb,
        &p->beta, p->c, p->ldc);
    cuda->last_kernel = "cuBLAS sgemm";
    lt_cuda_mark_kernel(cuda, cuda->last_kernel);
    return result == CUBLAS_STATUS_SUCCESS
               ? LATENT_OK
               : lt_fail(ctx, LATENT_ERROR_DEVICE, "cublasSgemm of %d x %d x %d: %s", p->m, p->n, p->k,
                         cuda->libraries->cublas.cublasGetStatusString(result));
}

/* Calls `each` for every stretch of images that fits. */
static latent_status by_images(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call,
                               latent_status (*each)(latent_context *, lt_cuda *, const lt_core_call *)) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    size_t in = (size_t)conv->H * (size_t)conv->W * (size_t)conv->C;
    size_t out = image_rows(conv) * (size_t)conv->K;
    int stretch = images_at_once(conv, call->n);
    for (int first = 0; first < call->n && status == LATENT_OK; first += stretch) {
        lt_core_call part = *call;
        size_t at = (size_t)first;
        part.n = call->n - first < stretch ? call->n - first : stretch;
        part.u = call->u + at * in;
        part.z = call->z ? call->z + at * out : NULL;
        part.dz = call->dz ? call->dz + at * out : NULL;
        part.du = call->du ? call->du + at * in : NULL;
        status = each(ctx, cuda, &part);
    }
    return status;
}

static latent_status forward_part(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    int M = call->n * (int)image_rows(conv), T = (int)row_length(conv), K = conv->K;
    float *col = call->scratch;
    lt_launch_im2col(cuda->stream, *conv, call->n, call->u, col);
    LT_LAUNCHED("im2col");
    product p = {CUBLAS_OP_T, CUBLAS_OP_N, K, M, T, call->w, T, col, T, 0, call->z, K};
    LT_TRY(multiply(ctx, cuda, &p));
done:
    return status;
}

static latent_status weight_part(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    int M = call->n * (int)image_rows(conv), T = (int)row_length(conv), K = conv->K;
    float *col = call->scratch;
    lt_launch_im2col(cuda->stream, *conv, call->n, call->u, col);
    LT_LAUNCHED("im2col");
    product p = {CUBLAS_OP_N, CUBLAS_OP_T, T, K, M, col, T, call->dz, K, 1, call->dw, T};
    LT_TRY(multiply(ctx, cuda, &p));
done:
    return status;
}

static latent_status input_part(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    int M = call->n * (int)image_rows(conv), T = (int)row_length(conv), K = conv->K;
    float *dcol = call->scratch;
    product p = {CUBLAS_OP_N, CUBLAS_OP_N, T, M, K, call->w, T, call->dz, K, 0, dcol, T};
    LT_TRY(multiply(ctx, cuda, &p));
    lt_launch_col2im(cuda->stream, *conv, call->n, dcol, call->du, call->add);
    LT_LAUNCHED("col2im");
done:
    return status;
}

static latent_status forward(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    return by_images(ctx, cuda, call, forward_part);
}

static latent_status weight_gradient(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    return by_images(ctx, cuda, call, weight_part);
}

static latent_status input_gradient(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    return by_images(ctx, cuda, call, input_part);
}

latent_status lt_gemm_open(latent_context *ctx, lt_cuda *cuda) {
    return lt_libraries_cublas(ctx, cuda);
}

const lt_core lt_core_gemm = {
    .name = "gemm",
    .epilogue = LT_CORE_PLAIN,
    .upsamples = upsamples,
    .variant = variant,
    .memory = memory,
    .forward = forward,
    .weight_gradient = weight_gradient,
    .input_gradient = input_gradient,
};

#else
typedef int lt_no_cublas; /* a file has a declaration */
#endif
