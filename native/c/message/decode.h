/* Runs message programs over many values at once: values to columns.
 *
 * A field is read from a block of rows before the next field is, so that the work of finding out what a field is like
 * is done once a block; only the elements of an array of structs are read one by one. */
#ifndef KRAFTLOG_MESSAGE_DECODE_H
#define KRAFTLOG_MESSAGE_DECODE_H

#include "arrow/lent.h"
#include "message/values.h"

static void kr_run_struct(kr_message_decoder *d, int32_t field, kr_rows *r);

/* ---- arrays of what has no fixed width ---- */

static void kr_text_element(kr_message_decoder *d, int32_t field, kr_rows *one) {
    kr_level *l = &d->columns[field].item;
    const uint8_t *text = 0;
    int64_t length = kr_row_text(d, field, one, 0, &text);
    if (length == KR_LENGTH_NULL) kr_row_fail(d, field, one, 0, KR_UNEXPECTED_NULL, 0, 0);
    if (length < 0) return;
    if (!kr_put_text(l, text, length, d->program.fields[field].kind == KR_KIND_STRING) || !kr_reserve(&l->ends, 4)) {
        d->no_memory = 1;
        return;
    }
    kr_push_end(l, l->data.size);
    l->count++;
}

static void kr_lists(kr_message_decoder *d, int32_t field, kr_rows *r) {
    const kr_field *f = &d->program.fields[field];
    kr_column *c = &d->columns[field];
    uint8_t valid[KR_BLOCK_ROWS];
    int64_t nulls = 0;
    if (!kr_reserve(&c->list.ends, 4 * r->n)) {
        d->no_memory = 1;
        return;
    }
    for (int64_t i = 0; i < r->n; i++) {
        int64_t count = f->null_default ? KR_LENGTH_NULL : 0;
        if (r->pos[i]) {
            count = kr_row_length(d, field, r, i, 4);
            /* an element takes a byte at least */
            if (count > 0 && count > r->end[i] - r->pos[i])
                kr_row_fail(d, field, r, i, KR_BAD_ELEMENTS_COUNT, r->end[i] - r->pos[i], count);
            kr_rows one = {r->start + i, r->pos + i, r->end + i, 1, r->row + i};
            for (int64_t k = 0; k < count && r->pos[i] && !d->no_memory; k++) {
                if (f->kind == KR_KIND_STRUCT)
                    kr_run_struct(d, field, &one);
                else
                    kr_text_element(d, field, &one);
            }
        }
        kr_push_end(&c->list, c->item.count);
        valid[i] = count != KR_LENGTH_NULL;
        nulls += count == KR_LENGTH_NULL;
    }
    if (!kr_counted_each(&c->list, valid, r->n, nulls)) d->no_memory = 1;
}

/* ---- structs ---- */

/* Whether a struct that may be null is; -1 after a failure. */
static int64_t kr_row_is_null(kr_message_decoder *d, int32_t field, kr_rows *r, int64_t i) {
    if (d->program.fields[field].place == KR_PLACE_TAGGED) {
        int64_t there = kr_row_uvarint(d, field, r, i);
        return there < 0 ? -1 : there == 0;
    }
    if (r->pos[i] == r->end[i]) {
        kr_row_fail(d, field, r, i, KR_TRUNCATED_FIELD, 1, 0);
        return -1;
    }
    return (int8_t)*r->pos[i]++ < 0;
}

/* A struct that may be null, row by row: the columns of its fields have a value for null ones too. */
static void kr_nullable_structs(kr_message_decoder *d, int32_t field, kr_rows *r) {
    const kr_field *f = &d->program.fields[field];
    for (int64_t i = 0; i < r->n; i++) {
        int64_t is_null = r->pos[i] ? kr_row_is_null(d, field, r, i) : f->null_default;
        if (r->pos[i] && !is_null) {
            kr_rows one = {r->start + i, r->pos + i, r->end + i, 1, r->row + i};
            kr_run_struct(d, field, &one);
        } else {
            kr_put_default_items(d, field, 1, is_null > 0);
        }
    }
}

static void kr_run_field(kr_message_decoder *d, int32_t field, kr_rows *r) {
    const kr_field *f = &d->program.fields[field];
    if (d->no_memory) return;
#define KR_EACH_FIXED(X) X(BOOL) X(INT8) X(INT16) X(UINT16) X(INT32) X(UINT32) X(INT64) X(FLOAT64) X(UUID)
    if (f->is_array) {
        switch (f->kind) {
#define X(name)                                                                                                        \
    case KR_KIND_##name:                                                                                               \
        kr_fixed_lists(d, field, r, KR_KIND_##name);                                                                   \
        return;
            KR_EACH_FIXED(X)
#undef X
        default:
            kr_lists(d, field, r);
            return;
        }
    }
    switch (f->kind) {
    case KR_KIND_STRUCT:
        if (f->is_nullable)
            kr_nullable_structs(d, field, r);
        else
            kr_run_struct(d, field, r);
        return;
    case KR_KIND_STRING:
    case KR_KIND_BYTES:
        kr_text_rows(d, field, r);
        return;
    case KR_KIND_UUID:
        if (d->uuid_text)
            kr_uuid_rows(d, field, r);
        else
            kr_fixed_rows(d, field, r, KR_KIND_UUID);
        return;
#define X(name)                                                                                                        \
    case KR_KIND_##name:                                                                                               \
        kr_fixed_rows(d, field, r, KR_KIND_##name);                                                                    \
        return;
        X(BOOL) X(INT8) X(INT16) X(UINT16) X(INT32) X(UINT32) X(INT64) X(FLOAT64)
#undef X
    }
}

/* Where the tagged fields of some rows are; NULL for those that are absent. */
typedef struct {
    const uint8_t **pos, **end;
    int any;
} kr_tagged;

static void kr_put_unknown(kr_message_decoder *d, int32_t unknown, int64_t tag, const uint8_t *from, int64_t size) {
    kr_column *u = &d->columns[unknown];
    if (!kr_push_repeated(&u->tags, &tag, sizeof tag, 1) || !kr_put_text(&u->item, from, size, 0) ||
        !kr_reserve(&u->item.ends, 4)) {
        d->no_memory = 1;
        return;
    }
    kr_push_end(&u->item, u->item.data.size);
    u->item.count++;
}

/* The number of the field of a struct that has a tag, from 1 on; 0 when there is none. */
KR_ALWAYS_INLINE int32_t kr_known_tag(const kr_field *fields, const kr_field *f, int64_t tag) {
    if (KR_LIKELY(tag < KR_LOW_TAGS)) return f->by_tag[tag];
    for (int32_t k = 0; k < f->count; k++)
        if (fields[f->first + k].place == KR_PLACE_TAGGED && fields[f->first + k].tag == tag) return k + 1;
    return 0;
}

/* Finds the tagged fields of one row. */
static void kr_find_tagged(kr_message_decoder *d, int32_t field, kr_rows *r, int64_t i, int64_t count,
                           kr_tagged *found) {
    const kr_field *fields = d->program.fields, *f = &fields[field];
    if (count > (r->end[i] - r->pos[i]) / 2) {
        kr_row_fail(d, field, r, i, KR_BAD_TAGGED_FIELDS_COUNT, r->end[i] - r->pos[i], count);
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        const uint8_t *p = r->pos[i];
        int64_t left = r->end[i] - p, tag, size;
        if (KR_LIKELY(left >= 2 && !((p[0] | p[1]) & 0x80) && p[1] <= left - 2)) { /* both lengths of one byte */
            tag = p[0];
            size = p[1];
            p += 2;
        } else {
            tag = kr_row_uvarint(d, field, r, i);
            size = tag < 0 ? -1 : kr_row_uvarint(d, field, r, i);
            if (size < 0) return;
            if (size > r->end[i] - r->pos[i]) {
                kr_row_fail(d, field, r, i, KR_BAD_LENGTH, r->end[i] - r->pos[i], size);
                return;
            }
            p = r->pos[i];
        }
        r->pos[i] = p + size;
        int32_t known = kr_known_tag(fields, f, tag);
        if (!known) {
            kr_put_unknown(d, f->unknown, tag, p, size);
            continue;
        }
        kr_tagged *t = &found[fields[f->first + known - 1].tagged_slot];
        if (!t->any) {
            memset(t->pos, 0, (size_t)r->n * sizeof *t->pos);
            memset(t->end, 0, (size_t)r->n * sizeof *t->end);
            t->any = 1;
        }
        if (t->end[i]) {
            r->pos[i] = p;
            kr_row_fail(d, field, r, i, KR_REPEATED_TAG, 0, tag);
            return;
        }
        t->pos[i] = p;
        t->end[i] = p + size;
    }
}

/* Reads one tagged field of all rows; each must take exactly the bytes that it says. */
static void kr_run_tagged(kr_message_decoder *d, int32_t field, kr_rows *r, kr_tagged *t) {
    kr_rows tagged = {r->start, t->pos, t->end, r->n, r->row};
    kr_run_field(d, field, &tagged);
    int all_read = 1;
    for (int64_t i = 0; i < r->n; i++) all_read &= t->pos[i] == t->end[i]; /* both NULL where it is absent */
    if (KR_LIKELY(all_read)) return;
    for (int64_t i = 0; i < r->n; i++) {
        if (!t->end[i]) continue;
        if (t->pos[i] && t->pos[i] != t->end[i]) {
            int64_t left = t->end[i] - t->pos[i];
            kr_row_fail(d, field, &tagged, i, KR_BAD_TAGGED_FIELD_SIZE, left, 0);
        }
        if (!t->pos[i]) r->pos[i] = 0;
    }
}

/* Memory for the places of tagged fields, which most decoders never need; 0 when it is short. */
static inline int kr_scratch_open(kr_message_decoder *d) {
    if (d->scratch) return 1;
    d->scratch_size = (int64_t)KR_DEEPEST * KR_MOST_TAGGED * 2 * KR_BLOCK_ROWS;
    d->scratch = (const uint8_t **)malloc((size_t)d->scratch_size * sizeof *d->scratch);
    return d->scratch != 0;
}

static void kr_run_tagged_fields(kr_message_decoder *d, int32_t field, kr_rows *r) {
    const kr_field *f = &d->program.fields[field];
    kr_tagged found[KR_MOST_TAGGED];
    int64_t mark = d->scratch_used;
    if (f->tagged && (!kr_scratch_open(d) || d->scratch_size - mark < 2 * r->n * f->tagged)) {
        d->no_memory = 1;
        return;
    }
    for (int32_t k = 0; k < f->tagged; k++) {
        found[k].pos = d->scratch + d->scratch_used;
        found[k].end = found[k].pos + r->n;
        found[k].any = 0;
        d->scratch_used += 2 * r->n;
    }
    kr_column *u = &d->columns[f->unknown];
    if (!kr_reserve(&u->list.ends, 4 * r->n)) d->no_memory = 1;
    for (int64_t i = 0; i < r->n && !d->no_memory; i++) {
        if (r->pos[i]) {
            int64_t count = kr_row_uvarint(d, field, r, i);
            if (count > 0) kr_find_tagged(d, field, r, i, count, found);
        }
        int32_t end = (int32_t)u->item.count;
        memcpy(u->list.ends.bytes + u->list.ends.size + 4 * i, &end, 4);
    }
    u->list.ends.size += 4 * r->n;
    u->list.count += r->n;
    for (int32_t k = f->first; k < f->first + f->count && !d->no_memory; k++) {
        const kr_field *child = &d->program.fields[k];
        if (child->place != KR_PLACE_TAGGED) continue;
        kr_tagged *t = &found[child->tagged_slot];
        if (t->any)
            kr_run_tagged(d, k, r, t);
        else
            kr_put_default(d, k, r->n);
    }
    d->scratch_used = mark;
}

/* Appends one struct for each row. */
static void kr_run_struct(kr_message_decoder *d, int32_t field, kr_rows *r) {
    const kr_field *f = &d->program.fields[field];
    for (int32_t k = f->first; k < f->first + f->count && !d->no_memory; k++) {
        uint8_t place = d->program.fields[k].place;
        if (place == KR_PLACE_IN_ORDER)
            kr_run_field(d, k, r);
        else if (place == KR_PLACE_NONE)
            kr_put_default(d, k, r->n);
    }
    if (d->program.is_compact)
        kr_run_tagged_fields(d, field, r);
    else
        kr_put_no_unknown(d, field, r->n);
    if (!kr_counted(&d->columns[field].item, r->n, 1)) d->no_memory = 1;
}

/* ---- the whole ---- */

/* Where the messages are: values of a column, the rows of it that are read, and the byte of each value at
 * which its message starts. */
typedef struct {
    kr_lent_binary values;
    const int64_t *rows;
    const int32_t *starts; /* for each value, not for each of `rows` */
    int64_t count;
} kr_messages;

/* Whether all rows are those of `count` values. */
static inline int kr_rows_within(const int64_t *rows, int64_t n, int64_t count) {
    int within = 1;
    for (int64_t i = 0; i < n; i++) within &= rows[i] >= 0 && rows[i] < count;
    return within;
}

/* Makes room for what is known of these rows, so that columns need not grow on the way. */
static void kr_expect_rows(kr_message_decoder *d, int64_t n) {
    const kr_field *f = d->program.fields;
    int ok = kr_reserve(&d->columns[f->unknown].list.ends, 4 * n);
    for (int32_t k = f->first; k < f->first + f->count && ok; k++) {
        kr_column *c = &d->columns[k];
        int kind = d->program.fields[k].kind;
        if (d->program.fields[k].is_array)
            ok = kr_reserve(&c->list.ends, 4 * n);
        else if (kr_wire_width(kind) && !(kind == KR_KIND_UUID && d->uuid_text))
            ok = kr_reserve(&c->item.data, kr_column_width(kind) * n);
        else if (kind != KR_KIND_STRUCT)
            ok = kr_reserve(&c->item.ends, 4 * n);
    }
    if (!ok) d->no_memory = 1;
}

/* Reads a block of rows of one version; faults count in the rows of `m`. */
static void kr_interpret_block(kr_message_decoder *d, const kr_messages *m, int64_t from, int64_t n) {
    const uint8_t *start[KR_BLOCK_ROWS], *pos[KR_BLOCK_ROWS], *end[KR_BLOCK_ROWS];
    for (int64_t i = 0; i < n; i++) {
        int64_t row = m->rows[from + i];
        start[i] = m->values.data + m->values.ends[row];
        pos[i] = start[i] + m->starts[row];
        end[i] = m->values.data + m->values.ends[row + 1];
    }
    kr_rows r = {start, pos, end, n, from};
    d->interpreted += n;
    kr_run_struct(d, 0, &r);
    for (int64_t i = 0; i < n; i++)
        if (pos[i] && pos[i] != end[i]) kr_row_fail(d, 0, &r, i, KR_MESSAGE_TRAILING_BYTES, 0, end[i] - pos[i]);
}

static inline void kr_message_decoder_close(kr_message_decoder *d) {
    free(d->scratch);
    kr_growing_free(&d->faults);
    d->scratch = 0;
}

#endif
