/* body_bf16_fetch.h: pixels of what a pass reads, 32 channels at a time, in the order of a chunk's cells. */
#ifndef LT_BACKEND_CPU_BODY_BF16_FETCH_H
#define LT_BACKEND_CPU_BODY_BF16_FETCH_H

/* 32 channels from c on, 0 outside the image and past the last. dz is always bf16. */
ALWAYS halves fetch_halves(const lt_cpu_source *s, lt_cpu_kind kind, spot place, int c) {
    int left = s->channels - c;
    if (place.at < 0 || left <= 0) {
        return halves_zero();
    }
    size_t at = (size_t)place.at + (size_t)c;
    if (kind == LT_CPU_PLAIN && s->type == LT_F32) {
        return halves_round((const float *)s->data + at, left);
    }
    halves value = halves_load((const uint16_t *)s->data + at, left);
    if (kind == LT_CPU_RELU) {
        value = halves_where_positive(halves_load((const uint16_t *)s->y + at, left), value);
    } else if (kind == LT_CPU_POOL) {
        value = halves_where_code(s->mask + at, left, place.code, value);
    }
    return value;
}

/* Walks the rows of a source, pixel by pixel: the chunk's cells, then those that shifts reach. */
typedef struct walk {
    int img, cy, cx;
    int rows, columns;        /* of cells in a source */
    int y, x, y_step, x_step; /* the first cell's pixel, and the distance to the next */
} walk;

static walk walk_begin(const lt_cpu_pass *pass, const lt_cpu_chunk *chunk, int i) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    walk w = {0, 0, 0, chunk->rows, pass->chunk_columns, chunk->y, chunk->x, 1, 1};
    if (pass->form != LT_CPU_COLUMNS) {
        w.rows += y->extra;
        w.y_step = y->in_step;
        w.x_step = x->in_step;
        w.y = chunk->y * w.y_step + y->source_offset[i / x->sources];
        w.x = chunk->x * w.x_step + x->source_offset[i % x->sources];
    }
    return w;
}

/* The next pixel; -1 past the chunk. */
ALWAYS spot walk_next(walk *w, const lt_cpu_source *s, const lt_cpu_chunk *chunk, lt_cpu_kind kind) {
    spot place = {-1, 0};
    if (w->img < chunk->images && w->cx < chunk->columns) {
        place = locate(s, kind, chunk->image + w->img, w->y + w->cy * w->y_step, w->x + w->cx * w->x_step);
    }
    if (++w->cx == w->columns) {
        w->cx = 0;
        if (++w->cy == w->rows) {
            w->cy = 0;
            w->img++;
        }
    }
    return place;
}

#endif
