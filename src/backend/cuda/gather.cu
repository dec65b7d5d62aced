/* gather.cu: one kernel turns uint8 images into the batch: x[i] = image[order(first + i)] * scale + shift.
 *
 * One block per image. Its first thread looks up which image that is (the epoch's order is a keyed
 * permutation, computed, not stored), then all threads convert it, four bytes a thread where the size
 * allows. The product is rounded before the sum, as on the host, so that every backend sees the same x.
 */
#include "backend/cuda/kernels.h"
#include "base/rng.h"

enum { THREADS = 256 };

__device__ static float convert(uint32_t byte, float scale, float shift) {
    return __fadd_rn(__fmul_rn((float)byte, scale), shift);
}

/* The place that the mirror image takes its byte `at` from. */
__device__ static int mirrored(int at, int width, int channels) {
    int row = width * channels, byte = at % row;
    return at - byte + row - channels - byte / channels * channels + byte % channels;
}

__global__ static void gather(const lt_cuda_state *state, lt_gather_source source, int image_bytes,
                              lt_gather_call call) {
    int shuffle = call.shuffle, limit = call.limit;
    float scale = call.scale, shift = call.shift;
    __shared__ const uint8_t *image;
    if (threadIdx.x == 0) {
        int cursor = state->cursor;
        lt_step step = state->steps[cursor];
        if (source.images) {
            uint32_t at = step.first + blockIdx.x;
            if (shuffle) {
                at = lt_permute(call.seed, step.epoch, (uint32_t)limit, at);
            }
            image = source.images + (size_t)at * image_bytes;
        } else {
            image = source.slots[cursor & 1] + (size_t)blockIdx.x * image_bytes;
        }
    }
    __syncthreads();
    float *to = call.x + (size_t)blockIdx.x * image_bytes;
    if (call.mirror) {
        for (int i = threadIdx.x; i < image_bytes; i += THREADS) {
            to[i] = convert(image[mirrored(i, call.width, call.channels)], scale, shift);
        }
    } else if (image_bytes % 4 == 0) {
        for (int i = threadIdx.x; i < image_bytes / 4; i += THREADS) {
            uint32_t four = ((const uint32_t *)image)[i];
            float4 out =
                make_float4(convert(four & 255, scale, shift), convert(four >> 8 & 255, scale, shift),
                            convert(four >> 16 & 255, scale, shift), convert(four >> 24, scale, shift));
            ((float4 *)to)[i] = out;
        }
    } else {
        for (int i = threadIdx.x; i < image_bytes; i += THREADS) {
            to[i] = convert(image[i], scale, shift);
        }
    }
}

extern "C" void lt_launch_gather(cudaStream_t stream, const lt_cuda_state *state, lt_gather_source source,
                                 int image_bytes, const lt_gather_call *call) {
    gather<<<call->n, THREADS, 0, stream>>>(state, source, image_bytes, *call);
}
