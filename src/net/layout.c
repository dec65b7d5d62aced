#include "net/layout.h"

static size_t round_up(size_t bytes, size_t align) {
    return (bytes + align - 1) / align * align;
}

/* The first placed item that is in the way of [at, at + bytes) during [from, to], or NULL. */
static const lt_item *obstacle(const lt_item *items, int placed, const lt_item *item, size_t at) {
    for (int i = 0; i < placed; i++) {
        const lt_item *other = &items[i];
        int together = other->from <= item->to && item->from <= other->to;
        if (together && other->bytes > 0 && at < other->offset + other->bytes &&
            other->offset < at + item->bytes) {
            return other;
        }
    }
    return NULL;
}

size_t lt_layout(lt_item *items, int count, size_t align) {
    size_t end = 0;
    for (int i = 0; i < count; i++) {
        size_t at = 0;
        const lt_item *other = NULL;
        while (items[i].bytes > 0 && (other = obstacle(items, i, &items[i], at)) != NULL) {
            at = round_up(other->offset + other->bytes, align);
        }
        items[i].offset = at;
        size_t after = round_up(at + items[i].bytes, align);
        end = after > end ? after : end;
    }
    return end;
}
