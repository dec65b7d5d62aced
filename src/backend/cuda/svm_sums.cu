/* svm_sums.cu: K times coefficients: fresh gradients, what is said of a solution, sums for rows left out.
 *
 * One warp adds up four rows at a time, so that a coefficient is read once for four kernel values. Lane l
 * takes columns l, l + 32 ... in order, then the lanes are added as a tree: fp64, and always the same order.
 */
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/svm_warp.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, ROWS = 4 };

__device__ static inline double warp_sum(double value) {
    for (int apart = 16; apart > 0; apart /= 2) {
        value += __shfl_xor_sync(LT_WARP, value, apart);
    }
    return value;
}

/* sums[r] += this lane's part of k[r][c] * beta[c], c < count. */
__device__ static inline void add_range(const float *const *k, const double *beta, uint32_t count,
                                        double *sums) {
#pragma unroll 4
    for (uint32_t c = threadIdx.x % 32; c < count; c += 32) {
        double b = beta[c];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            sums[r] += (double)__ldg(k[r] + c) * b;
        }
    }
}

/* sums[r] = the problem's coefficients times matrix row rows[r]; of all lanes. */
__device__ static inline void dot_rows(const lt_cuda_solver &s, const lt_cuda_problem &p,
                                       const uint32_t *rows, double *sums) {
    const float *k[ROWS];
    const double *beta = s.beta + p.first;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        k[r] = s.k + (size_t)rows[r] * s.row + p.begin[0];
        sums[r] = 0;
    }
    add_range(k, beta, p.n0, sums);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        k[r] = s.k + (size_t)rows[r] * s.row + p.begin[1];
    }
    add_range(k, beta + p.n0, p.n - p.n0, sums);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        sums[r] = warp_sum(sums[r]);
    }
}

/* blockIdx.x: the problem; a warp takes ROWS of its rows. */
__global__ static void svm_gradients(lt_cuda_solver s) {
    const lt_cuda_problem p = s.problems[blockIdx.x];
    uint32_t first = (blockIdx.y * WARPS + threadIdx.x / 32) * ROWS, rows[ROWS];
    double sums[ROWS];
    if (first >= p.n) {
        return;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        uint32_t t = first + r < p.n ? first + r : p.n - 1;
        rows[r] = t < p.n0 ? p.begin[0] + t : p.begin[1] + (t - p.n0);
    }
    dot_rows(s, p, rows, sums);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        uint32_t t = first + r;
        if (t < p.n && threadIdx.x % 32 == 0) {
            s.f[p.first + t] = (t < p.n0 ? 1.0 : -1.0) - sums[r];
        }
    }
}

static unsigned blocks_of(uint32_t rows) {
    return (rows + WARPS * ROWS - 1) / (WARPS * ROWS);
}

extern "C" void lt_launch_svm_gradients(cudaStream_t stream, const lt_cuda_solver *solver, int count,
                                        uint32_t rows_max) {
    svm_gradients<<<dim3((unsigned)count, blocks_of(rows_max)), THREADS, 0, stream>>>(*solver);
}

/* One block to a problem: gap, objective = -sum of beta (f + y) / 2, rho; as smo.c of the host has them. */
__global__ static void svm_measure(lt_cuda_solver s) {
    __shared__ double shared[THREADS];
    __shared__ uint64_t keys[2][WARPS];
    lt_cuda_problem *problem = s.problems + blockIdx.x;
    const lt_cuda_problem p = *problem;
    double high = -LT_INFINITY, low = LT_INFINITY, objective = 0, between = 0, inside = 0;
    for (uint32_t t = threadIdx.x; t < p.n; t += THREADS) {
        uint32_t row = t < p.n0 ? p.begin[0] + t : p.begin[1] + (t - p.n0);
        double f = s.f[p.first + t], beta = s.beta[p.first + t], y = t < p.n0 ? 1.0 : -1.0;
        if (p.fold >= 0 && s.fold[row] == (uint8_t)p.fold) {
            continue;
        }
        bool rises = beta<lt_high(p, t), falls = beta> lt_low(p, t);
        high = rises && f > high ? f : high;
        low = falls && f < low ? f : low;
        objective += beta * (f + y);
        between += rises && falls ? f : 0.0;
        inside += rises && falls;
    }
    uint64_t rise = lt_warp_largest(lt_key(high)), fall = lt_warp_largest(lt_key(-low));
    if (threadIdx.x % 32 == 0) {
        keys[0][threadIdx.x / 32] = rise;
        keys[1][threadIdx.x / 32] = fall;
    }
    objective = lt_block_sum<THREADS>(objective, shared);
    __syncthreads();
    between = lt_block_sum<THREADS>(between, shared);
    __syncthreads();
    inside = lt_block_sum<THREADS>(inside, shared);
    if (threadIdx.x == 0) {
        for (int w = 1; w < WARPS; w++) {
            keys[0][0] = keys[0][w] > keys[0][0] ? keys[0][w] : keys[0][0];
            keys[1][0] = keys[1][w] > keys[1][0] ? keys[1][w] : keys[1][0];
        }
        high = lt_unkey(keys[0][0]);
        low = -lt_unkey(keys[1][0]);
        bool up = high > -LT_INFINITY, down = low < LT_INFINITY;
        problem->gap = high - low;
        problem->objective = -objective / 2;
        problem->rho = inside > 0   ? -between / inside
                       : up && down ? -(high + low) / 2
                       : up         ? -high
                       : down       ? -low
                                    : 0.0;
    }
}

extern "C" void lt_launch_svm_measure(cudaStream_t stream, const lt_cuda_solver *solver, int count) {
    svm_measure<<<(unsigned)count, THREADS, 0, stream>>>(*solver);
}

__global__ static void svm_sums(lt_cuda_solver s, const uint32_t *rows, const uint32_t *wanted,
                                size_t sums_row, double *sums) {
    const lt_cuda_problem p = s.problems[blockIdx.x];
    int list = p.fold < 0 ? 0 : p.fold;
    uint32_t begin = wanted[list], end = wanted[list + 1];
    uint32_t first = begin + (blockIdx.y * WARPS + threadIdx.x / 32) * ROWS, mine[ROWS];
    double out[ROWS];
    if (first >= end) {
        return;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        mine[r] = rows[first + r < end ? first + r : end - 1];
    }
    dot_rows(s, p, mine, out);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (first + r < end && threadIdx.x % 32 == 0) {
            sums[(size_t)blockIdx.x * sums_row + mine[r]] = out[r];
        }
    }
}

extern "C" void lt_launch_svm_sums(cudaStream_t stream, const lt_cuda_solver *solver, int count,
                                   const uint32_t *rows, const uint32_t *wanted, uint32_t most,
                                   size_t sums_row, double *sums) {
    svm_sums<<<dim3((unsigned)count, blocks_of(most)), THREADS, 0, stream>>>(*solver, rows, wanted, sums_row,
                                                                             sums);
}
