/* The columns of one stretch of rows: laid out in blocks that are used again, and handed out as Arrow arrays that share
 * them. Up to KR_ONE_BLOCK bytes of columns share a block; else a large column that is kept does not keep the others.
 */
#ifndef KRAFTLOG_RECORD_CHUNK_H
#define KRAFTLOG_RECORD_CHUNK_H

#include "record/columns.h"
#include "record/timestamp_type.h"
#include "text/utf8.h"

enum {
    KR_BATCHES = KR_COLUMN_COUNT, /* the headers of batches, which are laid out as columns are, */
    KR_PARTS,
    KR_TIMESTAMP_TYPE = KR_PARTS, /* and a column that is made from them */
    KR_REGION_ALIGNMENT = 64,
    KR_ONE_BLOCK = 16 << 20
};

typedef struct {
    kr_columns columns;
    uint32_t want;
    kr_viewed viewed;          /* with KR_VIEWS: what they point into */
    int64_t size;              /* of all blocks */
    kr_block *block[KR_PARTS]; /* by column; NULL: it was not asked for */
} kr_chunk;

/* Regions of memory, one behind the other. While `base` is NULL they are only measured. */
typedef struct {
    uint8_t *base;
    int64_t used;
    int views;
} kr_layout;

static inline void *kr_region(kr_layout *l, int64_t size) {
    int64_t begin = l->used;
    l->used += (size + KR_REGION_ALIGNMENT - 1) / KR_REGION_ALIGNMENT * KR_REGION_ALIGNMENT;
    return l->base ? l->base + begin : 0;
}

static inline uint8_t *kr_region_of_validity(kr_layout *l, int64_t rows) {
    uint8_t *bits = (uint8_t *)kr_region(l, rows / 8 + 2);
    if (bits) memset(bits, 0xff, (size_t)(rows / 8 + 2));
    return bits;
}

static inline int32_t *kr_region_of_ends(kr_layout *l, int64_t rows) {
    int32_t *ends = (int32_t *)kr_region(l, (rows + 1) * (int64_t)sizeof *ends);
    if (ends) ends[0] = 0;
    return ends;
}

static inline void kr_lay_out_values(kr_layout *l, kr_binary_column *c, int64_t rows, int64_t bytes) {
    memset(c, 0, sizeof *c);
    c->ends = kr_region_of_ends(l, rows);
    c->validity = kr_region_of_validity(l, rows);
    c->data = (uint8_t *)kr_region(l, bytes + KR_PADDING);
}

static inline void kr_lay_out_views(kr_layout *l, kr_binary_column *c, int64_t rows, int64_t bytes) {
    memset(c, 0, sizeof *c);
    c->views = (kr_view *)kr_region(l, rows * (int64_t)sizeof *c->views);
    c->validity = kr_region_of_validity(l, rows);
    c->data = (uint8_t *)kr_region(l, bytes + KR_PADDING);
}

/* An empty column of each kind, with room for what the limits of all columns, `of`, allow. */
static inline void kr_lay_out_binary(kr_layout *l, kr_binary_column *c, const kr_columns *of) {
    if (l->views)
        kr_lay_out_views(l, c, of->max_rows, of->max_copied);
    else
        kr_lay_out_values(l, c, of->max_rows, of->max_bytes);
}

static inline void kr_lay_out_int64(kr_layout *l, kr_int64_column *c, const kr_columns *of) {
    *c = (int64_t *)kr_region(l, of->max_rows * (int64_t)sizeof **c);
}

static inline void kr_lay_out_int16(kr_layout *l, kr_int16_column *c, const kr_columns *of) {
    *c = (int16_t *)kr_region(l, of->max_rows * (int64_t)sizeof **c);
}

static inline void kr_lay_out_nullable(kr_layout *l, kr_nullable_column *c, const kr_columns *of) {
    kr_lay_out_int64(l, &c->values, of);
    c->validity = kr_region_of_validity(l, of->max_rows);
    c->nulls = 0;
}

static inline void kr_lay_out_headers(kr_layout *l, kr_headers_column *c, const kr_columns *of) {
    c->ends = kr_region_of_ends(l, of->max_rows);
    c->count = 0;
    kr_lay_out_values(l, &c->key, of->max_headers, of->max_bytes * KR_UTF8_GROWTH);
    kr_lay_out_values(l, &c->value, of->max_headers, of->max_bytes);
}

/* Lays out the parts of these bits, and returns how many bytes they take. */
static int64_t kr_lay_out(uint8_t *base, kr_columns *c, uint32_t parts, uint32_t want) {
    kr_layout l = {base, 0, (want & KR_VIEWS) != 0};
    if (parts & 1 << KR_BATCHES)
        c->batch = (kr_batch_header *)kr_region(&l, c->max_batches * (int64_t)sizeof *c->batch);
#define X(NAME, name, kind)                                                                                            \
    if (parts & KR_WANT_##NAME) kr_lay_out_##kind(&l, &c->name, c);
    KR_COLUMN_LIST(X)
#undef X
    return l.used;
}

/* Puts these parts into one block. Returns 0, or the bytes that are not to be had. */
static inline int64_t kr_chunk_add(kr_chunk *chunk, kr_columns *c, uint32_t parts) {
    int64_t size = kr_lay_out(0, c, parts, chunk->want);
    if (!parts) return 0;
    kr_block *block = kr_block_open(size, (int)parts);
    if (!block) return size + KR_BLOCK_HEAD;
    kr_lay_out(kr_block_bytes(block), c, parts, chunk->want);
    chunk->size += size;
    for (int i = 0; i < KR_PARTS; i++)
        if (parts >> i & 1) chunk->block[i] = kr_block_share(block);
    kr_block_close(block);
    return 0;
}

/* Allocates empty columns of the limits in `c`, for an empty chunk. Returns 0, or the bytes that are not to be had. */
static inline int64_t kr_chunk_open(kr_chunk *chunk, kr_columns *c, uint32_t want) {
    uint32_t parts = (want & KR_WANT_ALL) | 1 << KR_BATCHES;
    int64_t missing;
    chunk->want = want;
    if (kr_lay_out(0, c, parts, want) > KR_ONE_BLOCK) {
        for (int i = 0; i < KR_PARTS; i++) {
            uint32_t part = parts & 1u << i;
            if (!part || kr_lay_out(0, c, part, want) < KR_POOL_LARGE) continue;
            if ((missing = kr_chunk_add(chunk, c, part))) return missing;
            parts &= ~part;
        }
    }
    return kr_chunk_add(chunk, c, parts);
}

static inline void kr_chunk_close(kr_chunk *chunk) {
    for (int i = 0; i < KR_PARTS; i++) kr_block_close(chunk->block[i]);
    memset(chunk, 0, sizeof *chunk);
}

/* All rows of a column of each kind as an array. */
static inline int kr_export_binary(struct ArrowArray *array, const kr_chunk *chunk, kr_block *block,
                                   const kr_binary_column *c) {
    return chunk->want & KR_VIEWS ? kr_array_of_views(array, block, chunk->columns.rows, c, &chunk->viewed)
                                  : kr_array_of_binary(array, block, chunk->columns.rows, c);
}

static inline int kr_export_int64(struct ArrowArray *array, const kr_chunk *chunk, kr_block *block,
                                  const kr_int64_column *c) {
    return kr_array_of_numbers(array, block, chunk->columns.rows, *c, 0, 0);
}

static inline int kr_export_int16(struct ArrowArray *array, const kr_chunk *chunk, kr_block *block,
                                  const kr_int16_column *c) {
    return kr_array_of_numbers(array, block, chunk->columns.rows, *c, 0, 0);
}

static inline int kr_export_nullable(struct ArrowArray *array, const kr_chunk *chunk, kr_block *block,
                                     const kr_nullable_column *c) {
    return kr_array_of_numbers(array, block, chunk->columns.rows, c->values, c->validity, c->nulls);
}

static inline int kr_export_headers(struct ArrowArray *array, const kr_chunk *chunk, kr_block *block,
                                    const kr_headers_column *c) {
    return kr_array_of_headers(array, block, chunk->columns.rows, c);
}

static inline int kr_chunk_has(const kr_chunk *chunk, int column) {
    return column == KR_TIMESTAMP_TYPE || (column >= 0 && column < KR_PARTS && chunk->block[column]);
}

/* `rows` rows from `from` on of a column that the chunk has; 0 when memory is short. */
static int kr_chunk_array(struct ArrowArray *array, const kr_chunk *chunk, int column, int64_t from, int64_t rows) {
    const kr_columns *c = &chunk->columns;
    int is_made = 0;
    switch (column) {
    case KR_TIMESTAMP_TYPE:
        return kr_timestamp_type_column(array, c->batch, c->batches, from, rows);
#define X(NAME, name, kind)                                                                                            \
    case KR_COLUMN_##NAME:                                                                                             \
        is_made = kr_export_##kind(array, chunk, chunk->block[column], &c->name);                                      \
        break;
        KR_COLUMN_LIST(X)
#undef X
    }
    if (is_made) kr_array_cut(array, from, rows);
    return is_made;
}

#endif
