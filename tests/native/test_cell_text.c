/* arrow/cell_text.h: sizes that are measured are those that are written, at each length and place of a special byte. */
#include "arrow/cell_text.h"
#include "check.h"

static uint8_t text[4096];

static void check_form(enum kr_cell_form form, const uint8_t *from, int64_t n, const char *expected) {
    int64_t ends[2] = {0, n}, text_ends[2];
    kr_lent_large one = {1, ends, from, n};
    int64_t size = kr_cells_measure(form, &one, text_ends);
    memset(text, '#', sizeof text);
    kr_cells_write(form, &one, text);
    CHECK_INT(text_ends[1], size);
    CHECK_INT('#', text[size]);
    CHECK_TRUE(!memchr(text, '#', (size_t)size));
    if (expected) CHECK_BYTES((const uint8_t *)expected, strlen(expected), text, size);
}

static void check_known(enum kr_cell_form form, const char *from, const char *expected) {
    check_form(form, (const uint8_t *)from, (int64_t)strlen(from), expected);
}

/* Every byte but the one that marks what was not written, alone among others, at each place. */
static void check_places(void) {
    static uint8_t from[40];
    for (int form = KR_CELL_BASE64; form <= KR_CELL_CSV; form++)
        for (int byte = 0; byte < 256; byte++)
            for (int place = 0; place < 20 && byte != '#'; place++) {
                memset(from, 'a', sizeof from);
                from[place] = (uint8_t)byte;
                for (int n = place + 1; n <= 21; n += 5) check_form((enum kr_cell_form)form, from, n, 0);
            }
}

static void check_timestamp(int64_t us, const char *expected) {
    int64_t ends[2];
    memset(text, '#', sizeof text);
    int64_t size = kr_timestamps_write(&us, 1, ends, text);
    CHECK_INT(ends[1], size);
    CHECK_TRUE(size <= KR_MOST_TIMESTAMP && text[size] == '#');
    CHECK_BYTES((const uint8_t *)expected, strlen(expected), text, size);
}

/* Kafka's tools print the digits of escapes in upper case. */
static void test_upper_case(void) {
    static const char from[] = "\x1f\x0b\n\"a", expected[] = "\"\\u001F\\u000B\\n\\\"a\"";
    CHECK_INT(sizeof expected - 1, kr_json_size((const uint8_t *)from, sizeof from - 1));
    uint8_t *end = kr_json_write(text, (const uint8_t *)from, sizeof from - 1, kr_upper_hex_digits);
    CHECK_BYTES((const uint8_t *)expected, sizeof expected - 1, text, end - text);
}

int main(void) {
    test_upper_case();
    check_known(KR_CELL_BASE64, "", "");
    check_known(KR_CELL_BASE64, "a", "YQ==");
    check_known(KR_CELL_BASE64, "ab", "YWI=");
    check_known(KR_CELL_BASE64, "abc", "YWJj");
    check_known(KR_CELL_HEX, "\xff\x01z", "ff017a");
    check_known(KR_CELL_JSON, "", "\"\"");
    check_known(KR_CELL_JSON, "a\"b\\c\n\x1f\x7f", "\"a\\\"b\\\\c\\n\\u001f\x7f\"");
    check_known(KR_CELL_JSON, "\x08\x0b\x0c\x0d\x0e", "\"\\b\\u000b\\f\\r\\u000e\"");
    check_known(KR_CELL_CSV, "", "\"\"");
    check_known(KR_CELL_CSV, "plain text", "plain text");
    check_known(KR_CELL_CSV, " a", "\" a\"");
    check_known(KR_CELL_CSV, "say \"a\", b", "\"say \"\"a\"\", b\"");
    check_places();
    check_timestamp(0, "1970-01-01T00:00:00.000Z");
    check_timestamp(-1, "1969-12-31T23:59:59.999999Z");
    check_timestamp(1709251199999000, "2024-02-29T23:59:59.999Z");
    check_timestamp(-2203891200000000, "1900-03-01T00:00:00.000Z");
    check_timestamp(INT64_MAX, "294247-01-10T04:00:54.775807Z");
    check_timestamp(INT64_MIN, "-290308-12-21T19:59:05.224192Z");
    return check_report("cell_text");
}
