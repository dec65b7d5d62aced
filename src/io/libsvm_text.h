/* libsvm_text.h: LIBSVM's sparse text, a row a line: "label index:value index:value ...", indices counted
 * from 1 and rising. Rows are dense here: what is not mentioned is 0.
 */
#ifndef LT_IO_LIBSVM_TEXT_H
#define LT_IO_LIBSVM_TEXT_H

#include "io/scan.h"

/* One row's "index:value" words up to the end of its line, each through put(), which returns 0 when it has no
 * memory. *largest is raised to the highest index seen. Shared with the model file. */
typedef int (*lt_libsvm_put)(void *user, uint32_t index, float value);
latent_status lt_libsvm_row(latent_context *ctx, lt_scan *scan, lt_libsvm_put put, void *user,
                            uint32_t *largest);

/* Reads all of a scan. `columns` > 0: the rows get that width, and a higher index is an error; 0: as wide as
 * the highest index. `limit` bounds the bytes of the dense rows (0: 1 GiB, or 256 times what the values
 * themselves take when that is more). Free x and labels with free(). */
latent_status lt_libsvm_read(latent_context *ctx, lt_scan *scan, size_t columns, uint64_t limit,
                             latent_rows *out);
latent_status lt_libsvm_write(latent_context *ctx, const char *path, const float *x, size_t n, size_t d,
                              const int32_t *labels);

#endif
