/* Reads fields that are no structs, of all rows of a block at once. */
#ifndef KRAFTLOG_MESSAGE_VALUES_H
#define KRAFTLOG_MESSAGE_VALUES_H

#include "message/defaults.h"
#include "text/utf8.h"

/* ---- values of fixed width ---- */

KR_ALWAYS_INLINE void kr_store_value(int kind, uint8_t *to, const uint8_t *from) {
    int32_t wide;
    int64_t widest;
    switch (kind) {
    case KR_KIND_BOOL:
        *to = *from != 0;
        break;
    case KR_KIND_INT8:
        *to = *from;
        break;
    case KR_KIND_INT16: {
        int16_t x = kr_load_int16(from);
        memcpy(to, &x, 2);
        break;
    }
    case KR_KIND_UINT16:
        wide = (uint16_t)kr_load_int16(from);
        memcpy(to, &wide, 4);
        break;
    case KR_KIND_INT32:
        wide = kr_load_int32(from);
        memcpy(to, &wide, 4);
        break;
    case KR_KIND_UINT32:
        widest = kr_load_uint32(from);
        memcpy(to, &widest, 8);
        break;
    case KR_KIND_UUID:
        memcpy(to, from, KR_UUID_SIZE);
        break;
    default:
        widest = kr_load_int64(from);
        memcpy(to, &widest, 8);
    }
}

/* The rows whose field is cut off. */
static void kr_fail_cut_rows(kr_message_decoder *d, int32_t field, kr_rows *r, const uint8_t *is_cut, int wire) {
    for (int64_t i = 0; i < r->n; i++)
        if (is_cut[i]) kr_row_fail(d, field, r, i, KR_TRUNCATED_FIELD, wire, r->end[i] - r->pos[i]);
}

/* Without a branch on what a row has: which tagged fields there are cannot be foreseen. */
KR_ALWAYS_INLINE void kr_fixed_rows(kr_message_decoder *d, int32_t field, kr_rows *r, int kind) {
    kr_level *l = &d->columns[field].item;
    const int wire = kr_wire_width(kind), width = kr_column_width(kind);
    if (!kr_reserve(&l->data, r->n * width)) {
        d->no_memory = 1;
        return;
    }
    uint8_t *to = l->data.bytes + l->data.size;
    uint8_t is_cut[KR_BLOCK_ROWS];
    int any_cut = 0;
    const uint8_t *absent = d->program.fields[field].default_wire;
    const uint8_t **pos = r->pos; /* in locals: what is written through `to` cannot change them */
    const uint8_t *const *end = r->end;
    const int64_t n = r->n;
    for (int64_t i = 0; i < n; i++, to += width) {
        const uint8_t *p = pos[i];
        int there = p != 0, whole = there & ((uintptr_t)end[i] - (uintptr_t)p >= (uintptr_t)wire);
        kr_store_value(kind, to, whole ? p : absent);
        pos[i] = whole ? p + wire : p;
        is_cut[i] = (uint8_t)(there & !whole);
        any_cut |= there & !whole;
    }
    if (any_cut) kr_fail_cut_rows(d, field, r, is_cut, wire);
    l->data.size += n * width;
    if (!kr_counted(l, n, 1)) d->no_memory = 1;
}

enum { KR_SHORT_LIST = 4, KR_NO_SHORT_LIST = -3 };

/* The length of a list that can be copied without a branch on how long it is: all of KR_SHORT_LIST elements, wanted or
 * not. KR_NO_SHORT_LIST for any other, and for what must be looked at. */
KR_ALWAYS_INLINE int64_t kr_short_list(const kr_message_decoder *d, const uint8_t *p, const uint8_t *end, int wire,
                                       int64_t absent) {
    if (!d->program.is_compact) return KR_NO_SHORT_LIST;
    if (!p) return absent;
    int64_t count = end > p ? (int64_t)*p - 1 : KR_NO_SHORT_LIST;
    int is_short = (count >= 0) & (count <= KR_SHORT_LIST) & (count * wire < end - p) &
                   (d->limit - p > (int64_t)KR_SHORT_LIST * wire);
    return is_short ? count : KR_NO_SHORT_LIST;
}

KR_ALWAYS_INLINE void kr_fixed_lists(kr_message_decoder *d, int32_t field, kr_rows *r, int kind) {
    const kr_field *f = &d->program.fields[field];
    kr_column *c = &d->columns[field];
    const int wire = kr_wire_width(kind), width = kr_column_width(kind);
    const int as_text = kind == KR_KIND_UUID && d->uuid_text;
    const int64_t most = kr_rows_left(r) / wire;
    uint8_t valid[KR_BLOCK_ROWS];
    int64_t nulls = 0;
    if (!kr_reserve(&c->list.ends, 4 * r->n) ||
        !kr_reserve(&c->item.data, most * (as_text ? KR_UUID_TEXT_SIZE : width)) ||
        (as_text && !kr_reserve(&c->item.ends, 4 * most))) {
        d->no_memory = 1;
        return;
    }
    uint8_t *to = c->item.data.bytes + c->item.data.size;
    uint8_t *ends = c->list.ends.bytes + c->list.ends.size;
    int32_t items = (int32_t)c->item.count;
    const uint8_t **pos = r->pos;
    const uint8_t *const *end = r->end;
    const int64_t n = r->n, absent = f->null_default ? KR_LENGTH_NULL : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t count = kr_short_list(d, pos[i], end[i], wire, absent);
        if (KR_LIKELY(kind == KR_KIND_INT32 && count != KR_NO_SHORT_LIST)) {
            static const uint8_t nothing[4 * KR_SHORT_LIST + 1];
            const uint8_t *p = pos[i] ? pos[i] + 1 : nothing;
            int64_t filled = count > 0 ? count : 0;
            for (int k = 0; k < KR_SHORT_LIST; k++) kr_store_value(kind, to + 4 * k, p + 4 * k);
            to += 4 * filled;
            items += (int32_t)filled;
            pos[i] = pos[i] ? p + 4 * filled : 0;
            valid[i] = count != KR_LENGTH_NULL;
            nulls += count == KR_LENGTH_NULL;
            memcpy(ends + 4 * i, &items, 4);
            continue;
        }
        count = absent;
        if (pos[i]) {
            count = kr_row_length(d, field, r, i, 4);
            if (count > 0 && count > (end[i] - pos[i]) / wire)
                kr_row_fail(d, field, r, i, KR_BAD_ELEMENTS_COUNT, end[i] - pos[i], count);
            if (!pos[i]) count = 0;
        }
        valid[i] = count != KR_LENGTH_NULL;
        nulls += count == KR_LENGTH_NULL;
        if (count > 0) {
            const uint8_t *p = pos[i];
            pos[i] = p + count * wire;
            items += (int32_t)count;
            for (int64_t k = 0; k < count; k++, p += wire) {
                if (as_text) {
                    kr_uuid_text(to, p);
                    to += KR_UUID_TEXT_SIZE;
                    kr_push_end(&c->item, to - c->item.data.bytes);
                } else {
                    kr_store_value(kind, to, p);
                    to += width;
                }
            }
        }
        memcpy(ends + 4 * i, &items, 4);
    }
    c->item.data.size = to - c->item.data.bytes;
    c->item.count = items;
    c->list.ends.size += 4 * r->n;
    if (!kr_counted_each(&c->list, valid, r->n, nulls)) d->no_memory = 1;
}

static void kr_uuid_rows(kr_message_decoder *d, int32_t field, kr_rows *r) {
    kr_level *l = &d->columns[field].item;
    if (!kr_reserve(&l->data, r->n * KR_UUID_TEXT_SIZE) || !kr_reserve(&l->ends, 4 * r->n)) {
        d->no_memory = 1;
        return;
    }
    for (int64_t i = 0; i < r->n; i++) {
        const uint8_t *p = r->pos[i];
        uint8_t *to = l->data.bytes + l->data.size;
        if (KR_LIKELY(p && r->end[i] - p >= KR_UUID_SIZE)) {
            kr_uuid_text(to, p);
            r->pos[i] = p + KR_UUID_SIZE;
        } else {
            if (p) kr_row_fail(d, field, r, i, KR_TRUNCATED_FIELD, KR_UUID_SIZE, r->end[i] - p);
            memcpy(to, KR_ZERO_UUID_TEXT, KR_UUID_TEXT_SIZE);
        }
        l->data.size += KR_UUID_TEXT_SIZE;
        kr_push_end(l, l->data.size);
    }
    if (!kr_counted(l, r->n, 1)) d->no_memory = 1;
}

/* ---- text and bytes ---- */

/* Appends one value; text that is not UTF-8 is made so, as Java does. */
static int kr_put_text(kr_level *l, const uint8_t *from, int64_t n, int is_text) {
    if (!kr_reserve(&l->data, is_text ? n * KR_UTF8_GROWTH : n)) return 0;
    uint8_t *to = l->data.bytes + l->data.size;
    if (is_text)
        n = kr_copy_text(to, from, n, 0);
    else
        memcpy(to, from, (size_t)n);
    l->data.size += n;
    return 1;
}

/* One string or bytes of a row, or of an element of its array. */
static int64_t kr_row_text(kr_message_decoder *d, int32_t field, kr_rows *r, int64_t i, const uint8_t **text) {
    int is_text = d->program.fields[field].kind == KR_KIND_STRING;
    int64_t length = kr_row_length(d, field, r, i, is_text ? 2 : 4);
    if (length < 0) return length;
    if (length > r->end[i] - r->pos[i]) {
        kr_row_fail(d, field, r, i, KR_BAD_LENGTH, r->end[i] - r->pos[i], length);
        return KR_LENGTH_FAILED;
    }
    if (is_text && length > KR_STRING_MAX) {
        kr_row_fail(d, field, r, i, KR_STRING_TOO_LONG, KR_STRING_MAX, length);
        return KR_LENGTH_FAILED;
    }
    *text = r->pos[i];
    r->pos[i] += length;
    return length;
}

static void kr_text_rows(kr_message_decoder *d, int32_t field, kr_rows *r) {
    const kr_field *f = &d->program.fields[field];
    kr_level *l = &d->columns[field].item;
    uint8_t valid[KR_BLOCK_ROWS];
    int64_t nulls = 0;
    if (!kr_reserve(&l->ends, 4 * r->n)) {
        d->no_memory = 1;
        return;
    }
    for (int64_t i = 0; i < r->n; i++) {
        const uint8_t *text = d->program.text + f->default_at;
        int64_t length = f->null_default ? KR_LENGTH_NULL : f->default_size;
        if (r->pos[i]) length = kr_row_text(d, field, r, i, &text);
        if (length > 0 && !kr_put_text(l, text, length, f->kind == KR_KIND_STRING)) d->no_memory = 1;
        kr_push_end(l, l->data.size);
        valid[i] = length != KR_LENGTH_NULL;
        nulls += length == KR_LENGTH_NULL;
    }
    if (!kr_counted_each(l, valid, r->n, nulls)) d->no_memory = 1;
}

#endif
