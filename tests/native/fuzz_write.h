/* What is written: columns to batches and back, and batches that are changed where they stand. */
#ifndef KRAFTLOG_TESTS_FUZZ_WRITE_H
#define KRAFTLOG_TESTS_FUZZ_WRITE_H

#include "encode_round_trip.h"
#include "fuzz_mutate.h"
#include "record/rewrite.h"

static void fuzz_encode(const corpus *c) {
    (void)c;
    int64_t more = 1ll << random_below(14);
    random_below(2) ? round_trip_once(more) : lists_once(more);
}

static inline kr_changes random_changes(void) {
    kr_changes c;
    memset(&c, 0, sizeof c);
    c.sets_base_offset = (int8_t)random_below(2);
    c.sets_leader_epoch = (int8_t)random_below(2);
    c.sets_timestamp_type = random_below(3) == 0;
    c.sets_max_timestamp = random_below(3) == 0;
    c.is_log_append_time = (int8_t)random_below(2);
    c.partition_leader_epoch = (int32_t)interesting();
    c.base_offset = interesting();
    c.max_timestamp = interesting();
    return c;
}

/* The same changes in the plainest way. */
static inline void change_plainly(uint8_t *p, int64_t size, const kr_changes *c) {
    uint64_t offset = (uint64_t)c->base_offset;
    for (int64_t at = 0, next; at < size; at = next) {
        uint8_t *batch = p + at;
        next = at + 12 + kr_load_int32(batch + 8);
        CHECK_INT(2, batch[16]);
        CHECK_TRUE(kr_load_int32(batch + 23) >= 0);
        if (c->sets_base_offset) set_big_endian(batch, (int64_t)offset, 8);
        if (c->sets_leader_epoch) set_big_endian(batch + 12, c->partition_leader_epoch, 4);
        if (c->sets_timestamp_type) batch[22] = (uint8_t)((batch[22] & 0xf7) | (c->is_log_append_time ? 8 : 0));
        if (c->sets_max_timestamp) set_big_endian(batch + 35, c->max_timestamp, 8);
        if (c->sets_timestamp_type || c->sets_max_timestamp)
            set_big_endian(batch + 17, kr_crc32c_portable(0, batch + 21, (size_t)(next - at - 21)), 4);
        offset += (uint64_t)kr_load_int32(batch + 23) + 1;
    }
}

/* Batches that are refused stay as they are; of the others only what is to be changed is changed. */
static void fuzz_rewrite(const corpus *c) {
    static fuzz_input input;
    kr_changes changes = random_changes();
    kr_batch_header h;
    kr_error e;
    int64_t next_offset;
    choose_input(&input, c);
    mutate(&input, c);
    uint8_t *p = exact_copy(input.at, input.size);
    kr_input in = kr_input_make(p, input.size);
    if (kr_changes_check(&in, &changes, &h, &next_offset, &e) == KR_OK) {
        kr_changes_apply(p, input.size, &changes);
        change_plainly(input.at, input.size, &changes);
    }
    CHECK_BYTES(input.at, input.size, p, input.size);
    exact_free(p, input.size);
}

#endif
