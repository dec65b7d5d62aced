/* json_read.c: JSON text to a tree of nodes.
 *
 * The nodes lie in one growing array in the order of the text, so that the first child of a container is
 * the node right after it; siblings are linked by number while the array may still move, and by pointer
 * at the end. Strings are unescaped into one pool that is as long as the text, which always suffices: an
 * unescaped string is shorter than its source, and a number's final 0 takes the place of the delimiter
 * after it. Depth and number of values are bounded, so a hostile text costs bounded stack and memory.
 */
#include "base/json.h"

#include "base/json_string.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 1 << 22 };

struct lt_json {
    lt_json_node *nodes;
    char *pool;
};

typedef struct parser {
    latent_context *ctx;
    const char *origin;
    const char *text;
    size_t length, at;
    char *pool;
    size_t pooled;
    lt_json_node *nodes;
    uint32_t *next; /* the number of each node's next sibling; 0: none, as the root is nobody's sibling */
    uint32_t count, capacity;
} parser;

static latent_status syntax(parser *p, const char *what) {
    if (p->at >= p->length) {
        return lt_fail(p->ctx, LATENT_ERROR_FORMAT, "%s: byte %zu: the text ends here, but %s", p->origin,
                       p->at, what);
    }
    return lt_fail(p->ctx, LATENT_ERROR_FORMAT, "%s: byte %zu: %s", p->origin, p->at, what);
}

/* The next character; 0 at the end, which no rule of the grammar accepts. */
static char peek(const parser *p) {
    return p->at < p->length ? p->text[p->at] : 0;
}

static void skip_space(parser *p) {
    char c;
    while ((c = peek(p)) == ' ' || c == '\t' || c == '\n' || c == '\r') {
        p->at++;
    }
}

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

static latent_status add_node(parser *p, const char *key, uint32_t *out) {
    if (p->count == p->capacity) {
        if (p->count >= VALUES_MAX) {
            return lt_fail(p->ctx, LATENT_ERROR_FORMAT, "%s: byte %zu: more than %d values", p->origin, p->at,
                           VALUES_MAX);
        }
        uint32_t larger = p->capacity ? p->capacity * 2 : 64;
        lt_json_node *nodes = realloc(p->nodes, larger * sizeof *nodes);
        p->nodes = nodes ? nodes : p->nodes;
        uint32_t *next = realloc(p->next, larger * sizeof *next);
        p->next = next ? next : p->next;
        if (!nodes || !next) {
            return lt_fail(p->ctx, LATENT_ERROR_MEMORY, "%s: no memory for %u JSON values", p->origin,
                           larger);
        }
        p->capacity = larger;
    }
    *out = p->count++;
    p->nodes[*out] = (lt_json_node){.key = key};
    p->next[*out] = 0;
    return LATENT_OK;
}

/* At the opening quote. */
static latent_status parse_string(parser *p, const char **out) {
    lt_json_cursor cursor = {p->text, p->length, p->at, p->pool + p->pooled, 0};
    *out = cursor.out;
    const char *wrong = lt_json_unescape(&cursor);
    p->at = cursor.at;
    p->pooled += cursor.used;
    return wrong ? syntax(p, wrong) : LATENT_OK;
}

static int skip_digits(parser *p) {
    size_t from = p->at;
    while (is_digit(peek(p))) {
        p->at++;
    }
    return p->at > from;
}

static latent_status parse_number(parser *p, lt_json_node *node) {
    size_t from = p->at;
    p->at += peek(p) == '-';
    if (peek(p) == '0') {
        p->at++;
        if (is_digit(peek(p))) {
            return syntax(p, "a number must not begin with 0 followed by digits");
        }
    } else if (!skip_digits(p)) {
        return syntax(p, "after - must come a digit");
    }
    if (peek(p) == '.') {
        p->at++;
        if (!skip_digits(p)) {
            return syntax(p, "after the decimal point must come a digit");
        }
    }
    if (peek(p) == 'e' || peek(p) == 'E') {
        p->at++;
        p->at += peek(p) == '+' || peek(p) == '-';
        if (!skip_digits(p)) {
            return syntax(p, "the exponent wants a digit");
        }
    }
    size_t size = p->at - from;
    char *text = p->pool + p->pooled;
    memcpy(text, p->text + from, size);
    text[size] = 0;
    p->pooled += size + 1;
    node->kind = LT_JSON_NUMBER;
    node->number_text = text;
    node->number = strtod(text, NULL);
    if (!isfinite(node->number)) {
        p->at = from;
        return syntax(p, "the number is beyond the range of a double");
    }
    return LATENT_OK;
}

static latent_status parse_word(parser *p, lt_json_node *node) {
    static const struct {
        const char *word;
        lt_json_kind kind;
    } words[] = {{"null", LT_JSON_NULL}, {"false", LT_JSON_FALSE}, {"true", LT_JSON_TRUE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i].word);
        if (p->length - p->at >= size && memcmp(p->text + p->at, words[i].word, size) == 0) {
            p->at += size;
            node->kind = words[i].kind;
            return LATENT_OK;
        }
    }
    return syntax(p, "a value is expected: an object, array, string, number, true, false or null");
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, not compared pairwise: an object may hold millions of keys. */
static latent_status check_keys(parser *p, uint32_t object) {
    latent_status status = LATENT_OK;
    const char **keys = NULL;
    char excerpt[LT_EXCERPT_MAX];
    size_t count = 0;
    LT_TRY(lt_alloc(p->ctx, (size_t)p->nodes[object].children * sizeof *keys, "JSON keys", (void **)&keys));
    for (uint32_t child = object + 1; child; child = p->next[child]) {
        keys[count++] = p->nodes[child].key;
    }
    qsort(keys, count, sizeof *keys, by_text);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(keys[i - 1], keys[i]) == 0) {
            status = lt_fail(p->ctx, LATENT_ERROR_FORMAT,
                             "%s: byte %zu: the object that ends here has the key \"%s\" twice", p->origin,
                             p->at - 1, lt_excerpt(keys[i], excerpt));
            goto done;
        }
    }
done:
    free(keys);
    return status;
}

static latent_status parse_value(parser *p, const char *key, int depth, uint32_t *out);

/* At the opening bracket of node `self`. */
static latent_status parse_members(parser *p, uint32_t self, int depth) {
    latent_status status = LATENT_OK;
    int object = p->nodes[self].kind == LT_JSON_OBJECT;
    char close = object ? '}' : ']';
    uint32_t last = 0, child = 0;
    if (depth >= LT_JSON_DEPTH_MAX) {
        return syntax(p, "nested more than 64 deep");
    }
    p->at++;
    skip_space(p);
    if (peek(p) == close) {
        p->at++;
        return LATENT_OK;
    }
    for (;;) {
        const char *key = NULL;
        if (object) {
            if (peek(p) != '"') {
                return syntax(p, "a key in double quotes is expected");
            }
            LT_TRY(parse_string(p, &key));
            skip_space(p);
            if (peek(p) != ':') {
                return syntax(p, "':' is expected after the key");
            }
            p->at++;
        }
        LT_TRY(parse_value(p, key, depth + 1, &child));
        if (last) {
            p->next[last] = child;
        }
        last = child;
        p->nodes[self].children++;
        skip_space(p);
        if (peek(p) == close) {
            p->at++;
            break;
        }
        if (peek(p) != ',') {
            return syntax(p, object ? "',' or '}' is expected" : "',' or ']' is expected");
        }
        p->at++;
        skip_space(p);
    }
    status = object ? check_keys(p, self) : LATENT_OK;
done:
    return status;
}

static latent_status parse_value(parser *p, const char *key, int depth, uint32_t *out) {
    latent_status status = add_node(p, key, out);
    if (status != LATENT_OK) {
        return status;
    }
    skip_space(p);
    lt_json_node *node = &p->nodes[*out];
    char c = peek(p);
    if (c == '{' || c == '[') {
        node->kind = c == '{' ? LT_JSON_OBJECT : LT_JSON_ARRAY;
        return parse_members(p, *out, depth);
    }
    if (c == '"') {
        node->kind = LT_JSON_STRING;
        return parse_string(p, &node->string);
    }
    if (c == '-' || is_digit(c)) {
        return parse_number(p, node);
    }
    return parse_word(p, node);
}

static void link_nodes(parser *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        p->nodes[i].child = p->nodes[i].children > 0 ? &p->nodes[i + 1] : NULL;
        p->nodes[i].next = p->next[i] ? &p->nodes[p->next[i]] : NULL;
    }
}

latent_status lt_json_parse(latent_context *ctx, const char *text, size_t length, const char *origin,
                            lt_json **out) {
    latent_status status = LATENT_OK;
    parser p = {.ctx = ctx, .origin = origin, .text = text, .length = length};
    lt_json *json = NULL;
    uint32_t root = 0;
    /* strtod() must take '.' for the decimal point, whatever locale the program has set. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(plain);
    *out = NULL;
    LT_TRY(lt_alloc(ctx, length + 1, "a JSON text", (void **)&p.pool));
    LT_TRY(parse_value(&p, NULL, 0, &root));
    skip_space(&p);
    if (p.at < p.length) {
        status = syntax(&p, "text after the end of the JSON value");
        goto done;
    }
    LT_TRY(lt_alloc(ctx, sizeof *json, "a JSON document", (void **)&json));
    link_nodes(&p);
    *json = (lt_json){.nodes = p.nodes, .pool = p.pool};
    *out = json;
    p.nodes = NULL;
    p.pool = NULL;
done:
    free(p.nodes);
    free(p.next);
    free(p.pool);
    uselocale(before);
    if (plain) {
        freelocale(plain);
    }
    return status;
}

void lt_json_destroy(lt_json *json) {
    if (json) {
        free(json->nodes);
        free(json->pool);
        free(json);
    }
}

const lt_json_node *lt_json_root(const lt_json *json) {
    return json->nodes;
}

const lt_json_node *lt_json_get(const lt_json_node *object, const char *key) {
    if (!object || object->kind != LT_JSON_OBJECT) {
        return NULL;
    }
    const lt_json_node *node = object->child;
    while (node && strcmp(node->key, key) != 0) {
        node = node->next;
    }
    return node;
}

int lt_json_u64(const lt_json_node *node, uint64_t *out) {
    if (!node || node->kind != LT_JSON_NUMBER) {
        return 0;
    }
    uint64_t value = 0;
    for (const char *at = node->number_text; *at; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (!is_digit(*at) || value > (UINT64_MAX - digit) / 10) {
            return 0;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return 1;
}
