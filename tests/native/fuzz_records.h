/* Records that are read one at a time: batches that record/sound_batch.h takes, and messages inside of wrappers. */
#ifndef KRAFTLOG_TESTS_FUZZ_RECORDS_H
#define KRAFTLOG_TESTS_FUZZ_RECORDS_H

#include "fuzz_decode.h"
#include "ones.h"
#include "record/sound_batch.h"

/* The one batch at a position, with room for all of it. */
static inline void open_batch_alone(kr_decoder *d, const kr_input *in, const kr_batch_header *h) {
    int64_t size = kr_batch_end(h) - h->position;
    *d = whole_pass(in->start, in->size, 0).d;
    d->position = h->position;
    d->end = h->position + 1;
    d->columns = room_make(size / KR_SMALLEST_RECORD + 2, size, size / 2 + 1, KR_WANT_ALL);
}

static inline void check_field(const kr_binary_column *c, int64_t row, const uint8_t *p, int64_t length) {
    CHECK_INT(length >= 0, room_bit(c->validity, row));
    if (length >= 0) CHECK_BYTES(p, length, c->data + c->ends[row], c->ends[row + 1] - c->ends[row]);
}

/* The records of a batch, one by one, are the rows that the decoder makes of it; one that is not sound is a fault. */
static inline void check_sound_records(const kr_input *in, const kr_batch_header *h, kr_sound_records *records) {
    static kr_decoder d;
    kr_record r;
    int64_t row = 0;
    open_batch_alone(&d, in, h);
    CHECK_STATUS(KR_END, kr_decoder_run(&d));
    const kr_columns *c = &d.columns;
    for (; kr_sound_next(records, &r); row++) {
        if (d.faults_count && row >= c->rows) continue; /* what is missing or follows is a fault of the batch */
        CHECK_TRUE(row < c->rows);
        CHECK_INT(c->offset[row], kr_record_offset(h, &r));
        CHECK_INT(c->timestamp_ms[row], kr_record_timestamp(h, &r));
        CHECK_INT(c->headers.ends[row + 1] - c->headers.ends[row], r.headers_count);
        check_field(&c->key, row, r.key, r.key_length);
        check_field(&c->value, row, r.value, r.value_length);
    }
    CHECK_INT(d.faults_count == 0, kr_sound_is_done(records));
    if (!d.faults_count) CHECK_INT(c->rows, row);
    room_free(&d.columns);
}

static inline void check_sound_batches(const uint8_t *p, int64_t size, const kr_decoder *filter) {
    kr_sound s = {kr_input_make(p, size), 0, -1, filter, 0};
    kr_batch_header h;
    kr_sound_records r;
    int status;
    while ((status = kr_sound_open(&s, &h, &r)) == KR_SOUND_RECORDS || status == KR_SOUND_PASSED) {
        CHECK_INT(h.crc, kr_batch_crc(&s.input, &h));
        if (status == KR_SOUND_PASSED) continue;
        CHECK_INT(h.position, s.position);
        check_sound_records(&s.input, &h, &r);
        kr_sound_pass(&s, &h);
    }
    CHECK_TRUE(status == KR_SOUND_NOT || s.position == size);
}

static void fuzz_sound(const corpus *c) {
    static fuzz_input input;
    choose_input(&input, c);
    mutate(&input, c);
    uint8_t *p = exact_copy(input.at, input.size);
    pass bounds = whole_pass(p, input.size, 0);
    kr_aborted aborted = {77, random_below(1000), random_below(4000)};
    bounds.d.start_offset = random_below(1000);
    bounds.d.aborted = &aborted;
    bounds.d.aborted_count = random_below(2);
    check_sound_batches(p, input.size, random_below(4) ? 0 : &bounds.d);
    exact_free(p, input.size);
}

/* Batches of one record each, one behind the other, most of them malformed with a crc that matches: the loop that takes
 * such batches, which compares crcs, the one that does not, and the reader of single records agree. */
static void fuzz_ones(const corpus *c) {
    static bytes b, record;
    static outcome alone, general;
    b.size = 0;
    for (int64_t n = 1 + random_below(4), offset = random_below(100); n > 0; n--, offset++) {
        record.size = 0;
        put_one(&record);
        put_batch(&b, offset, 0, 1000, 1, &record);
    }
    uint8_t *p = exact_copy(b.at, b.size);
    pass s = whole_pass(p, b.size, 0);
    run_pass(&s, c, &alone);
    s.d.check_crc = 0;
    run_pass(&s, c, &general);
    check_same(&general, &alone, KR_WANT_ALL);
    check_sound_batches(p, b.size, 0);
    exact_free(p, b.size);
}

/* Messages of a wrapper, some of them from real files. */
static inline void choose_messages(fuzz_input *in, const corpus *c) {
    static bytes made;
    in->size = made.size = 0;
    if (random_below(2)) choose_input(in, c);
    for (int64_t n = random_below(6), offset = interesting() / 2, magic = random_below(2); n > 0; n--) {
        int64_t key = random_below(20) - 1, value = random_below(40) - 1;
        uint64_t noise[5];
        for (int i = 0; i < 5; i++) noise[i] = random_next();
        put_message(&made, (int)(random_below(9) ? magic : 1 - magic), offset++,
                    random_below(9) ? 0 : (int)noise[0] & 8, interesting(), noise, key, noise, value);
    }
    replace(in, in->size, 0, made.at, made.size);
}

static inline uint64_t decode_messages(const kr_batch_header *wrapper, const uint8_t *p, int64_t size, int check_crc,
                                       int strict, uint32_t want, int64_t most_rows, int64_t *rows, kr_error *e) {
    kr_columns c = room_make(size / (KR_LOG_OVERHEAD + KR_LEGACY_MIN_LENGTH_V0) + 2, size, 1, want);
    uint64_t columns[COLUMNS] = {0}, hash = 0;
    int status = kr_inner_decode(&c, wrapper, p, p + size, check_crc, strict, e, want);
    if (status == KR_OK) e->status = KR_OK;
    if (status != KR_OK) {
        CHECK_INT(status, e->status);
        CHECK_TRUE(e->lost > 0 && (e->record_index < 0 || e->lost <= size));
    }
    *rows = c.rows;
    for (int64_t i = 0; i < c.rows && i < most_rows; i++) hash_row(columns, &c, i, want);
    for (int k = 0; k < COLUMNS; k++) hash = hash_int(hash, (int64_t)columns[k]);
    room_free(&c);
    return hash;
}

/* Strict, the rows before the first fault; lenient, these and maybe more. */
static void fuzz_inner(const corpus *c) {
    static fuzz_input input;
    choose_messages(&input, c);
    mutate(&input, c);
    uint8_t *p = exact_copy(input.at, input.size);
    kr_batch_header wrapper;
    memset(&wrapper, 0, sizeof wrapper);
    wrapper.magic = (int8_t)random_below(2);
    wrapper.base_offset = random_below(2) ? interesting() : INT64_MAX;
    wrapper.base_timestamp = interesting();
    wrapper.attributes = (int16_t)(1 | (random_below(2) ? KR_TIMESTAMP_TYPE_BIT : 0));
    wrapper.batch_length = KR_LEGACY_MIN_LENGTH_V1;
    int check_crc = random_below(2) != 0;
    uint32_t want = (uint32_t)(random_next() & KR_WANT_ALL);
    kr_error e, strict_e;
    int64_t strict_rows, rows;
    uint64_t strict = decode_messages(&wrapper, p, input.size, check_crc, 1, want, INT64_MAX, &strict_rows, &strict_e);
    uint64_t lenient = decode_messages(&wrapper, p, input.size, check_crc, 0, want, strict_rows, &rows, &e);
    CHECK_TRUE(rows >= strict_rows);
    CHECK_INT(strict, lenient);
    CHECK_INT(strict_e.status == KR_OK, e.status == KR_OK);
    if (strict_e.status != KR_OK) CHECK_INT(strict_e.record_index < 0 ? 0 : strict_e.record_index, strict_rows);
    if (e.status == KR_OK) CHECK_INT(strict_rows, rows);
    exact_free(p, input.size);
}

/* Messages in a file, wrappers among them; and what wrappers hold. */
static void fuzz_legacy(const corpus *c) {
    if (random_below(2))
        fuzz_inner(c);
    else
        fuzz_decode(c);
}

#endif
