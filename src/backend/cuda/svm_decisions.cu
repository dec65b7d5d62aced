/* svm_decisions.cu: decision values of new rows.
 *
 * RBF: a problem uses the vectors of two classes, so its coefficients are a few stretches of the vectors; a
 * warp walks over those for four rows at once. Linear: the vectors of a problem add up to one normal vector,
 * and a decision value is one product with it. All sums are fp64, in a fixed order.
 */
#include "backend/cuda/svm_kernels.h"

enum { THREADS = 256, WARPS = THREADS / 32, ROWS = 4, COLUMNS = 4 };

__device__ static inline double warp_sum(double value) {
    for (int apart = 16; apart > 0; apart /= 2) {
        value += __shfl_xor_sync(0xFFFFFFFFu, value, apart);
    }
    return value;
}

/* blockIdx.x: the problem; blockIdx.y: WARPS * ROWS rows, which stay in the cache for all problems. */
template <bool DISTANCES> __global__ static void svm_decisions(lt_cuda_decisions d) {
    size_t first = ((size_t)blockIdx.y * WARPS + threadIdx.x / 32) * ROWS;
    int p = blockIdx.x, lane = threadIdx.x % 32;
    size_t padded = (d.n + LT_CUDA_STRETCH - 1) / LT_CUDA_STRETCH * LT_CUDA_STRETCH;
    const double *coefficients = d.coefficients + (size_t)p * padded;
    double sums[ROWS] = {0}, gamma = DISTANCES ? d.gamma[p] : 0;
    if (first >= d.m) {
        return;
    }
    for (uint32_t at = d.begin[p]; at < d.begin[p + 1]; at++) {
        size_t begin = (size_t)d.stretches[at] * LT_CUDA_STRETCH;
#pragma unroll 4
        for (int c = lane; c < LT_CUDA_STRETCH; c += 32) {
            double coefficient = coefficients[begin + c]; /* 0 behind the last vector */
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                size_t i = first + r < d.m ? first + r : d.m - 1;
                float k = begin + c < d.n ? d.k[i * d.row + begin + c] : 0.0f;
                if (DISTANCES) {
                    float power = (float)(-gamma * (double)k);
                    k = power < -87.0f ? 0.0f : expf(power);
                }
                sums[r] += (double)k * coefficient;
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        double sum = warp_sum(sums[r]);
        if (first + r < d.m && lane == 0) {
            d.out[(first + r) * d.problems + p] = sum - d.rho[p];
        }
    }
}

extern "C" void lt_launch_svm_decisions(cudaStream_t stream, const lt_cuda_decisions *d) {
    dim3 grid((unsigned)d->problems, (unsigned)((d->m + WARPS * ROWS - 1) / (WARPS * ROWS)));
    if (d->gamma) {
        svm_decisions<true><<<grid, THREADS, 0, stream>>>(*d);
    } else {
        svm_decisions<false><<<grid, THREADS, 0, stream>>>(*d);
    }
}

/* ---- Linear ------------------------------------------------------------------------------------ */

/* blockIdx.x: the problem; blockIdx.y: THREADS columns. */
__global__ static void svm_normals(lt_cuda_convert piece, const double *coefficients, size_t coefficient_row,
                                   double *w) {
    size_t c = (size_t)blockIdx.y * THREADS + threadIdx.x;
    const double *own = coefficients + (size_t)blockIdx.x * coefficient_row;
    if (c >= piece.d) {
        return;
    }
    double sum = w[(size_t)blockIdx.x * piece.d + c];
    for (size_t i = 0; i < piece.count; i++) {
        size_t r = piece.first + i, v = piece.place ? piece.place[r] : r;
        double coefficient = v == LT_CUDA_NOWHERE ? 0.0 : own[v];
        if (coefficient != 0) { /* the same for the whole block */
            sum += coefficient * (double)piece.x[i * piece.stride + c];
        }
    }
    w[(size_t)blockIdx.x * piece.d + c] = sum;
}

extern "C" void lt_launch_svm_normals(cudaStream_t stream, const lt_cuda_convert *piece,
                                      const double *coefficients, size_t coefficient_row, int problems,
                                      double *w) {
    dim3 grid((unsigned)problems, (unsigned)((piece->d + THREADS - 1) / THREADS));
    svm_normals<<<grid, THREADS, 0, stream>>>(*piece, coefficients, coefficient_row, w);
}

/* A warp takes ROWS rows and COLUMNS problems. blockIdx.x: problems; blockIdx.y: rows. */
__global__ static void svm_linear(const float *x, size_t m, size_t d, size_t stride, const double *w,
                                  const double *rho, int problems, double *out) {
    size_t first = ((size_t)blockIdx.y * WARPS + threadIdx.x / 32) * ROWS;
    int p0 = blockIdx.x * COLUMNS, lane = threadIdx.x % 32;
    double sums[ROWS][COLUMNS] = {{0}};
    if (first >= m) {
        return;
    }
    for (size_t c = lane; c < d; c += 32) {
        double value[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            value[r] = x[(first + r < m ? first + r : m - 1) * stride + c];
        }
#pragma unroll
        for (int q = 0; q < COLUMNS; q++) {
            double normal = w[(size_t)(p0 + q < problems ? p0 + q : problems - 1) * d + c];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                sums[r][q] += value[r] * normal;
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int q = 0; q < COLUMNS; q++) {
            double sum = warp_sum(sums[r][q]);
            if (first + r < m && p0 + q < problems && lane == 0) {
                out[(first + r) * problems + p0 + q] = sum - rho[p0 + q];
            }
        }
    }
}

extern "C" void lt_launch_svm_linear(cudaStream_t stream, const float *x, size_t m, size_t d, size_t stride,
                                     const double *w, const double *rho, int problems, double *out) {
    dim3 grid((unsigned)((problems + COLUMNS - 1) / COLUMNS),
              (unsigned)((m + WARPS * ROWS - 1) / (WARPS * ROWS)));
    svm_linear<<<grid, THREADS, 0, stream>>>(x, m, d, stride, w, rho, problems, out);
}
