/* record/encoder.h: what it writes is read again, caps hold, and it asks for room instead of writing beyond it. */
#include "encode_round_trip.h"

static void test_round_trip(void) {
    for (int i = 0; i < 400; i++) round_trip_once(1);
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
        s.value = (kr_lent_binary){ends, room_block(length), length, 0, 0};
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
    s.value = (kr_lent_binary){ends, data, sizeof data, 0, 0};
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
    s.value = (kr_lent_binary){ends, data, 30, 0, 0};
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

static void test_lists(void) {
    for (int i = 0; i < 4000; i++) lists_once(1 + (i & 1) * 500);
}

/* A marker among the rows of any list is refused, with its row in the chunk; those around the rows are not. */
static void test_markers_among_lists(void) {
    static const uint8_t marker[] = {1, 23, 0};
    int32_t ends[11], marker_ends[] = {0, 3, 6, 9, 12};
    uint8_t data[30], markers[12];
    int64_t list_ends[] = {0, 3, 6, 10}, written[4];
    for (int i = 0; i < 4; i++) memcpy(markers + 3 * i, marker, 3);
    for (int64_t row = 0; row <= 10; row++)
        for (int64_t cut = 0; cut <= 10; cut++) {
            kr_source s = ten_records(ends, data), chunks[] = {slice_of(&s, 0, cut), slice_of(&s, cut, 10 - cut)};
            kr_encoder w = encoder_of(120, INT32_MAX);
            kr_record_lists l = kr_record_lists_of(&w, 4, list_ends, written);
            l.begin_marker = l.end_marker = (kr_lent_binary){marker_ends, markers, 12, 0, 0};
            if (row < 10) memcpy(data + 3 * row, marker, 3);
            w.refuse_markers = 1;
            give_room(&w, 4096);
            int status = kr_encoder_run_lists(&w, &chunks[0], 0, &l);
            CHECK_STATUS(row < cut ? KR_UNEXPECTED_MARKER : KR_OK, status);
            w.row = 0;
            if (status == KR_OK) status = kr_encoder_run_lists(&w, &chunks[1], cut, &l);
            CHECK_STATUS(row < 10 ? KR_UNEXPECTED_MARKER : KR_OK, status);
            if (row < 10) CHECK_INT(row < cut ? row : row - cut, w.error.record_index);
            CHECK_INT(row < 10 ? 1 + (row >= 3) + (row >= 6) : 4, l.at);
            CHECK_INT(1, w.refuse_markers);
            free(w.out);
        }
}

int main(void) {
    kr_crc_init();
    test_round_trip();
    test_lists();
    test_markers_among_lists();
    test_every_capacity();
    test_record_too_large();
    test_cap_to_the_byte();
    test_plan();
    test_markers();
    return check_report("encoder");
}
