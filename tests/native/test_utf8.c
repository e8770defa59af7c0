/* text/utf8.h: well-formed text is kept, and each maximal part of a broken sequence becomes one U+FFFD. */
#include "bytes.h"
#include "check.h"
#include "text/utf8.h"

#define BAD "efbfbd"

static const struct {
    const char *from, *to;
} cases[] = {
    {"", ""},
    {"41", "41"},
    {"7f", "7f"},
    {"c280", "c280"},
    {"dfbf", "dfbf"},
    {"e0a080", "e0a080"},
    {"ed9fbf", "ed9fbf"},
    {"ee8080", "ee8080"},
    {"efbfbf", "efbfbf"},
    {"f0908080", "f0908080"},
    {"f48fbfbf", "f48fbfbf"},
    /* lone continuations, and bytes that begin nothing */
    {"80", BAD},
    {"41bf42", "41" BAD "42"},
    {"8081", BAD BAD},
    {"c0", BAD},
    {"c1bf", BAD BAD},
    {"f5808080", BAD BAD BAD BAD},
    {"feff", BAD BAD},
    /* cut off: one replacement for all that could have become a character */
    {"c2", BAD},
    {"c241", BAD "41"},
    {"e0", BAD},
    {"e0a0", BAD},
    {"e282", BAD},
    {"e28241", BAD "41"},
    {"e2f09f9880", BAD "f09f9880"},
    {"f0", BAD},
    {"f09f", BAD},
    {"f09f98", BAD},
    {"f09f9841", BAD "41"},
    {"f48f", BAD},
    /* longer than needed, beyond U+10FFFF: the second byte cannot follow the first; a surrogate is one */
    {"c080", BAD BAD},
    {"e08080", BAD BAD BAD},
    {"e09fbf", BAD BAD BAD},
    {"f0808080", BAD BAD BAD BAD},
    {"f08fbfbf", BAD BAD BAD BAD},
    {"eda080", BAD},
    {"eda0", BAD},
    {"eda041", BAD "41"},
    {"edbfbf41", BAD "41"},
    {"f4908080", BAD BAD BAD BAD},
    /* The Unicode Standard 15, tables 3-8 to 3-11 */
    {"c0afe080bff0818241", BAD BAD BAD BAD BAD BAD BAD BAD "41"},
    {"eda080edbfbfedaf41", BAD BAD BAD "41"},
    {"f4919293ff4180bf42", BAD BAD BAD BAD BAD "41" BAD BAD "42"},
    {"e180e2f09192f1bf41", BAD BAD BAD BAD "41"},
    {"61f18080e180c262806380bf64", "61" BAD BAD BAD "62" BAD "63" BAD BAD "64"},
};

/* Copies between blocks that end where their bytes, or their padding, end. */
static void check_copy(const uint8_t *from, int64_t n, const uint8_t *to, int64_t m) {
    uint8_t *source = exact_copy(from, n), *target = malloc((size_t)(KR_UTF8_GROWTH * n + 1));
    uint8_t *padded = malloc((size_t)(n + KR_PADDING)), *padded_target = malloc((size_t)(m > n ? m : n) + KR_PADDING);
    memset(padded, 0xff, (size_t)(n + KR_PADDING));
    if (n) memcpy(padded, from, (size_t)n);
    CHECK_BYTES(to, m, target, kr_copy_utf8(target, source, n));
    CHECK_BYTES(to, m, target, kr_copy_text(target, source, n, 0));
    CHECK_BYTES(to, m, padded_target, kr_copy_text(padded_target, padded, n, 1));
    exact_free(source, n);
    free(target);
    free(padded);
    free(padded_target);
}

static void test_cases(void) {
    static bytes from, to;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        from.size = to.size = 0;
        put_hex(&from, cases[i].from);
        put_hex(&to, cases[i].to);
        check_copy(from.at, from.size, to.at, to.size);
    }
}

/* Text that is ASCII but for one byte, wherever it stands. */
static void test_one_broken_byte(void) {
    enum { LONGEST = 140 };
    uint8_t from[LONGEST], to[LONGEST + 2];
    for (int n = 0; n <= LONGEST; n++) {
        memset(from, 'a', sizeof from);
        check_copy(from, n, from, n);
        for (int at = 0; at < n; at++) {
            memset(to, 'a', sizeof to);
            memcpy(to + at, "\xef\xbf\xbd", 3);
            from[at] = 0x80;
            check_copy(from, n, to, n + 2);
            from[at] = 'a';
        }
    }
}

/* The Unicode Standard, table 3-7: the ranges of the bytes of each well-formed sequence. The first row is not in it: a
 * surrogate, which Java takes for one character when it replaces it. */
enum { SURROGATE_ROW };
static const uint8_t well_formed[][8] = {
    {0xed, 0xed, 0xa0, 0xbf, 0x80, 0xbf},
    {0x00, 0x7f},
    {0xc2, 0xdf, 0x80, 0xbf},
    {0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf},
    {0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf},
    {0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf},
    {0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf},
    {0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
    {0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
    {0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf},
};

/* Bytes at p that begin a sequence of the table, and whether they are all of it. */
static int longest_part(const uint8_t *p, const uint8_t *end, int *whole) {
    int longest = 0;
    *whole = 0;
    for (size_t row = 0; row < sizeof well_formed / sizeof *well_formed; row++) {
        int length = 1, n = 0;
        while (length < 4 && well_formed[row][2 * length]) length++;
        while (n < length && p + n < end && p[n] >= well_formed[row][2 * n] && p[n] <= well_formed[row][2 * n + 1]) n++;
        if (n > longest) longest = n;
        if (n == length && row != SURROGATE_ROW) *whole = 1;
    }
    return longest ? longest : 1;
}

static void test_against_table(void) {
    static const uint8_t interesting[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
                                          0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    enum { N = sizeof interesting };
    for (int i = 0; i < N * N * N * N; i++) {
        uint8_t text[4] = {interesting[i % N], interesting[i / N % N], interesting[i / N / N % N],
                           interesting[i / N / N / N]};
        for (int at = 0, whole; at < 4;) {
            int length = longest_part(text + at, text + 4, &whole);
            CHECK_INT(whole ? length : -length, kr_utf8_sequence(text + at, text + 4));
            at += length;
        }
    }
}

/* Each case among so many letters before and behind it that it lies at every place of a word: text is UTF-8 when a
 * copy of it is the same. */
static void test_check(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int before = 0; before < 18; before++)
            for (int behind = 0; behind < 18; behind += 5) {
                static bytes b;
                uint8_t copy[256];
                b.size = 0;
                put_fill(&b, 'a', before);
                put_hex(&b, cases[i].from);
                put_fill(&b, 'a', behind);
                uint8_t *p = exact_copy(b.at, b.size);
                int64_t size = kr_copy_utf8(copy, p, b.size);
                CHECK_INT(size == b.size && !memcmp(copy, p, (size_t)size), kr_is_utf8(p, b.size));
                exact_free(p, b.size);
            }
}

int main(void) {
    test_cases();
    test_check();
    test_one_broken_byte();
    test_against_table();
    return check_report("utf8");
}
