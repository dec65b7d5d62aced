/* ops.c: the reference's ops for float and for double tensors: the same text, read twice. */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

size_t lt_ref_conv_mask(const lt_conv *conv, int n) {
    return conv->pool2 ? (size_t)n * (size_t)conv->PH * (size_t)conv->PW * (size_t)conv->K : 0;
}

/* Forward: the transposed weight and z. Backward: dw, db, dx of one image, dz. The second is larger. */
size_t lt_ref_conv_scratch(const lt_conv *conv) {
    size_t K = (size_t)conv->K, weights = K * (size_t)conv->R * (size_t)conv->S * (size_t)conv->C;
    size_t in = (size_t)conv->H * (size_t)conv->W * (size_t)conv->C;
    return weights + K + in + (size_t)conv->OH * (size_t)conv->OW * K;
}

#define REAL       float
#define NAME(name) name##_f32
#include "backend/ref/ops_body.h"
#undef REAL
#undef NAME

#define REAL       double
#define NAME(name) name##_f64
#include "backend/ref/ops_body.h"
