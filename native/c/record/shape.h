/* The fast parser once more, for records of the shape of the one before: the same lengths of varints, and the same of
 * key and value null. Which bits belong to which field is then known, and one load of eight bytes with the pext
 * instruction of BMI2 reads all fields before the key. For x86-64.
 */
#ifndef KRAFTLOG_RECORD_SHAPE_H
#define KRAFTLOG_RECORD_SHAPE_H

#if defined(__x86_64__)

#include <immintrin.h>

#include "batch/record.h"

#define KR_TARGET_SHAPE __attribute__((target("bmi2")))

/* Bytes at most of the fields before the key, and of value_length. No varint but timestamp_delta then has five bytes,
 * the last of which holds bits that are dropped. */
enum { KR_SHAPE_BYTES = 8, KR_SHAPE_VALUE_BYTES = 4 };

/* Bits of a record's first eight bytes, and of the four from value_length on. Fixed ones say how long the varints are,
 * and are the signs of all but timestamp_delta. */
typedef struct {
    uint64_t fixed, expected;
    uint64_t length, timestamp_delta, offset_delta, key_length;
    uint32_t value_fixed, value_expected, value_length;
    int32_t key_is_null, value_is_null; /* -1: it is */
    int64_t length_size, size, value_length_size;
    int64_t others; /* bytes of a record that its length counts, without key and value */
} kr_shape;

/* Whether the processor has the instruction, and not as microcode that takes longer than the plain parser. */
static inline int kr_shape_is_fast(void) {
    return __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2") &&
           !__builtin_cpu_is("amdfam15h");
}

/* As kr_record_fast, of records that have the shape and no headers. */
KR_TARGET_SHAPE KR_ALWAYS_INLINE int kr_record_shaped(const uint8_t *p, const uint8_t *end, const kr_shape *s,
                                                      kr_record *r) {
    uint32_t y;
    uint64_t x = kr_load_word(p);
    int64_t length = (int64_t)_pext_u64(x, s->length), key_length = (int64_t)_pext_u64(x, s->key_length);
    int64_t left = length - key_length - s->others;                             /* for the value */
    uintptr_t record_end = (uintptr_t)p + (uintptr_t)(s->length_size + length); /* may lie far behind `end` */
    if (!KR_LIKELY((x & s->fixed) == s->expected && record_end <= (uintptr_t)end && left >= 0)) return 0;
    r->timestamp_delta = kr_unzigzag64(_pext_u64(x, s->timestamp_delta));
    r->offset_delta = (int32_t)_pext_u64(x, s->offset_delta);
    r->end = p + s->length_size + length;
    r->key = p + s->size;
    memcpy(&y, r->key + key_length, 4);
    int64_t value_length = (int64_t)_pext_u32(y, s->value_length);
    if (!KR_LIKELY((y & s->value_fixed) == s->value_expected && value_length == left && r->end[-1] == 0)) return 0;
    r->value = r->key + key_length + s->value_length_size;
    r->key_length = (int32_t)key_length | s->key_is_null;
    r->value_length = (int32_t)value_length | s->value_is_null;
    r->headers_count = 0;
    r->headers = r->end;
    return 1;
}

static inline int kr_groups_at(const uint8_t *p) {
    int n = 1;
    while (*p++ >= 0x80) n++;
    return n;
}

/* The value bits of a varint of n bytes, `sign` without the lowest one, which is its sign. */
static inline uint64_t kr_groups_mask(int n, int sign) {
    return (0x7f7f7f7f7f7f7f7full >> 8 * (8 - n)) - (uint64_t)!sign;
}

/* The shape of the record at p, `with_timestamps` or with deltas of 0. Returns 0 when it has none that
 * kr_record_shaped can read. */
static __attribute__((noinline)) int kr_shape_learn(kr_shape *s, const uint8_t *p, const uint8_t *end,
                                                    int with_timestamps) {
    kr_record r;
    uint32_t y;
    if (!kr_record_fast(p, end, &r) || r.headers_count || r.offset_delta < 0) return 0;
    const uint8_t *value_at = r.key + (r.key_length > 0 ? r.key_length : 0);
    int length = kr_groups_at(p), timestamp_at = length + 1, offset_at = timestamp_at + kr_groups_at(p + timestamp_at);
    int key_at = offset_at + kr_groups_at(p + offset_at), size = (int)(r.key - p), value = (int)(r.value - value_at);
    if (size > KR_SHAPE_BYTES || value > KR_SHAPE_VALUE_BYTES) return 0;
    s->length_size = length;
    s->size = size;
    s->value_length_size = value;
    s->others = size - length + value + 1;
    s->length = kr_groups_mask(length, 0);
    s->timestamp_delta = kr_groups_mask(offset_at - timestamp_at, 1) << 8 * timestamp_at;
    s->offset_delta = kr_groups_mask(key_at - offset_at, 0) << 8 * offset_at;
    s->key_length = kr_groups_mask(size - key_at, 0) << 8 * key_at;
    s->fixed = ~(s->length | 0xffull << 8 * length | s->timestamp_delta | s->offset_delta | s->key_length) &
               ~0ull >> 8 * (KR_SHAPE_BYTES - size);
    s->expected = kr_load_word(p) & s->fixed;
    memcpy(&y, value_at, 4);
    s->value_length = (uint32_t)kr_groups_mask(value, 0);
    s->value_fixed = ~s->value_length & ~0u >> 8 * (KR_SHAPE_VALUE_BYTES - value);
    s->value_expected = y & s->value_fixed;
    s->key_is_null = r.key_length < 0 ? -1 : 0;
    s->value_is_null = r.value_length < 0 ? -1 : 0;
    if (s->key_is_null) s->key_length = 0;
    if (s->value_is_null) s->value_length = 0;
    if (!with_timestamps) s->timestamp_delta = 0;
    return 1;
}

#endif
#endif
