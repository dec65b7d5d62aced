/* metrics.c: what each epoch achieved, as JSON lines.
 *
 * A line is appended and flushed before the checkpoint of its epoch is written. So after a crash the file may
 * hold epochs that the checkpoint does not know, or half a line, but never lacks one: resuming drops what
 * lies beyond the checkpoint, and every epoch is there exactly once.
 */
#include "train/metrics.h"

#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { METRICS_MAX = 1 << 29 };

static void put_number(lt_json_writer *w, const char *key, double value) {
    lt_json_key(w, key);
    lt_json_number(w, value);
}

static void put_time(lt_json_writer *w) {
    char text[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) {
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    lt_json_key(w, "time");
    lt_json_string(w, text);
}

latent_status lt_metrics_append(latent_context *ctx, const char *path, const lt_epoch_metrics *metrics) {
    latent_status status = LATENT_OK;
    lt_json_writer w;
    memset(&w, 0, sizeof w);
    lt_json_begin_object(&w);
    lt_json_key(&w, "epoch");
    lt_json_integer(&w, metrics->epoch);
    put_number(&w, "loss", metrics->loss);
    put_number(&w, "lr", metrics->lr);
    put_number(&w, "seconds", metrics->seconds);
    put_number(&w, "images_per_second", metrics->images_per_second);
    put_number(&w, "forward_seconds", metrics->forward);
    put_number(&w, "backward_seconds", metrics->backward);
    put_number(&w, "optimizer_seconds", metrics->optimizer);
    put_time(&w);
    lt_json_end_object(&w);
    LT_TRY(lt_json_finish(ctx, &w));
    w.text[w.length] = '\n'; /* in the place of the closing 0: one write, so that lines stay whole */
    LT_TRY(lt_file_append(ctx, path, w.text, w.length + 1));
done:
    free(w.text);
    return status;
}

/* The epoch a line tells of; 0 when it is not one of our lines. */
static uint64_t line_epoch(const char *line, size_t length) {
    latent_context quiet; /* a broken line is an answer here, not an error */
    memset(&quiet, 0, sizeof quiet);
    lt_json *json = NULL;
    uint64_t epoch = 0;
    if (lt_json_parse(&quiet, line, length, "metrics", &json) != LATENT_OK ||
        !lt_json_u64(lt_json_get(lt_json_root(json), "epoch"), &epoch)) {
        epoch = 0;
    }
    lt_json_destroy(json);
    return epoch;
}

latent_status lt_metrics_keep(latent_context *ctx, const char *path, int epochs) {
    if (!lt_file_exists(path)) {
        return LATENT_OK;
    }
    latent_status status = LATENT_OK;
    char *text = NULL;
    size_t bytes = 0, kept = 0;
    uint64_t last = 0;
    LT_TRY(lt_file_read(ctx, path, METRICS_MAX, &text, &bytes));
    for (size_t at = 0; at < bytes;) {
        char *newline = memchr(text + at, '\n', bytes - at);
        if (!newline) {
            break; /* half a line: the append was cut short */
        }
        size_t length = (size_t)(newline - (text + at));
        uint64_t epoch = line_epoch(text + at, length);
        if (epoch > last && epoch <= (uint64_t)epochs) {
            memmove(text + kept, text + at, length + 1);
            kept += length + 1;
            last = epoch;
        }
        at += length + 1;
    }
    if (kept != bytes) {
        LT_TRY(lt_file_write(ctx, path, text, kept));
    }
done:
    free(text);
    return status;
}
