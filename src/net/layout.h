/* layout.h: several tensors in one block, sharing bytes when they are not alive at the same time. */
#ifndef LT_NET_LAYOUT_H
#define LT_NET_LAYOUT_H

#include <stddef.h>

typedef struct lt_item {
    size_t bytes;
    int from, to;  /* alive from the first to the last time, both included */
    size_t offset; /* the answer: a multiple of `align` */
} lt_item;

/* Places the items from the largest to the smallest, each at the lowest offset where it overlaps no item that
 * is alive with it. Returns the size of the block. Depends on nothing but its arguments. */
size_t lt_layout(lt_item *items, int count, size_t align);

#endif
