/* isa.c: what the processor can do, and which of our loops it therefore runs.
 *
 * AVX state must be enabled by the operating system (XGETBV), AMX besides by a request to it. CPUID leaf
 * 0x1D, which describes the tiles, is not asked: virtual machines hide it, and palette 1 is the same
 * everywhere. `--isa` may choose a lower set than the machine has, so that one machine tests every path;
 * "amx-emulated" is there for tests alone: the AMX loops with the tile instructions done in plain C.
 */
#include "backend/cpu/cpu.h"

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { XCR_AVX = 0x6, XCR_AVX512 = 0xE6, XCR_TILES = 0x60000 };

static uint64_t enabled_state(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* The kernel lends tile registers to processes that ask. */
static int ask_for_tiles(void) {
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

static int has(unsigned word, int bit) {
    return word >> bit & 1;
}

lt_cpu_isa lt_cpu_isa_best(void) {
    unsigned a, b, c, d, ext_b, ext_c, ext_d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, 27) || !has(c, 28) || !has(c, 12) ||
        !__get_cpuid_count(7, 0, &a, &ext_b, &ext_c, &ext_d)) {
        return LT_CPU_ISA_PLAIN;
    }
    uint64_t state = enabled_state();
    if ((state & XCR_AVX) != XCR_AVX || !has(ext_b, 5)) {
        return LT_CPU_ISA_PLAIN;
    }
    /* f, dq, bw, vl */
    if ((state & XCR_AVX512) != XCR_AVX512 || !has(ext_b, 16) || !has(ext_b, 17) || !has(ext_b, 30) ||
        !has(ext_b, 31)) {
        return LT_CPU_ISA_AVX2;
    }
    /* amx-bf16, amx-tile; and the vector conversions that came with them */
    int converts = __get_cpuid_count(7, 1, &a, &b, &c, &d) && has(a, 5);
    if ((state & XCR_TILES) != XCR_TILES || !has(ext_d, 22) || !has(ext_d, 24) || !converts ||
        !ask_for_tiles()) {
        return LT_CPU_ISA_AVX512;
    }
    return LT_CPU_ISA_AMX;
}

static const char *const names[] = {"plain", "avx2", "avx512", "amx", "amx-emulated"};

enum { REAL = 4, EMULATED = 4, NAMES = 5 };

const char *lt_cpu_isa_name(lt_cpu_isa isa) {
    return names[isa];
}

/* Place in `names`; the best one when nothing was asked for. */
static latent_status choose_name(latent_context *ctx, const char *wanted, lt_cpu_isa best, int *out) {
    *out = (int)best;
    if (!wanted) {
        return LATENT_OK;
    }
    for (int i = 0; i < NAMES; i++) {
        if (strcmp(wanted, names[i]) == 0) {
            *out = i;
            return i < REAL && i > (int)best
                       ? lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                                 "this processor does not have the instruction set '%s'; its best is '%s'",
                                 wanted, names[best])
                       : LATENT_OK;
        }
    }
    const char *near = latent_suggest(wanted, names, REAL);
    return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                   "there is no instruction set '%s'%s%s%s; there are amx, avx512, avx2 and plain", wanted,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

latent_status lt_cpu_isa_choose(latent_context *ctx, const latent_engine_options *options,
                                const lt_cpu_kernels **kernels, const char **name) {
    static const lt_cpu_kernels *const in_fp32[] = {&lt_cpu_kernels_plain, &lt_cpu_kernels_avx2,
                                                    &lt_cpu_kernels_avx512, &lt_cpu_kernels_avx512,
                                                    &lt_cpu_kernels_plain};
    static const char *const precisions[] = {"fp32", "bf16"};
    const char *precision = options->precision ? options->precision : "fp32";
    int isa = 0;
    lt_cpu_isa best = lt_cpu_isa_best();
    latent_status status = choose_name(ctx, options->isa, best, &isa);
    if (status != LATENT_OK) {
        return status;
    }
    *name = names[isa];
    if (strcmp(precision, "fp32") == 0) {
        *kernels = in_fp32[isa];
        *name = (*kernels)->name;
        return LATENT_OK;
    }
    if (strcmp(precision, "bf16") != 0) {
        const char *near = latent_suggest(precision, precisions, 2);
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "the backend 'cpu' knows no precision '%s'%s%s%s; it has fp32 and bf16", precision,
                       near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    if (isa == EMULATED) {
        *kernels = best >= LT_CPU_ISA_AVX512 ? &lt_cpu_kernels_emulated_avx512 : &lt_cpu_kernels_emulated;
        return LATENT_OK;
    }
    if (isa != LT_CPU_ISA_AMX) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "%s; use --precision fp32",
                       options->isa ? "bf16 needs AMX, and a lower instruction set was asked for"
                                    : "bf16 needs AMX, which this processor does not have");
    }
    *kernels = &lt_cpu_kernels_amx;
    return LATENT_OK;
}
