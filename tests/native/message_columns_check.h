/* Decoded columns: a check that they hang together, and the same columns as what messages are written from. */
#ifndef KRAFTLOG_TESTS_MESSAGE_COLUMNS_CHECK_H
#define KRAFTLOG_TESTS_MESSAGE_COLUMNS_CHECK_H

#include "check.h"
#include "message/decode.h"
#include "message/encode.h"
#include "message_programs.h"

typedef struct {
    kr_message_decoder d;
    kr_column columns[MESSAGE_COLUMNS];
} message_columns;

static void message_columns_open(message_columns *c, const message_program *m, int uuid_text) {
    memset(c, 0, sizeof *c);
    c->d.program = m->program;
    c->d.columns = c->columns;
    c->d.uuid_text = uuid_text;
    for (int i = 0; i < MESSAGE_COLUMNS; i++) kr_column_open(&c->columns[i]);
}

static void message_columns_close(message_columns *c) {
    for (int i = 0; i < MESSAGE_COLUMNS; i++) kr_column_free(&c->columns[i]);
    kr_message_decoder_close(&c->d);
}

/* ---- they hang together ---- */

static void check_ends(const kr_level *l, int64_t count, int64_t last) {
    int32_t before = 0, end;
    CHECK_INT(4 * (count + 1), l->ends.size);
    for (int64_t i = 0; i <= count; i++) {
        memcpy(&end, l->ends.bytes + 4 * i, 4);
        CHECK_TRUE(end >= before && (i || !end));
        before = end;
    }
    CHECK_INT(last, before);
}

static void check_valid(const kr_level *l) {
    int64_t nulls = 0;
    if (l->nulls) CHECK_INT(l->count, l->valid.size);
    for (int64_t i = 0; l->nulls && i < l->count; i++) nulls += !l->valid.bytes[i];
    CHECK_INT(l->nulls, nulls);
}

static void check_unknown(const kr_column *u, int64_t structs) {
    CHECK_INT(structs, u->list.count);
    check_ends(&u->list, structs, u->item.count);
    check_ends(&u->item, u->item.count, u->item.data.size);
    CHECK_INT(8 * u->item.count, u->tags.size);
}

static void check_column(const message_columns *c, int32_t field, int64_t count) {
    const kr_field *f = &c->d.program.fields[field];
    const kr_column *column = &c->columns[field];
    const kr_level *l = &column->item;
    if (f->is_array) {
        CHECK_INT(count, column->list.count);
        check_ends(&column->list, count, l->count);
        check_valid(&column->list);
    } else {
        CHECK_INT(count, l->count);
    }
    check_valid(l);
    if (f->kind == KR_KIND_STRUCT) {
        for (int32_t k = f->first; k < f->first + f->count; k++) check_column(c, k, l->count);
        check_unknown(&c->columns[f->unknown], l->count);
    } else if (kr_wire_width(f->kind) && !(f->kind == KR_KIND_UUID && c->d.uuid_text)) {
        CHECK_INT(kr_column_width(f->kind) * l->count, l->data.size);
    } else {
        check_ends(l, l->count, l->data.size);
    }
}

/* ---- as sources ---- */

typedef struct {
    kr_field_source sources[MESSAGE_COLUMNS];
    uint8_t *blocks[4 * MESSAGE_COLUMNS];
    int blocks_count;
} message_sources;

/* Bytes of 0 and 1 as bits, in a block that ends where they end. */
static const uint8_t *as_bits(message_sources *s, const uint8_t *flags, int64_t n) {
    uint8_t *bits = calloc((size_t)(n / 8 + 1), 1);
    if (!bits) abort();
    for (int64_t i = 0; i < n; i++)
        if (flags[i]) bits[i >> 3] = (uint8_t)(bits[i >> 3] | 1 << (i & 7));
    s->blocks[s->blocks_count++] = bits;
    return bits;
}

static void message_sources_make(message_sources *s, const message_columns *c) {
    memset(s, 0, sizeof *s);
    for (int i = 0; i < MESSAGE_COLUMNS; i++) {
        const kr_column *column = &c->columns[i];
        kr_field_source *to = &s->sources[i];
        if (column->list.nulls) to->list_valid = as_bits(s, column->list.valid.bytes, column->list.count);
        if (column->item.nulls) to->valid = as_bits(s, column->item.valid.bytes, column->item.count);
        to->list_ends = (const int32_t *)(const void *)column->list.ends.bytes;
        to->ends = (const int32_t *)(const void *)column->item.ends.bytes;
        to->data = column->item.data.bytes;
        to->tags = (const int64_t *)(const void *)column->tags.bytes;
        if (i < MESSAGE_FIELDS && c->d.program.fields[i].kind == KR_KIND_BOOL)
            to->data = as_bits(s, column->item.data.bytes, column->item.count);
    }
}

static void message_sources_free(message_sources *s) {
    while (s->blocks_count) free(s->blocks[--s->blocks_count]);
}

#endif
