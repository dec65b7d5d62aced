/* optimizer.cu: one step over the flat block, in one pass: every number is read once and written once.
 *
 * The arithmetic is the contract's (backend.h). The learning rate and Adam's corrections come from the step
 * table, so the launch is the same for every step. Four numbers a thread, 16 bytes an access; the last few
 * one by one. A gradient that is not finite marks the step: the smallest wins, whichever thread comes first.
 */
#include "backend/cuda/kernels.h"

enum { THREADS = 256 };

typedef struct update {
    float lr, correction1, correction2;
    float momentum, beta2, epsilon, decay;
} update;

template <int KIND> __device__ static void step_one(const update &u, float &p, float g, float &m, float &v) {
    if (KIND == LATENT_SGD) {
        g += u.decay * p;
        m = u.momentum * m + g;
        p -= u.lr * m;
        return;
    }
    if (KIND == LATENT_ADAMW) {
        p -= u.lr * u.decay * p;
    } else {
        g += u.decay * p;
    }
    m = u.momentum * m + (1 - u.momentum) * g;
    v = u.beta2 * v + (1 - u.beta2) * g * g;
    p -= u.lr * (m * u.correction1) / (sqrtf(v) * u.correction2 + u.epsilon);
}

/* Without momentum SGD keeps no m: it reads as 0 and is not written. */
template <int KIND, bool MOMENTUM>
__global__ static void optimizer(lt_cuda_state *state, update u, float *params, float *grads, float *m,
                                 float *v, size_t count) {
    size_t at = 4 * ((size_t)blockIdx.x * THREADS + threadIdx.x);
    const lt_step *step = &state->steps[state->cursor];
    u.lr = step->lr;
    u.correction1 = step->correction1;
    u.correction2 = step->correction2;
    bool finite = true;
    if (at + 4 <= count) {
        float4 zero = make_float4(0, 0, 0, 0);
        float4 p = *(float4 *)(params + at), g = *(float4 *)(grads + at);
        float4 m4 = MOMENTUM ? *(float4 *)(m + at) : zero,
               v4 = KIND != LATENT_SGD ? *(float4 *)(v + at) : zero;
        finite = isfinite(g.x) && isfinite(g.y) && isfinite(g.z) && isfinite(g.w);
        step_one<KIND>(u, p.x, g.x, m4.x, v4.x);
        step_one<KIND>(u, p.y, g.y, m4.y, v4.y);
        step_one<KIND>(u, p.z, g.z, m4.z, v4.z);
        step_one<KIND>(u, p.w, g.w, m4.w, v4.w);
        *(float4 *)(params + at) = p;
        *(float4 *)(grads + at) = zero;
        if (MOMENTUM) {
            *(float4 *)(m + at) = m4;
        }
        if (KIND != LATENT_SGD) {
            *(float4 *)(v + at) = v4;
        }
    } else {
        for (; at < count; at++) {
            float none = 0, g = grads[at];
            finite = finite && isfinite(g);
            step_one<KIND>(u, params[at], g, MOMENTUM ? m[at] : none, KIND != LATENT_SGD ? v[at] : none);
            grads[at] = 0;
        }
    }
    if (!finite) {
        atomicMin(&state->bad_step, state->cursor);
    }
}

extern "C" void lt_launch_optimizer(cudaStream_t stream, lt_cuda_state *state,
                                    const lt_optimizer_call *call) {
    unsigned blocks = (unsigned)((call->count + 4 * THREADS - 1) / (4 * THREADS));
    update u = {0, 0, 0, call->momentum, call->beta2, call->epsilon, call->decay};
    if (call->kind == LATENT_ADAM) {
        optimizer<LATENT_ADAM, true><<<blocks, THREADS, 0, stream>>>(state, u, call->params, call->grads,
                                                                     call->m, call->v, call->count);
    } else if (call->kind == LATENT_ADAMW) {
        optimizer<LATENT_ADAMW, true><<<blocks, THREADS, 0, stream>>>(state, u, call->params, call->grads,
                                                                      call->m, call->v, call->count);
    } else if (call->momentum != 0) {
        optimizer<LATENT_SGD, true><<<blocks, THREADS, 0, stream>>>(state, u, call->params, call->grads,
                                                                    call->m, call->v, call->count);
    } else {
        optimizer<LATENT_SGD, false><<<blocks, THREADS, 0, stream>>>(state, u, call->params, call->grads,
                                                                     call->m, call->v, call->count);
    }
}
