/* profile.c: where time goes, by events after every launch, and named ranges for Nsight.
 *
 * A launch records an event and the kernel's name; a mark records one too and tells the slot of everything
 * since the mark before. Nothing waits. When the ring is nearly full, or when the profile is read, the
 * distances of neighbours are added to their slots and kernels. Marks inside a capture do nothing: a graph
 * has no inside for the host, its whole time is booked by graph_launch.
 */
#include "backend/cuda/cuda.h"

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RING = 2048, ROOM = 256 }; /* an op that launches more than ROOM kernels has the rest booked as one */

void lt_cuda_profile_close(lt_cuda *cuda) {
    lt_cuda_profile *profile = &cuda->profile;
    for (int i = 0; profile->events && i < RING; i++) {
        if (profile->events[i]) {
            (void)cudaEventDestroy(profile->events[i]);
        }
    }
    free(profile->events);
    free(profile->slot_of);
    free(profile->kernel_of);
    free(profile->seconds);
    *profile = (lt_cuda_profile){0};
}

static latent_status make_ring(latent_context *ctx, lt_cuda *cuda) {
    lt_cuda_profile *profile = &cuda->profile;
    latent_status status = LATENT_OK;
    if (profile->events) {
        return LATENT_OK;
    }
    LT_TRY(lt_calloc(ctx, RING, sizeof *profile->slot_of, "the profile", (void **)&profile->slot_of));
    LT_TRY(lt_calloc(ctx, RING, sizeof *profile->kernel_of, "the profile", (void **)&profile->kernel_of));
    LT_TRY(lt_calloc(ctx, RING, sizeof *profile->events, "the profile", (void **)&profile->events));
    for (int i = 0; i < RING; i++) {
        LT_CUDA(cudaEventCreate(&profile->events[i]));
    }
done:
    if (status != LATENT_OK) {
        lt_cuda_profile_close(cuda);
    }
    return status;
}

/* Names are literals, but the same text may stand at several addresses. */
static int same_kernel(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void book_kernel(lt_cuda_profile *profile, const char *kernel, int slot, double seconds) {
    int i = 0;
    while (i < profile->kernel_count &&
           !(profile->kernels[i].slot == slot && same_kernel(profile->kernels[i].kernel, kernel))) {
        i++;
    }
    if (i == LT_CUDA_KERNELS_MAX) {
        return; /* the slot's own sum has it all the same, and the rest is told as one */
    }
    if (i == profile->kernel_count) {
        profile->kernels[profile->kernel_count++] = (lt_cuda_kernel_time){kernel, slot, 0};
    }
    profile->kernels[i].seconds += seconds;
}

/* Books all stretches recorded so far; the last event becomes the first of the next stretch. */
static cudaError_t book(lt_cuda_profile *profile) {
    int last = profile->marked - 1;
    cudaError_t error = cudaEventSynchronize(profile->events[last]);
    for (int i = 1; i <= last && error == cudaSuccess; i++) {
        float milliseconds = 0;
        int slot = profile->slot_of[i];
        error = cudaEventElapsedTime(&milliseconds, profile->events[i - 1], profile->events[i]);
        if (slot >= 0 && slot < profile->slots) {
            profile->seconds[slot] += 1e-3 * (double)milliseconds;
            book_kernel(profile, profile->kernel_of[i], slot, 1e-3 * (double)milliseconds);
        }
    }
    cudaEvent_t first = profile->events[0];
    profile->events[0] = profile->events[last];
    profile->events[last] = first;
    profile->marked = 1;
    return error;
}

latent_status lt_cuda_profile_start(latent_context *ctx, lt_backend *backend, int slots) {
    lt_cuda *cuda = (lt_cuda *)backend;
    lt_cuda_profile *profile = &cuda->profile;
    latent_status status = LATENT_OK;
    void *seconds = NULL;
    if (slots < 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "a profile of %d slots", slots);
    }
    profile->on = 0;
    if (slots == 0) {
        return LATENT_OK;
    }
    profile->slots = 0;
    LT_TRY(make_ring(ctx, cuda));
    LT_TRY(lt_calloc(ctx, (size_t)slots, sizeof(double), "the profile", &seconds));
    free(profile->seconds);
    profile->seconds = seconds;
    profile->error = cudaSuccess;
    profile->kernel_count = 0;
    LT_CUDA(cudaEventRecord(profile->events[0], cuda->stream));
    profile->marked = 1;
    profile->slots = slots;
    profile->on = 1;
done:
    return status;
}

static int is_on(const lt_cuda *cuda) {
    const lt_cuda_profile *profile = &cuda->profile;
    return profile->on && !cuda->capturing && profile->error == cudaSuccess;
}

static void record(lt_cuda *cuda, const char *kernel, int slot) {
    lt_cuda_profile *profile = &cuda->profile;
    profile->error = cudaEventRecord(profile->events[profile->marked], cuda->stream);
    profile->kernel_of[profile->marked] = kernel;
    profile->slot_of[profile->marked] = slot;
    profile->marked++;
}

void lt_cuda_mark_kernel(lt_cuda *cuda, const char *kernel) {
    if (is_on(cuda) && cuda->profile.marked < RING - 1) { /* the last place is for a mark */
        record(cuda, kernel, -1);
    }
}

void lt_cuda_mark(lt_backend *backend, int slot) {
    lt_cuda *cuda = (lt_cuda *)backend;
    lt_cuda_profile *profile = &cuda->profile;
    if (!is_on(cuda)) {
        return;
    }
    int last = profile->marked - 1, full = profile->marked == RING - 1;
    int pending = last > 0 && profile->slot_of[last] < 0;
    if (!pending ||
        full) { /* nothing of ours was launched since, or not all: a library's work, or the rest */
        record(cuda, NULL, slot);
    }
    for (int i = last; i > 0 && profile->slot_of[i] < 0; i--) {
        profile->slot_of[i] = slot;
    }
    if (profile->marked > RING - ROOM && profile->error == cudaSuccess) {
        profile->error = book(profile);
    }
}

const char *lt_cuda_kernel_time_at(lt_backend *backend, int index, int *slot, double *seconds) {
    const lt_cuda_profile *profile = &((lt_cuda *)backend)->profile;
    if (index >= profile->kernel_count) {
        return NULL;
    }
    *slot = profile->kernels[index].slot;
    *seconds = profile->kernels[index].seconds;
    return profile->kernels[index].kernel ? profile->kernels[index].kernel : "";
}

latent_status lt_cuda_profile_read(latent_context *ctx, lt_backend *backend, double *seconds, int slots) {
    lt_cuda *cuda = (lt_cuda *)backend;
    lt_cuda_profile *profile = &cuda->profile;
    latent_status status = LATENT_OK;
    if (profile->slots) {
        LT_CUDA(profile->error);
        LT_CUDA(book(profile));
    }
    for (int i = 0; i < slots; i++) {
        seconds[i] = i < profile->slots ? profile->seconds[i] : 0;
    }
done:
    return status;
}

/* The library that NVTX talks to is there only under a profiler; without one a range is a few instructions.
 * Ranges of a capture would tell when it was recorded, not when it ran, so there are none. */
void lt_cuda_range_begin(lt_cuda *cuda, const char *name, const char *pass) {
    if (cuda->profile.on && !cuda->capturing) {
        char text[128];
        snprintf(text, sizeof text, "%s%s%s", name ? name : "op", *pass ? " " : "", pass);
        nvtxRangePushA(text);
    }
}

void lt_cuda_range_end(lt_cuda *cuda) {
    if (cuda->profile.on && !cuda->capturing) {
        nvtxRangePop();
    }
}
