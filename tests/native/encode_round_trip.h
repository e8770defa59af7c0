/* Columns at random, as Arrow would hold them, and a check that what the encoder made of them is decoded to the same.
 */
#ifndef KRAFTLOG_TESTS_ENCODE_ROUND_TRIP_H
#define KRAFTLOG_TESTS_ENCODE_ROUND_TRIP_H

#include "bytes.h"
#include "check.h"
#include "record/decoder.h"
#include "record/encoder.h"
#include "room.h"

enum { MOST_ROWS = 60, MOST_HEADERS = 200, MOST_DATA = 1 << 14 };

/* Columns as Arrow would hold them; `skip` values before the first row belong to another slice. */
typedef struct {
    int32_t ends[MOST_HEADERS + 8];
    uint8_t validity[MOST_HEADERS / 8 + 2];
    uint8_t *data;
    int64_t size;
} column;

enum { LENT_COLUMNS = 6 };

static column columns[LENT_COLUMNS];
static int64_t timestamps[MOST_ROWS];
static int32_t header_ends[MOST_ROWS + 1];
static uint8_t header_validity[MOST_ROWS / 8 + 2];

static inline kr_lent_binary random_column(column *c, int64_t rows, int64_t longest, int nullable) {
    int64_t skip = random_below(8);
    memset(c->validity, 0, sizeof c->validity);
    c->ends[0] = (int32_t)random_below(5);
    for (int64_t i = 0; i < rows + skip; i++) {
        int null = nullable && random_below(4) == 0;
        c->ends[i + 1] = c->ends[i] + (int32_t)(null ? 0 : random_below(random_below(8) ? 12 : longest));
        if (!null) c->validity[i >> 3] |= (uint8_t)(1u << (i & 7));
    }
    c->size = c->ends[rows + skip]; /* the block ends where the last value ends */
    c->data = room_block(c->size);
    uint64_t letters = 0;
    for (int64_t i = 0; i < c->size; i++, letters >>= 4) {
        if (i % 16 == 0) letters = random_next();
        c->data[i] = (uint8_t)('a' + (letters & 15));
    }
    kr_lent_binary s = {c->ends + skip, c->data, c->size, nullable ? c->validity : 0, nullable ? skip : 0};
    return s;
}

static inline kr_source random_source(int64_t rows) {
    kr_source s = {0};
    s.rows = rows;
    if (random_below(8)) s.key = random_column(&columns[0], rows, 100, 1);
    if (random_below(8)) s.value = random_column(&columns[1], rows, 300, random_below(2) != 0);
    for (int64_t i = 0; i < rows; i++)
        timestamps[i] = random_below(6) ? 1700000000000 + random_below(99999) : (int64_t)random_next();
    if (random_below(8)) s.timestamp = timestamps;
    s.timestamp_unit = (enum kr_time_unit)random_below(3);
    if (random_below(3)) return s;
    header_ends[0] = (int32_t)random_below(3);
    for (int64_t i = 0; i < rows; i++) header_ends[i + 1] = header_ends[i] + (int32_t)random_below(3);
    s.header_ends = header_ends;
    if (random_below(2)) {
        for (size_t i = 0; i < sizeof header_validity; i++)
            header_validity[i] = (uint8_t)(random_next() | random_next());
        s.header_validity = header_validity;
        s.header_validity_offset = random_below(8);
    }
    s.header_key = random_column(&columns[2], header_ends[rows], 20, 0);
    s.header_value = random_column(&columns[3], header_ends[rows], 40, 1);
    return s;
}

static inline void free_source(void) {
    for (int i = 0; i < LENT_COLUMNS; i++) {
        free(columns[i].data);
        columns[i].data = 0;
    }
}

static inline kr_encoder encoder_of(int64_t max_bytes, int32_t max_records) {
    kr_encoder w = {0};
    w.base_offset = 40;
    w.producer_id = 9;
    w.max_batch_bytes = max_bytes;
    w.max_batch_records = max_records;
    w.base_sequence = INT32_MAX - 3;
    w.producer_epoch = 2;
    w.partition_leader_epoch = 6;
    w.timestamp = -1;
    w.batch_at = -1;
    return w;
}

/* Moves the output into a block of another capacity. */
static inline void give_room(kr_encoder *w, int64_t capacity) {
    uint8_t *out = room_block(capacity + KR_PADDING);
    if (w->written) memcpy(out, w->out, (size_t)w->written);
    free(w->out);
    w->out = out;
    w->capacity = capacity;
}

/* Values from `first` on are those of the column from `at` on. */
static inline void check_binary(const kr_lent_binary *s, int64_t first, const kr_binary_column *c, int64_t at,
                                int64_t count) {
    for (int64_t i = first; i < first + count; i++, at++) {
        int is_null = !s->ends || (s->validity && !room_bit(s->validity, s->validity_at + i));
        int64_t length = is_null ? -1 : s->ends[i + 1] - s->ends[i];
        CHECK_INT(length >= 0, room_bit(c->validity, at));
        if (length >= 0)
            CHECK_BYTES(s->data + s->ends[i], length, c->data + c->ends[at], c->ends[at + 1] - c->ends[at]);
    }
}

/* The headers of a row; a list that is null has none. */
static inline void check_headers(const kr_source *s, int64_t row, const kr_columns *c) {
    int is_null = s->header_validity && !room_bit(s->header_validity, s->header_validity_offset + row);
    int64_t first = s->header_ends[row], count = is_null ? 0 : s->header_ends[row + 1] - first;
    int64_t at = c->headers.ends[row];
    CHECK_INT(count, c->headers.ends[row + 1] - at);
    check_binary(&s->header_key, first, &c->headers.key, at, count);
    check_binary(&s->header_value, first, &c->headers.value, at, count);
}

/* The headers follow each other and keep to the caps. */
static inline void check_batches(const kr_columns *c, const kr_encoder *w, int64_t rows) {
    int64_t offset = 40, sequence = INT32_MAX - 3, size = w->written;
    for (int64_t i = 0; i < c->batches; i++) {
        const kr_batch_header *h = &c->batch[i];
        CHECK_INT(offset, h->base_offset);
        CHECK_INT(sequence, h->base_sequence);
        CHECK_INT(h->records_count, h->rows);
        CHECK_INT(h->records_count - 1, h->last_offset_delta);
        CHECK_TRUE(h->crc_ok == 1 && h->producer_id == 9 && h->producer_epoch == 2 && h->partition_leader_epoch == 6);
        CHECK_TRUE(h->batch_length + KR_LOG_OVERHEAD <= w->max_batch_bytes && h->records_count <= w->max_batch_records);
        offset += h->records_count;
        sequence = (sequence + h->records_count) & INT32_MAX;
        size -= h->batch_length + KR_LOG_OVERHEAD;
    }
    CHECK_INT(0, size);
    CHECK_INT(40 + rows, w->base_offset);
    CHECK_INT(sequence, w->base_sequence);
}

static inline int64_t rounded_down(int64_t timestamp, enum kr_time_unit unit) {
    int64_t each = unit == KR_MICROSECONDS ? 1000 : unit == KR_NANOSECONDS ? 1000000 : 1, whole = timestamp / each;
    return whole * each > timestamp ? whole - 1 : whole;
}

static inline void check_decoded(const kr_encoder *w, const kr_source *s) {
    static kr_decoder d;
    uint8_t *p = exact_copy(w->out, w->written);
    memset(&d, 0, sizeof d);
    d.input = kr_input_make(p, w->written);
    d.end = w->written;
    d.want = KR_WANT_ALL;
    d.check_crc = 1;
    d.start_offset = INT64_MIN;
    d.end_offset = INT64_MAX;
    d.start_timestamp = INT64_MIN;
    d.torn_at = -1;
    d.columns = room_make(s->rows + 1, w->written, w->written / 2 + 1, KR_WANT_ALL);
    CHECK_STATUS(KR_END, kr_decoder_run(&d));
    CHECK_INT(0, d.faults_count);
    CHECK_INT(-1, d.torn_at);
    CHECK_INT(s->rows, d.columns.rows);
    room_check(&d.columns, KR_WANT_ALL);
    check_batches(&d.columns, w, s->rows);
    check_binary(&s->key, 0, &d.columns.key, 0, s->rows);
    check_binary(&s->value, 0, &d.columns.value, 0, s->rows);
    for (int64_t i = 0; i < s->rows; i++) {
        CHECK_INT(40 + i, d.columns.offset[i]);
        CHECK_INT(s->timestamp ? rounded_down(s->timestamp[i], s->timestamp_unit) : -1, d.columns.timestamp_ms[i]);
        if (s->header_ends) check_headers(s, i, &d.columns);
    }
    room_free(&d.columns);
    exact_free(p, w->written);
}

/* Random columns through encoder and decoder; the first room is too small, and each time about `more` bytes come to it.
 */
static inline void round_trip_once(int64_t more) {
    kr_source s = random_source(random_below(MOST_ROWS));
    kr_encoder w = encoder_of(random_below(3) ? 1600 + random_below(4000) : 1 << 20,
                              random_below(2) ? 1 + (int32_t)random_below(9) : INT32_MAX);
    while (kr_encoder_run(&w, &s) == KR_NEEDS_ROOM) give_room(&w, w.written + w.error.expected + random_below(more));
    kr_encoder_close_batch(&w);
    CHECK_INT(s.rows, w.row);
    check_decoded(&w, &s);
    free(w.out);
    free_source();
}

static inline kr_lent_binary values_from(kr_lent_binary column, int64_t first) {
    if (column.ends) column.ends += first;
    if (column.validity) column.validity_at += first;
    return column;
}

/* Rows [first, first + rows) of a source, as a slice of Arrow has them. */
static inline kr_source slice_of(const kr_source *s, int64_t first, int64_t rows) {
    kr_source slice = *s;
    slice.rows = rows;
    slice.key = values_from(s->key, first);
    slice.value = values_from(s->value, first);
    if (s->timestamp) slice.timestamp += first;
    if (s->header_ends) slice.header_ends += first;
    slice.header_validity_offset += first;
    return slice;
}

static inline void run_alone(kr_encoder *w, const kr_source *s) {
    w->row = 0;
    CHECK_STATUS(KR_OK, kr_encoder_run(w, s));
}

static inline void run_value_alone(kr_encoder *w, const kr_lent_binary *column, int64_t at) {
    kr_source value = {.rows = 1, .value = values_from(*column, at)};
    if (column->ends) run_alone(w, &value);
}

/* Each list through an encoder of its own, and all bytes one behind the other; ends are those of their rows. */
static inline void check_lists(const kr_encoder *settings, const kr_source *s, const kr_record_lists *l,
                               const kr_encoder *w) {
    int64_t at = 0, first = 0;
    for (int64_t i = 0; i < l->count; i++) {
        kr_encoder alone = *settings;
        kr_source rows = slice_of(s, first, l->ends[i] - first);
        give_room(&alone, 1 << 16);
        run_value_alone(&alone, &l->begin_marker, i);
        run_alone(&alone, &rows);
        run_value_alone(&alone, &l->end_marker, i);
        kr_encoder_close_batch(&alone);
        CHECK_INT(at + alone.written, l->written[i]);
        CHECK_TRUE(at + alone.written <= w->written);
        if (at + alone.written <= w->written) CHECK_BYTES(alone.out, alone.written, w->out + at, alone.written);
        at += alone.written;
        first = l->ends[i];
        free(alone.out);
    }
    CHECK_INT(at, w->written);
    CHECK_INT(settings->base_offset, w->base_offset);
    CHECK_INT(settings->base_sequence, w->base_sequence);
}

/* Lists of random rows, some of them empty, with and without markers, over chunks that end within lists and between
 * them, some of them empty. The first room is too small, as in round_trip_once. */
static inline void lists_once(int64_t more) {
    enum { MOST_LISTS = 8 };
    static const int32_t plan[] = {2, 1, 3};
    int64_t ends[MOST_LISTS], written[MOST_LISTS], count = random_below(MOST_LISTS + 1), rows = 0;
    for (int64_t i = 0; i < count; i++) ends[i] = rows += random_below(3) ? random_below(MOST_ROWS / MOST_LISTS) : 0;
    kr_source s = random_source(rows);
    kr_encoder settings = encoder_of(random_below(2) ? 1600 + random_below(4000) : 1 << 20,
                                     random_below(2) ? 1 + (int32_t)random_below(9) : INT32_MAX);
    if (settings.max_batch_bytes == 1 << 20 && random_below(2)) {
        settings.batch_records = plan;
        settings.planned = 3;
    }
    kr_encoder w = settings;
    kr_record_lists l = kr_record_lists_of(&w, count, ends, written);
    if (random_below(2)) l.begin_marker = random_column(&columns[4], count, 100, 0);
    if (random_below(2)) l.end_marker = random_column(&columns[5], count, 100, 0);
    int64_t done = 0;
    do {
        kr_source chunk = slice_of(&s, done, random_below(4) ? random_below(rows - done + 1) : 0);
        w.row = 0;
        while (kr_encoder_run_lists(&w, &chunk, done, &l) == KR_NEEDS_ROOM)
            give_room(&w, w.written + w.error.expected + random_below(more));
        CHECK_TRUE(l.at == count || ends[l.at] > done + chunk.rows);
        done += chunk.rows;
    } while (done < rows);
    CHECK_INT(count, l.at);
    check_lists(&settings, &s, &l, &w);
    free(w.out);
    free_source();
}

#endif
