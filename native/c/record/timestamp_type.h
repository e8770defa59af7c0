/* The column timestamp_type: the same name for all rows of a batch, and nearly always for all batches. */
#ifndef KRAFTLOG_RECORD_TIMESTAMP_TYPE_H
#define KRAFTLOG_RECORD_TIMESTAMP_TYPE_H

#include "arrow/array.h"
#include "batch/batch.h"

enum {
    KR_TIMESTAMP_TYPES = 3,
    KR_MIXED_TYPES = -1,
    KR_SHARED_ROWS = 1 << 16,
    KR_LONGEST_TYPE = 15,                             /* bytes of a name */
    KR_MOST_NAMED_ROWS = INT32_MAX / KR_LONGEST_TYPE, /* of which Arrow's ends can count the bytes */
};

static const char *const kr_timestamp_types[KR_TIMESTAMP_TYPES] = {"CreateTime", "LogAppendTime", "NoTimestampType"};

/* Messages of magic 0 have no timestamp. */
static inline int kr_timestamp_type(const kr_batch_header *h) {
    return h->magic == 0 ? 2 : (h->attributes & KR_TIMESTAMP_TYPE_BIT) != 0;
}

/* The type of all batches, or KR_MIXED_TYPES. */
static inline int kr_only_timestamp_type(const kr_batch_header *batches, int64_t n) {
    int type = n ? kr_timestamp_type(batches) : 0;
    for (int64_t i = 1; i < n; i++)
        if (kr_timestamp_type(&batches[i]) != type) return KR_MIXED_TYPES;
    return type;
}

static inline void kr_repeat_name(kr_binary_column *c, int64_t from, int64_t to, int type) {
    const char *name = kr_timestamp_types[type];
    int32_t length = (int32_t)strlen(name);
    for (int64_t i = from; i < to; i++) {
        memcpy(c->data + c->ends[i], name, (size_t)length);
        c->ends[i + 1] = c->ends[i] + length;
    }
}

/* A column for so many rows, each of a name of at most `longest` bytes; NULL when memory is short. */
static inline kr_block *kr_names_open(kr_binary_column *c, int64_t rows, int64_t longest) {
    memset(c, 0, sizeof *c);
    kr_block *block = kr_block_open((rows + 1) * (int64_t)sizeof *c->ends + rows * longest, 0);
    if (!block) return 0;
    c->ends = (int32_t *)(void *)kr_block_bytes(block);
    c->data = (uint8_t *)(c->ends + rows + 1);
    c->ends[0] = 0;
    return block;
}

/* Rows of one type, at most KR_SHARED_ROWS: all such columns point into one block for each type, which is kept. */
static int kr_shared_timestamp_type(struct ArrowArray *array, int64_t rows, int type) {
    static _Atomic(kr_block *) shared[KR_TIMESTAMP_TYPES];
    kr_binary_column c;
    kr_block *block = atomic_load(&shared[type]), *none = 0;
    int32_t length = (int32_t)strlen(kr_timestamp_types[type]);
    if (!block) {
        block = kr_names_open(&c, KR_SHARED_ROWS, length);
        if (!block) return 0;
        kr_repeat_name(&c, 0, KR_SHARED_ROWS, type);
        if (!atomic_compare_exchange_strong(&shared[type], &none, block)) { /* another thread was first */
            kr_block_close(block);
            block = none;
        }
    }
    memset(&c, 0, sizeof c);
    c.ends = (int32_t *)(void *)kr_block_bytes(block);
    c.data = (uint8_t *)(c.ends + KR_SHARED_ROWS + 1);
    return kr_array_of_binary(array, block, rows, &c);
}

static inline int64_t kr_clamp(int64_t row, int64_t rows) { return row < 0 ? 0 : row > rows ? rows : row; }

/* The column for `rows` rows from `from` on of batches that have rows; 0 for more than KR_MOST_NAMED_ROWS, and when
 * memory is short. */
static int kr_timestamp_type_column(struct ArrowArray *array, const kr_batch_header *batches, int64_t n, int64_t from,
                                    int64_t rows) {
    kr_binary_column c;
    int64_t row = -from;
    int only = kr_only_timestamp_type(batches, n);
    if (rows > KR_MOST_NAMED_ROWS) return 0;
    if (only != KR_MIXED_TYPES && rows <= KR_SHARED_ROWS) return kr_shared_timestamp_type(array, rows, only);
    kr_block *block = kr_names_open(&c, rows, KR_LONGEST_TYPE);
    if (!block) return 0;
    for (int64_t i = 0; i < n; row += batches[i++].rows)
        kr_repeat_name(&c, kr_clamp(row, rows), kr_clamp(row + batches[i].rows, rows), kr_timestamp_type(&batches[i]));
    int is_made = kr_array_of_binary(array, block, rows, &c);
    kr_block_close(block);
    return is_made;
}

#endif
