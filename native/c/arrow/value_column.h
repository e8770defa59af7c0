/* A column of binary, which is Arrow's large_binary: value i is data[ends[i], ends[i + 1]). */
#ifndef KRAFTLOG_ARROW_VALUE_COLUMN_H
#define KRAFTLOG_ARROW_VALUE_COLUMN_H

#include <stdint.h>

typedef struct {
    int64_t rows;
    const int64_t *ends; /* rows + 1 */
    const uint8_t *data;
    int64_t data_size;
} kr_large_values;

/* The first row whose value is not within the data, else -1. What takes such a column does not look again. */
static inline int64_t kr_values_out_of_bounds(const kr_large_values *v) {
    for (int64_t i = 0; i < v->rows; i++)
        if (v->ends[i] < 0 || v->ends[i] > v->ends[i + 1] || v->ends[i + 1] > v->data_size) return i;
    return -1;
}

#endif
