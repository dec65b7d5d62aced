/* svm_large.cu: the steps of svm_smo.cu for problems with more rows than registers hold.
 *
 * The same two passes and the same choice of rows, so the same solution; but f and beta lie in device memory
 * and a block walks over them. Row t belongs to thread t mod 1024 throughout: no other thread reads or
 * writes its f and beta between two barriers.
 */
#include "backend/cuda/svm_warp.cuh"

enum { THREADS = 1024, WARPS = THREADS / 32 };

__device__ static inline uint32_t row_of(const lt_cuda_problem &p, uint32_t t) {
    return t < p.n0 ? p.begin[0] + t : p.begin[1] + (t - p.n0);
}

/* Row i of K, to be indexed by rows. */
__device__ static inline const float *line(const lt_cuda_solver &s, const lt_cuda_problem &p, uint32_t i) {
    return s.k + (size_t)row_of(p, i) * s.row;
}

__device__ static inline bool takes_part(const lt_cuda_solver &s, const lt_cuda_problem &p, uint32_t row) {
    return p.fold < 0 || s.fold[row] != (uint8_t)p.fold;
}

__device__ static void update(const lt_cuda_solver &s, const lt_cuda_problem &p, const float *ki,
                              const float *kj, double step, lt_rise *found) {
    double high = -LT_INFINITY, low = LT_INFINITY;
    uint32_t mine = LT_CUDA_NOWHERE;
    double *f = s.f + p.first;
    const double *beta = s.beta + p.first;
    for (uint32_t t = threadIdx.x; t < p.n; t += THREADS) {
        uint32_t row = row_of(p, t);
        double value = f[t];
        if (step != 0) {
            value -= step * ((double)__ldg(ki + row) - (double)__ldg(kj + row));
            f[t] = value;
        }
        if (!takes_part(s, p, row)) {
            continue;
        }
        if (beta[t] < lt_high(p, t) && value > high) {
            high = value;
            mine = t;
        }
        if (beta[t] > lt_low(p, t) && value < low) {
            low = value;
        }
    }
    uint32_t row = mine;
    uint64_t rise = lt_warp_best(lt_key(high), &row), fall = lt_warp_largest(lt_key(-low));
    if (mine == row && (row != LT_CUDA_NOWHERE || threadIdx.x % 32 == 0)) {
        found->rise = rise;
        found->fall = fall;
        found->row = row;
        found->beta = row != LT_CUDA_NOWHERE ? beta[row] : 0.0;
    }
}

__device__ static void partner(const lt_cuda_solver &s, const lt_cuda_problem &p, const float *ki, double fi,
                               double kii, lt_gain *found) {
    uint32_t most = 0, mine = LT_CUDA_NOWHERE;
    const double *f = s.f + p.first, *beta = s.beta + p.first;
    for (uint32_t t = threadIdx.x; t < p.n; t += THREADS) {
        uint32_t row = row_of(p, t);
        double difference = fi - f[t];
        if (difference > 0 && beta[t] > lt_low(p, t) && takes_part(s, p, row)) {
            double kjj = s.diagonal ? s.diagonal[row] : 1.0;
            uint32_t gain = lt_gain_bits(difference, kii + kjj - 2.0 * (double)__ldg(ki + row));
            if (gain > most) {
                most = gain;
                mine = t;
            }
        }
    }
    uint32_t top = lt_warp_max(most), row = lt_warp_min(most == top ? mine : LT_CUDA_NOWHERE);
    if (mine == row && (row != LT_CUDA_NOWHERE || threadIdx.x % 32 == 0)) {
        lt_gain out = {top, row, 0, 0, 0};
        if (row != LT_CUDA_NOWHERE) {
            out.f = f[row];
            out.beta = beta[row];
            out.k = __ldg(ki + row_of(p, row));
        }
        *found = out;
    }
}

__global__ static void __launch_bounds__(THREADS, 1) svm_large(lt_cuda_solver s) {
    __shared__ lt_rise rises[WARPS];
    __shared__ lt_gain gains[WARPS];
    __shared__ lt_cuda_problem p;
    lt_cuda_problem *problem = s.problems + s.active[blockIdx.x];
    if (threadIdx.x == 0) {
        p = *problem;
    }
    __syncthreads();
    const float *ki = s.k, *kj = s.k;
    double step = 0, gap = 0;
    uint32_t made = 0;
    int warp = threadIdx.x / 32, outcome = LT_CUDA_RUNNING;
    for (;; made++) {
        update(s, p, ki, kj, step, &rises[warp]);
        __syncthreads();
        lt_rise i = lt_best_rise<WARPS>(rises);
        double fi = lt_unkey(i.rise);
        gap = fi + lt_unkey(i.fall);
        outcome = lt_verdict(s, i, gap);
        if (outcome == LT_CUDA_RUNNING && p.iterations + made >= s.iterations_max) {
            outcome = LT_SVM_CAPPED;
        }
        if (outcome != LT_CUDA_RUNNING || made >= s.budget) {
            break;
        }
        ki = line(s, p, i.row);
        double kii = s.diagonal ? s.diagonal[row_of(p, i.row)] : 1.0;
        partner(s, p, ki, fi, kii, &gains[warp]);
        __syncthreads();
        lt_gain j = lt_best_gain<WARPS>(gains);
        if (j.gain == 0) {
            outcome = LT_SVM_STALLED;
            break;
        }
        kj = line(s, p, j.row);
        double curvature = kii + (s.diagonal ? s.diagonal[row_of(p, j.row)] : 1.0) - 2.0 * (double)j.k;
        lt_move move = lt_take_step(fi - j.f, curvature, lt_high(p, i.row), lt_low(p, j.row), i.beta, j.beta);
        step = move.step;
        if (step == 0) {
            outcome = LT_SVM_STALLED;
            break;
        }
        if (i.row % THREADS == threadIdx.x) {
            s.beta[p.first + i.row] = move.beta_i;
        }
        if (j.row % THREADS == threadIdx.x) {
            s.beta[p.first + j.row] = move.beta_j;
        }
    }
    if (threadIdx.x == 0) {
        problem->iterations = p.iterations + made;
        problem->gap = gap;
        problem->outcome = outcome;
    }
}

extern "C" void lt_launch_svm_large(cudaStream_t stream, const lt_cuda_solver *solver) {
    svm_large<<<(unsigned)solver->count, THREADS, 0, stream>>>(*solver);
}
