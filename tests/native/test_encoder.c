/* encoder.h: what it writes is read again, caps hold, and it asks for room instead of writing beyond it. */
#include "bytes.h"
#include "check.h"
#include "decoder.h"
#include "encoder.h"
#include "room.h"

enum { MOST_ROWS = 60, MOST_HEADERS = 200, MOST_DATA = 1 << 14 };

/* Columns as Arrow would hold them; `skip` values before the first row belong to another slice. */
typedef struct {
    int32_t ends[MOST_HEADERS + 8];
    uint8_t validity[MOST_HEADERS / 8 + 2];
    uint8_t *data;
    int64_t size;
} column;

static column columns[4];
static int64_t timestamps[MOST_ROWS];
static int32_t header_ends[MOST_ROWS + 1];

static kr_binary_source random_column(column *c, int64_t rows, int64_t longest, int nullable) {
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
    for (int64_t i = 0; i < c->size; i++) c->data[i] = (uint8_t)('a' + random_below(26));
    kr_binary_source s = {c->ends + skip, c->data, c->size, nullable ? c->validity : 0, nullable ? skip : 0};
    return s;
}

static kr_source random_source(int64_t rows) {
    kr_source s = {0};
    s.rows = rows;
    if (random_below(8)) s.key = random_column(&columns[0], rows, 100, 1);
    if (random_below(8)) s.value = random_column(&columns[1], rows, 300, random_below(2) != 0);
    for (int64_t i = 0; i < rows; i++)
        timestamps[i] = random_below(6) ? 1700000000000 + random_below(99999) : (int64_t)random_next();
    if (random_below(8)) s.timestamp_ms = timestamps;
    if (random_below(3)) return s;
    header_ends[0] = (int32_t)random_below(3);
    for (int64_t i = 0; i < rows; i++) header_ends[i + 1] = header_ends[i] + (int32_t)random_below(3);
    s.header_ends = header_ends;
    s.header_key = random_column(&columns[2], header_ends[rows], 20, 0);
    s.header_value = random_column(&columns[3], header_ends[rows], 40, 1);
    return s;
}

static void free_source(void) {
    for (int i = 0; i < 4; i++) {
        free(columns[i].data);
        columns[i].data = 0;
    }
}

static kr_encoder encoder_of(int64_t max_bytes, int32_t max_records) {
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
static void give_room(kr_encoder *w, int64_t capacity) {
    uint8_t *out = room_block(capacity + KR_PADDING);
    if (w->written) memcpy(out, w->out, (size_t)w->written);
    free(w->out);
    w->out = out;
    w->capacity = capacity;
}

static void check_binary(const kr_binary_source *s, const kr_binary_column *c, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        int64_t length = kr_source_length(s, i);
        CHECK_INT(length >= 0, room_bit(c->validity, i));
        if (length >= 0) CHECK_BYTES(s->data + s->ends[i], length, c->data + c->ends[i], c->ends[i + 1] - c->ends[i]);
    }
}

/* The headers follow each other and keep to the caps. */
static void check_batches(const kr_columns *c, const kr_encoder *w, int64_t rows) {
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

static void check_decoded(const kr_encoder *w, const kr_source *s) {
    static kr_decoder d;
    uint8_t *p = exact_copy(w->out, w->written);
    memset(&d, 0, sizeof d);
    d.input = kr_input_make(p, w->written);
    d.end = w->written;
    d.want = WANT_ALL;
    d.check_crc = 1;
    d.start_offset = INT64_MIN;
    d.end_offset = INT64_MAX;
    d.start_timestamp = INT64_MIN;
    d.torn_at = -1;
    d.columns = room_make(s->rows + w->written / KR_SMALLEST_RECORD + 2, w->written, w->written, WANT_ALL);
    CHECK_STATUS(KR_END, kr_decoder_run(&d));
    CHECK_INT(0, d.faults_count);
    CHECK_INT(-1, d.torn_at);
    CHECK_INT(s->rows, d.columns.rows);
    room_check(&d.columns, WANT_ALL);
    check_batches(&d.columns, w, s->rows);
    check_binary(&s->key, &d.columns.key, s->rows);
    check_binary(&s->value, &d.columns.value, s->rows);
    for (int64_t i = 0; i < s->rows; i++) {
        CHECK_INT(40 + i, d.columns.offset[i]);
        CHECK_INT(s->timestamp_ms ? s->timestamp_ms[i] : -1, d.columns.timestamp_ms[i]);
        if (s->header_ends)
            CHECK_INT(s->header_ends[i + 1] - s->header_ends[i],
                      d.columns.header_ends[i + 1] - d.columns.header_ends[i]);
    }
    if (s->header_ends) {
        kr_source first = *s; /* headers before header_ends[0] belong to another slice */
        first.header_key.ends += header_ends[0];
        first.header_value.ends += header_ends[0];
        first.header_value.validity_offset += header_ends[0];
        check_binary(&first.header_key, &d.columns.header_key, d.columns.headers);
        check_binary(&first.header_value, &d.columns.header_value, d.columns.headers);
    }
    room_free(&d.columns);
    exact_free(p, w->written);
}

static void test_round_trip(void) {
    for (int i = 0; i < 400; i++) {
        kr_source s = random_source(random_below(MOST_ROWS));
        kr_encoder w = encoder_of(random_below(3) ? 1600 + random_below(4000) : 1 << 20,
                                  random_below(2) ? 1 + (int32_t)random_below(9) : INT32_MAX);
        while (kr_encoder_run(&w, &s) == KR_NEEDS_ROOM) give_room(&w, w.written + w.error.expected);
        kr_encoder_close_batch(&w);
        CHECK_INT(s.rows, w.row);
        check_decoded(&w, &s);
        free(w.out);
        free_source();
    }
}

/* The same bytes at whatever capacity the encoder starts with, and with room added one record at a time. */
static void test_every_capacity(void) {
    kr_source s = random_source(12);
    kr_encoder whole = encoder_of(1700, INT32_MAX);
    give_room(&whole, 1 << 16);
    CHECK_STATUS(KR_OK, kr_encoder_run(&whole, &s));
    kr_encoder_close_batch(&whole);
    for (int64_t capacity = 0; capacity <= whole.written; capacity++) {
        kr_encoder w = encoder_of(1700, INT32_MAX);
        give_room(&w, capacity);
        int asked = 0;
        for (int status; (status = kr_encoder_run(&w, &s)) != KR_OK; asked++) {
            CHECK_STATUS(KR_NEEDS_ROOM, status);
            CHECK_INT(w.row, w.error.record_index);
            give_room(&w, w.written + w.error.expected);
        }
        CHECK_INT(capacity < whole.written, asked > 0);
        kr_encoder_close_batch(&w);
        CHECK_BYTES(whole.out, whole.written, w.out, w.written);
        free(w.out);
    }
    free(whole.out);
    free_source();
}

/* A cap that the record just keeps, and one byte less. */
static void test_record_too_large(void) {
    for (int32_t length = 0; length < 20000; length += length < 200 ? 1 : 1999) {
        int32_t ends[] = {0, 0, length};
        kr_source s = {0};
        s.rows = 2;
        s.value = (kr_binary_source){ends, room_block(length), length, 0, 0};
        memset((void *)(uintptr_t)s.value.data, 'x', (size_t)length);
        int64_t body = 1 + 1 + 1 + 1 + kr_varint_size(length) + length + 1;
        int64_t least = KR_RECORD_BATCH_OVERHEAD + kr_varint_size((int32_t)body) + body;
        for (int64_t cap = least - 1; cap <= least; cap++) {
            kr_encoder w = encoder_of(cap, INT32_MAX);
            give_room(&w, 1 << 16);
            int fits = cap == least, first_fits = KR_RECORD_BATCH_OVERHEAD + KR_SMALLEST_RECORD <= cap;
            CHECK_STATUS(fits ? KR_OK : KR_RECORD_TOO_LARGE, kr_encoder_run(&w, &s));
            if (!fits)
                CHECK_ERROR(((kr_error){KR_RECORD_TOO_LARGE, first_fits, first_fits ? w.written : 0, cap,
                                        first_fits ? least : KR_RECORD_BATCH_OVERHEAD + KR_SMALLEST_RECORD, 0}),
                            &w.error);
            free(w.out);
        }
        free((void *)(uintptr_t)s.value.data);
    }
}

/* Records of ten bytes: as many to a batch as the cap has room for, to the byte. */
static void test_cap_to_the_byte(void) {
    int32_t ends[11];
    uint8_t data[30] = {0};
    kr_source s = {0};
    for (int i = 0; i <= 10; i++) ends[i] = 3 * i;
    s.rows = 10;
    s.value = (kr_binary_source){ends, data, sizeof data, 0, 0};
    for (int64_t cap = 71; cap <= 161; cap++) {
        kr_encoder w = encoder_of(cap, INT32_MAX);
        int64_t most = (cap - KR_RECORD_BATCH_OVERHEAD) / 10, batches = (10 + most - 1) / most;
        give_room(&w, 4096);
        CHECK_STATUS(KR_OK, kr_encoder_run(&w, &s));
        kr_encoder_close_batch(&w);
        CHECK_INT(batches * KR_RECORD_BATCH_OVERHEAD + 100, w.written);
        CHECK_INT((most < 10 ? most : 10) * 10 + KR_RECORD_BATCH_OVERHEAD, 12 + kr_load_int32(w.out + 8));
        free(w.out);
    }
}

/* A source of ten records that take ten bytes each. */
static kr_source ten_records(int32_t *ends, uint8_t *data) {
    kr_source s = {0};
    memset(data, 5, 30);
    for (int i = 0; i <= 10; i++) ends[i] = 3 * i;
    s.rows = 10;
    s.value = (kr_binary_source){ends, data, 30, 0, 0};
    return s;
}

/* Batches end where the plan says, also when the room runs out in between; a batch that is too full is refused. */
static void test_plan(void) {
    int32_t ends[11], plan[] = {3, 1, 6};
    uint8_t data[30];
    kr_source s = ten_records(ends, data);
    for (int64_t room = 0; room <= 400; room++) {
        kr_encoder w = encoder_of(KR_RECORD_BATCH_OVERHEAD + 60, INT32_MAX);
        w.batch_records = plan;
        w.planned = 3;
        give_room(&w, room);
        while (kr_encoder_run(&w, &s) == KR_NEEDS_ROOM) give_room(&w, w.written + w.error.expected);
        kr_encoder_close_batch(&w);
        int64_t at = 0;
        for (int i = 0; i < 3; i++) {
            CHECK_INT(plan[i], kr_load_int32(w.out + at + KR_RECORDS_COUNT_AT));
            at += KR_LOG_OVERHEAD + kr_load_int32(w.out + at + KR_LENGTH_AT);
        }
        CHECK_INT(w.written, at);
        free(w.out);
    }
    for (int32_t most = 1; most < 10; most++) {
        kr_encoder w = encoder_of(KR_RECORD_BATCH_OVERHEAD + 10 * most, INT32_MAX);
        int32_t all = 10;
        w.batch_records = &all;
        w.planned = 1;
        give_room(&w, 1000);
        CHECK_STATUS(KR_RECORD_TOO_LARGE, kr_encoder_run(&w, &s));
        CHECK_ERROR(((kr_error){KR_RECORD_TOO_LARGE, most, w.written, w.max_batch_bytes, w.max_batch_bytes + 10, 0}),
                    &w.error);
        free(w.out);
    }
}

/* A marker is found wherever it is, and when the room runs out; other records are none. Of records with keys as well as
 * of values alone, and with values before it that are null. */
static void test_markers(void) {
    static const uint8_t forms[][3] = {{1, 23, 0}, {1, 24, 0}, {1, 25, 0}, {0x81, 0, 24}, {1, 0x97, 0},
                                       {1, 22, 0}, {1, 26, 0}, {2, 23, 0}, {0x80, 0, 24}, {1, 0x97, 1}};
    int32_t ends[11];
    uint8_t data[30], validity[2] = {0xfe, 0xff};
    for (int form = 0; form < 10; form++)
        for (int row = 0; row < 10; row++)
            for (int64_t room = 0; room <= 300; room += 7)
                for (int shape = 0; shape < 3; shape++) {
                    kr_source s = ten_records(ends, data);
                    kr_encoder w = encoder_of(120, INT32_MAX);
                    memcpy(data + 3 * row, forms[form], 3);
                    if (shape == 1) s.key = s.value;
                    if (shape == 2) s.value.validity = validity;
                    int is_marker = form < 5 && (row > 0 || shape < 2);
                    w.refuse_markers = 1;
                    give_room(&w, room);
                    int status;
                    while ((status = kr_encoder_run(&w, &s)) == KR_NEEDS_ROOM)
                        give_room(&w, w.written + w.error.expected);
                    CHECK_STATUS(is_marker ? KR_UNEXPECTED_MARKER : KR_OK, status);
                    if (is_marker) CHECK_INT(row, w.error.record_index);
                    free(w.out);
                }
}

int main(void) {
    kr_crc_init();
    test_round_trip();
    test_every_capacity();
    test_record_too_large();
    test_cap_to_the_byte();
    test_plan();
    test_markers();
    return check_report("encoder");
}
