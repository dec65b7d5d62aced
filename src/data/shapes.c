/* shapes.c: paints ten classes of shapes in integers only.
 *
 * An image is a textured background, one shape filled with another texture, and noise. The class is the
 * shape's outline alone: colour, contrast (mostly lighter than the background, at times darker), place, size,
 * rotation, both textures and the noise are drawn anew for every image, so that a linear classifier on raw
 * pixels finds a third of them while a few layers of convolution see nearly all. Every number is an integer,
 * the angles come from a table and the randomness is counted: the same arguments give the same bytes on any
 * machine.
 *
 * Units: places in the image are 1/256 pixel; a shape lives in its own plane where 4096 is its radius.
 */
#include "data/shapes.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

enum { PIXEL = 256, UNIT = 4096, SUB = 4, SAMPLES = SUB * SUB, LATTICE = 6 };

const char *const lt_shape_names[LT_CIFAR_CLASSES] = {"disc", "ring",     "square", "triangle",  "cross",
                                                      "star", "crescent", "bars",   "hourglass", "dots"};

/* ---- Randomness: four words at a time, counted by (image, draw) --------------------------------- */

typedef struct dice {
    uint64_t seed, image;
    uint32_t draw;
    int left;
    lt_random words;
} dice;

static uint32_t roll(dice *d) {
    if (d->left == 0) {
        d->words = lt_philox(d->seed, LT_RNG_SYNTH, d->draw++, d->image);
        d->left = 4;
    }
    return d->words.v[--d->left];
}

/* A whole number in [low, high]. */
static int between(dice *d, int low, int high) {
    return low + (int)(((uint64_t)roll(d) * (uint32_t)(high - low + 1)) >> 32);
}

/* ---- Angles: 256 steps a turn, values in 1/16384 ------------------------------------------------ */

static int sine(int angle) {
    /* 16384 * sin(k * 90/16 degrees); between two entries a straight line. */
    static const int quarter[18] = {0,     1606,  3196,  4756,  6270,  7723,  9102,  10394, 11585,
                                    12665, 13623, 14449, 15137, 15679, 16069, 16305, 16384, 16384};
    int turn = angle & 127, rising = turn <= 64 ? turn : 128 - turn;
    int at = rising / 4, rest = rising % 4;
    int value = quarter[at] + (quarter[at + 1] - quarter[at]) * rest / 4;
    return (angle & 128) ? -value : value;
}

static int cosine(int angle) {
    return sine(angle + 64);
}

/* ---- Outlines: is the point (u, v) of the shape's plane inside? --------------------------------- */

static int in_disc(int u, int v, int cu, int cv, int radius) {
    return (u - cu) * (u - cu) + (v - cv) * (v - cv) <= radius * radius;
}

static int in_box(int u, int v, int half_width, int half_height) {
    return abs(u) <= half_width && abs(v) <= half_height;
}

/* How many of `sides` half planes, evenly turned around the centre at `distance`, hold the point. */
static int half_planes(int u, int v, const int (*normals)[2], int sides, int distance) {
    int inside = 0;
    for (int k = 0; k < sides; k++) {
        inside += (u * normals[k][0] + v * normals[k][1]) / UNIT <= distance;
    }
    return inside;
}

static int in_shape(int label, int u, int v) {
    static const int three[3][2] = {{0, 4096}, {3547, -2048}, {-3547, -2048}};
    static const int five[5][2] = {{0, 4096}, {3896, 1266}, {2408, -3314}, {-2408, -3314}, {-3896, 1266}};
    int in_square = in_box(u, v, 3300, 3300);
    switch (label) {
    case 0:
        return in_disc(u, v, 0, 0, 3800);
    case 1:
        return in_disc(u, v, 0, 0, 4096) && !in_disc(u, v, 0, 0, 2300);
    case 2:
        return in_square;
    case 3:
        return half_planes(u, v, three, 3, 2250) == 3;
    case 4:
        return in_box(u, v, 1150, 4000) || in_box(u, v, 4000, 1150);
    case 5: /* a pentagram: a point in one of its tips misses a single half plane */
        return half_planes(u, v, five, 5, 1420) >= 4;
    case 6:
        return in_disc(u, v, 0, 0, 4096) && !in_disc(u, v, 1900, 0, 3300);
    case 7:
        return in_box(u, v, 3700, 3500) && (abs(u) <= 800 || abs(u) >= 2100);
    case 8:
        return abs(v) <= 3700 && abs(u) <= 300 + abs(v) * 9 / 10;
    default:
        return in_disc(abs(u), abs(v), 2250, 2250, 1600);
    }
}

/* ---- Textures ----------------------------------------------------------------------------------- */

typedef enum texture_kind { PLAIN, STRIPES, CHECKS, SPOTS, TEXTURES } texture_kind;

typedef struct texture {
    texture_kind kind;
    int period; /* in 1/256 pixel */
    int cos, sin, shift;
} texture;

/* One draw a statement: C leaves the order within an initializer open. */
static texture draw_texture(dice *d, int shortest, int longest) {
    texture t;
    t.kind = (texture_kind)between(d, 0, TEXTURES - 1);
    t.period = between(d, shortest, longest);
    int angle = between(d, 0, 255);
    t.cos = cosine(angle);
    t.sin = sine(angle);
    t.shift = between(d, 0, t.period - 1);
    return t;
}

/* 1 where the second tone shows. */
static int texture_at(const texture *t, int x, int y) {
    if (t->kind == PLAIN) {
        return 0;
    }
    /* Far enough from zero that the remainder below is never negative. */
    int a = (x * t->cos + y * t->sin) / 16384 + t->shift + 64 * t->period;
    int b = (y * t->cos - x * t->sin) / 16384 + t->shift + 64 * t->period;
    int p = t->period, along = a % p, across = b % p;
    switch (t->kind) {
    case STRIPES:
        return along * 2 < p;
    case CHECKS:
        return (along * 2 < p) ^ (across * 2 < p);
    default:
        return in_disc(along, across, p / 2, p / 2, p / 3);
    }
}

/* ---- Colours ------------------------------------------------------------------------------------ */

typedef struct palette {
    int ground[2][3], shape[2][3];
} palette;

static int clamp(int value) {
    return value < 0 ? 0 : value > 255 ? 255 : value;
}

/* A colour of the given brightness: red and blue go where they like, green makes up for them, so that
 * 3 red + 6 green + blue stays what it was. */
static void draw_colour(dice *d, int brightness, int strength, int out[3]) {
    int red = between(d, -strength, strength), blue = between(d, -strength, strength);
    out[0] = brightness + red;
    out[1] = brightness - (3 * red + blue) / 6;
    out[2] = brightness + blue;
}

static void draw_palette(dice *d, palette *p) {
    int contrast = between(d, 36, 110);
    int ground = between(d, 30, 225 - contrast), shape = ground + contrast;
    if (between(d, 0, 3) == 0) { /* one in four is darker */
        int swap = ground;
        ground = shape;
        shape = swap;
    }
    /* The second tone of the shape leads away from the background: texture never hides the outline. */
    int away = shape > ground ? 1 : -1;
    draw_colour(d, ground, 50, p->ground[0]);
    draw_colour(d, shape, 50, p->shape[0]);
    int ground_step = between(d, -35, 20) * away, shape_step = between(d, 20, 60) * away;
    for (int c = 0; c < 3; c++) {
        p->ground[1][c] = p->ground[0][c] + ground_step;
        p->shape[1][c] = p->shape[0][c] + shape_step;
    }
}

/* ---- The picture -------------------------------------------------------------------------------- */

typedef struct scene {
    int label;
    int x, y;     /* the shape's centre */
    int radius;   /* of a circle around all of the shape */
    int cos, sin; /* of the shape's rotation, divided by its size: image plane to shape plane */
    texture fill, ground;
    palette colours;
    int light[LATTICE][LATTICE]; /* slow changes of brightness over the image */
    int noise;
} scene;

static void draw_scene(dice *d, int label, scene *s) {
    s->label = label;
    s->x = 16 * PIXEL + between(d, -3 * PIXEL, 3 * PIXEL);
    s->y = 16 * PIXEL + between(d, -3 * PIXEL, 3 * PIXEL);
    int size = between(d, 13 * PIXEL / 2, 25 * PIXEL / 2);
    int angle = between(d, -36, 36); /* up to 51 degrees either way */
    s->radius = size + size / 4;
    s->cos = cosine(angle) * 1024 / size;
    s->sin = sine(angle) * 1024 / size;
    draw_palette(d, &s->colours);
    s->fill = draw_texture(d, 3 * PIXEL, 6 * PIXEL);
    s->ground = draw_texture(d, 4 * PIXEL, 12 * PIXEL);
    for (int i = 0; i < LATTICE * LATTICE; i++) {
        s->light[i / LATTICE][i % LATTICE] = between(d, -24, 24);
    }
    s->noise = between(d, 6, 22);
}

/* How many of a pixel's samples show the shape's first and second tone. */
static void cover(const scene *s, int column, int row, int tones[2]) {
    tones[0] = tones[1] = 0;
    int far_x = abs(column * PIXEL + PIXEL / 2 - s->x), far_y = abs(row * PIXEL + PIXEL / 2 - s->y);
    if (far_x > s->radius + PIXEL || far_y > s->radius + PIXEL) {
        return;
    }
    for (int i = 0; i < SAMPLES; i++) {
        int x = column * PIXEL + (2 * (i % SUB) + 1) * PIXEL / (2 * SUB);
        int y = row * PIXEL + (2 * (i / SUB) + 1) * PIXEL / (2 * SUB);
        int dx = x - s->x, dy = y - s->y;
        int u = (dx * s->cos + dy * s->sin) / 4096, v = (dy * s->cos - dx * s->sin) / 4096;
        if (in_shape(s->label, u, v)) {
            tones[texture_at(&s->fill, x, y)]++;
        }
    }
}

/* The light at a pixel: straight lines between the points of the lattice, 8 pixels apart. */
static int light_at(const scene *s, int column, int row) {
    int i = row / 8, j = column / 8, down = row % 8, right = column % 8;
    int top = s->light[i][j] * (8 - right) + s->light[i][j + 1] * right;
    int bottom = s->light[i + 1][j] * (8 - right) + s->light[i + 1][j + 1] * right;
    return (top * (8 - down) + bottom * down) / 64;
}

/* The sum of the four bytes of a word is near enough to a bell: mean 510, deviation 148. */
static int grain(dice *d, int deviation) {
    uint32_t word = roll(d);
    int sum = (int)((word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24));
    return (sum - 510) * deviation / 148;
}

void lt_shape_paint(uint64_t seed, uint64_t index, int label, uint8_t planes[LT_CIFAR_IMAGE]) {
    dice d;
    memset(&d, 0, sizeof d);
    d.seed = seed;
    d.image = index;
    scene s;
    draw_scene(&d, label, &s);
    const palette *colours = &s.colours;
    for (int row = 0; row < LT_CIFAR_SIDE; row++) {
        for (int column = 0; column < LT_CIFAR_SIDE; column++) {
            int tones[2];
            cover(&s, column, row, tones);
            const int *ground = colours->ground[texture_at(&s.ground, column * PIXEL, row * PIXEL)];
            int rest = SAMPLES - tones[0] - tones[1], light = light_at(&s, column, row);
            for (int c = 0; c < LT_CIFAR_CHANNELS; c++) {
                int mixed =
                    tones[0] * colours->shape[0][c] + tones[1] * colours->shape[1][c] + rest * ground[c];
                int value = mixed / SAMPLES + light + grain(&d, s.noise);
                planes[c * LT_CIFAR_SIDE * LT_CIFAR_SIDE + row * LT_CIFAR_SIDE + column] =
                    (uint8_t)clamp(value);
            }
        }
    }
}
