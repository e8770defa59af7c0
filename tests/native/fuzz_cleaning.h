/* What the cleaner does to each record: maps of last offsets that get full, and batches with some of their records. */
#ifndef KRAFTLOG_TESTS_FUZZ_CLEANING_H
#define KRAFTLOG_TESTS_FUZZ_CLEANING_H

#include "cleaning.h"
#include "fuzz_mutate.h"

static void make_map_rows(map_rows *r) {
    static bytes text;
    int64_t distinct = 1 + random_below(random_below(2) ? 6 : 200), longest = 1 + random_below(40), offset = 0;
    text.size = 0;
    memset(r->valid, 0xff, sizeof r->valid);
    r->ends[0] = 0;
    r->n = random_below(MAP_ROWS);
    for (int64_t row = 0; row < r->n; row++) {
        int64_t key = random_below(distinct), size = key % longest;
        for (int64_t i = 0; i < size; i++) put_fill(&text, (int)(i ? 'k' : key), 1);
        r->ends[row + 1] = (int32_t)text.size;
        r->offsets[row] = offset += 1 + random_below(3);
        r->wanted[row] = random_below(8) != 0;
        if (random_below(10) == 0) r->valid[row >> 3] &= (uint8_t)~(1u << (row & 7));
    }
    r->keys = (kr_lent_binary){r->ends, exact_copy(text.at, text.size), text.size, r->valid, 0};
}

/* A map has the keys of all rows that it took; the one at which it stopped is the first of the next map. */
static void fuzz_offset_map(const corpus *c) {
    static map_rows r;
    uint8_t is_superseded[MAP_ROWS];
    int64_t most = random_below(3) ? random_below(8000) : 1 << 20, first = 0, end;
    (void)c;
    make_map_rows(&r);
    do {
        kr_offset_map m;
        CHECK_TRUE(kr_offset_map_open(&m, random_next(), most));
        end = kr_offset_map_put(&m, &r.keys, r.offsets, r.wanted, first, r.n);
        CHECK_TRUE(!m.slots.no_memory && (end > first || first == r.n));
        const kr_key_slots *s = &m.slots;
        CHECK_TRUE(s->index.used <= 1 || s->slots.size + s->index.entries.size + s->text.size <= most);
        kr_offset_map_superseded(&m, &r.keys, r.offsets, r.n, is_superseded);
        for (int64_t row = 0; row < r.n; row++)
            CHECK_INT(plain_last_offset(&r, row, first, end) > r.offsets[row], is_superseded[row]);
        kr_offset_map_close(&m);
        first = end;
    } while (first < r.n && !failures);
    exact_free((uint8_t *)r.keys.data, r.ends[r.n]);
}

static void fuzz_kept(const corpus *c) {
    static fuzz_input input;
    static uint8_t keeps[MOST_INPUT];
    choose_input(&input, c);
    if (random_below(2)) mutate(&input, c);
    if (input.size < KR_RECORD_BATCH_OVERHEAD) return;
    int64_t end = KR_LOG_OVERHEAD + (int64_t)kr_load_int32(input.at + KR_LENGTH_AT);
    int64_t size = end > KR_RECORD_BATCH_OVERHEAD && end <= input.size ? end - KR_RECORD_BATCH_OVERHEAD : 0;
    int64_t count = kr_load_int32(input.at + KR_RECORDS_COUNT_AT), odds = 1 + random_below(6);
    if (count < 0 || count > MOST_INPUT || random_below(20) == 0) count = random_below(5);
    for (int64_t i = 0; i < count; i++) keeps[i] = random_below(odds) == 0;
    uint8_t *records = exact_copy(input.at + KR_RECORD_BATCH_OVERHEAD, size);
    kr_filter f = {records, size, keeps, count, kr_load_int64(input.at + KR_BASE_TIMESTAMP_AT)};
    check_kept(&f, (int)random_below(2), random_below(2) ? interesting() : 1700000000000);
    check_rewritten(records, size);
    exact_free(records, size);
}

#endif
