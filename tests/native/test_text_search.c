/* text/search.h: the same answers as a comparison at every place, wherever a text stands, at the edges of blocks too.
 */
#include "check.h"
#include "text/search.h"

static int is_there(const uint8_t *p, int64_t n, const uint8_t *text, int32_t size, int ignores_case) {
    for (int64_t at = 0; at + size <= n; at++) {
        int32_t same = 0;
        while (same < size) {
            uint8_t a = p[at + same], b = text[same];
            if (ignores_case && a >= 'A' && a <= 'Z') a = (uint8_t)(a + 32);
            if (a != b) break;
            same++;
        }
        if (same == size) return 1;
    }
    return 0;
}

static void at_every_place(int ignores_case) {
    static const uint8_t needle[] = "needle";
    kr_text text = {needle, 6, 0, 5, 0};
    for (int64_t n = 0; n < 200; n++) {
        uint8_t *p = malloc((size_t)n + 1); /* so that a sanitizer sees what is read behind it */
        for (int64_t at = 0; at + 6 <= n; at++) {
            memset(p, 'n', (size_t)n);
            memcpy(p + at, ignores_case ? "NeeDLE" : "needle", 6);
            CHECK_INT(1, kr_holds_text(p, n, &text, ignores_case));
            p[at + 3] = 'x';
            CHECK_INT(0, kr_holds_text(p, n, &text, ignores_case));
        }
        free(p);
    }
}

static void at_random(void) {
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[300], needle[KR_TEXT_BYTES];
        int64_t n = (int64_t)(random_next() % sizeof(bytes));
        uint8_t *p = malloc((size_t)n + 1);
        int ignores_case = (int)(random_next() % 2);
        for (int64_t i = 0; i < n; i++) p[i] = (uint8_t)("abAB{[@`\x00\xff"[random_next() % 10]);
        int32_t size = 1 + (int32_t)(random_next() % (round % 2 ? 4 : KR_TEXT_BYTES));
        int64_t from = size < n ? (int64_t)(random_below(n - size)) : 0;
        for (int32_t i = 0; i < size; i++) {
            needle[i] = size < n && round % 3 ? p[from + i] : (uint8_t)("abAB{"[random_next() % 5]);
            if (ignores_case && needle[i] >= 'A' && needle[i] <= 'Z') needle[i] = (uint8_t)(needle[i] + 32);
        }
        kr_text text = {needle, size, (int32_t)(random_next() % (uint64_t)size),
                        (int32_t)(random_next() % (uint64_t)size), 0};
        CHECK_INT(is_there(p, n, needle, size, ignores_case), kr_holds_text(p, n, &text, ignores_case));
        free(p);
    }
}

static void clauses(void) {
    const kr_text texts[] = {
        {(const uint8_t *)"ab", 2, 0, 1, 0}, {(const uint8_t *)"cd", 2, 0, 1, 0}, {(const uint8_t *)"e", 1, 0, 0, 1}};
    const kr_texts all = {texts, 3, 0}, none = {texts, 0, 0};
    CHECK_INT(1, kr_holds_texts((const uint8_t *)"xcde", 4, &all));
    CHECK_INT(1, kr_holds_texts((const uint8_t *)"eab", 3, &all));
    CHECK_INT(0, kr_holds_texts((const uint8_t *)"abcd", 4, &all));
    CHECK_INT(0, kr_holds_texts((const uint8_t *)"ace", 3, &all));
    CHECK_INT(1, kr_holds_texts((const uint8_t *)"", 0, &none));
    CHECK_INT(0, kr_holds_texts((const uint8_t *)"", 0, &all));
}

int main(void) {
    at_every_place(0);
    at_every_place(1);
    at_random();
    clauses();
    return check_report("text_search");
}
