/* A number for each value of a column of binary. */
#ifndef KRAFTLOG_ARROW_HASH_COLUMN_H
#define KRAFTLOG_ARROW_HASH_COLUMN_H

#include "arrow/lent.h"
#include "base/crc.h"
#include "base/murmur2.h"
#include "text/hash_code.h"

static inline void kr_murmur2_column(const kr_lent_large *v, int32_t *out) {
    for (int64_t i = 0; i < v->rows; i++) out[i] = kr_murmur2(v->data + v->ends[i], v->ends[i + 1] - v->ends[i]);
}

static inline void kr_hash_code_column(const kr_lent_large *v, int32_t *out) {
    for (int64_t i = 0; i < v->rows; i++) out[i] = kr_hash_code(v->data + v->ends[i], v->ends[i + 1] - v->ends[i]);
}

/* Call kr_crc_init before. */
static inline void kr_crc32c_column(const kr_lent_large *v, int64_t *out) {
    for (int64_t i = 0; i < v->rows; i++)
        out[i] = kr_crc32c(0, v->data + v->ends[i], (size_t)(v->ends[i + 1] - v->ends[i]));
}

#endif
