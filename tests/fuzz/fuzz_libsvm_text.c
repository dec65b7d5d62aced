/* fuzz_libsvm_text.c: any bytes as LIBSVM's sparse text. What is read has finite values only, and a label for
 * each row; reading with the width that was found gives the same rows again.
 */
#include "io/libsvm_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static latent_status read_rows(latent_context *ctx, const uint8_t *data, size_t size, size_t columns,
                               latent_rows *out) {
    lt_scan *scan = NULL;
    latent_status status = lt_scan_memory(ctx, data, size, "input", &scan);
    if (status == LATENT_OK) {
        status = lt_libsvm_read(ctx, scan, columns, 1 << 20, out);
    }
    lt_scan_close(scan);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    latent_context ctx = {0};
    latent_rows rows, again;
    latent_status status = read_rows(&ctx, data, size, 0, &rows);
    if ((status == LATENT_OK) == (ctx.message[0] != 0)) {
        abort();
    }
    if (status != LATENT_OK) {
        return 0;
    }
    for (size_t i = 0; i < rows.n * rows.d; i++) {
        if (!isfinite(rows.x[i])) {
            abort();
        }
    }
    if (rows.n == 0 || rows.d == 0 || !rows.labels ||
        read_rows(&ctx, data, size, rows.d, &again) != LATENT_OK ||
        memcmp(rows.x, again.x, rows.n * rows.d * sizeof *rows.x) != 0) {
        abort();
    }
    latent_rows_free(&rows);
    latent_rows_free(&again);
    return 0;
}
