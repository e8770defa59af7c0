/* Runs programs of Avro over values, a row for each. A value that does not fit leaves a null row and a fault. */
#ifndef KRAFTLOG_AVRO_DECODE_H
#define KRAFTLOG_AVRO_DECODE_H

#include "avro/columns.h"
#include "avro/program.h"
#include "text/utf8.h"

enum { KR_AVRO_DEEPEST = 128, KR_AVRO_EMPTY_ITEMS = 1 << 16 };

typedef struct {
    kr_avro_table table;
    const kr_avro_node *nodes;
    const uint8_t *constants;
    const uint8_t *at, *end;
    int64_t empty; /* items without bytes in this value */
    int status;
} kr_avro_decoder;

KR_ALWAYS_INLINE int kr_avro_fail(kr_avro_decoder *d, int status) {
    d->status = status;
    return 0;
}

static int kr_avro_long_varint(kr_avro_decoder *d, uint64_t *value) {
    const uint8_t *p = kr_uvarint(d->at, d->end, KR_VARLONG_MAX, value);
    if (!p) return kr_avro_fail(d, d->end - d->at < KR_VARLONG_MAX ? KR_AVRO_TRUNCATED : KR_AVRO_VARINT);
    if (p - d->at == KR_VARLONG_MAX && p[-1] > 1) return kr_avro_fail(d, KR_AVRO_VARINT); /* surplus bits */
    d->at = p;
    return 1;
}

KR_ALWAYS_INLINE int kr_avro_varint(kr_avro_decoder *d, int64_t *value) {
    uint64_t x;
    if (KR_LIKELY(d->at < d->end && *d->at < 0x80))
        x = *d->at++;
    else if (KR_LIKELY(d->end - d->at >= 2 && d->at[1] < 0x80)) {
        x = (d->at[0] & 0x7fu) | (uint64_t)d->at[1] << 7;
        d->at += 2;
    } else if (!kr_avro_long_varint(d, &x))
        return 0;
    *value = kr_unzigzag64(x);
    return 1;
}

/* A varint that, when `is_int`, has 32 bits. */
KR_ALWAYS_INLINE int kr_avro_integer(kr_avro_decoder *d, int64_t *value, int is_int) {
    if (!kr_avro_varint(d, value)) return 0;
    return is_int && *value != (int32_t)*value ? kr_avro_fail(d, KR_AVRO_INT) : 1;
}

KR_ALWAYS_INLINE int kr_avro_put(kr_avro_decoder *d, int64_t column, const void *value, int width) {
    if (column < 0) return 1;
    kr_avro_column *c = &d->table.columns[column];
    if (KR_UNLIKELY(!kr_avro_reserve(&d->table, &c->values, width))) return kr_avro_fail(d, KR_AVRO_MEMORY);
    memcpy(c->values.bytes + c->values.size, value, (size_t)width);
    c->values.size += width;
    return kr_avro_ended(&d->table, c) || kr_avro_fail(d, KR_AVRO_MEMORY);
}

static int kr_avro_put_null(kr_avro_decoder *d, int64_t column) {
    if (column < 0) return 1;
    return kr_avro_append_null(&d->table, &d->table.columns[column]) || kr_avro_fail(d, KR_AVRO_MEMORY);
}

/* A row of bytes, or of a list, ends here. */
KR_ALWAYS_INLINE int kr_avro_end_row(kr_avro_decoder *d, kr_avro_column *c, int64_t end) {
    if (KR_UNLIKELY(end > INT32_MAX || !kr_avro_reserve(&d->table, &c->values, 4)))
        return kr_avro_fail(d, KR_AVRO_MEMORY);
    kr_avro_put_end(c, end);
    return kr_avro_ended(&d->table, c) || kr_avro_fail(d, KR_AVRO_MEMORY);
}

/* The next `size` bytes, which are within the value; NULL when they are not. */
KR_ALWAYS_INLINE const uint8_t *kr_avro_take(kr_avro_decoder *d, int64_t size, int status) {
    if (KR_UNLIKELY(size < 0 || size > d->end - d->at)) {
        kr_avro_fail(d, status);
        return 0;
    }
    const uint8_t *bytes = d->at;
    d->at += size;
    return bytes;
}

KR_ALWAYS_INLINE int kr_avro_bytes(kr_avro_decoder *d, int64_t column, int64_t size, int status, int is_text) {
    const uint8_t *bytes = kr_avro_take(d, size, status);
    if (KR_UNLIKELY(!bytes)) return 0;
    if (is_text && KR_UNLIKELY(!kr_is_utf8(bytes, size))) return kr_avro_fail(d, KR_AVRO_UTF8);
    if (column < 0) return 1;
    kr_avro_column *c = &d->table.columns[column];
    if (KR_UNLIKELY(!kr_avro_reserve(&d->table, &c->data, size))) return kr_avro_fail(d, KR_AVRO_MEMORY);
    memcpy(c->data.bytes + c->data.size, bytes, (size_t)size);
    c->data.size += size;
    return kr_avro_end_row(d, c, c->data.size);
}

/* Two's complement, the highest byte first, to the lowest first; |value| must be less than the number at `limit`. */
static int kr_avro_decimal(kr_avro_decoder *d, const kr_avro_node *n) {
    enum { WIDEST = 32 };
    int64_t size = n->a;
    if (size < 0 && !kr_avro_varint(d, &size)) return 0;
    const uint8_t *bytes = kr_avro_take(d, size, n->a < 0 ? KR_AVRO_LENGTH : KR_AVRO_TRUNCATED);
    if (!bytes) return 0;
    if (n->column < 0) return 1;
    uint8_t value[WIDEST], magnitude[WIDEST];
    int width = d->table.columns[n->column].width;
    uint8_t sign = size && bytes[0] & 0x80 ? 0xff : 0;
    int64_t from = size > width ? size - width : 0; /* those before must be the sign alone */
    for (int64_t i = 0; i < from; i++)
        if (bytes[i] != sign) return kr_avro_fail(d, KR_AVRO_DECIMAL);
    if (from && (bytes[from] ^ sign) & 0x80) return kr_avro_fail(d, KR_AVRO_DECIMAL);
    memset(value, sign, sizeof value);
    for (int64_t i = from; i < size; i++) value[size - 1 - i] = bytes[i];
    unsigned carry = sign & 1;
    for (int i = 0; i < width; i++) {
        unsigned byte = (unsigned)(uint8_t)(value[i] ^ sign) + carry;
        magnitude[i] = (uint8_t)byte;
        carry = byte >> 8;
    }
    const uint8_t *limit = d->constants + n->b;
    int i = width - 1;
    while (i > 0 && magnitude[i] == limit[i]) i--;
    if (magnitude[i] >= limit[i]) return kr_avro_fail(d, KR_AVRO_DECIMAL);
    return kr_avro_put(d, n->column, value, width);
}

static int kr_avro_run(kr_avro_decoder *d, const kr_avro_node *n, int depth);

/* One block after the other, until one is empty. */
static int kr_avro_items(kr_avro_decoder *d, const kr_avro_node *n, int depth) {
    kr_avro_table *t = &d->table;
    kr_avro_column *list = n->column < 0 ? 0 : &t->columns[n->column];
    int is_map = n->op == KR_AVRO_MAP;
    const kr_avro_node *item = &d->nodes[n->first];
    int64_t count, size;
    for (;;) {
        if (!kr_avro_varint(d, &count)) return 0;
        if (count == 0) break;
        if (count < 0) {
            if (count == INT64_MIN || !kr_avro_varint(d, &size)) return kr_avro_fail(d, KR_AVRO_COUNT);
            if (size < 0 || size > d->end - d->at) return kr_avro_fail(d, KR_AVRO_LENGTH);
            count = -count;
        }
        int64_t least = n->a + is_map;
        if (least ? count > (d->end - d->at) / least : count > KR_AVRO_EMPTY_ITEMS - d->empty)
            return kr_avro_fail(d, KR_AVRO_COUNT);
        if (!least) d->empty += count;
        for (int64_t i = 0; i < count; i++) {
            if (is_map) {
                int64_t key = list ? t->columns[list->first].first : -1;
                if (!kr_avro_varint(d, &size) || !kr_avro_bytes(d, key, size, KR_AVRO_LENGTH, 1)) return 0;
            }
            if (!kr_avro_run(d, item, depth + 1)) return 0;
            if (is_map && list) t->columns[list->first].length++;
        }
    }
    return list ? kr_avro_end_row(d, list, t->columns[list->first].length) : 1;
}

static int kr_avro_member(kr_avro_decoder *d, const kr_avro_node *n, int depth) {
    kr_avro_column *members = &d->table.columns[n->column];
    for (int i = 0; i < members->count; i++)
        if (!(i == n->a ? kr_avro_run(d, &d->nodes[n->first], depth + 1) : kr_avro_put_null(d, members->first + i)))
            return 0;
    return kr_avro_ended(&d->table, members) || kr_avro_fail(d, KR_AVRO_MEMORY);
}

static int kr_avro_default(kr_avro_decoder *d, const kr_avro_node *n, int depth) {
    const uint8_t *at = d->at, *end = d->end;
    d->at = d->constants + n->b;
    d->end = d->at + n->a;
    int is_read = kr_avro_run(d, &d->nodes[n->first], depth + 1);
    d->at = at;
    d->end = end;
    return is_read;
}

static int kr_avro_run(kr_avro_decoder *d, const kr_avro_node *n, int depth) {
    int64_t number;
    int32_t small;
    float single;
    double wide;
    const uint8_t *bytes;
    if (KR_UNLIKELY(depth > KR_AVRO_DEEPEST)) return kr_avro_fail(d, KR_AVRO_DEPTH);
    switch ((kr_avro_op)n->op) {
    case KR_AVRO_NULL:
        return kr_avro_put_null(d, n->column);
    case KR_AVRO_BOOL:
        if (!(bytes = kr_avro_take(d, 1, KR_AVRO_TRUNCATED))) return 0;
        return *bytes > 1 ? kr_avro_fail(d, KR_AVRO_BOOLEAN) : kr_avro_put(d, n->column, bytes, 1);
    case KR_AVRO_TO_INT:
        if (!kr_avro_integer(d, &number, 1)) return 0;
        small = (int32_t)number;
        return kr_avro_put(d, n->column, &small, 4);
    case KR_AVRO_TO_LONG:
        return kr_avro_integer(d, &number, n->a != 0) && kr_avro_put(d, n->column, &number, 8);
    case KR_AVRO_TO_FLOAT:
        if (!kr_avro_integer(d, &number, n->a != 0)) return 0;
        single = (float)number;
        return kr_avro_put(d, n->column, &single, 4);
    case KR_AVRO_TO_DOUBLE:
        if (!kr_avro_integer(d, &number, n->a != 0)) return 0;
        wide = (double)number;
        return kr_avro_put(d, n->column, &wide, 8);
    case KR_AVRO_TO_MICROS:
        if (!kr_avro_varint(d, &number)) return 0;
        if (__builtin_mul_overflow(number, (int64_t)1000, &number)) return kr_avro_fail(d, KR_AVRO_RANGE);
        return kr_avro_put(d, n->column, &number, 8);
    case KR_AVRO_FLOAT:
        return (bytes = kr_avro_take(d, 4, KR_AVRO_TRUNCATED)) && kr_avro_put(d, n->column, bytes, 4);
    case KR_AVRO_WIDENED:
        if (!(bytes = kr_avro_take(d, 4, KR_AVRO_TRUNCATED))) return 0;
        memcpy(&single, bytes, sizeof single);
        wide = (double)single;
        return kr_avro_put(d, n->column, &wide, 8);
    case KR_AVRO_DOUBLE:
        return (bytes = kr_avro_take(d, 8, KR_AVRO_TRUNCATED)) && kr_avro_put(d, n->column, bytes, 8);
    case KR_AVRO_TEXT:
        return kr_avro_varint(d, &number) && kr_avro_bytes(d, n->column, number, KR_AVRO_LENGTH, 1);
    case KR_AVRO_BINARY:
        return kr_avro_varint(d, &number) && kr_avro_bytes(d, n->column, number, KR_AVRO_LENGTH, 0);
    case KR_AVRO_FIXED:
        return kr_avro_bytes(d, n->column, n->a, KR_AVRO_TRUNCATED, 0);
    case KR_AVRO_TO_DECIMAL:
        return kr_avro_decimal(d, n);
    case KR_AVRO_ENUM:
        if (!kr_avro_varint(d, &number)) return 0;
        if (number < 0 || number >= n->count) return kr_avro_fail(d, KR_AVRO_SYMBOL);
        if (n->column < 0) return 1;
        memcpy(&small, d->constants + n->b + 4 * number, sizeof small);
        return small < 0 ? kr_avro_fail(d, KR_AVRO_READER_SYMBOL) : kr_avro_put(d, n->column, &small, 4);
    case KR_AVRO_RECORD:
        for (const kr_avro_node *field = &d->nodes[n->first], *last = field + n->count; field < last; field++)
            if (!kr_avro_run(d, field, depth + 1)) return 0;
        if (n->column < 0) return 1;
        return kr_avro_ended(&d->table, &d->table.columns[n->column]) || kr_avro_fail(d, KR_AVRO_MEMORY);
    case KR_AVRO_ARRAY:
    case KR_AVRO_MAP:
        return kr_avro_items(d, n, depth);
    case KR_AVRO_UNION:
        if (!kr_avro_varint(d, &number)) return 0;
        if (number < 0 || number >= n->count) return kr_avro_fail(d, KR_AVRO_BRANCH);
        return kr_avro_run(d, &d->nodes[n->first + number], depth + 1);
    case KR_AVRO_MEMBER:
        return kr_avro_member(d, n, depth);
    case KR_AVRO_DEFAULT:
        return kr_avro_default(d, n, depth);
    case KR_AVRO_NEVER:
        return kr_avro_fail(d, (int)n->a);
    case KR_AVRO_OPS:
        break;
    }
    return kr_avro_fail(d, KR_AVRO_UNRESOLVED);
}

/* Decodes the bytes [start, end) by the program that begins at node `root`, into a row of column 0; without a program
 * it is null. Returns what is wrong, and then the row is null, and `d->at` is where; -1 when there is no memory at all.
 */
static int kr_avro_row(kr_avro_decoder *d, const uint8_t *start, const uint8_t *end, int64_t root) {
    kr_avro_column *rows = &d->table.columns[0];
    int64_t row = rows->length;
    d->status = KR_AVRO_OK;
    d->empty = 0;
    if (root >= 0) {
        d->at = start;
        d->end = end;
        if (KR_LIKELY(kr_avro_run(d, &d->nodes[root], 0))) {
            if (KR_LIKELY(d->at == d->end)) return KR_AVRO_OK;
            d->status = KR_AVRO_TRAILING;
        }
        kr_avro_truncate(&d->table, rows, row);
    }
    int64_t limit = d->table.limit;
    d->table.limit = INT64_MAX; /* a null takes next to nothing, and must go in */
    int is_made = kr_avro_append_null(&d->table, rows);
    d->table.limit = limit;
    return is_made ? d->status : -1;
}

#endif
