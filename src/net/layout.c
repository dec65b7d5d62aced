#include "net/layout.h"

static size_t round_up(size_t bytes, size_t align) {
    return (bytes + align - 1) / align * align;
}

enum { NOT_PLACED = -1 };

/* A placed item in the way of `item` at offset `at`, or NULL. */
static const lt_item *obstacle(const lt_item *items, int count, const lt_item *item, size_t at) {
    for (int i = 0; i < count; i++) {
        const lt_item *other = &items[i];
        int together = other->from <= item->to && item->from <= other->to;
        if (other->offset != (size_t)NOT_PLACED && together && at < other->offset + other->bytes &&
            other->offset < at + item->bytes) {
            return other;
        }
    }
    return NULL;
}

/* The largest item not placed yet, the first of equals; NULL when all are. */
static lt_item *largest(lt_item *items, int count) {
    lt_item *found = NULL;
    for (int i = 0; i < count; i++) {
        if (items[i].offset == (size_t)NOT_PLACED && (!found || items[i].bytes > found->bytes)) {
            found = &items[i];
        }
    }
    return found;
}

size_t lt_layout(lt_item *items, int count, size_t align) {
    size_t end = 0;
    for (int i = 0; i < count; i++) {
        items[i].offset = (size_t)NOT_PLACED;
    }
    for (lt_item *item = largest(items, count); item; item = largest(items, count)) {
        size_t at = 0;
        for (const lt_item *other = NULL; (other = obstacle(items, count, item, at)) != NULL;) {
            at = round_up(other->offset + other->bytes, align);
        }
        item->offset = at;
        size_t after = round_up(at + item->bytes, align);
        end = after > end ? after : end;
    }
    return end;
}
