/* Records that fill a batch of their own, as controllers write them, and edits that make most of them malformed. */
#ifndef KRAFTLOG_TESTS_ONES_H
#define KRAFTLOG_TESTS_ONES_H

#include "bytes.h"
#include "check.h"

enum { EDIT_INSERT, EDIT_DELETE, EDIT_FLIP, EDIT_NUDGE, EDITS, EDITED_FRONT = 12, LONGEST_ONE = 9000 };

/* Changes one byte at `at`, or puts one there, or takes it away. */
static inline void edit_bytes(bytes *b, int64_t at, int edit, int with) {
    if (at >= b->size) return;
    uint8_t *p = b->at + at;
    size_t behind = (size_t)(b->size - at);
    switch (edit) {
    case EDIT_INSERT:
        if (b->size == BYTES_CAPACITY) return;
        memmove(p + 1, p, behind);
        *p = (uint8_t)with;
        b->size++;
        break;
    case EDIT_DELETE:
        memmove(p, p + 1, behind - 1);
        b->size--;
        break;
    case EDIT_FLIP:
        *p ^= (uint8_t)(1u << (with & 7));
        break;
    default:
        *p = (uint8_t)(*p + (with & 1 ? 2 : -2)); /* a varint that is one more, or one less */
    }
}

/* Mostly in the fields before the value. */
static inline void edit_at_random(bytes *b) {
    if (!b->size) return;
    int64_t front = b->size < EDITED_FRONT ? b->size : EDITED_FRONT;
    edit_bytes(b, random_below(random_below(8) ? front : b->size), (int)random_below(EDITS), (int)random_below(256));
}

/* The fields of a record of the form that kr_record_alone takes, with a value of so many bytes. */
static inline void put_fields_of_one(bytes *fields, int64_t value_length) {
    static uint8_t text[LONGEST_ONE];
    for (size_t k = 0; k < 20; k++) text[k] = (uint8_t)random_next();
    put_fill(fields, 0, 3); /* attributes and deltas */
    put_field(fields, 0, -1);
    put_field(fields, text, value_length);
    put_varint(fields, 0);
}

/* About where lengths begin to take two bytes, and three. */
static inline int64_t random_length_of_one(void) {
    if (random_below(8)) return 45 + random_below(30);
    return random_below(100) ? random_below(300) : 8150 + random_below(60);
}

/* One such record, or what up to two edits make of it: some within a record whose length says where it ends. */
static inline void put_one(bytes *b) {
    static bytes fields, record;
    fields.size = record.size = 0;
    put_fields_of_one(&fields, random_length_of_one());
    int64_t edits = random_below(3), inside = random_below(edits + 1);
    for (int64_t i = 0; i < inside; i++) edit_at_random(&fields);
    put_record_of(&record, &fields);
    for (int64_t i = inside; i < edits; i++) edit_at_random(&record);
    put_bytes(b, record.at, record.size);
}

#endif
