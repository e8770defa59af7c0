/* Whether bytes hold texts, as a question before they are decoded.
 *
 * Two bytes of a text are compared at 64 places at once, so that compilers make vectors of the loop; the whole text
 * where both match. Those two are chosen by the caller, the rarest of the text. Texts are short (KR_TEXT_BYTES), so
 * that bytes which nearly match everywhere cost no more than that times their number.
 */
#ifndef KRAFTLOG_TEXT_SEARCH_H
#define KRAFTLOG_TEXT_SEARCH_H

#include <stdint.h>
#include <string.h>

enum { KR_TEXT_BYTES = 64, KR_SEARCH_BLOCK = 64 };

typedef struct {
    const uint8_t *text; /* 1 to KR_TEXT_BYTES; in lower case where cases are equal */
    int32_t size;
    int32_t first, second; /* which two of its bytes are compared first; they may be one */
    int32_t clause;        /* texts of one clause stand for each other */
} kr_text;

typedef struct {
    const kr_text *texts; /* by clause */
    int32_t count;
    int32_t ignores_case; /* of the letters of ASCII */
} kr_texts;

/* The bit in which the cases of a letter of ASCII differ, of others 0: a byte with it set is the letter. */
static inline uint8_t kr_case_bit(uint8_t byte) {
    uint8_t lower = byte | 0x20;
    return lower >= 'a' && lower <= 'z' ? 0x20 : 0;
}

static inline int kr_text_is_at(const uint8_t *p, const kr_text *t, int ignores_case) {
    if (!ignores_case) return memcmp(p, t->text, (size_t)t->size) == 0;
    for (int32_t i = 0; i < t->size; i++)
        if ((p[i] | kr_case_bit(t->text[i])) != t->text[i]) return 0;
    return 1;
}

/* Whether the text stands in p[0, n). */
static inline int kr_holds_text(const uint8_t *p, int64_t n, const kr_text *t, int ignores_case) {
    const uint8_t a = t->text[t->first], b = t->text[t->second];
    const uint8_t case_a = ignores_case ? kr_case_bit(a) : 0, case_b = ignores_case ? kr_case_bit(b) : 0;
    int64_t i = 0, places = n - t->size + 1;
    for (; i + KR_SEARCH_BLOCK <= places; i += KR_SEARCH_BLOCK) {
        const uint8_t *pa = p + i + t->first, *pb = p + i + t->second;
        uint8_t hits[KR_SEARCH_BLOCK];
        uint64_t words[KR_SEARCH_BLOCK / 8], any = 0;
        for (int k = 0; k < KR_SEARCH_BLOCK; k++)
            hits[k] = (uint8_t)(((pa[k] | case_a) == a) & ((pb[k] | case_b) == b));
        memcpy(words, hits, sizeof(words));
        for (int k = 0; k < KR_SEARCH_BLOCK / 8; k++) any |= words[k];
        if (!any) continue;
        for (int k = 0; k < KR_SEARCH_BLOCK; k++)
            if (hits[k] && kr_text_is_at(p + i + k, t, ignores_case)) return 1;
    }
    for (; i < places; i++)
        if (kr_text_is_at(p + i, t, ignores_case)) return 1;
    return 0;
}

/* Whether of each clause some text stands in p[0, n). */
static inline int kr_holds_texts(const uint8_t *p, int64_t n, const kr_texts *s) {
    for (int32_t i = 0; i < s->count;) {
        int32_t clause = s->texts[i].clause;
        int is_there = 0;
        for (; i < s->count && s->texts[i].clause == clause; i++)
            is_there = is_there || kr_holds_text(p, n, &s->texts[i], s->ignores_case);
        if (!is_there) return 0;
    }
    return 1;
}

#endif
