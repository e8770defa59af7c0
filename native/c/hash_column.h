/* A number for each value of a column of binary, which is Arrow's large_binary: value i is data[ends[i], ends[i + 1]).
 */
#ifndef KRAFTLOG_HASH_COLUMN_H
#define KRAFTLOG_HASH_COLUMN_H

#include "crc.h"
#include "hash_code.h"
#include "murmur2.h"

typedef struct {
    int64_t rows;
    const int64_t *ends; /* rows + 1 */
    const uint8_t *data;
    int64_t data_size;
} kr_values;

/* The first row whose value is not within the data, else -1. Nothing else of this header looks. */
static inline int64_t kr_values_out_of_bounds(const kr_values *v) {
    for (int64_t i = 0; i < v->rows; i++)
        if (v->ends[i] < 0 || v->ends[i] > v->ends[i + 1] || v->ends[i + 1] > v->data_size) return i;
    return -1;
}

static inline void kr_murmur2_column(const kr_values *v, int32_t *out) {
    for (int64_t i = 0; i < v->rows; i++) out[i] = kr_murmur2(v->data + v->ends[i], v->ends[i + 1] - v->ends[i]);
}

static inline void kr_hash_code_column(const kr_values *v, int32_t *out) {
    for (int64_t i = 0; i < v->rows; i++) out[i] = kr_hash_code(v->data + v->ends[i], v->ends[i + 1] - v->ends[i]);
}

/* Call kr_crc_init before. */
static inline void kr_crc32c_column(const kr_values *v, int64_t *out) {
    for (int64_t i = 0; i < v->rows; i++)
        out[i] = kr_crc32c(0, v->data + v->ends[i], (size_t)(v->ends[i + 1] - v->ends[i]));
}

#endif
