/* Decoded columns as arrays of the Arrow C data interface. Buffers are not copied: an array shares the block that they
 * lie in, and gives its share back when it is released, by whatever thread. */
#ifndef KRAFTLOG_ARROW_ARRAY_H
#define KRAFTLOG_ARROW_ARRAY_H

#include "arrow/column_kinds.h"
#include "base/block_pool.h"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

/* As the specification of the interface has it. */
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

enum { KR_ARRAY_BUFFERS = 5, KR_VIEWED_BUFFERS = 2 };

/* The input that views point into, and its owner. */
typedef struct {
    const uint8_t *bytes;
    int64_t size;
    void *owner;
    void (*share)(void *owner), (*close)(void *owner); /* by whatever thread */
} kr_viewed;

/* What an array points to, in one allocation: its children follow, and then pointers to them. */
typedef struct {
    kr_block *block; /* or NULL */
    const void *buffers[KR_ARRAY_BUFFERS];
    kr_viewed viewed; /* of an array of views */
    int64_t viewed_sizes[KR_VIEWED_BUFFERS];
    struct ArrowArray children[];
} kr_array_parts;

static void kr_array_release(struct ArrowArray *array) {
    kr_array_parts *parts = (kr_array_parts *)array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release) array->children[i]->release(array->children[i]);
    kr_block_close(parts->block);
    if (parts->viewed.owner) parts->viewed.close(parts->viewed.owner);
    free(parts);
    array->release = 0;
}

/* An array whose buffers and children are still empty; NULL when memory is short, and the array is then released. */
static inline kr_array_parts *kr_array_open(struct ArrowArray *array, kr_block *block, int64_t length, int buffers,
                                            int children) {
    size_t size = sizeof(kr_array_parts) + (size_t)children * (sizeof(struct ArrowArray) + sizeof(struct ArrowArray *));
    kr_array_parts *parts = (kr_array_parts *)calloc(1, size);
    memset(array, 0, sizeof *array);
    if (!parts) return 0;
    if (block) parts->block = kr_block_share(block);
    array->length = length;
    array->n_buffers = buffers;
    array->n_children = children;
    array->buffers = parts->buffers;
    array->children = (struct ArrowArray **)(void *)(parts->children + children);
    for (int i = 0; i < children; i++) array->children[i] = &parts->children[i];
    array->release = kr_array_release;
    array->private_data = parts;
    return parts;
}

/* Numbers of one width. */
static inline int kr_array_of_numbers(struct ArrowArray *array, kr_block *block, int64_t rows, const void *values,
                                      const uint8_t *validity, int64_t nulls) {
    kr_array_parts *parts = kr_array_open(array, block, rows, 2, 0);
    if (!parts) return 0;
    array->null_count = nulls;
    parts->buffers[0] = nulls ? validity : 0;
    parts->buffers[1] = values;
    return 1;
}

/* Bytes or text. */
static inline int kr_array_of_binary(struct ArrowArray *array, kr_block *block, int64_t rows,
                                     const kr_binary_column *c) {
    kr_array_parts *parts = kr_array_open(array, block, rows, 3, 0);
    if (!parts) return 0;
    array->null_count = c->nulls;
    parts->buffers[0] = c->nulls ? c->validity : 0;
    parts->buffers[1] = c->ends;
    parts->buffers[2] = c->data;
    return 1;
}

/* Views into the input and, where bytes had to be copied, into `data`. */
static inline int kr_array_of_views(struct ArrowArray *array, kr_block *block, int64_t rows, const kr_binary_column *c,
                                    const kr_viewed *viewed) {
    kr_array_parts *parts = kr_array_open(array, block, rows, 5, 0);
    if (!parts) return 0;
    array->null_count = c->nulls;
    array->n_buffers = c->end ? 5 : 4;
    parts->buffers[0] = c->nulls ? c->validity : 0;
    parts->buffers[1] = c->views;
    parts->buffers[2] = viewed->bytes ? viewed->bytes : c->data;
    parts->buffers[3] = c->end ? (const void *)c->data : (const void *)parts->viewed_sizes;
    parts->buffers[4] = parts->viewed_sizes;
    parts->viewed = *viewed;
    parts->viewed.share(viewed->owner);
    parts->viewed_sizes[KR_VIEW_OF_INPUT] = viewed->size;
    parts->viewed_sizes[KR_VIEW_OF_DATA] = c->end;
    return 1;
}

/* A stretch of the rows alone. */
static inline void kr_array_cut(struct ArrowArray *array, int64_t from, int64_t rows) {
    if (array->null_count && array->length != rows) array->null_count = -1; /* not known */
    array->offset = from;
    array->length = rows;
}

/* Rows without nulls whose columns are put into the children. */
static inline int kr_array_of_rows(struct ArrowArray *array, int64_t rows, int columns) {
    return kr_array_open(array, 0, rows, 1, columns) != 0;
}

/* Lists of pairs. */
static inline int kr_array_of_headers(struct ArrowArray *array, kr_block *block, int64_t rows,
                                      const kr_headers_column *c) {
    kr_array_parts *parts = kr_array_open(array, block, rows, 2, 1);
    if (!parts) return 0;
    parts->buffers[1] = c->ends;
    struct ArrowArray *pairs = array->children[0];
    int is_made = kr_array_of_rows(pairs, c->count, 2) &&
                  kr_array_of_binary(pairs->children[0], block, c->count, &c->key) &&
                  kr_array_of_binary(pairs->children[1], block, c->count, &c->value);
    if (!is_made) kr_array_release(array);
    return is_made;
}

#endif
