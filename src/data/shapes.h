/* shapes.h: the painter of the synthetic set: one image of a class from a seed and a number. */
#ifndef LT_DATA_SHAPES_H
#define LT_DATA_SHAPES_H

#include "data/dataset.h"

extern const char *const lt_shape_names[LT_CIFAR_CLASSES];

/* Paints the image `index` of class `label` as three planes of 32x32 (red, green, blue), the order of a
 * batch file. The bytes depend on nothing but the arguments. */
void lt_shape_paint(uint64_t seed, uint64_t index, int label, uint8_t planes[LT_CIFAR_IMAGE]);

#endif
