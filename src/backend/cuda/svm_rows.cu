/* svm_rows.cu: feature rows made ready for matrix products, their lengths, and the columns' statistics.
 *
 * A row is scaled by a power of two of its own before it becomes fp16: nothing overflows, what is small keeps
 * its bits, and what a row becomes depends on that row alone. The power is undone, exactly, when products
 * become kernel values. Sums are fp64 and have a fixed order.
 */
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/svm_kernels.h"

#include <cuda_fp16.h>

enum { THREADS = 256, WARPS = THREADS / 32 };

/* The largest |x - mean| of the row, for all threads. */
__device__ static float row_peak(const lt_cuda_convert &c, const float *x, float *peaks) {
    float peak = 0;
    for (size_t k = threadIdx.x; k < c.d; k += THREADS) {
        peak = fmaxf(peak, fabsf(x[k] - (c.mean ? c.mean[k] : 0.0f)));
    }
    peaks[threadIdx.x] = peak;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half) {
            peaks[threadIdx.x] = fmaxf(peaks[threadIdx.x], peaks[threadIdx.x + half]);
        }
        __syncthreads();
    }
    return peaks[0];
}

__device__ static uint32_t pack(__half a, __half b) {
    return (uint32_t)__half_as_ushort(a) | (uint32_t)__half_as_ushort(b) << 16;
}

/* One block to a row; a thread takes two columns at a time. */
__global__ static void svm_convert(lt_cuda_convert c) {
    __shared__ float peaks[THREADS];
    size_t r = c.first + blockIdx.x, to = c.place ? c.place[r] : r, width = c.to.width;
    if (to == LT_CUDA_NOWHERE) {
        return;
    }
    const float *x = c.x + (size_t)blockIdx.x * c.stride;
    float peak = row_peak(c, x, peaks);
    int power = peak > 0 && isfinite(peak) ? 14 - ilogbf(peak) : 0;
    double scale = ldexp(1.0, power);
    if (threadIdx.x == 0) {
        c.to.unit[to] = ldexp(1.0, -power);
    }
    for (size_t k = 2 * threadIdx.x; k < width; k += 2 * THREADS) {
        float v[2];
        __half hi[2], lo[2];
        for (int i = 0; i < 2; i++) {
            float centered = k + i < c.d ? x[k + i] - (c.mean ? c.mean[k + i] : 0.0f) : 0.0f;
            v[i] = (float)((double)centered * scale);
            hi[i] = __float2half_rn(v[i]);
            lo[i] = __float2half_rn(v[i] - __half2float(hi[i]));
        }
        if (c.to.precision == LT_SVM_FP32) {
            *(float2 *)((float *)c.to.values + to * c.to.row + k) = make_float2(v[0], v[1]);
            continue;
        }
        __half *at = (__half *)c.to.values + to * c.to.row + k;
        *(uint32_t *)at = pack(hi[0], hi[1]);
        if (c.to.precision == LT_SVM_STRICT) {
            *(uint32_t *)(at + width) = pack(lo[0], lo[1]);
            *(uint32_t *)(at + 2 * width) = pack(hi[0], hi[1]);
            *(uint32_t *)(at + 3 * width) = pack(hi[0], hi[1]);
        }
    }
}

extern "C" void lt_launch_svm_convert(cudaStream_t stream, const lt_cuda_convert *convert) {
    svm_convert<<<(unsigned)convert->count, THREADS, 0, stream>>>(*convert);
}

/* One warp to a row. */
__global__ static void svm_lengths(lt_cuda_operand rows, size_t count, double *norm) {
    size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    double sum = 0;
    if (i >= count) {
        return;
    }
    for (size_t k = lane; k < rows.width; k += 32) {
        double v;
        if (rows.precision == LT_SVM_FP32) {
            v = ((const float *)rows.values)[i * rows.row + k];
        } else {
            const __half *at = (const __half *)rows.values + i * rows.row + k;
            v = __half2float(at[0]);
            v += rows.precision == LT_SVM_STRICT ? (double)__half2float(at[rows.width]) : 0.0;
        }
        sum += v * v;
    }
    for (int apart = 16; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, apart);
    }
    if (lane == 0) {
        norm[i] = sum * rows.unit[i] * rows.unit[i];
    }
}

extern "C" void lt_launch_svm_lengths(cudaStream_t stream, const lt_cuda_operand *rows, size_t count,
                                      double *norm) {
    svm_lengths<<<(unsigned)((count + WARPS - 1) / WARPS), THREADS, 0, stream>>>(*rows, count, norm);
}

/* ---- Statistics -------------------------------------------------------------------------------- */

/* blockIdx.x: the chunk; blockIdx.y: THREADS columns. */
__global__ static void svm_column_sums(const float *x, size_t first, size_t count, size_t d, size_t stride,
                                       double *sums, unsigned long long *bad) {
    size_t begin = (size_t)blockIdx.x * LT_CUDA_CHUNK, c = (size_t)blockIdx.y * THREADS + threadIdx.x;
    size_t end = begin + LT_CUDA_CHUNK < count ? begin + LT_CUDA_CHUNK : count;
    double sum = 0;
    if (c >= d) {
        return;
    }
    for (size_t i = begin; i < end; i++) {
        float value = x[i * stride + c];
        sum += value;
        if (!isfinite(value)) {
            atomicMin(bad, (unsigned long long)((first + i) * d + c));
        }
    }
    sums[(size_t)blockIdx.x * d + c] = sum;
}

static unsigned chunks_of(size_t count) {
    return (unsigned)((count + LT_CUDA_CHUNK - 1) / LT_CUDA_CHUNK);
}

extern "C" void lt_launch_svm_column_sums(cudaStream_t stream, const float *x, size_t first, size_t count,
                                          size_t d, size_t stride, double *sums, unsigned long long *bad) {
    dim3 grid(chunks_of(count), (unsigned)((d + THREADS - 1) / THREADS));
    svm_column_sums<<<grid, THREADS, 0, stream>>>(x, first, count, d, stride, sums, bad);
}

__global__ static void svm_column_totals(const double *sums, size_t chunks, size_t d, double *total) {
    size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    double sum = 0;
    if (c >= d) {
        return;
    }
    for (size_t i = 0; i < chunks; i++) {
        sum += sums[i * d + c];
    }
    total[c] = sum;
}

extern "C" void lt_launch_svm_column_totals(cudaStream_t stream, const double *sums, size_t chunks, size_t d,
                                            double *total) {
    svm_column_totals<<<(unsigned)((d + THREADS - 1) / THREADS), THREADS, 0, stream>>>(sums, chunks, d,
                                                                                       total);
}

/* blockIdx.x: the chunk; blockIdx.y: the slice of columns. */
__global__ static void svm_squares(const float *x, size_t count, size_t d, size_t stride, double center,
                                   double *squares) {
    __shared__ double sums[THREADS];
    size_t begin = (size_t)blockIdx.x * LT_CUDA_CHUNK, slice = (size_t)blockIdx.y * LT_CUDA_SLICE;
    size_t end = begin + LT_CUDA_CHUNK < count ? begin + LT_CUDA_CHUNK : count;
    double sum = 0;
    for (size_t i = begin; i < end; i++) {
        for (int k = 0; k < LT_CUDA_SLICE / THREADS; k++) {
            size_t c = slice + (size_t)k * THREADS + threadIdx.x;
            double difference = c < d ? x[i * stride + c] - center : 0.0;
            sum += difference * difference;
        }
    }
    sum = lt_block_sum<THREADS>(sum, sums);
    if (threadIdx.x == 0) {
        squares[(size_t)blockIdx.x * gridDim.y + blockIdx.y] = sum;
    }
}

extern "C" void lt_launch_svm_squares(cudaStream_t stream, const float *x, size_t count, size_t d,
                                      size_t stride, double center, double *squares) {
    dim3 grid(chunks_of(count), (unsigned)((d + LT_CUDA_SLICE - 1) / LT_CUDA_SLICE));
    svm_squares<<<grid, THREADS, 0, stream>>>(x, count, d, stride, center, squares);
}
