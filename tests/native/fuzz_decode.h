/* Damaged batches are decoded in every way: nothing may be read or written where it should not be, every pass must end,
 * and passes that differ only in how they are cut into chunks must agree. */
#ifndef KRAFTLOG_TESTS_FUZZ_DECODE_H
#define KRAFTLOG_TESTS_FUZZ_DECODE_H

#include "arrow/varint_column.h"
#include "batch/scanner.h"
#include "fuzz_pass.h"

/* All rows, of one large chunk. */
static inline pass whole_pass(const uint8_t *p, int64_t size, uint64_t salt) {
    pass s;
    memset(&s, 0, sizeof s);
    s.d.input = kr_input_make(p, size);
    s.d.end = size;
    s.d.want = KR_WANT_ALL;
    s.d.check_crc = 1;
    s.d.include_control = 1;
    s.d.start_offset = INT64_MIN;
    s.d.end_offset = INT64_MAX;
    s.d.start_timestamp = INT64_MIN;
    s.d.torn_at = -1;
    s.d.next_offset = -1;
    s.rows = size / KR_SMALLEST_RECORD + 2;
    s.bytes = size + 1;
    s.headers = size / 2 + 1;
    s.salt = salt;
    return s;
}

static inline void choose_small_chunk(pass *s) {
    s->rows = random_below(3) ? random_below(20) : random_below(1000);
    s->bytes = random_below(3) ? random_below(300) : random_below(20000);
    s->headers = random_below(12);
}

/* The same rows and faults, whatever the chunks and the columns that are asked for. */
static inline void check_same(const outcome *a, const outcome *b, uint32_t want) {
    CHECK_INT(a->rows, b->rows);
    CHECK_INT(a->faults, b->faults);
    CHECK_INT(a->faults_hash, b->faults_hash);
    CHECK_INT(a->torn_at, b->torn_at);
    for (int k = 0; k < COLUMNS; k++)
        if (want >> k & 1) CHECK_INT(a->column[k], b->column[k]);
}

/* Batches before the first changed byte come out as they were. */
static inline void check_untouched(const outcome *before, const outcome *after, int64_t changed) {
    for (int64_t i = 0; i < before->stretches_count && before->stretches[i].end <= changed; i++) {
        CHECK_TRUE(i < after->stretches_count);
        if (i >= after->stretches_count) return;
        CHECK_INT(before->stretches[i].position, after->stretches[i].position);
        CHECK_INT(before->stretches[i].hash, after->stretches[i].hash);
    }
}

static inline void check_bounds(pass *s, const corpus *c, int64_t size) {
    static outcome bounded;
    s->d.start_offset = random_below(2) ? interesting() : random_below(1000);
    s->d.end_offset = random_below(2) ? interesting() : random_below(1000);
    kr_aborted aborted[] = {{interesting(), random_below(1000), random_below(4000)}, {77, 0, random_below(4000)}};
    s->d.aborted = aborted;
    s->d.aborted_count = random_below(3);
    s->d.start_timestamp = random_below(2) ? interesting() : INT64_MIN;
    s->d.position = random_below(4) ? 0 : random_below(size + 1);
    s->d.end = random_below(4) ? size : random_below(size + 1);
    s->d.check_crc = (int8_t)random_below(2);
    s->d.include_control = (int8_t)random_below(2);
    run_pass(s, c, &bounded);
}

/* Headers a few at a time: positions rise, faults lie between them; the result as a hash. */
static inline uint64_t scan(const uint8_t *p, int64_t size, int64_t max, int check_crc, int64_t *faults) {
    kr_batch_header out[64];
    kr_scanner s;
    uint64_t hash = 0;
    int64_t count, position = -1;
    int status = KR_CHUNK_FULL;
    memset(&s, 0, sizeof s);
    s.input = kr_input_make(p, size);
    s.end = size;
    s.check = (int8_t)check_crc;
    s.torn_at = -1;
    *faults = 0;
    while (status != KR_END && !failures) {
        int64_t from = s.position;
        status = kr_scanner_run(&s, out, max, &count);
        CHECK_TRUE(count >= 0 && count <= max && s.position <= size && (status == KR_END || s.position > from));
        for (int64_t i = 0; i < count; i++) {
            CHECK_TRUE(out[i].position > position && out[i].position >= from);
            position = out[i].position;
            hash = hash_int(hash_int(hash, position), out[i].crc);
        }
        if (status == KR_END || status == KR_CHUNK_FULL) continue;
        CHECK_TRUE(s.fault_at >= from && s.fault_at < s.position);
        hash = hash_int(hash_int(hash, status), s.fault_at);
        *faults += status != KR_BAD_CRC || out[count - 1].base_offset != INT64_MAX; /* the decoder's end_offset */
    }
    return hash_int(hash, s.torn_at);
}

static inline void check_scans(const uint8_t *p, int64_t size, const outcome *decoded) {
    for (int check_crc = 0; check_crc < 2; check_crc++) {
        int64_t faults, faults_again;
        uint64_t one = scan(p, size, 1, check_crc, &faults), many = scan(p, size, 64, check_crc, &faults_again);
        CHECK_INT(one, many);
        CHECK_INT(faults, faults_again);
        if (check_crc && !decoded->strays) CHECK_TRUE(faults <= decoded->faults);
    }
}

static inline void check_varints(const uint8_t *p, int64_t size) {
    int64_t n = kr_varints_count(p, size);
    int64_t *wide = room_block(n * 8);
    int32_t *narrow = room_block(n * 4);
    kr_error e;
    kr_varints_decode(p, size, narrow, &e);
    kr_varlongs_decode(p, size, wide, &e);
    free(wide);
    free(narrow);
}

/* In chunks of another size, with other columns. */
static inline void check_small_chunks(const pass *s, const corpus *c, const outcome *whole) {
    static outcome other;
    pass small = *s;
    small.d.want = (uint32_t)(random_next() & KR_WANT_ALL);
    choose_small_chunk(&small);
    run_pass(&small, c, &other);
    check_same(whole, &other, small.d.want);
}

/* Rows that headers tell, without their records: a fault of records that has a right crc is not noticed, no other
 * appears. */
static inline void check_from_headers(const pass *s, const corpus *c, const outcome *whole) {
    static outcome other;
    pass told = *s;
    told.d.want = (uint32_t)(random_next() & KR_HEADER_COLUMNS) | KR_FROM_HEADERS;
    choose_small_chunk(&told);
    run_pass(&told, c, &other);
    if (!whole->faults) CHECK_INT(0, other.faults);
}

/* The input is decoded as a whole, and once more in one of the other ways. */
static inline void decode_once(const fuzz_input *original, const fuzz_input *input, const corpus *c) {
    static outcome before, whole;
    uint64_t salt = random_next();
    int64_t changed = 0;
    while (changed < original->size && changed < input->size && original->at[changed] == input->at[changed]) changed++;
    uint8_t *p = exact_copy(input->at, input->size);
    pass s = whole_pass(p, input->size, salt), first = whole_pass(original->at, original->size, salt);
    int64_t way = random_below(7);
    s.d.check_crc = way != 0; /* without crcs the walk meets all that is bad */
    run_pass(&s, c, &whole);
    switch (way) {
    case 0:
    case 1:
        check_small_chunks(&s, c, &whole);
        break;
    case 2:
        check_scans(p, input->size, &whole);
        break;
    case 3:
        run_pass(&first, c, &before);
        check_untouched(&before, &whole, changed);
        break;
    case 4:
        choose_small_chunk(&s);
        check_bounds(&s, c, input->size);
        break;
    case 5:
        check_from_headers(&s, c, &whole);
        break;
    default:
        check_varints(p, input->size);
    }
    exact_free(p, input->size);
}

static void fuzz_decode(const corpus *c) {
    static fuzz_input original, input;
    choose_input(&original, c);
    copy_input(&input, &original);
    mutate(&input, c);
    decode_once(&original, &input, c);
}

/* Files as they are: whatever has been decoded in between, they give what they gave at first. */
static inline uint64_t hash_of_files(const corpus *c) {
    static outcome o;
    uint64_t hash = 0;
    for (int64_t i = 0; i < c->files_count; i++) {
        pass s = whole_pass(c->files[i].at, c->files[i].size, 1);
        run_pass(&s, c, &o);
        for (int k = 0; k < COLUMNS; k++) hash = hash_int(hash, (int64_t)o.column[k]);
        hash = hash_int(hash, (int64_t)o.faults_hash);
    }
    return hash;
}

#endif
