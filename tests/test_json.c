/* test_json.c: the reader accepts JSON and nothing else; the writer's text reads back as it was meant. */
#include "scratch.h"

#include "base/json.h"

#include <locale.h>
#include <math.h>

static lt_json *parse(scratch *s, const char *text) {
    lt_json *json = NULL;
    if (lt_json_parse(s->ctx, text, strlen(text), "text", &json) != LATENT_OK) {
        fail_msg("%s\nfor: %s", s->ctx->message, text);
    }
    return json;
}

static void test_tree(void **state) {
    scratch *s = *state;
    lt_json *json = parse(
        s, " {\"a\" : [1, -2.5e1,\t[] , {}],\n\"b\":{\"c\":null,\"d\":true},\"e\":false,\"\":\"x\"}\r\n");
    const lt_json_node *root = lt_json_root(json), *a = lt_json_get(root, "a"), *b = lt_json_get(root, "b");
    assert_int_equal(root->kind, LT_JSON_OBJECT);
    assert_int_equal(root->children, 4);
    assert_null(root->key);
    assert_null(root->next);
    assert_ptr_equal(root->child, a);
    assert_ptr_equal(a->next, b);
    assert_string_equal(a->key, "a");
    assert_int_equal(a->kind, LT_JSON_ARRAY);
    assert_int_equal(a->children, 4);
    assert_true(a->child->number == 1 && a->child->next->number == -25);
    assert_null(a->child->key);
    assert_string_equal(a->child->next->number_text, "-2.5e1");
    assert_int_equal(a->child->next->next->kind, LT_JSON_ARRAY);
    assert_int_equal(a->child->next->next->children, 0);
    assert_null(a->child->next->next->child);
    assert_int_equal(a->child->next->next->next->kind, LT_JSON_OBJECT);
    assert_null(a->child->next->next->next->next);
    assert_int_equal(lt_json_get(b, "c")->kind, LT_JSON_NULL);
    assert_int_equal(lt_json_get(b, "d")->kind, LT_JSON_TRUE);
    assert_int_equal(lt_json_get(root, "e")->kind, LT_JSON_FALSE);
    assert_string_equal(lt_json_get(root, "")->string, "x");
    assert_null(lt_json_get(root, "c"));
    assert_null(lt_json_get(a, "a"));
    assert_null(lt_json_get(NULL, "a"));
    lt_json_destroy(json);
    lt_json_destroy(NULL);
}

static void test_strings(void **state) {
    static const struct {
        const char *text, *value;
    } cases[] = {
        {"\"\"", ""},
        {"\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", "a\"\\/\b\f\n\r\tz"},
        {"\"\\u0041\\u00e9\\u20AC\"", "A\xC3\xA9\xE2\x82\xAC"},
        {"\"\\ud83d\\ude00\\uD800\\uDC00\\uDBFF\\uDFFF\"",
         "\xF0\x9F\x98\x80\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"},
        {"\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F\"", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F"},
    };
    scratch *s = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lt_json *json = parse(s, cases[i].text);
        assert_int_equal(lt_json_root(json)->kind, LT_JSON_STRING);
        assert_string_equal(lt_json_root(json)->string, cases[i].value);
        lt_json_destroy(json);
    }
}

static void test_whole_numbers(void **state) {
    static const struct {
        const char *text;
        int whole;
        uint64_t value;
    } cases[] = {{"0", 1, 0},
                 {"9007199254740993", 1, 9007199254740993u}, /* no double */
                 {"18446744073709551615", 1, UINT64_MAX},
                 {"18446744073709551616", 0, 0},
                 {"99999999999999999999", 0, 0},
                 {"-1", 0, 0},
                 {"-0", 0, 0},
                 {"1.0", 0, 0},
                 {"1e3", 0, 0},
                 {"\"1\"", 0, 0},
                 {"null", 0, 0}};
    scratch *s = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lt_json *json = parse(s, cases[i].text);
        uint64_t value = 0;
        assert_int_equal(lt_json_u64(lt_json_root(json), &value), cases[i].whole);
        assert_int_equal(value, cases[i].value);
        lt_json_destroy(json);
    }
    assert_int_equal(lt_json_u64(NULL, &(uint64_t){0}), 0);
}

/* Every text here is wrong; the message names the byte and says why. */
static const struct {
    const char *text, *part;
} refused[] = {
    {"", "text: byte 0: the text ends here, but a value is expected"},
    {"  ", "byte 2: the text ends here"},
    {"nul", "byte 0: a value is expected"},
    {"True", "byte 0: a value is expected"},
    {"NaN", "byte 0: a value is expected"},
    {"'a'", "byte 0: a value is expected"},
    {"\xEF\xBB\xBF{}", "byte 0: a value is expected"},
    {"1 2", "byte 2: text after the end"},
    {"{}}", "byte 2: text after the end"},
    {"[1,]", "byte 3: a value is expected"},
    {"[,1]", "byte 1: a value is expected"},
    {"[1 2]", "byte 3: ',' or ']' is expected"},
    {"[1", "byte 2: the text ends here, but ',' or ']' is expected"},
    {"[1}", "byte 2: ',' or ']' is expected"},
    {"{\"a\":1,}", "byte 7: a key in double quotes is expected"},
    {"{a:1}", "byte 1: a key in double quotes is expected"},
    {"{\"a\" 1}", "byte 5: ':' is expected"},
    {"{\"a\":}", "byte 5: a value is expected"},
    {"{\"a\":1", "',' or '}' is expected"},
    {"{\"a\":1,\"b\":2,\"a\":3}", "byte 18: the object that ends here has the key \"a\" twice"},
    {"{\"a\":1,\"\\u0061\":3}", "the key \"a\" twice"},
    {"{\"\\u001b\":1,\"\\u001b\":3}", "the key \"?\" twice"},
    {"01", "byte 1: a number must not begin with 0"},
    {"-", "byte 1: the text ends here, but after - must come a digit"},
    {"-a", "byte 1: after - must come a digit"},
    {"+1", "byte 0: a value is expected"},
    {".5", "byte 0: a value is expected"},
    {"1.", "after the decimal point must come a digit"},
    {"1.e5", "byte 2: after the decimal point must come a digit"},
    {"1e", "the exponent wants a digit"},
    {"1e+", "the exponent wants a digit"},
    {"0x10", "byte 1: text after the end"},
    {"1,5", "byte 1: text after the end"},
    {"[1e999]", "byte 1: the number is beyond the range of a double"},
    {"\"abc", "byte 4: the text ends here, but a string is still open"},
    {"\"a\nb\"", "byte 2: a control character in a string must be escaped"},
    {"\"\\x\"", "byte 2: after \\ must come one of"},
    {"\"\\", "byte 2: the text ends here, but after \\ must come one of"},
    {"\"\\u12g4\"", "byte 5: \\u wants four hex digits"},
    {"\"\\u12", "\\u wants four hex digits"},
    {"\"\\u0000\"", "\\u0000 before this place is not allowed"},
    {"\"\\ud800\"", "a high surrogate wants a low one"},
    {"\"\\ud800\\u0041\"", "a high surrogate wants a low one"},
    {"\"\\ud800\\n\"", "a high surrogate wants a low one"},
    {"\"\\ud800\\ud800\"", "a high surrogate wants a low one"},
    {"\"\\udc00\"", "the low surrogate before this place"},
    {"\"a\x80\"", "byte 2: not valid UTF-8"},
    {"\"\xC0\xAF\"", "not valid UTF-8"},         /* overlong / */
    {"\"\xC1\xBF\"", "not valid UTF-8"},         /* overlong */
    {"\"\xE0\x9F\xBF\"", "not valid UTF-8"},     /* overlong */
    {"\"\xED\xA0\x80\"", "not valid UTF-8"},     /* surrogate */
    {"\"\xF0\x8F\xBF\xBF\"", "not valid UTF-8"}, /* overlong */
    {"\"\xF4\x90\x80\x80\"", "not valid UTF-8"}, /* U+110000 */
    {"\"\xF5\x80\x80\x80\"", "not valid UTF-8"},
    {"\"\xE2\x82\"", "not valid UTF-8"}, /* cut short */
    {"\"\xE2\x82", "not valid UTF-8"},
};

static void test_refused(void **state) {
    scratch *s = *state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        lt_json *json = (lt_json *)s;
        assert_fails(s->ctx, lt_json_parse(s->ctx, refused[i].text, strlen(refused[i].text), "text", &json),
                     LATENT_ERROR_FORMAT, refused[i].part);
        assert_null(json);
    }
    lt_json *json = NULL;
    assert_fails(s->ctx, lt_json_parse(s->ctx, "\"a\0b\"", 5, "text", &json), LATENT_ERROR_FORMAT,
                 "byte 2: a control character");
    /* What lies beyond the length is not read. */
    assert_int_equal(lt_json_parse(s->ctx, "123456", 3, "text", &json), LATENT_OK);
    assert_true(lt_json_root(json)->number == 123);
    lt_json_destroy(json);
}

static void test_depth(void **state) {
    scratch *s = *state;
    char text[2 * 65];
    lt_json *json = NULL;
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    assert_int_equal(lt_json_parse(s->ctx, text + 1, 128, "text", &json), LATENT_OK);
    lt_json_destroy(json);
    assert_fails(s->ctx, lt_json_parse(s->ctx, text, 130, "text", &json), LATENT_ERROR_FORMAT,
                 "byte 64: nested more than 64 deep");
}

/* Two bytes a value: the number of values is bounded, not only the bytes. */
static void test_too_many(void **state) {
    scratch *s = *state;
    size_t count = (size_t)1 << 22;
    char *text = malloc(2 * count + 1);
    lt_json *json = NULL;
    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < count; i++) {
        memcpy(text + 1 + 2 * i, "0,", 2);
    }
    text[2 * count] = ']';
    assert_fails(s->ctx, lt_json_parse(s->ctx, text, 2 * count + 1, "text", &json), LATENT_ERROR_FORMAT,
                 "more than 4194304 values");
    /* One less is fine: the array itself is a value. */
    text[2 * count - 2] = ']';
    assert_int_equal(lt_json_parse(s->ctx, text, 2 * count - 1, "text", &json), LATENT_OK);
    assert_int_equal(lt_json_root(json)->children, count - 1);
    lt_json_destroy(json);
    free(text);
}

static void test_writer(void **state) {
    scratch *s = *state;
    lt_json_writer w = {0};
    lt_json_begin_object(&w);
    lt_json_key(&w, "a\"b");
    lt_json_begin_array(&w);
    lt_json_integer(&w, INT64_MIN);
    lt_json_unsigned(&w, UINT64_MAX);
    lt_json_bool(&w, 1);
    lt_json_bool(&w, 0);
    lt_json_begin_array(&w);
    lt_json_end_array(&w);
    lt_json_begin_object(&w);
    lt_json_end_object(&w);
    lt_json_end_array(&w);
    lt_json_key(&w, "s");
    lt_json_string(&w, "\\ \n\t\x01\x7F \xC3\xA9 \xFF");
    lt_json_key(&w, "n");
    lt_json_string(&w, NULL);
    lt_json_end_object(&w);
    assert_int_equal(lt_json_finish(s->ctx, &w), LATENT_OK);
    assert_string_equal(w.text, "{\"a\\\"b\":[-9223372036854775808,18446744073709551615,true,false,[],{}],"
                                "\"s\":\"\\\\ \\n\\u0009\\u0001\\u007f \xC3\xA9 \xEF\xBF\xBD\",\"n\":null}");
    assert_int_equal(w.length, strlen(w.text));
    lt_json_destroy(parse(s, w.text));
    free(w.text);
}

/* The shortest text that reads back as the same double, in any locale. */
static void check_numbers(scratch *s) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {-0.0, "-0"},
                 {1, "1"},
                 {0.1, "0.1"},
                 {-2.5, "-2.5"},
                 {1e-3, "0.001"},
                 {1e100, "1e+100"},
                 {1.0 / 3, "0.3333333333333333"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {5e-324, "4.94065645841247e-324"},
                 {1.7976931348623157e308, "1.7976931348623157e+308"},
                 {NAN, "null"},
                 {INFINITY, "null"},
                 {-INFINITY, "null"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lt_json_writer w = {0};
        lt_json_number(&w, cases[i].value);
        assert_int_equal(lt_json_finish(s->ctx, &w), LATENT_OK);
        assert_string_equal(w.text, cases[i].text);
        lt_json *json = parse(s, w.text);
        if (isfinite(cases[i].value)) {
            assert_memory_equal(&lt_json_root(json)->number, &cases[i].value, sizeof(double));
        }
        lt_json_destroy(json);
        free(w.text);
    }
}

static void test_numbers(void **state) {
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    scratch *s = *state;
    check_numbers(s);
    for (size_t i = 0; i < sizeof commas / sizeof *commas; i++) {
        if (setlocale(LC_ALL, commas[i])) { /* where one is installed */
            check_numbers(s);
        }
    }
    setlocale(LC_ALL, "C");
}

static void test_excerpt(void **state) {
    (void)state;
    char out[LT_EXCERPT_MAX], text[200];
    assert_string_equal(lt_excerpt("a\x1B[2J\xFF\xC3\xA9", out), "a?[2J?\xC3\xA9");
    memset(text, 'x', 199);
    text[199] = 0;
    lt_excerpt(text, out);
    assert_int_equal(strspn(out, "x"), strlen(out) - 3);
    assert_string_equal(out + strlen(out) - 3, "...");
    for (int i = 0; i < 66; i++) { /* characters of three bytes are not cut in two */
        memcpy(text + 3 * i, "\xE2\x82\xAC", 3);
    }
    text[198] = 0;
    lt_excerpt(text, out);
    assert_int_equal((strlen(out) - 3) % 3, 0);
    assert_true(strlen(out) < LT_EXCERPT_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_tree),    SCRATCH_TEST(test_strings), SCRATCH_TEST(test_whole_numbers),
        SCRATCH_TEST(test_refused), SCRATCH_TEST(test_depth),   SCRATCH_TEST(test_too_many),
        SCRATCH_TEST(test_writer),  SCRATCH_TEST(test_numbers), cmocka_unit_test(test_excerpt),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
