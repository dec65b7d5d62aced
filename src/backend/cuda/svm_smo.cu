/* svm_smo.cu: LIBSVM's two-variable steps, all problems at once, one block to a problem.
 *
 * The derivation is in smo.c of the host: b = y*alpha, f = y - Kb; a step takes the i with the largest f that
 * may rise, the j of the largest gain with it, moves both, and updates f with two rows of K. Steps depend on
 * one another, so what counts is the time of one, and most of that is the way of two rows from memory. So the
 * rest stays close: thread t of a block keeps f of the rows t, t + 512, t + 1024 ... in registers, with two
 * bits each for "may rise" and "may fall", and the row of K that both passes need. A step has two barriers:
 *   update f, best i of each thread, warp -> shared | every warp: i, the gap; row i comes
 *   gains, best j of each thread, warp -> shared    | every warp: j, the step; row j comes meanwhile
 * beta of a row is read and written by its own thread only. A launch makes a limited number of steps and
 * leaves f and beta in memory, from where the next one goes on with the same bits.
 */
#include "backend/cuda/svm_warp.cuh"

enum { THREADS = LT_CUDA_SMO_THREADS, WARPS = THREADS / 32 };

/* A kernel value as a double. The conversion instruction is slow (16 lanes a clock), and RBF values are never
 * negative: moving the bits is an integer multiply-add. What is below 2^-126, 0 too, becomes a number below
 * 2^-126, which is no different to a sum with f. */
template <bool RBF> __device__ static inline double wide(float k) {
    if (RBF) {
        uint64_t bits = (uint64_t)__float_as_uint(k) * (1ull << 29) + (896ull << 52);
        return __longlong_as_double((long long)bits);
    }
    return k;
}

/* A problem as one thread sees it. */
template <int SLOTS> struct share {
    double f[SLOTS];
    float ki[SLOTS], kj[SLOTS]; /* of the rows of K that the step moves */
    uint32_t rise, fall;        /* bit s: row s may */
};

/* Reads this thread's part of row i of K. */
template <int SLOTS>
__device__ static inline void read_row(const lt_cuda_solver &s, const lt_cuda_problem &p, uint32_t i,
                                       float *to) {
    size_t row = i < p.n0 ? p.begin[0] + i : p.begin[1] + (i - p.n0);
    const float *first = s.k + row * s.row + p.begin[0] + threadIdx.x;
    const float *second = s.k + row * s.row + p.begin[1] + threadIdx.x - p.n0;
#pragma unroll
    for (int slot = 0; slot < SLOTS; slot++) {
        uint32_t t = threadIdx.x + slot * THREADS;
        to[slot] = t < p.n ? __ldg((t < p.n0 ? first : second) + slot * THREADS) : 0.0f;
    }
}

/* f -= step * (K[i] - K[j]); this warp's candidate for i and its smallest f that may fall. */
template <int SLOTS, bool RBF>
__device__ static inline void update(share<SLOTS> &own, double step, const double *beta, lt_rise *found) {
    double high = -LT_INFINITY, low = LT_INFINITY;
    uint32_t best = 0;
#pragma unroll
    for (int slot = 0; slot < SLOTS; slot++) {
        double f = own.f[slot] - step * (wide<RBF>(own.ki[slot]) - wide<RBF>(own.kj[slot]));
        own.f[slot] = f;
        if ((own.rise >> slot & 1) && f > high) {
            high = f;
            best = slot;
        }
        if ((own.fall >> slot & 1) && f < low) {
            low = f;
        }
    }
    uint32_t mine = own.rise ? threadIdx.x + best * THREADS : LT_CUDA_NOWHERE, row = mine;
    uint64_t rise = lt_warp_best(lt_key(high), &row), fall = lt_warp_largest(lt_key(-low));
    if (mine == row && (row != LT_CUDA_NOWHERE || threadIdx.x % 32 == 0)) {
        found->rise = rise;
        found->fall = fall;
        found->row = row;
        found->beta = row != LT_CUDA_NOWHERE ? beta[row] : 0.0;
    }
}

/* This warp's candidate for j. */
template <int SLOTS, bool RBF>
__device__ static inline void partner(const lt_cuda_solver &s, const lt_cuda_problem &p,
                                      const share<SLOTS> &own, double fi, double kii, const double *beta,
                                      lt_gain *found) {
    uint32_t most = 0, best = 0;
#pragma unroll
    for (int slot = 0; slot < SLOTS; slot++) {
        double difference = fi - own.f[slot];
        if ((own.fall >> slot & 1) && difference > 0) {
            double curvature = 2.0f - 2.0f * own.ki[slot];
            if (!RBF) {
                uint32_t t = threadIdx.x + slot * THREADS;
                uint32_t row = t < p.n0 ? p.begin[0] + t : p.begin[1] + (t - p.n0);
                curvature = kii + s.diagonal[row] - 2.0 * own.ki[slot];
            }
            uint32_t gain = lt_gain_bits(difference, curvature);
            if (gain > most) {
                most = gain;
                best = slot;
            }
        }
    }
    uint32_t mine = most ? threadIdx.x + best * THREADS : LT_CUDA_NOWHERE;
    uint32_t top = lt_warp_max(most), row = lt_warp_min(most == top ? mine : LT_CUDA_NOWHERE);
    if (mine == row && (row != LT_CUDA_NOWHERE || threadIdx.x % 32 == 0)) {
        lt_gain out = {top, row, 0, row != LT_CUDA_NOWHERE ? beta[row] : 0.0, 0};
#pragma unroll
        for (int slot = 0; slot < SLOTS; slot++) {
            out.f = slot == (int)best ? own.f[slot] : out.f;
            out.k = slot == (int)best ? own.ki[slot] : out.k;
        }
        *found = out;
    }
}

/* A moved row's own thread notes its new beta and where it may still go. */
template <int SLOTS>
__device__ static inline void settle(const lt_cuda_problem &p, share<SLOTS> &own, double *beta, uint32_t t,
                                     double value) {
    if (t % THREADS == threadIdx.x) {
        uint32_t bit = 1u << t / THREADS;
        beta[t] = value;
        own.rise = value < lt_high(p, t) ? own.rise | bit : own.rise & ~bit;
        own.fall = value > lt_low(p, t) ? own.fall | bit : own.fall & ~bit;
    }
}

template <int SLOTS>
__device__ static inline void load(const lt_cuda_solver &s, const lt_cuda_problem &p, share<SLOTS> &own,
                                   double *beta) {
    own.rise = own.fall = 0;
#pragma unroll
    for (int slot = 0; slot < SLOTS; slot++) {
        uint32_t t = threadIdx.x + slot * THREADS;
        own.f[slot] = 0;
        own.ki[slot] = own.kj[slot] = 0;
        if (t < p.n) {
            uint32_t row = t < p.n0 ? p.begin[0] + t : p.begin[1] + (t - p.n0);
            double value = s.beta[p.first + t];
            own.f[slot] = s.f[p.first + t];
            beta[t] = value;
            if (p.fold < 0 || s.fold[row] != (uint8_t)p.fold) {
                own.rise |= (uint32_t)(value < lt_high(p, t)) << slot;
                own.fall |= (uint32_t)(value > lt_low(p, t)) << slot;
            }
        }
    }
}

template <int SLOTS>
__device__ static inline void store(const lt_cuda_solver &s, const lt_cuda_problem &p,
                                    const share<SLOTS> &own, const double *beta) {
#pragma unroll
    for (int slot = 0; slot < SLOTS; slot++) {
        uint32_t t = threadIdx.x + slot * THREADS;
        if (t < p.n) {
            s.f[p.first + t] = own.f[slot];
            s.beta[p.first + t] = beta[t];
        }
    }
}

template <int SLOTS, bool RBF>
__global__ static void __launch_bounds__(THREADS, 1) svm_smo(lt_cuda_solver s, int beta_is_shared) {
    extern __shared__ double room[];
    __shared__ lt_rise rises[WARPS];
    __shared__ lt_gain gains[WARPS];
    __shared__ lt_cuda_problem p; /* registers are dear */
    lt_cuda_problem *problem = s.problems + s.active[blockIdx.x];
    if (threadIdx.x == 0) {
        p = *problem;
    }
    __syncthreads();
    double *beta = beta_is_shared ? room : s.beta + p.first;
    share<SLOTS> own;
    double step = 0, gap = 0;
    uint32_t made = 0;
    int warp = threadIdx.x / 32, outcome = LT_CUDA_RUNNING;
    load(s, p, own, beta);
    for (;; made++) {
        update<SLOTS, RBF>(own, step, beta, &rises[warp]);
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
        read_row<SLOTS>(s, p, i.row, own.ki);
        uint32_t row = i.row < p.n0 ? p.begin[0] + i.row : p.begin[1] + (i.row - p.n0);
        double kii = RBF ? 1.0 : s.diagonal[row];
        partner<SLOTS, RBF>(s, p, own, fi, kii, beta, &gains[warp]);
        __syncthreads();
        lt_gain j = lt_best_gain<WARPS>(gains);
        if (j.gain == 0) {
            outcome = LT_SVM_STALLED;
            break;
        }
        read_row<SLOTS>(s, p, j.row, own.kj);
        row = j.row < p.n0 ? p.begin[0] + j.row : p.begin[1] + (j.row - p.n0);
        double curvature = kii + (RBF ? 1.0 : s.diagonal[row]) - 2.0 * (double)j.k;
        lt_move move = lt_take_step(fi - j.f, curvature, lt_high(p, i.row), lt_low(p, j.row), i.beta, j.beta);
        step = move.step;
        if (step == 0) {
            outcome = LT_SVM_STALLED;
            break;
        }
        settle(p, own, beta, i.row, move.beta_i);
        settle(p, own, beta, j.row, move.beta_j);
    }
    store(s, p, own, beta);
    if (threadIdx.x == 0) {
        problem->iterations = p.iterations + made;
        problem->gap = gap;
        problem->outcome = outcome;
    }
}

template <int SLOTS, bool RBF>
static cudaError_t launch(cudaStream_t stream, const lt_cuda_solver *solver, uint32_t rows, size_t shared) {
    size_t wanted = rows * sizeof(double), reserved = WARPS * (sizeof(lt_rise) + sizeof(lt_gain)) + 1024;
    int fits = wanted + reserved <= shared;
    size_t dynamic = fits ? wanted : 0;
    cudaError_t error =
        cudaFuncSetAttribute(svm_smo<SLOTS, RBF>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)dynamic);
    if (error == cudaSuccess) {
        svm_smo<SLOTS, RBF><<<(unsigned)solver->count, THREADS, dynamic, stream>>>(*solver, fits);
    }
    return error;
}

template <int SLOTS>
static cudaError_t launch_kernel(cudaStream_t stream, const lt_cuda_solver *solver, uint32_t rows,
                                 size_t shared) {
    return solver->diagonal ? launch<SLOTS, false>(stream, solver, rows, shared)
                            : launch<SLOTS, true>(stream, solver, rows, shared);
}

extern "C" cudaError_t lt_launch_svm_smo(cudaStream_t stream, const lt_cuda_solver *solver, uint32_t rows,
                                         size_t shared) {
    uint32_t slots = (rows + THREADS - 1) / THREADS;
    return slots <= 2    ? launch_kernel<2>(stream, solver, rows, shared)
           : slots <= 6  ? launch_kernel<6>(stream, solver, rows, shared)
           : slots <= 12 ? launch_kernel<12>(stream, solver, rows, shared)
           : slots <= 20 ? launch_kernel<20>(stream, solver, rows, shared)
                         : launch_kernel<LT_CUDA_SMO_SLOTS>(stream, solver, rows, shared);
}
