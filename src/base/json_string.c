/* json_string.c: UTF-8 and escapes.
 *
 * Only valid UTF-8 gets in: no overlong forms, no surrogates, nothing beyond U+10FFFF, and no 0 byte, so
 * that every string can be a C string. An escape is never shorter than what it stands for, so the output
 * never outgrows its source.
 */
#include "base/json_string.h"

#include "base/json.h"

#include <string.h>

int lt_utf8_length(const char *at, size_t left) {
    const unsigned char *s = (const unsigned char *)at;
    int length = 0;
    if (left == 0) {
        return 0;
    }
    if (s[0] < 0x80) {
        return 1;
    }
    if (s[0] >= 0xC2 && s[0] <= 0xDF) { /* C0 and C1 could only begin overlong forms */
        length = 2;
    } else if (s[0] >= 0xE0 && s[0] <= 0xEF) {
        length = 3;
    } else if (s[0] >= 0xF0 && s[0] <= 0xF4) {
        length = 4;
    }
    if (length == 0 || (size_t)length > left) {
        return 0;
    }
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    int overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    int surrogate = s[0] == 0xED && s[1] >= 0xA0;
    int too_large = s[0] == 0xF4 && s[1] >= 0x90;
    return overlong || surrogate || too_large ? 0 : length;
}

const char *lt_excerpt(const char *text, char out[LT_EXCERPT_MAX]) {
    size_t left = strlen(text), used = 0;
    while (left > 0) {
        if (used + 4 + 4 > LT_EXCERPT_MAX) { /* the longest character, then "..." and the final 0 */
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        int n = lt_utf8_length(text, left);
        if (n == 0 || (unsigned char)*text < 0x20 || *text == 0x7F) {
            out[used++] = '?';
            n = 1;
        } else {
            memcpy(out + used, text, (size_t)n);
            used += (size_t)n;
        }
        text += n;
        left -= (size_t)n;
    }
    out[used] = 0;
    return out;
}

static char peek(const lt_json_cursor *c) {
    return c->at < c->length ? c->text[c->at] : 0;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four hex digits at `at`; -1 when they are not there. */
static long hex4(lt_json_cursor *c) {
    long value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(peek(c));
        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
        c->at++;
    }
    return value;
}

static void put_utf8(lt_json_cursor *c, unsigned long code) {
    static const unsigned char lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    char *out = c->out + c->used;
    for (int i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)(lead[length] | code);
    c->used += (size_t)length;
}

/* After "\u": one unit, or a pair of surrogates that make one character beyond U+FFFF. */
static const char *unicode_escape(lt_json_cursor *c) {
    long code = hex4(c), low = 0;
    if (code < 0) {
        return "\\u wants four hex digits";
    }
    if (code == 0) {
        return "\\u0000 before this place is not allowed in a string";
    }
    if (code >= 0xDC00 && code <= 0xDFFF) {
        return "the low surrogate before this place has no high one before it";
    }
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (peek(c) == '\\' && c->at + 1 < c->length && c->text[c->at + 1] == 'u') {
            c->at += 2;
            low = hex4(c);
        }
        if (low < 0xDC00 || low > 0xDFFF) {
            return "a high surrogate wants a low one (\\uDC00 to \\uDFFF) right after it";
        }
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    put_utf8(c, (unsigned long)code);
    return NULL;
}

/* At the backslash. */
static const char *escape(lt_json_cursor *c) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    c->at++;
    char letter = peek(c);
    if (letter == 'u') {
        c->at++;
        return unicode_escape(c);
    }
    const char *found = letter ? strchr(from, letter) : NULL;
    if (!found) {
        return "after \\ must come one of \" \\ / b f n r t u";
    }
    c->at++;
    c->out[c->used++] = to[found - from];
    return NULL;
}

const char *lt_json_unescape(lt_json_cursor *c) {
    c->at++;
    while (peek(c) != '"') {
        if (c->at >= c->length) {
            return "a string is still open";
        }
        if ((unsigned char)peek(c) < 0x20) {
            return "a control character in a string must be escaped";
        }
        if (peek(c) == '\\') {
            const char *wrong = escape(c);
            if (wrong) {
                return wrong;
            }
            continue;
        }
        int n = lt_utf8_length(c->text + c->at, c->length - c->at);
        if (n == 0) {
            return "not valid UTF-8";
        }
        memcpy(c->out + c->used, c->text + c->at, (size_t)n);
        c->used += (size_t)n;
        c->at += (size_t)n;
    }
    c->at++;
    c->out[c->used++] = 0;
    return NULL;
}
