/* body_common.h: what the bodies are written with. */
#ifndef LT_BACKEND_CPU_BODY_COMMON_H
#define LT_BACKEND_CPU_BODY_COMMON_H

#define ALWAYS static inline __attribute__((always_inline))

/* Loops over registers must be unrolled whole, or the arrays of vectors land in memory. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
