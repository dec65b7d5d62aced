/* svm_matrix.cu: from matrix products to kernel values, in one pass over the matrix.
 *
 * Only products on and above the diagonal are read. A block takes a tile of them, writes the kernel values
 * where the products were, and once more, turned over in shared memory, below the diagonal: K is symmetric
 * to the bit. With the squared lengths from the products' own diagonal, what the products lose in rounding
 * cancels where rows are close.
 */
#include "backend/cuda/svm_kernels.h"

enum { THREADS = 256, TILE = 64, LINES = THREADS / TILE, STRIP = 1024 };

__global__ static void svm_diagonal(const float *k, size_t row, size_t n, const double *unit, double *norm) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n) {
        norm[i] = (double)k[i * row + i] * unit[i] * unit[i];
    }
}

extern "C" void lt_launch_svm_diagonal(cudaStream_t stream, const float *k, size_t row, size_t n,
                                       const double *unit, double *norm) {
    svm_diagonal<<<(unsigned)((n + THREADS - 1) / THREADS), THREADS, 0, stream>>>(k, row, n, unit, norm);
}

__device__ static float squared_distance(double product, double norm_a, double norm_b) {
    double squared = norm_a + norm_b - 2.0 * product;
    return squared > 0.0 ? (float)squared : 0.0f;
}

__device__ static float rbf(double gamma, float distance) {
    float power = (float)(-gamma * (double)distance);
    return power < -87.0f ? 0.0f : expf(power);
}

template <bool KEEP> __global__ static void svm_symmetric(lt_cuda_block b, float *k, float *distance) {
    __shared__ float tile[TILE][TILE + 1], away[KEEP ? TILE : 1][TILE + 1];
    size_t i0 = (size_t)blockIdx.y * TILE, j0 = (size_t)blockIdx.x * TILE;
    int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    if (j0 < i0) {
        return;
    }
    size_t j = j0 + x;
    double unit = j < b.n ? b.unit_b[j] : 0, norm = j < b.n ? b.norm_b[j] : 0;
    for (int r = y; r < TILE; r += LINES) {
        size_t i = i0 + r;
        if (i < b.m && j < b.n && i <= j) {
            double product = (double)k[i * b.row + j] * (b.unit_a[i] * unit);
            float apart = b.kernel == LT_SVM_RBF ? squared_distance(product, b.norm_a[i], norm) : 0.0f;
            apart = i == j ? 0.0f : apart;
            float value = b.kernel == LT_SVM_RBF ? rbf(b.gamma, apart) : (float)product;
            tile[r][x] = value;
            k[i * b.row + j] = value;
            if (KEEP) {
                away[r][x] = apart;
                distance[i * b.row + j] = apart;
            }
        }
    }
    __syncthreads();
    for (int r = y; r < TILE; r += LINES) {
        size_t down = j0 + r, right = i0 + x;
        if (down < b.n && right < b.m && right < down) {
            k[down * b.row + right] = tile[x][r];
            if (KEEP) {
                distance[down * b.row + right] = away[x][r];
            }
        }
    }
}

extern "C" void lt_launch_svm_symmetric(cudaStream_t stream, const lt_cuda_block *block, float *k,
                                        float *distance) {
    unsigned tiles = (unsigned)((block->n + TILE - 1) / TILE);
    if (distance) {
        svm_symmetric<true><<<dim3(tiles, tiles), THREADS, 0, stream>>>(*block, k, distance);
    } else {
        svm_symmetric<false><<<dim3(tiles, tiles), THREADS, 0, stream>>>(*block, k, distance);
    }
}

/* blockIdx.x: the row; blockIdx.y: a strip of columns. */
__global__ static void svm_gamma(lt_cuda_block b, const float *distance, float *k) {
    size_t i = blockIdx.x, first = (size_t)blockIdx.y * STRIP + threadIdx.x;
    for (int s = 0; s < STRIP / THREADS; s++) {
        size_t j = first + (size_t)s * THREADS;
        if (j < b.n) {
            k[i * b.row + j] = rbf(b.gamma, distance[i * b.row + j]);
        }
    }
}

static dim3 strips(size_t m, size_t n) {
    return dim3((unsigned)m, (unsigned)((n + STRIP - 1) / STRIP));
}

extern "C" void lt_launch_svm_gamma(cudaStream_t stream, const lt_cuda_block *block, const float *distance,
                                    float *k) {
    svm_gamma<<<strips(block->m, block->n), THREADS, 0, stream>>>(*block, distance, k);
}

__global__ static void svm_rectangle(lt_cuda_block b, int distances, int64_t same, float *k) {
    size_t i = blockIdx.x, first = (size_t)blockIdx.y * STRIP + threadIdx.x;
    double unit = b.unit_a[i], norm = b.norm_a[i];
    for (int s = 0; s < STRIP / THREADS; s++) {
        size_t j = first + (size_t)s * THREADS;
        if (j >= b.n) {
            continue;
        }
        double product = (double)k[i * b.row + j] * (unit * b.unit_b[j]);
        float value = (float)product;
        if (b.kernel == LT_SVM_RBF) {
            value = squared_distance(product, norm, b.norm_b[j]);
            value = same != LT_CUDA_NO_ROW && (int64_t)j == (int64_t)i + same ? 0.0f : value;
            value = distances ? value : rbf(b.gamma, value);
        }
        k[i * b.row + j] = value;
    }
}

extern "C" void lt_launch_svm_rectangle(cudaStream_t stream, const lt_cuda_block *block, int distances,
                                        int64_t same, float *k) {
    svm_rectangle<<<strips(block->m, block->n), THREADS, 0, stream>>>(*block, distances, same, k);
}
