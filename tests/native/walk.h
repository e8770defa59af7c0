/* Walks over records made by hand, with as many readable bytes behind them as a test likes. */
#ifndef KRAFTLOG_TESTS_WALK_H
#define KRAFTLOG_TESTS_WALK_H

#include "bytes.h"
#include "check.h"
#include "record/walk.h"
#include "room.h"

static inline kr_batch_header walk_header(int32_t count) {
    kr_batch_header h = {0};
    h.magic = 2;
    h.base_offset = 100;
    h.base_timestamp = 5000;
    h.max_timestamp = 6000;
    h.records_count = count;
    return h;
}

/* What stands behind records in memory: varints that go on, bytes of fields that would fit, or the next batch. */
enum { BEHIND_ZEROS, BEHIND_ONES, BEHIND_RECORDS, WALK_BEHIND };

static inline void walk_fill_behind(uint8_t *p, const uint8_t *records, int64_t size, int64_t more, int behind) {
    if (size) memcpy(p, records, (size_t)size);
    memset(p + size, behind == BEHIND_ZEROS ? 0 : 0xff, (size_t)more);
    for (int64_t i = 0; behind == BEHIND_RECORDS && size && i < more; i++) p[size + i] = records[i % size];
}

/* Decodes the records into columns of just the room that they may need. With `spare` KR_PADDING bytes can be read
 * behind the records, so that the fast parser takes all it can; without, the careful one reads every record. */
static inline int walk_with(const bytes *records, const kr_batch_header *h, kr_columns *c, kr_error *e, uint32_t want,
                            int spare, int shapes) {
    int64_t size = records->size, total = size + (spare ? KR_PADDING : 0);
    uint8_t *p = room_block(total);
    walk_fill_behind(p, records->at, size, total - size, (int)(size % WALK_BEHIND));
    *c = room_make(size / KR_SMALLEST_RECORD + 1, size, size / 2 + 1, want);
    kr_walk w = {p, p + size, spare ? p + size : p, 0, h->records_count, {p + size, p + size, 0}, 0};
    int status = shapes ? kr_records_decode(&w, c, h, p, e, want) : kr_records_walk(&w, c, h, p, e, want);
    free(p);
    return status;
}

static inline int walk(const bytes *records, const kr_batch_header *h, kr_columns *c, kr_error *e, uint32_t want,
                       int spare) {
    return walk_with(records, h, c, e, want, spare, 1);
}

/* What a processor does that has no pext. */
static inline int walk_without_shapes(const bytes *records, const kr_batch_header *h, kr_columns *c, kr_error *e,
                                      uint32_t want) {
    return walk_with(records, h, c, e, want, 1, 0);
}

static inline void check_text(const char *file, int line, const char *expected, const kr_binary_column *c, int64_t i) {
    check_int(file, line, "validity", expected != 0, room_bit(c->validity, i));
    if (expected)
        check_bytes(file, line, "value", (const uint8_t *)expected, (int64_t)strlen(expected), c->data + c->ends[i],
                    c->ends[i + 1] - c->ends[i]);
}

#define CHECK_TEXT(expected, column, row) check_text(__FILE__, __LINE__, (expected), &(column), (row))

#endif
