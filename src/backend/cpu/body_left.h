/* body_left.h: fp32 dz into lines for the weight gradient, through the adjoint of each form's last additions.
 */
#ifndef LT_BACKEND_CPU_BODY_LEFT_H
#define LT_BACKEND_CPU_BODY_LEFT_H

/* A row of the adjoint of (m0+m1+m2, m1-m2-m3), per axis (z0, z0+z1, z0-z1, -z1): winograd. Of the adjoint
 * of (m0+m1, m1-m2), per axis (z0, z0+z1, -z1): upsample. Stage 1 reads the whole quad and counts db. */
ALWAYS void left_quads(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                       void *left, float *db, lt_cpu_kind kind) {
    size_t point = ((size_t)pass->width_blocks * pass->out_rows + 1) * 16;
    ptrdiff_t ahead = 2 * (ptrdiff_t)s->width * s->channels;
    int winograd = pass->form == LT_CPU_WINOGRAD, top = stage < 2 || (stage == 2 && winograd),
        low = stage > 0;
    FOR_CELLS(chunk, row, img, cy, cx) {
        spot places[4];
        for (int i = 0; i < 4; i++) {
            places[i] = locate(s, kind, chunk->image + img, 2 * cy + i / 2, 2 * cx + i % 2);
        }
        for (int c = 0; c < pass->width_blocks * 16; c += LANES) {
            float *to = line_at(left, (size_t)(c / 16) * pass->out_rows + (size_t)row) + c % 16;
            vec z[4], t[2];
            UNROLL for (int i = 0; i < 4; i++) {
                z[i] = vec_zero();
                if (i < 2 ? top : low) {
                    z[i] = fetch(s, kind, places[i], pass->width_first * 16 + c);
                    if (kind != LT_CPU_POOL) {
                        prefetch(s, kind, places[i], pass->width_first * 16 + c, ahead);
                    }
                }
            }
            if (stage == 1 && db) {
                vec_store(db + c, vec_load(db + c) + ((z[0] + z[1]) + (z[2] + z[3])));
            }
            UNROLL for (int i = 0; i < 2; i++) {
                t[i] = stage == 1 ? z[i] + z[2 + i] : z[i] - z[2 + i];
            }
            vec_store(to, t[0]);
            vec_store(to + point, t[0] + t[1]);
            if (winograd) {
                vec_store(to + 2 * point, t[0] - t[1]);
                to += point;
            }
            vec_store(to + 2 * point, vec_zero() - t[1]);
        }
    }
}

/* One phase of the outputs. */
ALWAYS void left_phase(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int p,
                       float *left, float *db, lt_cpu_kind kind) {
    int py = p / pass->x.phases, px = p % pass->x.phases;
    FOR_CELLS(chunk, row, img, cy, cx) {
        spot place =
            locate(s, kind, chunk->image + img, cy * pass->y.out_step + py, cx * pass->x.out_step + px);
        for (int c = 0; c < pass->width_blocks * 16; c += LANES) {
            vec z = fetch(s, kind, place, pass->width_first * 16 + c);
            if (db) {
                vec_store(db + c, vec_load(db + c) + z);
            }
            vec_store(line_at(left, (size_t)(c / 16) * pass->out_rows + (size_t)row) + c % 16, z);
        }
    }
}

static void pack_left(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                      void *left, float *db) {
    if (pass->form == LT_CPU_COLUMNS) {
        BY_KIND(s, pack_columns, pass, s, chunk, left);
        if (db) {
            BY_KIND(s, sum_images, s, chunk, db);
        }
    } else if (pass->form == LT_CPU_TAPS || pass->form == LT_CPU_FLAT) {
        size_t point = (size_t)pass->width_blocks * pass->out_rows + 1;
        for (int i = 0; i < pass->stage_points; i++) {
            int p = stage * pass->stage_points + i;
            BY_KIND(s, left_phase, pass, s, chunk, p, line_at(left, (size_t)i * point), db);
        }
    } else {
        /* Stages are constants in each, so that no loop asks. */
        if (stage == 0) {
            BY_KIND(s, left_quads, pass, s, chunk, 0, left, db);
        } else if (stage == 1) {
            BY_KIND(s, left_quads, pass, s, chunk, 1, left, db);
        } else if (stage == 2) {
            BY_KIND(s, left_quads, pass, s, chunk, 2, left, db);
        } else {
            BY_KIND(s, left_quads, pass, s, chunk, 3, left, db);
        }
    }
}

#endif
