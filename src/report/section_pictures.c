/* section_pictures.c: images: what the net makes of them, and which are taken for something else. */
#include "report/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAIN = 3 };

/* Three images of one sample, one below the other. */
static latent_status put_sample(latent_context *ctx, lt_text *t, const lt_report_run *run, int i,
                                uint8_t *work) {
    latent_status status = LATENT_OK;
    const lt_report_pictures *p = &run->pictures;
    size_t bytes = (size_t)p->width * (size_t)p->height * 3;
    const uint8_t *original = p->original + (size_t)i * bytes, *output = p->output + (size_t)i * bytes;
    char buffer[24], alt[160];
    const char *name = lt_report_class(run, p->label[i], buffer);
    for (size_t k = 0; k < bytes; k++) {
        int difference = GAIN * abs((int)original[k] - (int)output[k]);
        work[k] = (uint8_t)(difference < 255 ? difference : 255);
    }
    lt_put(t, "<figure>");
    snprintf(alt, sizeof alt, "%.100s, original", name);
    LT_TRY(lt_put_image(ctx, t, original, p->width, p->height, alt));
    snprintf(alt, sizeof alt, "%.100s, reconstruction", name);
    LT_TRY(lt_put_image(ctx, t, output, p->width, p->height, alt));
    snprintf(alt, sizeof alt, "%.100s, difference times three", name);
    LT_TRY(lt_put_image(ctx, t, work, p->width, p->height, alt));
    lt_put(t, "<figcaption>");
    lt_escape(t, name);
    lt_put(t, "</figcaption></figure>");
done:
    return status;
}

latent_status lt_section_samples(latent_context *ctx, lt_text *t, lt_place place, const lt_report_run *run) {
    latent_status status = LATENT_OK;
    const lt_report_pictures *p = &run->pictures;
    uint8_t *work = NULL;
    if (p->count == 0) {
        return LATENT_OK;
    }
    LT_TRY(lt_alloc(ctx, (size_t)p->width * (size_t)p->height * 3, "a picture", (void **)&work));
    lt_heading(t, place, "reconstructions", "Reconstructions");
    lt_put(t, "<p class=\"sub\">From top to bottom: the original, what the net makes of it, and three times "
              "their difference.</p><div class=\"samples\">");
    for (int i = 0; i < p->count; i++) {
        LT_TRY(put_sample(ctx, t, run, i, work));
    }
    lt_put(t, "</div>");
done:
    free(work);
    return status;
}

/* Images of one pair of classes stand together; `last` is where the next pair begins. */
static latent_status put_pair(latent_context *ctx, lt_text *t, const lt_report_run *run, int first,
                              int last) {
    latent_status status = LATENT_OK;
    const lt_report_pictures *p = &run->pictures;
    int truth = p->truth[first], answer = p->predicted[first];
    size_t bytes = (size_t)p->width * (size_t)p->height * 3;
    char truth_buffer[24], answer_buffer[24], alt[256];
    const char *truth_name = lt_report_class(run, truth, truth_buffer);
    const char *answer_name = lt_report_class(run, answer, answer_buffer);
    lt_put(t, "<div class=\"pair\"><b>");
    lt_escape(t, truth_name);
    lt_put(t, "</b> taken for <b>");
    lt_escape(t, answer_name);
    lt_put(t, "</b>");
    if (truth < run->classes && answer < run->classes && run->scores[truth].count > 0) {
        uint64_t count = run->confusion[(size_t)truth * (size_t)run->classes + (size_t)answer];
        lt_putf(t, ": %llu of %llu, %.1f%%", (unsigned long long)count,
                (unsigned long long)run->scores[truth].count,
                100.0 * (double)count / (double)run->scores[truth].count);
    }
    lt_put(t, "<div class=\"strip\">");
    snprintf(alt, sizeof alt, "%.100s taken for %.100s", truth_name, answer_name);
    for (int i = first; i < last; i++) {
        LT_TRY(lt_put_image(ctx, t, p->taken + (size_t)i * bytes, p->width, p->height, alt));
    }
    lt_put(t, "</div></div>");
done:
    return status;
}

latent_status lt_section_pairs(latent_context *ctx, lt_text *t, const lt_report_run *run) {
    latent_status status = LATENT_OK;
    const lt_report_pictures *p = &run->pictures;
    if (p->confused > 0) {
        lt_put(t, "<h3>The pairs confused most</h3>");
    }
    for (int first = 0, last; first < p->confused; first = last) {
        last = first + 1;
        while (last < p->confused && p->truth[last] == p->truth[first] &&
               p->predicted[last] == p->predicted[first]) {
            last++;
        }
        LT_TRY(put_pair(ctx, t, run, first, last));
    }
done:
    return status;
}
