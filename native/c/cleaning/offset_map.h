/* The last offset of each key of a stretch of log, as Kafka's OffsetMap, in memory that is bounded.
 *
 * Kafka keeps a hash in the place of a key, so two keys of one hash are one key, and a value of the other is lost. Here
 * keys are compared by their bytes (base/key_slots.h): a producer cannot choose keys that make a value disappear. */
#ifndef KRAFTLOG_CLEANING_OFFSET_MAP_H
#define KRAFTLOG_CLEANING_OFFSET_MAP_H

#include "arrow/lent.h"
#include "base/key_slots.h"

typedef struct {
    kr_key_slots slots;
    int64_t most_bytes; /* of slots, entries and keys; one key is taken whatever it has */
} kr_offset_map;

enum { KR_MAP_BLOCK = 16, KR_MAP_TYPE = 0 };

typedef struct {
    uint64_t hash;
    const uint8_t *key;
    int64_t size;
    int64_t row;
} kr_map_key;

static inline int kr_offset_map_open(kr_offset_map *m, uint64_t seed, int64_t most_bytes) {
    m->most_bytes = most_bytes;
    return kr_key_slots_open(&m->slots, seed);
}

static inline void kr_offset_map_close(kr_offset_map *m) { kr_key_slots_close(&m->slots); }

/* Whether one more key has room. */
static inline int kr_offset_map_has_room(const kr_offset_map *m, int64_t key_size) {
    const kr_key_slots *s = &m->slots;
    if (!s->index.used) return 1;
    int64_t entries = s->index.entries.size;
    if (KR_SPARSE_KEYS * (s->index.used + 1) > entries / 8) entries *= 2;
    int64_t slots = s->slots.size + (int64_t)sizeof(kr_key_slot);
    return slots + entries + s->text.size + key_size <= m->most_bytes && kr_key_slots_end(s) < INT32_MAX;
}

/* The keys of up to KR_MAP_BLOCK rows from *row on that are not null and, where `wanted` is given, wanted; *row is then
 * behind them. What will be touched is fetched: most keys are in no cache. */
static __attribute__((noinline)) int kr_map_keys(const kr_offset_map *m, const kr_lent_binary *keys,
                                                 const uint8_t *wanted, int64_t *row, int64_t end, kr_map_key *found) {
    const kr_hash_index *x = &m->slots.index;
    static const uint8_t none = 0;
    int32_t likely[KR_MAP_BLOCK];
    int count = 0;
    for (; *row < end && count < KR_MAP_BLOCK; ++*row) {
        if ((wanted && !wanted[*row]) || kr_lent_is_null(keys, *row)) continue;
        kr_map_key *one = &found[count++];
        one->size = keys->ends[*row + 1] - keys->ends[*row];
        one->key = one->size ? keys->data + keys->ends[*row] : &none; /* data may be NULL */
        one->row = *row;
        one->hash = kr_key_hash(&m->slots, KR_MAP_TYPE, one->key, one->size);
        __builtin_prefetch(kr_index_entries(x) + kr_index_home(x, kr_upper_half(one->hash)));
    }
    for (int i = 0; i < count; i++) {
        likely[i] = kr_likely_slot(&m->slots, found[i].hash);
        if (likely[i] != KR_NO_SLOT) __builtin_prefetch(kr_key_slot_at(&m->slots, likely[i]), 1);
    }
    for (int i = 0; i < count; i++)
        if (likely[i] != KR_NO_SLOT) __builtin_prefetch(m->slots.text.bytes + kr_key_slot_at(&m->slots, likely[i])->at);
    return count;
}

static inline int32_t kr_map_find(const kr_offset_map *m, const kr_map_key *k) {
    return kr_find_key(&m->slots, k->hash, KR_MAP_TYPE, k->key, k->size);
}

/* Takes the keys of rows from `row` on, in the order of the log. Returns the row at which it stops: its key has no
 * room, or memory is short; or `end`. */
static int64_t kr_offset_map_put(kr_offset_map *m, const kr_lent_binary *keys, const int64_t *offsets,
                                 const uint8_t *wanted, int64_t row, int64_t end) {
    kr_map_key block[KR_MAP_BLOCK];
    kr_key_slots *s = &m->slots;
    while (row < end) {
        int count = kr_map_keys(m, keys, wanted, &row, end, block);
        for (int i = 0; i < count; i++) {
            const kr_map_key *one = &block[i];
            int32_t slot = kr_map_find(m, one);
            if (slot == KR_NO_SLOT) {
                if (!kr_offset_map_has_room(m, one->size)) return one->row;
                slot = kr_add_slot(s, one->hash, KR_SLOT_KEY);
                if (slot != KR_NO_SLOT) kr_slot_put(s, slot, one->key, (int32_t)one->size, one->key, 0);
                if (s->no_memory) return one->row;
            }
            kr_key_slot_at(s, slot)->offset = offsets[one->row];
        }
    }
    return end;
}

/* Says of each of n rows whether the map has its key at a later offset. */
static void kr_offset_map_superseded(const kr_offset_map *m, const kr_lent_binary *keys, const int64_t *offsets,
                                     int64_t n, uint8_t *is_superseded) {
    kr_map_key block[KR_MAP_BLOCK];
    memset(is_superseded, 0, (size_t)n);
    for (int64_t row = 0; row < n;) {
        int count = kr_map_keys(m, keys, 0, &row, n, block);
        for (int i = 0; i < count; i++) {
            int32_t slot = kr_map_find(m, &block[i]);
            if (slot != KR_NO_SLOT)
                is_superseded[block[i].row] = offsets[block[i].row] < kr_key_slot_at(&m->slots, slot)->offset;
        }
    }
}

#endif
