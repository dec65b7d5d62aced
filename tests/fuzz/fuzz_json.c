/* fuzz_json.c: any bytes as JSON. What parses is written again; that text must parse and, written once
 * more, be the same.
 */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_node(lt_json_writer *w, const lt_json_node *node) {
    uint64_t whole = 0;
    if (node->key) {
        lt_json_key(w, node->key);
    }
    switch (node->kind) {
    case LT_JSON_NULL:
        lt_json_string(w, NULL);
        return;
    case LT_JSON_FALSE:
    case LT_JSON_TRUE:
        lt_json_bool(w, node->kind == LT_JSON_TRUE);
        return;
    case LT_JSON_NUMBER:
        if (lt_json_u64(node, &whole)) {
            lt_json_unsigned(w, whole);
        } else {
            lt_json_number(w, node->number);
        }
        return;
    case LT_JSON_STRING:
        lt_json_string(w, node->string);
        return;
    case LT_JSON_ARRAY:
        lt_json_begin_array(w);
        break;
    case LT_JSON_OBJECT:
        lt_json_begin_object(w);
        break;
    }
    int children = 0;
    for (const lt_json_node *child = node->child; child; child = child->next, children++) {
        write_node(w, child);
    }
    if (children != node->children) {
        abort();
    }
    if (node->kind == LT_JSON_ARRAY) {
        lt_json_end_array(w);
    } else {
        lt_json_end_object(w);
    }
}

/* The text of what `text` says; NULL when it is no JSON. To be freed. */
static char *rewrite(latent_context *ctx, const char *text, size_t length) {
    lt_json *json = NULL;
    lt_json_writer w = {0};
    ctx->message[0] = 0;
    latent_status status = lt_json_parse(ctx, text, length, "input", &json);
    if ((status == LATENT_OK) != (json != NULL) || (status == LATENT_OK) == (ctx->message[0] != 0)) {
        abort(); /* a document or a sentence, never both or neither */
    }
    if (json) {
        write_node(&w, lt_json_root(json));
        if (lt_json_finish(ctx, &w) != LATENT_OK) {
            abort();
        }
        lt_json_destroy(json);
    }
    return w.text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    latent_context ctx = {0};
    char *once = rewrite(&ctx, (const char *)data, size);
    if (once) {
        char *twice = rewrite(&ctx, once, strlen(once));
        if (!twice || strcmp(once, twice) != 0) {
            abort();
        }
        free(twice);
    }
    free(once);
    return 0;
}
