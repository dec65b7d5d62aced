/* safetensors_value.c: one element of a tensor of any type, as a double.
 *
 * Every type but I64 fits a double exactly. The data may be unaligned, so bytes are copied out.
 */
#include "io/safetensors.h"

#include <math.h>
#include <string.h>

/* IEEE half: 1 sign bit, 5 exponent bits with bias 15, 10 fraction bits. */
static double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    int fraction = bits & 1023;
    double size = 0;
    if (exponent == 31) {
        size = fraction ? NAN : INFINITY;
    } else if (exponent == 0) {
        size = ldexp(fraction, -24);
    } else {
        size = ldexp(1024 + fraction, exponent - 25);
    }
    return bits & 0x8000 ? -size : size;
}

static double bf16_value(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16; /* bfloat16 is the upper half of a float */
    float value = 0;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

#define ELEMENT(type, name)                                                                                  \
    type name = 0;                                                                                           \
    memcpy(&name, (const unsigned char *)tensor->data + index * sizeof name, sizeof name)

double lt_st_value(const lt_st_tensor *tensor, uint64_t index) {
    switch (tensor->type) {
    case LT_ST_F32: {
        ELEMENT(float, value);
        return (double)value;
    }
    case LT_ST_F64: {
        ELEMENT(double, value);
        return value;
    }
    case LT_ST_F16: {
        ELEMENT(uint16_t, bits);
        return half_value(bits);
    }
    case LT_ST_BF16: {
        ELEMENT(uint16_t, bits);
        return bf16_value(bits);
    }
    case LT_ST_I64: {
        ELEMENT(int64_t, value);
        return (double)value;
    }
    case LT_ST_I32: {
        ELEMENT(int32_t, value);
        return value;
    }
    case LT_ST_U8: {
        ELEMENT(uint8_t, value);
        return value;
    }
    }
    return NAN;
}
