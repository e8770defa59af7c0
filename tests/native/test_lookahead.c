/* batch/lookahead.h: open and ended transactions against a table that is searched from end to end. */
#include "batch/lookahead.h"
#include "bytes.h"
#include "check.h"

enum { PRODUCERS = 40, STEPS = 400, SLOTS = 64, TRANSACTIONAL = 0x10, CONTROL = 0x20 };

static bytes b, records;
static kr_input input; /* of the lookahead that was made last */

static uint64_t next_random(void) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return random_state >> 33;
}

static void put_producer_batch(int64_t base_offset, int64_t producer_id, int attributes, int marker) {
    static bytes fields;
    records.size = fields.size = 0;
    if (attributes & CONTROL) {
        put_hex(&fields, "00 00 00");
        put_varint(&fields, 4);
        put_int(&fields, marker, 4);
        put_varint(&fields, 6);
        put_int(&fields, 0, 6);
        put_fill(&fields, 0, 1);
        put_record_of(&records, &fields);
    } else {
        put_record(&records, 0, 0, "k", "v", 0);
    }
    int64_t at = put_batch(&b, base_offset, attributes, 0, 1, &records);
    set_big_endian(b.at + at + KR_PRODUCER_ID_AT, producer_id, 8);
    seal(&b, at);
}

static int64_t producer(int64_t i) { return i * i * 1000003; } /* far apart, and some share a slot */

static kr_lookahead lookahead_of(const uint8_t *p, int64_t size, kr_open_transaction *slots,
                                 kr_ended_transaction *ended, int64_t capacity) {
    kr_lookahead l;
    memset(&l, 0, sizeof l);
    input = kr_input_make(p, size);
    l.check = KR_CHECK_CONTROL;
    l.open.slots = slots;
    l.open.capacity = SLOTS;
    for (int i = 0; i < SLOTS; i++) slots[i].producer_id = KR_NO_PRODUCER;
    l.ended = ended;
    l.ended_capacity = capacity;
    return l;
}

static void check_open(const kr_lookahead *l, const int64_t *first, const int64_t *position) {
    int64_t count = 0;
    for (int64_t i = 0; i < PRODUCERS; i++) {
        const kr_open_transaction *slot = &l->open.slots[kr_open_slot(&l->open, producer(i))];
        CHECK_INT(first[i] >= 0 ? producer(i) : KR_NO_PRODUCER, slot->producer_id);
        if (first[i] < 0) continue;
        count++;
        CHECK_INT(first[i], slot->first_offset);
        CHECK_INT(position[i], slot->first_position);
    }
    CHECK_INT(count, l->open.count);
}

static void test_against_search(void) {
    int64_t first[PRODUCERS], position[PRODUCERS], offset = 0, expected_count = 0;
    static kr_ended_transaction expected[STEPS], ended[STEPS];
    kr_open_transaction slots[SLOTS];
    b.size = 0;
    for (int i = 0; i < PRODUCERS; i++) first[i] = -1;
    for (int step = 0; step < STEPS; step++, offset++) {
        int64_t i = (int64_t)(next_random() % PRODUCERS), at = b.size;
        int marker = (int)(next_random() % 3); /* 2: data */
        put_producer_batch(offset, producer(i), marker < 2 ? TRANSACTIONAL | CONTROL : TRANSACTIONAL, marker);
        if (marker == 2) {
            if (first[i] < 0) {
                first[i] = offset;
                position[i] = at;
            }
        } else {
            kr_ended_transaction e = {producer(i), first[i], first[i] < 0 ? -1 : position[i], offset, at, marker};
            expected[expected_count++] = e;
            first[i] = -1;
        }
    }
    uint8_t *p = exact_copy(b.at, b.size);
    for (int64_t window = 50; window < 3 * b.size; window *= 7) {
        kr_lookahead l = lookahead_of(p, b.size, slots, ended, STEPS);
        int status = KR_CHUNK_FULL;
        for (int64_t stop = window; status == KR_CHUNK_FULL; stop += window) {
            status = kr_lookahead_run(&l, &input, stop);
            CHECK_TRUE(status == KR_END || l.position >= stop);
        }
        CHECK_STATUS(KR_END, status);
        CHECK_INT(expected_count, l.ended_count);
        CHECK_INT(0, memcmp(expected, ended, (size_t)expected_count * sizeof *ended));
        check_open(&l, first, position);
    }
    exact_free(p, b.size);
}

/* Nothing changes where there is no room, and the scan goes on there when there is. */
static void test_room(void) {
    kr_open_transaction slots[SLOTS];
    kr_ended_transaction ended[3];
    b.size = 0;
    for (int i = 0; i < 3; i++) put_producer_batch(i, i, TRANSACTIONAL, 0);
    for (int i = 0; i < 3; i++) put_producer_batch(3 + i, i, TRANSACTIONAL | CONTROL, 0);
    kr_lookahead l = lookahead_of(b.at, b.size, slots, ended, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(KR_NEEDS_ROOM, kr_lookahead_run(&l, &input, b.size));
        CHECK_INT(i, l.ended_count);
        CHECK_INT(3 - i, l.open.count);
        l.ended_capacity++;
    }
    CHECK_STATUS(KR_END, kr_lookahead_run(&l, &input, b.size));
    l = lookahead_of(b.at, b.size, slots, ended, 3);
    l.open.capacity = 2; /* three quarters: a second one must wait */
    CHECK_STATUS(KR_NEEDS_ROOM, kr_lookahead_run(&l, &input, b.size));
    CHECK_INT(1, l.open.count);
}

/* What says nothing: other batches, an empty control batch, a marker whose crc does not match, other control types. */
static void test_what_does_not_count(void) {
    kr_open_transaction slots[SLOTS];
    kr_ended_transaction ended[4];
    b.size = 0;
    put_small_batch(&b, 0, 1); /* not transactional */
    put_producer_batch(1, -1, TRANSACTIONAL, 0);
    put_producer_batch(2, 5, TRANSACTIONAL, 0);
    records.size = 0;
    int64_t at = put_batch(&b, 3, TRANSACTIONAL | CONTROL, 0, 0, &records);
    set_big_endian(b.at + at + KR_PRODUCER_ID_AT, 5, 8);
    seal(&b, at);
    put_producer_batch(4, 5, TRANSACTIONAL | CONTROL, 2);
    put_producer_batch(5, 5, TRANSACTIONAL | CONTROL, 0);
    b.at[b.size - 1] ^= 1;
    kr_lookahead l = lookahead_of(b.at, b.size, slots, ended, 4);
    CHECK_STATUS(KR_END, kr_lookahead_run(&l, &input, b.size));
    CHECK_INT(1, l.open.count);
    CHECK_INT(0, l.ended_count);
}

/* Behind a batch whose length leads nowhere nothing is read. */
static void test_bad_length(void) {
    kr_open_transaction slots[SLOTS];
    kr_ended_transaction ended[4];
    for (int check_all = 0; check_all < 2; check_all++) {
        b.size = 0;
        put_producer_batch(0, 9, TRANSACTIONAL, 0);
        int64_t second = b.size;
        for (int i = 1; i < 4; i++) put_producer_batch(i, i, TRANSACTIONAL, 0);
        put_producer_batch(4, 1, TRANSACTIONAL | CONTROL, 0);
        set_big_endian(b.at + second + KR_LENGTH_AT, second + 7, 4);
        kr_lookahead l = lookahead_of(b.at, b.size, slots, ended, 4);
        if (check_all) l.check = KR_CHECK_ALL;
        CHECK_STATUS(KR_END, kr_lookahead_run(&l, &input, b.size));
        CHECK_INT(1, l.open.count);
        CHECK_INT(0, l.ended_count);
    }
}

/* With each crc compared a batch that is damaged inside opens nothing. */
static void test_check_all(void) {
    kr_open_transaction slots[SLOTS];
    kr_ended_transaction ended[4];
    b.size = 0;
    put_producer_batch(0, 1, TRANSACTIONAL, 0);
    b.at[b.size - 1] ^= 1;
    put_producer_batch(1, 2, TRANSACTIONAL, 0);
    for (int check_all = 0; check_all < 2; check_all++) {
        kr_lookahead l = lookahead_of(b.at, b.size, slots, ended, 4);
        if (check_all) l.check = KR_CHECK_ALL;
        CHECK_STATUS(KR_END, kr_lookahead_run(&l, &input, b.size));
        CHECK_INT(check_all ? 1 : 2, l.open.count);
    }
}

/* Any bytes: no read outside, and an end. */
static void test_damage(void) {
    kr_open_transaction slots[SLOTS];
    static kr_ended_transaction ended[STEPS];
    for (int round = 0; round < 300; round++) {
        b.size = 0;
        for (int step = 0; step < 12; step++) {
            int marker = (int)(next_random() % 3);
            put_producer_batch(step, (int64_t)(next_random() % 3), marker < 2 ? TRANSACTIONAL | CONTROL : TRANSACTIONAL,
                               marker);
        }
        for (int flips = (int)(next_random() % 4); flips >= 0; flips--)
            b.at[next_random() % (uint64_t)b.size] = (uint8_t)next_random();
        int64_t size = (int64_t)(next_random() % (uint64_t)b.size);
        uint8_t *p = exact_copy(b.at, size);
        kr_lookahead l = lookahead_of(p, size, slots, ended, STEPS);
        CHECK_STATUS(KR_END, kr_lookahead_run(&l, &input, INT64_MAX));
        CHECK_INT(size, l.position);
        exact_free(p, size);
    }
}

int main(void) {
    kr_crc_init();
    test_against_search();
    test_room();
    test_what_does_not_count();
    test_bad_length();
    test_check_all();
    test_damage();
    return check_report("lookahead");
}
