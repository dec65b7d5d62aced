/* svm_warp.cuh: the best of a block's candidates, equal ones to the lowest row, and the step of two rows.
 *
 * A candidate is a number and a row. Numbers are compared as whole numbers that have the same order, because
 * there is an instruction for the largest integer of a warp (from sm_80 on); older ones shuffle. Either way
 * the answer does not depend on the order of the comparisons, so neither does any bit of a solution.
 */
#ifndef LT_BACKEND_CUDA_SVM_WARP_CUH
#define LT_BACKEND_CUDA_SVM_WARP_CUH

#include "backend/cuda/svm_kernels.h"

#define LT_WARP     0xFFFFFFFFu
#define LT_INFINITY __longlong_as_double(0x7FF0000000000000ll)

__device__ static inline uint32_t lt_warp_max(uint32_t value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(LT_WARP, value);
#else
    for (int apart = 16; apart > 0; apart /= 2) {
        uint32_t other = __shfl_xor_sync(LT_WARP, value, apart);
        value = other > value ? other : value;
    }
    return value;
#endif
}

__device__ static inline uint32_t lt_warp_min(uint32_t value) {
    return ~lt_warp_max(~value);
}

/* Doubles and floats as integers of the same order; both zeros are one. */
__device__ static inline uint64_t lt_key(double value) {
    int64_t bits = __double_as_longlong(value + 0.0);
    return (uint64_t)(bits ^ ((bits >> 63) | INT64_MIN));
}

__device__ static inline double lt_unkey(uint64_t key) {
    return __longlong_as_double((long long)(key & (1ull << 63) ? key ^ (1ull << 63) : ~key));
}

/* The largest key of the warp; *row: its row, the lowest of equals. */
__device__ static inline uint64_t lt_warp_best(uint64_t key, uint32_t *row) {
    uint32_t high = lt_warp_max((uint32_t)(key >> 32));
    bool tops = (uint32_t)(key >> 32) == high;
    uint32_t low = lt_warp_max(tops ? (uint32_t)key : 0);
    tops = tops && (uint32_t)key == low;
    *row = lt_warp_min(tops ? *row : LT_CUDA_NOWHERE);
    return (uint64_t)high << 32 | low;
}

__device__ static inline uint64_t lt_warp_largest(uint64_t key) {
    uint32_t high = lt_warp_max((uint32_t)(key >> 32));
    uint32_t low = lt_warp_max((uint32_t)(key >> 32) == high ? (uint32_t)key : 0);
    return (uint64_t)high << 32 | low;
}

/* What a warp found: the largest f that may rise, where, that row's beta; the smallest f that may fall. */
typedef struct lt_rise {
    uint64_t rise, fall; /* keys; that of fall is of -f */
    double beta;
    uint32_t row;
} lt_rise;

/* ... and the partner of the largest gain: its row, f, beta and K[i][j]. gain is the float's bits plus one;
 * 0: there is none. */
typedef struct lt_gain {
    uint32_t gain, row;
    double f, beta;
    float k;
} lt_gain;

/* The gain of a pair with difference f[i] - f[j] > 0; see smo.c of the host. Chosen by in fp32: which of two
 * nearly equal partners is taken does not matter. */
__device__ static inline uint32_t lt_gain_bits(double difference, double curvature) {
    float d = (float)difference, c = curvature > 0 ? (float)curvature : 1e-12f;
    return __float_as_uint(__fdividef(d * d, c > 1e-30f ? c : 1e-30f)) + 1;
}

/* All warps' findings into one, by every warp for itself: lane w reads what warp w found. */
template <int WARPS> __device__ static inline lt_rise lt_best_rise(const lt_rise *found) {
    int lane = threadIdx.x % 32;
    lt_rise best;
    best.rise = lane < WARPS ? found[lane].rise : 0;
    best.row = lane < WARPS ? found[lane].row : LT_CUDA_NOWHERE;
    uint64_t fall = lane < WARPS ? found[lane].fall : 0, rise = best.rise;
    uint32_t row = best.row;
    best.rise = lt_warp_best(best.rise, &best.row);
    best.fall = lt_warp_largest(fall);
    int warp = __ffs(__ballot_sync(LT_WARP, rise == best.rise && row == best.row)) - 1;
    best.beta = found[warp < WARPS ? warp : 0].beta;
    return best;
}

template <int WARPS> __device__ static inline lt_gain lt_best_gain(const lt_gain *found) {
    int lane = threadIdx.x % 32;
    uint32_t gain = lane < WARPS ? found[lane].gain : 0,
             row = lane < WARPS ? found[lane].row : LT_CUDA_NOWHERE;
    uint32_t most = lt_warp_max(gain), lowest = lt_warp_min(gain == most ? row : LT_CUDA_NOWHERE);
    int warp = __ffs(__ballot_sync(LT_WARP, gain == most && row == lowest)) - 1;
    return found[warp < WARPS ? warp : 0];
}

/* How far to move from j to i, clipped to the box; a row that reaches its bound is put exactly there. 0:
 * nothing would change. */
typedef struct lt_move {
    double step, beta_i, beta_j;
} lt_move;

__device__ static inline double lt_high(const lt_cuda_problem &p, uint32_t t) {
    return t < p.n0 ? p.c[0] : 0.0;
}

__device__ static inline double lt_low(const lt_cuda_problem &p, uint32_t t) {
    return t < p.n0 ? 0.0 : -p.c[1];
}

__device__ static inline lt_move lt_take_step(double difference, double curvature, double high, double low,
                                              double beta_i, double beta_j) {
    lt_move move;
    double step = difference / (curvature > 0 ? curvature : 1e-12);
    double to_high = high - beta_i, to_low = beta_j - low;
    step = step < to_high ? step : to_high;
    step = step < to_low ? step : to_low;
    move.beta_i = step == to_high ? high : beta_i + step;
    move.beta_j = step == to_low ? low : beta_j - step;
    move.step = !(step > 0) || (move.beta_i == beta_i && move.beta_j == beta_j) ? 0.0 : step;
    return move;
}

/* Why to stop before the next step; LT_CUDA_RUNNING: there is no reason. */
__device__ static inline int lt_verdict(const lt_cuda_solver &s, const lt_rise &best, double gap) {
    bool none = best.row == LT_CUDA_NOWHERE || best.fall == lt_key(-LT_INFINITY);
    return none || gap < s.tolerance ? LT_SVM_SOLVED : LT_CUDA_RUNNING;
}

#endif
