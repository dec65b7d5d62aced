/* device.c: which GPU, whether it can run this build, and the sentences for when it cannot.
 *
 * The runtime is linked into the program and looks for the driver itself, so the same binary starts on a
 * machine without one: every way for a GPU to be absent, too old or busy ends in a sentence here.
 */
#include "backend/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

/* The oldest architecture that a build may hold code for. */
enum { OLDEST = 75 };

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

latent_status lt_cuda_fail(latent_context *ctx, const lt_cuda *cuda, cudaError_t error, const char *call,
                           const char *file, int line) {
    (void)cudaGetLastError();
    latent_status status = error == cudaErrorMemoryAllocation ? LATENT_ERROR_MEMORY : LATENT_ERROR_DEVICE;
    const char *kernel = cuda && cuda->last_kernel ? cuda->last_kernel : "none";
    return lt_fail(ctx, status, "%s:%d: %s: %s (%s); the latest kernel launched was %s", base_name(file),
                   line, call, cudaGetErrorString(error), cudaGetErrorName(error), kernel);
}

latent_status lt_cuda_launch_fail(latent_context *ctx, cudaError_t error, const char *kernel,
                                  const char *file, int line) {
    return lt_fail(ctx, LATENT_ERROR_DEVICE, "%s:%d: the kernel %s could not be launched: %s (%s)",
                   base_name(file), line, kernel, cudaGetErrorString(error), cudaGetErrorName(error));
}

/* How many GPUs there are; 0 with the reason in `why`. */
static int count_devices(char *why, size_t size) {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    (void)cudaGetLastError();
    if (error == cudaErrorInsufficientDriver) {
        int driver = 0;
        (void)cudaDriverGetVersion(&driver);
        if (driver == 0) {
            snprintf(why, size, "no NVIDIA driver is installed");
        } else {
            snprintf(why, size, "the NVIDIA driver supports CUDA %d.%d, older than this build's %d.%d",
                     driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
        }
    } else if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
        snprintf(why, size, "no NVIDIA GPU is visible (is CUDA_VISIBLE_DEVICES set?)");
    } else if (error != cudaSuccess) {
        snprintf(why, size, "%s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
    }
    return error == cudaSuccess ? count : 0;
}

typedef struct device_facts {
    char name[96];
    int capability; /* 90 for 9.0 */
    int processors;
    double gigabytes;
} device_facts;

static cudaError_t read_facts(int device, device_facts *out) {
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    memset(out, 0, sizeof *out);
    if (error == cudaSuccess) {
        snprintf(out->name, sizeof out->name, "%.95s", properties.name);
        out->capability = 10 * properties.major + properties.minor;
        out->processors = properties.multiProcessorCount;
        out->gigabytes = (double)properties.totalGlobalMem / (1 << 30);
    }
    return error;
}

static void too_old(const device_facts *facts, char *text, size_t size) {
    snprintf(text, size, "%s has compute capability %d.%d; this build needs %d.%d or newer", facts->name,
             facts->capability / 10, facts->capability % 10, OLDEST / 10, OLDEST % 10);
}

/* The first device that is new enough. Whether this build holds code for it shows when it is opened: to ask
 * takes the device's context, and a probe is cheap. */
int lt_cuda_probe(char *detail, size_t size) {
    device_facts facts;
    int count = count_devices(detail, size);
    for (int device = 0; device < count; device++) {
        cudaError_t error = read_facts(device, &facts);
        if (error == cudaSuccess && facts.capability >= OLDEST) {
            int length = snprintf(detail, size, "%s, sm_%d, %d SMs, %.0f GiB", facts.name, facts.capability,
                                  facts.processors, facts.gigabytes);
            if (count > 1 && length > 0 && (size_t)length < size) {
                snprintf(detail + length, size - (size_t)length, "; %d devices, this is number %d", count,
                         device);
            }
            return 1;
        }
        if (error != cudaSuccess) {
            snprintf(detail, size, "device %d: %s (%s)", device, cudaGetErrorString(error),
                     cudaGetErrorName(error));
            (void)cudaGetLastError();
        } else {
            too_old(&facts, detail, size);
        }
    }
    return 0;
}

/* Creates the device's context, which is where a busy or broken GPU shows. */
static latent_status start_device(latent_context *ctx, lt_cuda *cuda, int device, const device_facts *facts) {
    cudaError_t error = cudaSetDevice(device);
    error = error == cudaSuccess ? cudaFree(NULL) : error;
    error = error == cudaSuccess ? lt_cuda_code_check() : error;
    (void)cudaGetLastError();
    if (error == cudaSuccess) {
        cuda->device = device;
        memcpy(cuda->name, facts->name, sizeof cuda->name);
        return LATENT_OK;
    }
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "device %d (%s, sm_%d): this build holds no code for it; configure with "
                       "-DLATENT_CUDA_ARCHS=%d",
                       device, facts->name, facts->capability, facts->capability);
    }
    if (error == cudaErrorMemoryAllocation) {
        return lt_fail(ctx, LATENT_ERROR_MEMORY,
                       "device %d (%s) has not even the memory to start: another program uses it up", device,
                       facts->name);
    }
    return lt_fail(ctx, LATENT_ERROR_DEVICE, "device %d (%s) cannot be used: %s (%s)", device, facts->name,
                   cudaGetErrorString(error), cudaGetErrorName(error));
}

latent_status lt_cuda_device_open(latent_context *ctx, lt_cuda *cuda, int device) {
    latent_status status = LATENT_OK;
    char why[224] = "";
    device_facts facts;
    int count = count_devices(why, sizeof why);
    if (count == 0) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "the backend 'cuda' cannot run here: %s", why);
    }
    if (device < 0 || device >= count) {
        char range[32] = "0";
        if (count > 1) {
            snprintf(range, sizeof range, "0 to %d", count - 1);
        }
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "device %d does not exist: this machine has %d (%s)",
                       device, count, range);
    }
    LT_CUDA(read_facts(device, &facts));
    if (facts.capability < OLDEST) {
        too_old(&facts, why, sizeof why);
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "device %d: %s", device, why);
    }
    LT_TRY(start_device(ctx, cuda, device, &facts));
    /* Neither waits for the legacy stream, so that a capture is disturbed by nobody. */
    LT_CUDA(cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking));
    LT_CUDA(cudaStreamCreateWithFlags(&cuda->copies, cudaStreamNonBlocking));
done:
    return status;
}

void lt_cuda_device_close(lt_cuda *cuda) {
    if (cuda->stream) {
        (void)cudaStreamDestroy(cuda->stream);
    }
    if (cuda->copies) {
        (void)cudaStreamDestroy(cuda->copies);
    }
    (void)cudaGetLastError();
}

latent_status lt_cuda_device_use(latent_context *ctx, lt_cuda *cuda) {
    latent_status status = LATENT_OK;
    LT_CUDA(cudaSetDevice(cuda->device));
done:
    return status;
}
