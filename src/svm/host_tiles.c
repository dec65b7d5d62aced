/* host_tiles.c: a kernel matrix that does not fit, as a cache of tiles.
 *
 * A tile is one row of the matrix over LT_TILE columns. What is missing of a problem's rows is computed tile
 * column by tile column, all missing rows of it in one matrix product. Tiles are found by hashing (row, tile
 * column); when the room is used up, a hand goes around and takes the next tile that was not used since it
 * came by last, never one that the present call needs. Problems share rows, so tiles of one serve the next.
 */
#include "svm/host.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

struct lt_tiles {
    float *values; /* [slots][LT_TILE] */
    size_t slots, used, hand;
    uint64_t *key;   /* [slots] row * tile columns + tile column */
    uint32_t *stamp; /* [slots] the call that needed it last */
    uint8_t *warm;   /* [slots] used since the hand came by */
    int32_t *next;   /* [slots] in the same bucket */
    int32_t *bucket; /* [buckets] first slot */
    size_t buckets;  /* a power of two */
    size_t columns;  /* tile columns of the matrix */
    uint32_t now;
    float *left;       /* [LT_BLOCK][stride] rows of a product */
    float *products;   /* [LT_BLOCK][LT_TILE] */
    uint32_t *missing; /* [LT_BLOCK] */
};

static size_t tile_columns(const lt_host_matrix *matrix) {
    return (matrix->n + LT_TILE - 1) / LT_TILE;
}

latent_status lt_tiles_create(latent_context *ctx, const lt_host_matrix *matrix, uint64_t bytes,
                              lt_tiles **out) {
    latent_status status = LATENT_OK;
    lt_tiles *tiles = NULL;
    uint64_t least = (uint64_t)LT_WORKING_MIN * tile_columns(matrix) * LT_TILE * sizeof(float);
    *out = NULL;
    if (bytes < least) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "a cache of %llu bytes is too small for %zu rows: at least %llu bytes are needed",
                       (unsigned long long)bytes, matrix->n, (unsigned long long)least);
    }
    LT_TRY(lt_calloc(ctx, 1, sizeof *tiles, "the kernel cache", (void **)&tiles));
    tiles->columns = tile_columns(matrix);
    uint64_t slots = bytes / (LT_TILE * sizeof(float)), most = (uint64_t)matrix->n * tiles->columns;
    slots = slots < most ? slots : most;
    tiles->slots = (size_t)(slots < INT32_MAX ? slots : INT32_MAX);
    for (tiles->buckets = 1; tiles->buckets < tiles->slots;) {
        tiles->buckets *= 2;
    }
    LT_TRY(lt_aligned_raw(ctx, tiles->slots, LT_TILE * sizeof(float), "the kernel cache", &tiles->values));
    LT_TRY(lt_aligned(ctx, tiles->slots, sizeof *tiles->key, "the kernel cache", &tiles->key));
    LT_TRY(lt_aligned(ctx, tiles->slots, sizeof *tiles->stamp, "the kernel cache", &tiles->stamp));
    LT_TRY(lt_aligned(ctx, tiles->slots, sizeof *tiles->warm, "the kernel cache", &tiles->warm));
    LT_TRY(lt_aligned(ctx, tiles->slots, sizeof *tiles->next, "the kernel cache", &tiles->next));
    LT_TRY(lt_aligned(ctx, tiles->buckets, sizeof *tiles->bucket, "the kernel cache", &tiles->bucket));
    LT_TRY(lt_aligned(ctx, LT_BLOCK, matrix->stride * sizeof(float), "kernel products", &tiles->left));
    LT_TRY(lt_aligned(ctx, LT_BLOCK, LT_TILE * sizeof(float), "kernel products", &tiles->products));
    LT_TRY(lt_aligned(ctx, LT_BLOCK, sizeof *tiles->missing, "kernel products", &tiles->missing));
    lt_tiles_clear(tiles);
    *out = tiles;
    tiles = NULL;
done:
    lt_tiles_destroy(tiles);
    return status;
}

void lt_tiles_destroy(lt_tiles *tiles) {
    if (tiles) {
        free(tiles->values);
        free(tiles->key);
        free(tiles->stamp);
        free(tiles->warm);
        free(tiles->next);
        free(tiles->bucket);
        free(tiles->left);
        free(tiles->products);
        free(tiles->missing);
        free(tiles);
    }
}

void lt_tiles_clear(lt_tiles *tiles) {
    tiles->used = tiles->hand = 0;
    memset(tiles->bucket, 0xFF, tiles->buckets * sizeof *tiles->bucket); /* NONE */
}

uint64_t lt_tiles_bytes(const lt_tiles *tiles) {
    return (uint64_t)tiles->slots * LT_TILE * sizeof(float);
}

static size_t bucket_of(const lt_tiles *tiles, uint64_t key) {
    return (size_t)(key * 0x9E3779B97F4A7C15u >> 20) & (tiles->buckets - 1);
}

static int32_t find(const lt_tiles *tiles, uint64_t key) {
    int32_t slot = tiles->bucket[bucket_of(tiles, key)];
    while (slot != NONE && tiles->key[slot] != key) {
        slot = tiles->next[slot];
    }
    return slot;
}

static void unlink_slot(lt_tiles *tiles, int32_t slot) {
    int32_t *at = &tiles->bucket[bucket_of(tiles, tiles->key[slot])];
    while (*at != slot) {
        at = &tiles->next[*at];
    }
    *at = tiles->next[slot];
}

/* A slot for a new tile: an unused one, or one that nobody needs now. */
static int32_t take_slot(lt_tiles *tiles, uint64_t key) {
    int32_t slot;
    if (tiles->used < tiles->slots) {
        slot = (int32_t)tiles->used++;
    } else {
        while (tiles->stamp[tiles->hand] == tiles->now || tiles->warm[tiles->hand]) {
            tiles->warm[tiles->hand] = 0;
            tiles->hand = tiles->hand + 1 < tiles->slots ? tiles->hand + 1 : 0;
        }
        slot = (int32_t)tiles->hand;
        unlink_slot(tiles, slot);
    }
    size_t bucket = bucket_of(tiles, key);
    tiles->key[slot] = key;
    tiles->next[slot] = tiles->bucket[bucket];
    tiles->bucket[bucket] = slot;
    return slot;
}

static void touch(lt_tiles *tiles, int32_t slot) {
    tiles->stamp[slot] = tiles->now;
    tiles->warm[slot] = 1;
}

typedef struct fill_job {
    const lt_host_matrix *matrix;
    size_t tile;
} fill_job;

static void fill_task(void *arg, int task, int thread) {
    const fill_job *job = arg;
    const lt_tiles *tiles = job->matrix->tiles;
    size_t row = tiles->missing[task], first = job->tile * LT_TILE;
    size_t count = job->matrix->n - first < LT_TILE ? job->matrix->n - first : LT_TILE;
    int32_t slot = find(tiles, (uint64_t)row * tiles->columns + job->tile);
    (void)thread;
    lt_kernel_from_products(job->matrix, row, first, count, tiles->products + (size_t)task * LT_TILE, NULL,
                            tiles->values + (size_t)slot * LT_TILE);
}

/* Computes the missing rows of one tile column. */
static latent_status fill(latent_context *ctx, lt_host_matrix *matrix, size_t tile, size_t count) {
    lt_tiles *tiles = matrix->tiles;
    size_t first = tile * LT_TILE, width = matrix->n - first < LT_TILE ? matrix->n - first : LT_TILE;
    for (size_t i = 0; i < count; i++) {
        memcpy(tiles->left + i * matrix->stride, matrix->x + tiles->missing[i] * matrix->stride,
               matrix->stride * sizeof(float));
    }
    latent_status status = matrix->backend->type->gemm_nt(
        ctx, matrix->backend, count, width, matrix->d, tiles->left, matrix->stride,
        matrix->x + first * matrix->stride, matrix->stride, tiles->products, LT_TILE);
    if (status == LATENT_OK) {
        fill_job job = {matrix, tile};
        lt_parallel_if(matrix->backend, count * width >= LT_SPLIT, (int)count, fill_task, &job);
    }
    return status;
}

static latent_status need_tile(latent_context *ctx, lt_host_matrix *matrix, const uint32_t *rows,
                               size_t count, size_t tile) {
    lt_tiles *tiles = matrix->tiles;
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t key = (uint64_t)rows[i] * tiles->columns + tile;
        int32_t slot = find(tiles, key);
        if (slot == NONE) {
            slot = take_slot(tiles, key);
            tiles->missing[missing++] = rows[i];
        }
        touch(tiles, slot);
        if (missing == LT_BLOCK || (i + 1 == count && missing > 0)) {
            latent_status status = fill(ctx, matrix, tile, missing);
            if (status != LATENT_OK) {
                lt_tiles_clear(tiles); /* what was promised is not there */
                return status;
            }
            missing = 0;
        }
    }
    return LATENT_OK;
}

/* Tile columns of a problem, without counting one twice that both ranges touch. */
static size_t tiles_of(const lt_columns *c, size_t *first, size_t *last) {
    size_t total = 0;
    for (int r = 0; r < 2; r++) {
        first[r] = c->begin[r] / LT_TILE;
        last[r] = c->end[r] > c->begin[r] ? (c->end[r] - 1) / LT_TILE + 1 : first[r];
    }
    int low = first[0] <= first[1] ? 0 : 1;
    if (last[low] > first[1 - low]) {
        first[1 - low] = last[low] < last[1 - low] ? last[low] : last[1 - low];
    }
    for (int r = 0; r < 2; r++) {
        total += last[r] - first[r];
    }
    return total;
}

size_t lt_matrix_rows_max(const lt_host_matrix *matrix, const lt_columns *columns) {
    size_t first[2], last[2], count = tiles_of(columns, first, last);
    return matrix->tiles && count > 0 ? matrix->tiles->slots / count : SIZE_MAX;
}

latent_status lt_matrix_need(latent_context *ctx, lt_host_matrix *matrix, const uint32_t *rows, size_t count,
                             const lt_columns *columns) {
    size_t first[2], last[2];
    if (!matrix->tiles) {
        return LATENT_OK;
    }
    tiles_of(columns, first, last);
    matrix->tiles->now++;
    /* First what is there, so that it is not thrown out for what is not. */
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < 2; r++) {
            for (size_t tile = first[r]; tile < last[r]; tile++) {
                latent_status status = LATENT_OK;
                for (size_t i = 0; pass == 0 && i < count; i++) {
                    int32_t slot = find(matrix->tiles, (uint64_t)rows[i] * matrix->tiles->columns + tile);
                    if (slot != NONE) {
                        touch(matrix->tiles, slot);
                    }
                }
                if (pass == 1) {
                    status = need_tile(ctx, matrix, rows, count, tile);
                }
                if (status != LATENT_OK) {
                    return status;
                }
            }
        }
    }
    return LATENT_OK;
}

const float *lt_matrix_at(const lt_host_matrix *matrix, size_t row, size_t column, size_t *run) {
    if (!matrix->tiles) {
        *run = matrix->n - column;
        return matrix->k + row * matrix->row + column;
    }
    const lt_tiles *tiles = matrix->tiles;
    size_t tile = column / LT_TILE, inside = column % LT_TILE;
    *run = LT_TILE - inside;
    int32_t slot = find(tiles, (uint64_t)row * tiles->columns + tile);
    return tiles->values + (size_t)slot * LT_TILE + inside;
}
