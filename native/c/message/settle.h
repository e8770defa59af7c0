/* Columns between generated decoders and the interpreter.
 *
 * A generated decoder writes the value of a row at the row's place. Where all versions of a message have a field, or
 * where it has a fixed width, its column is `prompt`: every row writes it, and its counts and sizes follow from the
 * number of rows. Columns of other fields count their values, and get the default for the rows between when a row has
 * one. To settle is to make all columns have the same rows, with counts and sizes as the interpreter keeps them: rows
 * behind are cut off, those that are missing get the default. At the end a column that no row had may stay empty: its
 * array needs no memory of its own (message/arrays.h). */
#ifndef KRAFTLOG_MESSAGE_SETTLE_H
#define KRAFTLOG_MESSAGE_SETTLE_H

#include "message/values.h"

/* What becomes of rows that a column does not have. */
enum kr_fill { KR_CUT, KR_FILL, KR_FILL_USED };

enum { KR_MOST_UNUSED = 1 << 16 }; /* rows of a column that may stay empty */

/* Whether the default of a field takes no bytes. */
static inline int kr_default_is_empty(const kr_field *f) {
    return f->is_array ||
           ((f->kind == KR_KIND_STRING || f->kind == KR_KIND_BYTES) && (f->null_default || !f->default_size));
}

static inline int32_t kr_end_at(const kr_level *l, int64_t i) {
    int32_t end;
    memcpy(&end, l->ends.bytes + 4 * i, 4);
    return end;
}

/* How many bytes are zero. */
static inline int64_t kr_count_zeros(const uint8_t *p, int64_t n) {
    int64_t zeros = 0;
    for (int64_t i = 0; i < n; i++) zeros += !p[i];
    return zeros;
}

/* The validity of n values alone. Those that are not counted yet are of a column that is prompt, which has the bytes of
 * all of them if it has any. */
static void kr_cut_valid(kr_level *l, int64_t n) {
    if (l->count < n && l->valid.capacity) {
        l->nulls += kr_count_zeros(l->valid.bytes + l->count, n - l->count);
        l->valid.size = n;
    }
    for (; l->valid.size > n; l->valid.size--) l->nulls -= !l->valid.bytes[l->valid.size - 1];
    if (!l->nulls) l->valid.size = 0;
    l->count = n;
}

static void kr_settle_field(kr_message_decoder *d, const uint8_t *prompt, int32_t field, int64_t rows,
                            enum kr_fill fill);

static void kr_settle_struct(kr_message_decoder *d, const uint8_t *prompt, int32_t field, int64_t rows,
                             enum kr_fill fill) {
    const kr_field *f = &d->program.fields[field];
    for (int32_t k = f->first; k < f->first + f->count; k++) kr_settle_field(d, prompt, k, rows, fill);
    kr_column *u = &d->columns[f->unknown];
    if (u->list.count > rows) { /* only by structs that are null, which have none */
        u->list.count = rows;
        u->list.ends.size = 4 * (rows + 1);
    }
    int may_stay = fill == KR_FILL_USED && !u->list.count && rows <= KR_MOST_UNUSED;
    if (fill && u->list.count < rows && !may_stay) kr_put_no_unknown(d, field, rows - u->list.count);
}

static void kr_settle_items(kr_message_decoder *d, const uint8_t *prompt, int32_t field, int64_t n, enum kr_fill fill) {
    const kr_field *f = &d->program.fields[field];
    kr_level *l = &d->columns[field].item;
    kr_cut_valid(l, n);
    if (f->kind == KR_KIND_STRUCT) {
        kr_settle_struct(d, prompt, field, n, fill);
    } else if (kr_wire_width(f->kind) && !(f->kind == KR_KIND_UUID && d->uuid_text)) {
        l->data.size = kr_column_width(f->kind) * n;
    } else {
        l->ends.size = 4 * (n + 1);
        l->data.size = kr_end_at(l, n);
    }
}

/* Cuts the column of a field to so many rows, and counts those that are prompt. */
static void kr_settle_field(kr_message_decoder *d, const uint8_t *prompt, int32_t field, int64_t rows,
                            enum kr_fill fill) {
    kr_column *c = &d->columns[field];
    const kr_field *f = &d->program.fields[field];
    const int is_array = f->is_array;
    int64_t have = is_array ? c->list.count : c->item.count;
    if (prompt[field] || have > rows) have = rows;
    if (is_array) {
        kr_cut_valid(&c->list, have);
        c->list.ends.size = 4 * (have + 1);
        kr_settle_items(d, prompt, field, kr_end_at(&c->list, have), fill);
    } else {
        kr_settle_items(d, prompt, field, have, fill && have < rows ? KR_FILL : fill);
    }
    int may_stay = fill == KR_FILL_USED && !have && rows <= KR_MOST_UNUSED && kr_default_is_empty(f);
    if (fill && have < rows && !may_stay && !d->no_memory) kr_put_default(d, field, rows - have);
}

static int kr_make_room(kr_message_decoder *d, int32_t field, int64_t rows, int64_t bytes);

/* Makes the validity reach all values that there are, if there is any. */
static int kr_open_level(kr_level *l) {
    if (!l->valid.capacity || l->valid.size >= l->count) return 1;
    int64_t more = l->count - l->valid.size;
    if (!kr_reserve(&l->valid, more)) return 0;
    memset(l->valid.bytes + l->valid.size, 1, (size_t)more);
    l->valid.size = l->count;
    return 1;
}

/* Makes room in the columns of a field: for so many rows, and for what so many bytes can become. */
static int kr_make_field_room(kr_message_decoder *d, int32_t field, int64_t rows, int64_t bytes) {
    const kr_field *f = &d->program.fields[field];
    kr_column *c = &d->columns[field];
    if (!kr_open_level(&c->list) || !kr_open_level(&c->item)) return 0;
    const int wire = kr_wire_width(f->kind), is_text = f->kind == KR_KIND_STRING;
    if (f->is_array) {
        if (!kr_reserve(&c->list.ends, 4 * rows)) return 0;
        rows = bytes / (wire ? wire : 1); /* an element of another kind takes a byte at least */
    }
    if (f->kind == KR_KIND_STRUCT) return kr_make_room(d, field, rows, bytes);
    if (f->kind == KR_KIND_UUID && d->uuid_text)
        return kr_reserve(&c->item.ends, 4 * rows) && kr_reserve(&c->item.data, KR_UUID_TEXT_SIZE * rows);
    if (wire) return kr_reserve(&c->item.data, kr_column_width(f->kind) * rows);
    return kr_reserve(&c->item.ends, 4 * rows) && kr_reserve(&c->item.data, is_text ? KR_UTF8_GROWTH * bytes : bytes);
}

/* The same for all fields of a struct. */
static int kr_make_room(kr_message_decoder *d, int32_t field, int64_t rows, int64_t bytes) {
    const kr_field *f = &d->program.fields[field];
    int ok = 1;
    for (int32_t k = f->first; k < f->first + f->count && ok; k++) ok = kr_make_field_room(d, k, rows, bytes);
    return ok;
}

enum { KR_STRAIGHT_ROWS = 2048, KR_STRAIGHT_BYTES = 1 << 16 }; /* of a block, and of its values together */

/* Gives a column that is not prompt the default for the rows before this one, and room for the others of the block. */
static __attribute__((noinline, cold)) int kr_catch_up(kr_message_decoder *d, const uint8_t *prompt, int32_t field,
                                                       int64_t rows) {
    kr_settle_field(d, prompt, field, rows, KR_FILL);
    return !d->no_memory && kr_make_field_room(d, field, KR_STRAIGHT_ROWS, KR_STRAIGHT_BYTES);
}

#endif
