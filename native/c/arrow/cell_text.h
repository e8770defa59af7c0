/* Columns of bytes, strings and timestamps as text, the way JSON and CSV have it. Of bytes and strings one pass
 * measures and another one writes. */
#ifndef KRAFTLOG_ARROW_CELL_TEXT_H
#define KRAFTLOG_ARROW_CELL_TEXT_H

#include <string.h>

#include "arrow/lent.h"
#include "text/base64.h"
#include "text/json.h"

enum kr_cell_form { KR_CELL_BASE64, KR_CELL_HEX, KR_CELL_JSON, KR_CELL_CSV };

static inline int kr_is_space(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

/* Bytes more that a cell of CSV takes: 0 when it needs no quotes. An empty one has quotes, since null is nothing. */
static inline int64_t kr_csv_quotes(const uint8_t *from, int64_t n) {
    int64_t quotes = 0;
    int is_odd = n == 0 || kr_is_space(from[0]) || kr_is_space(from[n - 1]);
    for (int64_t i = 0; i < n; i++) {
        quotes += from[i] == '"';
        is_odd |= from[i] == '"' || from[i] == ',' || from[i] == '\n' || from[i] == '\r';
    }
    return is_odd ? quotes + 2 : 0;
}

static inline uint8_t *kr_csv_write(uint8_t *to, const uint8_t *from, int64_t n) {
    if (!kr_csv_quotes(from, n)) {
        memcpy(to, from, (size_t)n);
        return to + n;
    }
    *to++ = '"';
    for (int64_t i = 0; i < n; i++) {
        if (from[i] == '"') *to++ = '"';
        *to++ = from[i];
    }
    *to++ = '"';
    return to;
}

static inline uint8_t *kr_hex_write(uint8_t *to, const uint8_t *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        *to++ = (uint8_t)kr_hex_digits[from[i] >> 4];
        *to++ = (uint8_t)kr_hex_digits[from[i] & 15];
    }
    return to;
}

static inline int64_t kr_cell_size(enum kr_cell_form form, const uint8_t *from, int64_t n) {
    switch (form) {
    case KR_CELL_BASE64:
        return kr_base64_size(n);
    case KR_CELL_HEX:
        return 2 * n;
    case KR_CELL_JSON:
        return kr_json_size(from, n);
    default:
        return n + kr_csv_quotes(from, n);
    }
}

/* Fills text_ends, of which there is one more than values; returns how many bytes their text takes. */
static inline int64_t kr_cells_measure(enum kr_cell_form form, const kr_lent_large *v, int64_t *text_ends) {
    text_ends[0] = 0;
    for (int64_t i = 0; i < v->rows; i++)
        text_ends[i + 1] = text_ends[i] + kr_cell_size(form, v->data + v->ends[i], v->ends[i + 1] - v->ends[i]);
    return text_ends[v->rows];
}

/* Writes as many bytes as kr_cells_measure has returned. */
static inline void kr_cells_write(enum kr_cell_form form, const kr_lent_large *v, uint8_t *text) {
    for (int64_t i = 0; i < v->rows; i++) {
        const uint8_t *from = v->data + v->ends[i];
        int64_t n = v->ends[i + 1] - v->ends[i];
        switch (form) {
        case KR_CELL_BASE64:
            text = kr_base64_write(text, from, n);
            break;
        case KR_CELL_HEX:
            text = kr_hex_write(text, from, n);
            break;
        case KR_CELL_JSON:
            text = kr_json_write(text, from, n, kr_hex_digits);
            break;
        default:
            text = kr_csv_write(text, from, n);
        }
    }
}

enum { KR_MOST_TIMESTAMP = 32 }; /* characters of a timestamp */

static inline uint8_t *kr_digits_write(uint8_t *to, int64_t value, int digits) {
    for (int i = digits - 1; i >= 0; i--, value /= 10) to[i] = (uint8_t)('0' + value % 10);
    return to + digits;
}

static inline uint8_t *kr_year_write(uint8_t *to, int64_t year) {
    if (year < 0) {
        *to++ = '-';
        year = -year;
    }
    int digits = 4;
    for (int64_t rest = year / 10000; rest; rest /= 10) digits++;
    return kr_digits_write(to, year, digits);
}

/* Microseconds since the epoch as RFC 3339 in UTC, with as many digits of the second as are needed, 3 or 6. Days become
 * dates by the proleptic Gregorian calendar, whose years begin in March here, so that leap days come last. */
static inline uint8_t *kr_timestamp_write(uint8_t *to, int64_t us) {
    int64_t days = us / 86400000000, rest = us % 86400000000;
    if (rest < 0) rest += 86400000000, days--;
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, day = z - era * 146097;
    int64_t of_era = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t of_year = day - (365 * of_era + of_era / 4 - of_era / 100), month = (5 * of_year + 2) / 153;
    int64_t is_next = month >= 10;
    to = kr_year_write(to, of_era + 400 * era + is_next);
    *to++ = '-';
    to = kr_digits_write(to, is_next ? month - 9 : month + 3, 2);
    *to++ = '-';
    to = kr_digits_write(to, of_year - (153 * month + 2) / 5 + 1, 2);
    *to++ = 'T';
    to = kr_digits_write(to, rest / 3600000000, 2);
    *to++ = ':';
    to = kr_digits_write(to, rest / 60000000 % 60, 2);
    *to++ = ':';
    to = kr_digits_write(to, rest / 1000000 % 60, 2);
    *to++ = '.';
    to = rest % 1000 ? kr_digits_write(to, rest % 1000000, 6) : kr_digits_write(to, rest / 1000 % 1000, 3);
    *to++ = 'Z';
    return to;
}

/* Writes cells timestamps, of at most KR_MOST_TIMESTAMP bytes each, and where each ends; returns the bytes in all. */
static inline int64_t kr_timestamps_write(const int64_t *us, int64_t cells, int64_t *text_ends, uint8_t *text) {
    uint8_t *to = text;
    text_ends[0] = 0;
    for (int64_t i = 0; i < cells; i++) {
        to = kr_timestamp_write(to, us[i]);
        text_ends[i + 1] = to - text;
    }
    return to - text;
}

#endif
