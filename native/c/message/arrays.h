/* Decoded messages as arrays of the Arrow C data interface. Buffers are not copied: all of a message's columns have one
 * owner, which every array has a share of, and go back to the pool with the last one. Columns that no row had share one
 * buffer of zeros. */
#ifndef KRAFTLOG_MESSAGE_ARRAYS_H
#define KRAFTLOG_MESSAGE_ARRAYS_H

#include "arrow/array.h"
#include "message/settle.h"

/* Owns columns, which are of malloc. */
typedef struct {
    atomic_int owners;
    int32_t count;
    int64_t absent;   /* rows that are, of which every field is null */
    kr_growing there; /* a bit for each row, when some are absent */
    kr_column *columns;
} kr_column_owner;

static void kr_column_owner_share(void *owner) {
    atomic_fetch_add_explicit(&((kr_column_owner *)owner)->owners, 1, memory_order_relaxed);
}

static void kr_column_owner_close(void *owner) {
    kr_column_owner *o = (kr_column_owner *)owner;
    if (atomic_fetch_sub_explicit(&o->owners, 1, memory_order_acq_rel) != 1) return;
    for (int32_t i = 0; i < o->count; i++) kr_column_free(&o->columns[i]);
    kr_growing_free(&o->there);
    free(o->columns);
    free(o);
}

/* Gives an array a share. */
static void kr_column_owner_keep(kr_array_parts *parts, kr_column_owner *owner) {
    parts->viewed.owner = owner;
    parts->viewed.share = kr_column_owner_share;
    parts->viewed.close = kr_column_owner_close;
    kr_column_owner_share(owner);
}

/* An owner that takes the columns of a decoder, which has none then; NULL when memory is short. */
static kr_column_owner *kr_column_owner_take(kr_message_decoder *d, int32_t count) {
    kr_column_owner *o = (kr_column_owner *)calloc(1, sizeof *o);
    if (!o) return 0;
    atomic_init(&o->owners, 1);
    o->count = count;
    o->columns = d->columns;
    d->columns = 0;
    return o;
}

/* Bytes that are 0 or 1 become bits in the same place. */
static void kr_pack_bits(uint8_t *bytes, int64_t n) {
    int64_t i = 0;
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; i + 8 <= n; i += 8) bytes[i >> 3] = (uint8_t)((kr_load_word(bytes + i) * 0x0102040810204080ull) >> 56);
#endif
    for (; i < n; i += 8) {
        unsigned bits = 0;
        for (int64_t k = 0; k < 8 && i + k < n; k++) bits |= (unsigned)(bytes[i + k] & 1) << k;
        bytes[i >> 3] = (uint8_t)bits;
    }
}

/* What columns that no row had share: no bit is set, and every list and text is empty. Nobody writes it. */
static uint8_t kr_zeros[4 * (KR_MOST_UNUSED + 1)];

/* Says which rows are absent, a byte for each; 0 when memory is short. */
static int kr_column_owner_absent(kr_column_owner *o, const uint8_t *is_absent, int64_t rows) {
    o->absent = rows - kr_count_zeros(is_absent, rows);
    if (!o->absent) return 1;
    if (!kr_reserve(&o->there, rows)) return 0;
    for (int64_t i = 0; i < rows; i++) o->there.bytes[i] = !is_absent[i];
    kr_pack_bits(o->there.bytes, rows);
    return 1;
}

/* An array of a level's values whose other buffers and children are still empty. */
static kr_array_parts *kr_level_array(struct ArrowArray *out, kr_column_owner *owner, kr_level *l, int buffers,
                                      int children) {
    kr_array_parts *parts = kr_array_open(out, 0, l->count, buffers, children);
    if (!parts) return 0;
    kr_column_owner_keep(parts, owner);
    out->null_count = l->nulls;
    if (!l->nulls) return parts;
    kr_pack_bits(l->valid.bytes, l->count);
    parts->buffers[0] = l->valid.bytes;
    return parts;
}

/* Makes the array of a field of the message, which has so many rows, null where these are absent. */
static void kr_array_of_rows_there(struct ArrowArray *out, kr_column_owner *owner) {
    kr_array_parts *parts = (kr_array_parts *)out->private_data;
    uint8_t *bits = (uint8_t *)(uintptr_t)parts->buffers[0];
    if (!owner->absent || out->null_count == out->length) return;
    if (!out->null_count) {
        parts->buffers[0] = owner->there.bytes;
        out->null_count = owner->absent;
        if (!parts->viewed.owner) kr_column_owner_keep(parts, owner);
        return;
    }
    int64_t set = 0;
    for (int64_t i = 0; i < out->length; i += 8) {
        bits[i >> 3] &= owner->there.bytes[i >> 3];
        set += __builtin_popcount(bits[i >> 3]);
    }
    out->null_count = out->length - set;
}

static const uint8_t kr_no_bytes[8];

static const void *kr_buffer_of(const kr_growing *b) { return b->bytes ? b->bytes : kr_no_bytes; }

/* An array of so many rows of a column that no row had. */
static kr_array_parts *kr_unused_array(struct ArrowArray *out, int64_t rows, int is_null, int buffers, int children) {
    kr_array_parts *parts = kr_array_open(out, 0, rows, buffers, children);
    if (!parts) return 0;
    out->null_count = is_null ? rows : 0;
    parts->buffers[0] = is_null ? kr_zeros : 0;
    parts->buffers[1] = kr_zeros; /* ends */
    parts->buffers[2] = buffers > 2 ? kr_zeros : 0;
    return parts;
}

static int kr_field_array(struct ArrowArray *out, kr_column_owner *owner, const kr_message_decoder *d, int32_t field,
                          int64_t rows);

/* Lists of pairs of tag and bytes: the tagged fields of a struct that its definition does not know. */
static int kr_unknown_array(struct ArrowArray *out, kr_column_owner *owner, int32_t column, int64_t rows) {
    kr_column *c = &owner->columns[column];
    kr_array_parts *lists =
        c->list.count < rows ? kr_unused_array(out, rows, 0, 2, 1) : kr_level_array(out, owner, &c->list, 2, 1);
    if (!lists) return 0;
    if (c->list.count == rows) lists->buffers[1] = kr_buffer_of(&c->list.ends);
    struct ArrowArray *pairs = out->children[0];
    kr_array_parts *tags, *data;
    if (!kr_level_array(pairs, owner, &c->item, 1, 2)) return 0;
    if (!(tags = kr_level_array(pairs->children[0], owner, &c->item, 2, 0))) return 0;
    tags->buffers[1] = kr_buffer_of(&c->tags);
    if (!(data = kr_level_array(pairs->children[1], owner, &c->item, 3, 0))) return 0;
    data->buffers[1] = kr_buffer_of(&c->item.ends);
    data->buffers[2] = kr_buffer_of(&c->item.data);
    return 1;
}

/* The fields of a struct, and behind them, when they are asked for, its unknown tagged fields. */
static int kr_struct_arrays(struct ArrowArray **out, kr_column_owner *owner, const kr_message_decoder *d, int32_t field,
                            int64_t rows, int with_unknown) {
    const kr_field *f = &d->program.fields[field];
    for (int32_t k = 0; k < f->count; k++)
        if (!kr_field_array(out[k], owner, d, f->first + k, rows)) return 0;
    return !with_unknown || kr_unknown_array(out[f->count], owner, f->unknown, rows);
}

static int kr_items_array(struct ArrowArray *out, kr_column_owner *owner, const kr_message_decoder *d, int32_t field) {
    const kr_field *f = &d->program.fields[field];
    kr_level *l = &owner->columns[field].item;
    if (f->kind == KR_KIND_STRUCT)
        return kr_level_array(out, owner, l, 1, f->count + 1) &&
               kr_struct_arrays(out->children, owner, d, field, l->count, 1);
    const int is_fixed = kr_wire_width(f->kind) && !(f->kind == KR_KIND_UUID && d->uuid_text);
    kr_array_parts *parts = kr_level_array(out, owner, l, is_fixed ? 2 : 3, 0);
    if (!parts) return 0;
    if (f->kind == KR_KIND_BOOL) kr_pack_bits(l->data.bytes, l->count);
    if (!is_fixed) parts->buffers[1] = kr_buffer_of(&l->ends);
    parts->buffers[is_fixed ? 1 : 2] = kr_buffer_of(&l->data);
    return 1;
}

static int kr_field_array(struct ArrowArray *out, kr_column_owner *owner, const kr_message_decoder *d, int32_t field,
                          int64_t rows) {
    const kr_field *f = &d->program.fields[field];
    kr_column *c = &owner->columns[field];
    const int is_unused = (f->is_array ? c->list.count : c->item.count) < rows;
    if (!f->is_array)
        return is_unused ? kr_unused_array(out, rows, f->null_default, 3, 0) != 0
                         : kr_items_array(out, owner, d, field);
    kr_array_parts *parts =
        is_unused ? kr_unused_array(out, rows, f->null_default, 2, 1) : kr_level_array(out, owner, &c->list, 2, 1);
    if (!parts) return 0;
    if (!is_unused) parts->buffers[1] = kr_buffer_of(&c->list.ends);
    return kr_items_array(out->children[0], owner, d, field);
}

/* How many arrays the columns of a decoder become. */
static inline int kr_message_arrays_count(const kr_message_decoder *d, int with_unknown) {
    return d->program.fields[0].count + (with_unknown ? 1 : 0);
}

/* Makes arrays of a message's fields and takes the decoder's columns; 0 when memory is short, and arrays that were made
 * are left to be released. `is_absent` has a byte for each row, all of whose fields are null where it is set; NULL when
 * it is nowhere. */
static int kr_message_arrays(struct ArrowArray **out, kr_message_decoder *d, int32_t columns, int with_unknown,
                             const uint8_t *is_absent) {
    kr_column_owner *owner = kr_column_owner_take(d, columns);
    if (!owner) return 0;
    const int64_t rows = owner->columns[0].item.count;
    int ok = (!is_absent || kr_column_owner_absent(owner, is_absent, rows)) &&
             kr_struct_arrays(out, owner, d, 0, rows, with_unknown);
    for (int k = 0; ok && k < kr_message_arrays_count(d, with_unknown); k++) kr_array_of_rows_there(out[k], owner);
    kr_column_owner_close(owner);
    return ok;
}

#endif
