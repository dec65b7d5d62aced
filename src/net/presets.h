/* presets.h: the net files of nets/, compiled in by cmake/embed.cmake. */
#ifndef LT_NET_PRESETS_H
#define LT_NET_PRESETS_H

typedef struct lt_preset {
    const char *name, *text;
} lt_preset;

extern const lt_preset lt_presets[]; /* ends with a NULL name */

#endif
