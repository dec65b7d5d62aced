/* svm_product.c: operands, and their products through cuBLAS.
 *
 * cuBLAS counts by columns and so sees every matrix transposed: out[i][j] is element (j, i) of B A^T there.
 * All three precisions multiply with fp32 accumulation; `strict` is a product of three times the columns
 * (svm_kernels.h), so that the tensor cores do the work of fp32.
 */
#include "backend/cuda/libraries.h"
#include "backend/cuda/svm_cuda.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static size_t width_of(size_t d) {
    return (d + LT_CUDA_WIDTH - 1) / LT_CUDA_WIDTH * LT_CUDA_WIDTH;
}

static size_t parts_of(lt_svm_precision precision) {
    return precision == LT_SVM_STRICT ? 4 : 1;
}

static size_t size_of(lt_svm_precision precision) {
    return precision == LT_SVM_FP32 ? sizeof(float) : 2;
}

uint64_t lt_cuda_operand_bytes(lt_svm_precision precision, size_t n, size_t d) {
    uint64_t row = (uint64_t)width_of(d) * parts_of(precision) * size_of(precision) + sizeof(double), bytes;
    return __builtin_mul_overflow(row, (uint64_t)n, &bytes) ? UINT64_MAX / 4 : bytes;
}

latent_status lt_cuda_operand_create(latent_context *ctx, lt_cuda *cuda, lt_svm_precision precision, size_t n,
                                     size_t d, lt_cuda_operand *out) {
    latent_status status = LATENT_OK;
    memset(out, 0, sizeof *out);
    out->precision = precision;
    out->n = n;
    out->width = width_of(d);
    out->row = out->width * parts_of(precision);
    if (out->row > INT_MAX) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "rows of %zu features are too long for the products of the backend 'cuda'", d);
    }
    LT_TRY(lt_cuda_room(ctx, cuda, n, out->row * size_of(precision), &out->values));
    LT_TRY(lt_cuda_room(ctx, cuda, n, sizeof *out->unit, &out->unit));
done:
    return status;
}

void lt_cuda_operand_free(lt_cuda *cuda, lt_cuda_operand *operand) {
    lt_cuda_free(&cuda->base, operand->values);
    lt_cuda_free(&cuda->base, operand->unit);
    operand->values = NULL;
    operand->unit = NULL;
}

latent_status lt_cuda_places(latent_context *ctx, lt_cuda *cuda, const lt_svm_rows *rows,
                             const uint32_t *order, lt_svm_rows *rows_out, uint32_t **out) {
    latent_status status = LATENT_OK;
    uint32_t *place = NULL;
    size_t n = 0;
    *rows_out = *rows;
    *out = NULL;
    if (!order) {
        return LATENT_OK;
    }
    for (size_t i = 0; i < rows->n; i++) {
        n = order[i] >= n ? (size_t)order[i] + 1 : n;
    }
    rows_out->n = n;
    LT_TRY(lt_alloc(ctx, n * sizeof *place, "row numbers", (void **)&place));
    memset(place, 0xFF, n * sizeof *place); /* LT_CUDA_NOWHERE */
    for (size_t i = 0; i < rows->n; i++) {
        place[order[i]] = (uint32_t)i;
    }
    LT_TRY(lt_cuda_room(ctx, cuda, n, sizeof **out, out));
    LT_TRY(lt_cuda_upload(ctx, &cuda->base, *out, place, n * sizeof *place));
done:
    free(place);
    return status;
}

static latent_status convert_piece(latent_context *ctx, lt_cuda *cuda, const lt_cuda_piece *piece,
                                   void *user) {
    lt_cuda_convert convert = *(const lt_cuda_convert *)user;
    latent_status status = LATENT_OK;
    convert.x = piece->x;
    convert.first = piece->first;
    convert.count = piece->count;
    lt_launch_svm_convert(cuda->stream, &convert);
    LT_LAUNCHED("svm_convert");
done:
    return status;
}

latent_status lt_cuda_operand_fill(latent_context *ctx, lt_cuda *cuda, const lt_svm_rows *rows,
                                   const uint32_t *order, const float *mean, lt_cuda_operand *operand,
                                   double *upload_seconds) {
    latent_status status = LATENT_OK;
    lt_svm_rows all;
    uint32_t *place = NULL;
    float *mean_there = NULL;
    LT_TRY(lt_cuda_places(ctx, cuda, rows, order, &all, &place));
    if (mean) {
        LT_TRY(lt_cuda_room(ctx, cuda, rows->d, sizeof(float), &mean_there));
        LT_TRY(lt_cuda_upload(ctx, &cuda->base, mean_there, mean, rows->d * sizeof(float)));
    }
    lt_cuda_convert convert = {
        .d = rows->d, .stride = rows->stride, .place = place, .mean = mean_there, .to = *operand};
    LT_TRY(lt_cuda_pieces(ctx, cuda, &all, convert_piece, &convert, upload_seconds));
    LT_TRY(lt_cuda_synchronize(ctx, &cuda->base));
done:
    lt_cuda_free(&cuda->base, place);
    lt_cuda_free(&cuda->base, mean_there);
    return status;
}

#ifdef LATENT_HAVE_CUBLAS
latent_status lt_cuda_products_open(latent_context *ctx, lt_cuda *cuda) {
    return lt_libraries_cublas(ctx, cuda);
}

static cublasStatus_t multiply(const lt_cuda *cuda, const lt_cuda_operand *a, const void *left, int m,
                               const lt_cuda_operand *b, const void *right, int n, float *out, int row) {
    const float one = 1, zero = 0;
    cublasHandle_t handle = cuda->libraries->cublas.handle;
    int k = (int)a->width * (a->precision == LT_SVM_STRICT ? 3 : 1);
    if (a->precision == LT_SVM_FP32) {
        return cuda->libraries->cublas.cublasSgemm_v2(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, right,
                                                      (int)b->row, left, (int)a->row, &zero, out, row);
    }
    /* The handle's pedantic mode is for floats. A product of two halves is exact in fp32 anyway, and nothing
     * shall keep the tensor cores from it. */
    cublasStatus_t result = cuda->libraries->cublas.cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH);
    if (result == CUBLAS_STATUS_SUCCESS) {
        result = cuda->libraries->cublas.cublasGemmEx(
            handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, right, CUDA_R_16F, (int)b->row, left, CUDA_R_16F,
            (int)a->row, &zero, out, CUDA_R_32F, row, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    }
    cublasStatus_t back = cuda->libraries->cublas.cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH);
    return result == CUBLAS_STATUS_SUCCESS ? back : result;
}

latent_status lt_cuda_product(latent_context *ctx, lt_cuda *cuda, const lt_cuda_operand *a, size_t first_a,
                              size_t m, const lt_cuda_operand *b, size_t first_b, size_t n, float *out,
                              size_t row) {
    size_t size = size_of(a->precision), skipped = a->precision == LT_SVM_STRICT ? a->width : 0;
    const char *left = (const char *)a->values + (first_a * a->row + skipped) * size;
    const char *right = (const char *)b->values + first_b * b->row * size;
    if (m == 0 || n == 0) {
        return LATENT_OK;
    }
    if (n > INT_MAX || m > INT_MAX || row > INT_MAX) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "a product of %zu x %zu is too large for cuBLAS", m, n);
    }
    cublasStatus_t result = multiply(cuda, a, left, (int)m, b, right, (int)n, out, (int)row);
    cuda->last_kernel = "cuBLAS gemm";
    lt_cuda_mark_kernel(cuda, cuda->last_kernel);
    return result == CUBLAS_STATUS_SUCCESS
               ? LATENT_OK
               : lt_fail(ctx, LATENT_ERROR_DEVICE, "cuBLAS, a product of %zu x %zu x %zu: %s", m, n, a->width,
                         cuda->libraries->cublas.cublasGetStatusString(result));
}
#else
latent_status lt_cuda_products_open(latent_context *ctx, lt_cuda *cuda) {
    (void)cuda;
    return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                   "this build of the backend 'cuda' has no cuBLAS, which multiplies the rows of a support "
                   "vector machine");
}

latent_status lt_cuda_product(latent_context *ctx, lt_cuda *cuda, const lt_cuda_operand *a, size_t first_a,
                              size_t m, const lt_cuda_operand *b, size_t first_b, size_t n, float *out,
                              size_t row) {
    (void)a, (void)first_a, (void)m, (void)b, (void)first_b, (void)n, (void)out, (void)row;
    return lt_cuda_products_open(ctx, cuda);
}
#endif
