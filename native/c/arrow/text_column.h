/* Columns of binary and text as Arrow has them, in all of its layouts: what callers hand over, checked, measured and
 * copied into the one layout that record/encoder.h takes. Nothing in such a column is believed before it was compared
 * with the sizes of its buffers: ends and views may lie outside of them, as may indexes of a dictionary.
 */
#ifndef KRAFTLOG_ARROW_TEXT_COLUMN_H
#define KRAFTLOG_ARROW_TEXT_COLUMN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arrow/column_kinds.h"
#include "arrow/lent.h"

typedef struct {
    const uint8_t *start; /* NULL: there is none */
    int64_t size;         /* KR_NOT_LOOKED_AT: `look` of the values fills it in */
} kr_lent_buffer;

enum { KR_NOT_LOOKED_AT = -1 };

enum kr_text_layout { KR_TEXT_NULLS, KR_TEXT_ENDS32, KR_TEXT_ENDS64, KR_TEXT_VIEWS, KR_TEXT_FIXED };

/* Values of which the first `offset` are skipped. */
typedef struct {
    enum kr_text_layout layout;
    int64_t rows, offset;
    int64_t width;           /* of KR_TEXT_FIXED */
    kr_lent_buffer validity; /* NULL: nothing is null */
    kr_lent_buffer places;   /* ends, or views */
    const kr_lent_buffer *data;
    int64_t data_count; /* one, but for views */
    /* Of views: a slice of a few rows may have thousands of buffers, so only those are looked at that a view is into.
     * Fills in `data[buffer]`; 0 when it cannot. */
    int (*look)(void *owner, int64_t buffer);
    void *owner;
} kr_text_values;

/* Values by themselves, or the dictionary that indexes refer to. */
typedef struct {
    kr_text_values values;
    int index_width; /* bytes of an index; 0: there are none */
    int index_is_signed;
    int64_t rows, offset; /* of the indexes */
    kr_lent_buffer indexes, index_validity;
} kr_text_column;

enum kr_text_fault {
    KR_TEXT_OK,
    KR_TEXT_BUFFER_SHORT, /* a buffer of `limit` bytes has fewer than the `found` that the rows take */
    KR_TEXT_ENDS_FALL,    /* the value ends at `found`, before it begins, at `limit` */
    KR_TEXT_OUTSIDE,      /* the value ends at `found`, behind its data, of `limit` bytes */
    KR_TEXT_NEGATIVE,     /* its length or its place is `found` */
    KR_TEXT_NO_BUFFER,    /* its view is into buffer `found` of `limit` */
    KR_TEXT_NO_INDEX,     /* its index is `found`; the dictionary has `limit` values */
    KR_TEXT_NOT_LENT      /* `look` could not fill in buffer `found` of `limit` */
};

typedef struct {
    enum kr_text_fault fault;
    int64_t row, found, limit;
} kr_text_error;

enum { KR_VIEW_BYTES = 16, KR_ROWS_OF_A_CHECK = 1024 };

static inline int32_t kr_lent_int32(const uint8_t *p) {
    int32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static inline int64_t kr_lent_int64(const uint8_t *p) {
    int64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static inline int kr_text_fail(kr_text_error *e, enum kr_text_fault fault, int64_t row, int64_t found, int64_t limit) {
    *e = (kr_text_error){fault, row, found, limit};
    return fault;
}

/* Whether a buffer has `count` items of so many bytes. */
static inline int kr_lent_holds(const kr_lent_buffer *b, int64_t count, int64_t width, kr_text_error *e) {
    if (count <= 0 || width <= 0 || (b->start && count <= b->size / width)) return 1;
    kr_text_fail(e, KR_TEXT_BUFFER_SHORT, -1, count > INT64_MAX / width ? INT64_MAX : count * width, b->size);
    return 0;
}

static inline int kr_lent_has_bits(const kr_lent_buffer *b, int64_t count, kr_text_error *e) {
    return !b->start || kr_lent_holds(b, count / 8 + (count % 8 != 0), 1, e);
}

/* Whether rows and offset are numbers that a column can have. */
static inline int kr_rows_are_sound(int64_t rows, int64_t offset, kr_text_error *e) {
    if (rows >= 0 && offset >= 0 && rows < INT64_MAX - offset) return 1;
    kr_text_fail(e, KR_TEXT_NEGATIVE, -1, rows < 0 ? rows : offset, 0);
    return 0;
}

static inline int kr_values_have_room(const kr_text_values *v, kr_text_error *e) {
    if (!kr_rows_are_sound(v->rows, v->offset, e)) return 0;
    int64_t all = v->rows + v->offset;
    if (!v->rows) return 1;
    if (v->layout != KR_TEXT_NULLS && !kr_lent_has_bits(&v->validity, all, e)) return 0;
    switch (v->layout) {
    case KR_TEXT_NULLS:
        return 1;
    case KR_TEXT_ENDS32:
        return kr_lent_holds(&v->places, all + 1, 4, e);
    case KR_TEXT_ENDS64:
        return kr_lent_holds(&v->places, all + 1, 8, e);
    case KR_TEXT_VIEWS:
        return kr_lent_holds(&v->places, all, KR_VIEW_BYTES, e);
    case KR_TEXT_FIXED:
        break;
    }
    if (v->width < 0) return !kr_text_fail(e, KR_TEXT_NEGATIVE, -1, v->width, 0);
    return kr_lent_holds(v->data, all, v->width, e);
}

/* Whether the buffers are as long as the rows take. To be asked first; on failure `e` says what is short. */
static inline int kr_text_has_room(const kr_text_column *c, kr_text_error *e) {
    if (!kr_values_have_room(&c->values, e)) return 0;
    if (!c->index_width) return 1;
    if (!kr_rows_are_sound(c->rows, c->offset, e)) return 0;
    return !c->rows || (kr_lent_has_bits(&c->index_validity, c->rows + c->offset, e) &&
                        kr_lent_holds(&c->indexes, c->rows + c->offset, c->index_width, e));
}

/* The value as it lies between two ends. */
static inline int64_t kr_text_between(const kr_text_values *v, int64_t begin, int64_t end, const uint8_t **p,
                                      kr_text_error *e) {
    if (begin < 0) return -1 - (int64_t)kr_text_fail(e, KR_TEXT_NEGATIVE, -1, begin, 0);
    if (end < begin) return -1 - (int64_t)kr_text_fail(e, KR_TEXT_ENDS_FALL, -1, end, begin);
    if (end > v->data->size) return -1 - (int64_t)kr_text_fail(e, KR_TEXT_OUTSIDE, -1, end, v->data->size);
    *p = end > begin ? v->data->start + begin : 0;
    return end - begin;
}

static inline int64_t kr_text_viewed(const kr_text_values *v, const uint8_t *view, const uint8_t **p,
                                     kr_text_error *e) {
    int64_t length = kr_lent_int32(view);
    if (length < 0) return -1 - (int64_t)kr_text_fail(e, KR_TEXT_NEGATIVE, -1, length, 0);
    *p = view + 4;
    if (length <= KR_VIEW_INLINE) return length;
    int64_t buffer = kr_lent_int32(view + 8), begin = kr_lent_int32(view + 12);
    if (buffer < 0 || buffer >= v->data_count)
        return -1 - (int64_t)kr_text_fail(e, KR_TEXT_NO_BUFFER, -1, buffer, v->data_count);
    if (v->data[buffer].size == KR_NOT_LOOKED_AT && !v->look(v->owner, buffer))
        return -1 - (int64_t)kr_text_fail(e, KR_TEXT_NOT_LENT, -1, buffer, v->data_count);
    if (begin < 0) return -1 - (int64_t)kr_text_fail(e, KR_TEXT_NEGATIVE, -1, begin, 0);
    if (begin + length > v->data[buffer].size)
        return -1 - (int64_t)kr_text_fail(e, KR_TEXT_OUTSIDE, -1, begin + length, v->data[buffer].size);
    *p = v->data[buffer].start + begin;
    return length;
}

/* The length of value i, and where it lies; -1 when it is null, less when it is nowhere. */
static inline int64_t kr_value_at(const kr_text_values *v, int64_t i, const uint8_t **p, kr_text_error *e) {
    int64_t at = v->offset + i;
    if (v->layout == KR_TEXT_NULLS || (v->validity.start && !kr_has_bit(v->validity.start, at))) return -1;
    const uint8_t *places = v->places.start;
    switch (v->layout) {
    case KR_TEXT_ENDS32:
        return kr_text_between(v, kr_lent_int32(places + 4 * at), kr_lent_int32(places + 4 * at + 4), p, e);
    case KR_TEXT_ENDS64:
        return kr_text_between(v, kr_lent_int64(places + 8 * at), kr_lent_int64(places + 8 * at + 8), p, e);
    case KR_TEXT_VIEWS:
        return kr_text_viewed(v, places + KR_VIEW_BYTES * at, p, e);
    default:
        *p = v->width ? v->data->start + v->width * at : 0;
        return v->width;
    }
}

static inline int64_t kr_index_at(const kr_text_column *c, int64_t i) {
    const uint8_t *p = c->indexes.start + c->index_width * i;
    uint64_t value = 0;
    memcpy(&value, p,
           (size_t)c->index_width); /* Arrow's numbers are little-endian, as the machines that are built for */
    int unused = 64 - 8 * c->index_width;
    return c->index_is_signed ? (int64_t)(value << unused) >> unused : (int64_t)value;
}

/* The same of row i of a column. */
static inline int64_t kr_text_at(const kr_text_column *c, int64_t i, const uint8_t **p, kr_text_error *e) {
    if (!c->index_width) return kr_value_at(&c->values, i, p, e);
    if (c->index_validity.start && !kr_has_bit(c->index_validity.start, c->offset + i)) return -1;
    int64_t index = kr_index_at(c, c->offset + i);
    if (index < 0 || index >= c->values.rows)
        return -1 - (int64_t)kr_text_fail(e, KR_TEXT_NO_INDEX, -1, index, c->values.rows);
    return kr_value_at(&c->values, index, p, e);
}

/* Whether ends rise over [first, first + count), from 0 or more to `size` at most. */
static inline int kr_ends_rise(const uint8_t *ends, int64_t first, int64_t count, int64_t size) {
    const uint8_t *p = ends + 4 * first;
    int falls = 0;
    for (int64_t i = 0; i < count; i++) falls |= kr_lent_int32(p + 4 * i + 4) < kr_lent_int32(p + 4 * i);
    return !falls && kr_lent_int32(p) >= 0 && kr_lent_int32(p + 4 * count) <= size;
}

/* How many rows from `first` on, of at most `count`, hold at most `most` bytes together: at least one, unless that one
 * holds more than `most_of_one`; *bytes is how many they hold, or that one. -1 where a value is nowhere: `e` has its
 * row. Ends are checked under nulls as well, since ends are what a column that is lent is cut by. */
static inline int64_t kr_text_measure(const kr_text_column *c, int64_t first, int64_t count, int64_t most,
                                      int64_t most_of_one, int64_t *bytes, kr_text_error *e) {
    const kr_text_values *v = &c->values;
    int64_t taken = 0;
    *bytes = 0;
    if (!c->index_width && v->layout == KR_TEXT_ENDS32) { /* many at once, as long as all is well */
        const uint8_t *places = v->places.start;
        for (int64_t step; taken < count; taken += step) {
            step = count - taken < KR_ROWS_OF_A_CHECK ? count - taken : KR_ROWS_OF_A_CHECK;
            int64_t at = v->offset + first + taken;
            if (!kr_ends_rise(places, at, step, v->data->size)) break;
            int64_t more = (int64_t)kr_lent_int32(places + 4 * (at + step)) - kr_lent_int32(places + 4 * at);
            if (*bytes + more > most) break;
            *bytes += more;
        }
    }
    for (; taken < count; taken++) {
        const uint8_t *p;
        int64_t i = first + taken, length;
        e->fault = KR_TEXT_OK;
        length = kr_text_at(c, i, &p, e);
        if (!c->index_width && v->layout == KR_TEXT_ENDS32 && length == -1) {
            int64_t at = v->offset + i;
            length = kr_text_between(v, kr_lent_int32(v->places.start + 4 * at),
                                     kr_lent_int32(v->places.start + 4 * at + 4), &p, e);
        }
        if (length < -1) {
            e->row = i;
            return -1;
        }
        if (length <= 0) continue;
        if (taken ? *bytes + length > most : length > most_of_one) {
            if (!taken) *bytes = length;
            break;
        }
        *bytes += length;
    }
    return taken;
}

/* Copies rows that were measured: their ends from 0, a bit for each that is not null, and `data` one behind the other.
 * Returns how many are null. */
static inline int64_t kr_text_gather(const kr_text_column *c, int64_t first, int64_t count, int32_t *ends,
                                     uint8_t *validity, uint8_t *data) {
    int64_t size = 0, nulls = 0;
    memset(validity, 0, (size_t)(count / 8 + 1));
    ends[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *p = 0;
        kr_text_error unused;
        int64_t length = kr_text_at(c, first + i, &p, &unused);
        if (length >= 0)
            validity[i >> 3] |= (uint8_t)(1u << (i & 7));
        else
            nulls++;
        if (length > 0) {
            memcpy(data + size, p, (size_t)length);
            size += length;
        }
        ends[i + 1] = (int32_t)size;
    }
    return nulls;
}

/* Lists, of which the first `offset` are skipped: row i has items [ends[i], ends[i + 1]). */
typedef struct {
    int64_t rows, offset;
    int width; /* bytes of an end: 4 or 8 */
    kr_lent_buffer ends, validity;
    int64_t items; /* that there are */
} kr_lent_list;

static inline int64_t kr_lent_list_end(const kr_lent_list *c, int64_t i) {
    const uint8_t *p = c->ends.start + c->width * (c->offset + i);
    return c->width == 4 ? kr_lent_int32(p) : kr_lent_int64(p);
}

static inline int kr_lent_list_has_room(const kr_lent_list *c, kr_text_error *e) {
    if (!kr_rows_are_sound(c->rows, c->offset, e)) return 0;
    return !c->rows || (kr_lent_has_bits(&c->validity, c->rows + c->offset, e) &&
                        kr_lent_holds(&c->ends, c->rows + c->offset + 1, c->width, e));
}

static inline int kr_lent_list_is_null(const kr_lent_list *c, int64_t i) {
    return c->validity.start && !kr_has_bit(c->validity.start, c->offset + i);
}

/* As kr_text_measure, of items. */
static inline int64_t kr_lent_list_measure(const kr_lent_list *c, int64_t first, int64_t count, int64_t most,
                                           int64_t most_of_one, int64_t *items, kr_text_error *e) {
    *items = 0;
    for (int64_t taken = 0; taken < count; taken++) {
        int64_t i = first + taken, begin = kr_lent_list_end(c, i), end = kr_lent_list_end(c, i + 1);
        enum kr_text_fault fault = begin < 0        ? KR_TEXT_NEGATIVE
                                   : end < begin    ? KR_TEXT_ENDS_FALL
                                   : end > c->items ? KR_TEXT_OUTSIDE
                                                    : KR_TEXT_OK;
        if (fault) {
            kr_text_fail(e, fault, i, fault == KR_TEXT_NEGATIVE ? begin : end,
                         fault == KR_TEXT_ENDS_FALL ? begin : c->items);
            return -1;
        }
        if (end - begin > (taken ? most - *items : most_of_one)) {
            if (!taken) *items = end - begin;
            return taken;
        }
        *items += end - begin;
    }
    return count;
}

#endif
