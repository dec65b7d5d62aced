/* tar.c: see tar.h.
 *
 * Two layers. inflate_exactly() turns compressed bytes into the archive's bytes and counts them: its count is
 * the place named in messages, and what bounds a bomb. Above it an archive is a row of blocks of 512 bytes: a
 * header, then the content padded to whole blocks. A long name or a pax record is an entry of its own that
 * speaks of the next one; it waits in `next_name` and `next_size` until that comes.
 */
#include "data/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { BLOCK = 512, INPUT = 1 << 16, EXTENSION_MAX = 1 << 16, ENTRIES_MAX = 10000 };

struct lt_tar {
    lt_tar_source_fn source;
    void *user;
    const char *origin;
    uint64_t limit, place; /* bytes that may be unpacked; bytes that were */
    z_stream stream;
    int stream_ended;
    uint64_t left, padding; /* of the current entry */
    int entries;
    int has_name, has_size; /* what an extension said about the next entry */
    char next_name[LT_TAR_NAME_MAX];
    uint64_t next_size;
    unsigned char input[INPUT];
    char extension[EXTENSION_MAX + 1];
};

static latent_status bad(latent_context *ctx, const lt_tar *tar, const char *what) {
    return lt_fail(ctx, LATENT_ERROR_FORMAT,
                   "%s: not a sound .tar.gz: %s (at byte %llu of the unpacked archive)", tar->origin, what,
                   (unsigned long long)tar->place);
}

/* ---- Bytes ---- */

static latent_status refill(latent_context *ctx, lt_tar *tar) {
    size_t got = 0;
    latent_status status = tar->source(ctx, tar->user, tar->input, INPUT, &got);
    if (status != LATENT_OK) {
        return status;
    }
    if (got == 0) {
        return bad(ctx, tar, "it ends too early; it is cut short");
    }
    tar->stream.next_in = tar->input;
    tar->stream.avail_in = (uInt)got;
    return LATENT_OK;
}

/* All of `bytes` (at most 2^30), or an error: an archive says itself how long it is. */
static latent_status inflate_exactly(latent_context *ctx, lt_tar *tar, void *out, size_t bytes) {
    latent_status status = LATENT_OK;
    if (bytes > tar->limit - tar->place) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: unpacks to more than %llu bytes, the most that is taken from such an archive",
                       tar->origin, (unsigned long long)tar->limit);
    }
    tar->stream.next_out = out;
    tar->stream.avail_out = (uInt)bytes;
    while (tar->stream.avail_out > 0) {
        if (tar->stream.avail_in == 0) {
            LT_TRY(refill(ctx, tar));
        }
        if (tar->stream_ended) { /* another gzip member may follow */
            inflateReset(&tar->stream);
            tar->stream_ended = 0;
        }
        uInt before = tar->stream.avail_out;
        int result = inflate(&tar->stream, Z_NO_FLUSH);
        tar->place += before - tar->stream.avail_out;
        if (result == Z_STREAM_END) {
            tar->stream_ended = 1;
        } else if (result == Z_MEM_ERROR) {
            status = lt_fail(ctx, LATENT_ERROR_MEMORY, "%s: no memory to unpack it", tar->origin);
            goto done;
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            status = bad(ctx, tar, tar->stream.msg ? tar->stream.msg : "the compressed data is damaged");
            goto done;
        }
    }
done:
    return status;
}

static latent_status skip(latent_context *ctx, lt_tar *tar, uint64_t bytes) {
    char waste[4096];
    latent_status status = LATENT_OK;
    while (bytes > 0) {
        size_t part = bytes < sizeof waste ? (size_t)bytes : sizeof waste;
        LT_TRY(inflate_exactly(ctx, tar, waste, part));
        bytes -= part;
    }
done:
    return status;
}

/* ---- Fields of a header ---- */

/* Octal digits, spaces or zeros around them; or, with the top bit set, a big-endian number (GNU). */
static int parse_number(const unsigned char *field, size_t length, uint64_t *out) {
    uint64_t value = 0;
    size_t i = 0;
    if (field[0] & 0x80) {
        value = field[0] & 0x7F;
        for (i = 1; i < length; i++) {
            if (value >> 55) {
                return 0;
            }
            value = value << 8 | field[i];
        }
        *out = value;
        return 1;
    }
    while (i < length && field[i] == ' ') {
        i++;
    }
    for (; i < length && field[i] >= '0' && field[i] <= '7'; i++) {
        value = value << 3 | (uint64_t)(field[i] - '0'); /* 12 digits at most: 36 bits */
    }
    for (; i < length; i++) {
        if (field[i] != ' ' && field[i] != '\0') {
            return 0;
        }
    }
    *out = value;
    return 1;
}

static int checksum_holds(const unsigned char header[BLOCK]) {
    uint64_t stored = 0, sum = 0;
    for (int i = 0; i < BLOCK; i++) {
        sum += i >= 148 && i < 156 ? ' ' : header[i];
    }
    return parse_number(header + 148, 8, &stored) && stored == sum;
}

/* name, or prefix/name in the ustar format proper. Both fields may lack their final 0. */
static void header_name(const unsigned char *header, char name[LT_TAR_NAME_MAX]) {
    int prefixed = memcmp(header + 257, "ustar\0", 6) == 0 && header[345] != '\0';
    if (prefixed) {
        snprintf(name, LT_TAR_NAME_MAX, "%.155s/%.100s", (const char *)header + 345, (const char *)header);
    } else {
        snprintf(name, LT_TAR_NAME_MAX, "%.100s", (const char *)header);
    }
}

/* Strips "./" and a final "/", and refuses what could lead out of a folder or upset a terminal. */
static latent_status check_name(latent_context *ctx, const lt_tar *tar, char *name) {
    for (const char *c = name; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7F) {
            return bad(ctx, tar, "an entry's name has control characters");
        }
    }
    const char *from = name;
    while (from[0] == '.' && from[1] == '/') {
        from += 2;
    }
    if (*from == '/') {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: entry \"%s\" has an absolute path; only relative ones are taken", tar->origin,
                       name);
    }
    for (const char *part = from; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0')) {
            return lt_fail(
                ctx, LATENT_ERROR_FORMAT,
                "%s: entry \"%s\" leads out of the folder with \"..\"; such an archive is not unpacked",
                tar->origin, name);
        }
    }
    memmove(name, from, strlen(from) + 1);
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] == '/') {
        name[--length] = '\0';
    }
    return LATENT_OK;
}

/* ---- Entries that speak of the next one ---- */

/* pax: records "<length> <key>=<value>\n", the length counting all of it. */
static latent_status parse_pax(latent_context *ctx, lt_tar *tar, char *text, size_t bytes) {
    while (bytes > 0) {
        size_t length = 0, digits = 0;
        while (digits < bytes && digits < 6 && text[digits] >= '0' && text[digits] <= '9') {
            length = 10 * length + (size_t)(text[digits++] - '0');
        }
        char *key = text + digits + 1;
        if (digits == 0 || length < digits + 4 || length > bytes || text[digits] != ' ' ||
            text[length - 1] != '\n') {
            return bad(ctx, tar, "a pax record is malformed");
        }
        text[length - 1] = '\0';
        if (strncmp(key, "path=", 5) == 0) {
            if (snprintf(tar->next_name, sizeof tar->next_name, "%s", key + 5) >= LT_TAR_NAME_MAX) {
                return bad(ctx, tar, "an entry's name is too long");
            }
            tar->has_name = 1;
        } else if (strncmp(key, "size=", 5) == 0) {
            char *end = NULL;
            tar->next_size = strtoull(key + 5, &end, 10);
            if (key[5] < '0' || key[5] > '9' || *end != '\0') {
                return bad(ctx, tar, "a pax size is not a number");
            }
            tar->has_size = 1;
        }
        text += length;
        bytes -= length;
    }
    return LATENT_OK;
}

static latent_status read_extension(latent_context *ctx, lt_tar *tar, char type, uint64_t size) {
    latent_status status = LATENT_OK;
    if (size > EXTENSION_MAX) {
        return bad(ctx, tar, "a long name or a pax record is too long");
    }
    LT_TRY(inflate_exactly(ctx, tar, tar->extension, (size_t)size));
    tar->extension[size] = '\0';
    if (type == 'x') {
        LT_TRY(parse_pax(ctx, tar, tar->extension, (size_t)size));
    } else if (type == 'L') {
        if (snprintf(tar->next_name, sizeof tar->next_name, "%s", tar->extension) >= LT_TAR_NAME_MAX) {
            status = bad(ctx, tar, "an entry's name is too long");
            goto done;
        }
        tar->has_name = 1;
    } /* 'g', records for all entries, and 'K', the target of a link, say nothing that is needed */
    LT_TRY(skip(ctx, tar, (BLOCK - size % BLOCK) % BLOCK));
done:
    return status;
}

/* ---- The row of entries ---- */

/* Fills the entry from a header and from what was said before it. */
static latent_status take_entry(latent_context *ctx, lt_tar *tar, const unsigned char *header, uint64_t size,
                                lt_tar_entry *entry) {
    char type = (char)header[156];
    latent_status status = LATENT_OK;
    memset(entry, 0, sizeof *entry);
    if (tar->has_name) {
        memcpy(entry->name, tar->next_name, sizeof entry->name);
    } else {
        header_name(header, entry->name);
    }
    size = tar->has_size ? tar->next_size : size;
    tar->has_name = tar->has_size = 0;
    size_t length = strlen(entry->name);
    /* In the oldest archives a folder is a regular file whose name ends in "/". */
    entry->folder =
        type == '5' || ((type == '0' || type == '\0') && length > 0 && entry->name[length - 1] == '/');
    LT_TRY(check_name(ctx, tar, entry->name));
    if (type != '5' && type != '0' && type != '\0' && type != '7') {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                         "%s: entry \"%s\" is %s; only regular files and folders are taken", tar->origin,
                         entry->name, type == '1' || type == '2' ? "a link" : "of a special type");
        goto done;
    }
    if (entry->name[0] == '\0' && !entry->folder) {
        status = bad(ctx, tar, "an entry has no name");
        goto done;
    }
    if (size > tar->limit - tar->place) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                         "%s: entry \"%s\" claims %llu bytes; an archive may unpack to %llu in all",
                         tar->origin, entry->name, (unsigned long long)size, (unsigned long long)tar->limit);
        goto done;
    }
    entry->size = entry->folder ? 0 : size;
    tar->left = entry->folder ? 0 : size;
    tar->padding = entry->folder ? 0 : (BLOCK - size % BLOCK) % BLOCK;
done:
    return status;
}

latent_status lt_tar_next(latent_context *ctx, lt_tar *tar, lt_tar_entry *entry, int *more) {
    unsigned char header[BLOCK];
    static const unsigned char zeros[BLOCK];
    latent_status status = LATENT_OK;
    *more = 0;
    for (;;) {
        LT_TRY(skip(ctx, tar, tar->left));
        LT_TRY(skip(ctx, tar, tar->padding));
        tar->left = tar->padding = 0;
        LT_TRY(inflate_exactly(ctx, tar, header, sizeof header));
        if (memcmp(header, zeros, sizeof header) == 0) {
            goto done;
        }
        uint64_t size = 0;
        if (!checksum_holds(header) || !parse_number(header + 124, 12, &size)) {
            status = bad(ctx, tar, "the header before here is damaged, or this is no tar archive");
            goto done;
        }
        if (++tar->entries > ENTRIES_MAX) {
            status = bad(ctx, tar, "it has more than 10000 entries");
            goto done;
        }
        char type = (char)header[156];
        if (type != 'x' && type != 'g' && type != 'L' && type != 'K') {
            LT_TRY(take_entry(ctx, tar, header, size, entry));
            *more = 1;
            goto done;
        }
        LT_TRY(read_extension(ctx, tar, type, size));
    }
done:
    return status;
}

latent_status lt_tar_read(latent_context *ctx, lt_tar *tar, void *buffer, size_t bytes, size_t *got) {
    size_t part = bytes < tar->left ? bytes : (size_t)tar->left;
    part = part < (size_t)1 << 30 ? part : (size_t)1 << 30;
    *got = 0;
    latent_status status = inflate_exactly(ctx, tar, buffer, part);
    if (status == LATENT_OK) {
        tar->left -= part;
        *got = part;
    }
    return status;
}

latent_status lt_tar_open(latent_context *ctx, lt_tar_source_fn source, void *user, const char *origin,
                          uint64_t limit, lt_tar **out) {
    void *memory = NULL;
    latent_status status = LATENT_OK;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof(lt_tar), "an archive reader", &memory));
    lt_tar *tar = memory;
    tar->source = source;
    tar->user = user;
    tar->origin = origin;
    tar->limit = limit;
    if (inflateInit2(&tar->stream, 16 + MAX_WBITS) != Z_OK) { /* 16: with a gzip header and checksum */
        status = lt_fail(ctx, LATENT_ERROR_MEMORY, "%s: no memory to unpack it", origin);
        free(tar);
        goto done;
    }
    *out = tar;
done:
    return status;
}

void lt_tar_close(lt_tar *tar) {
    if (tar) {
        inflateEnd(&tar->stream);
        free(tar);
    }
}
