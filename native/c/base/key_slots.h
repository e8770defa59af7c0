/* Records by their keys: a slot for each, found by a hash of the key's bytes.
 *
 * A key's slot has the last record of it. A record that waits for the end of its transaction has a slot of its own, by
 * the key's slot and the producer; it is in two lists, of its key and of its producer, whose slot begins the latter. */
#ifndef KRAFTLOG_BASE_KEY_SLOTS_H
#define KRAFTLOG_BASE_KEY_SLOTS_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/copy.h"
#include "base/hash_index.h"

enum { KR_NOT_IN_TRANSACTION = -1, KR_NO_RECORD = -1, KR_SPARSE_KEYS = 2, KR_LEAST_GARBAGE = 1 << 20 };
enum kr_slot_kind { KR_SLOT_FREE, KR_SLOT_KEY, KR_SLOT_PENDING, KR_SLOT_PRODUCER };

typedef struct {
    uint64_t hash;
    int64_t at;     /* of the key's bytes in the text; those of the value follow */
    int64_t offset; /* of the record */
    int64_t producer_id;
    int32_t key_size, value_size, room; /* of the value; KR_NO_RECORD for a key without a record */
    int16_t type, kind;
    int32_t of_key;           /* of a pending one: its key's slot; of a free one: the next */
    int32_t next, previous;   /* pending ones of the same key; a key's `next` is the first of them */
    int32_t next_of_producer; /* a producer's is the first of its own */
} kr_key_slot;
_Static_assert(sizeof(kr_key_slot) == 64, "a line of the cache");

typedef struct {
    kr_growing slots, text;
    kr_hash_index index; /* by the upper halves of hashes */
    int64_t garbage;     /* bytes of the text that no slot has */
    int32_t free_slot, last_producer;
    uint64_t seed;
    int no_memory;
} kr_key_slots;

static inline kr_key_slot *kr_key_slot_at(const kr_key_slots *s, int32_t slot) {
    return (kr_key_slot *)(void *)s->slots.bytes + slot;
}
static inline int64_t kr_key_slots_end(const kr_key_slots *s) { return s->slots.size / (int64_t)sizeof(kr_key_slot); }

/* The half of a hash that the index has. */
static inline uint32_t kr_upper_half(uint64_t hash) { return (uint32_t)(hash >> 32); }

__extension__ typedef unsigned __int128 kr_double_word;

static inline uint64_t kr_mixed(uint64_t a, uint64_t b) {
    kr_double_word product = (kr_double_word)(a ^ 0x9E3779B97F4A7C15ull) * (b ^ 0xD6E8FEB86659FD93ull);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t kr_key_hash(const kr_key_slots *s, int32_t type, const uint8_t *p, int64_t n) {
    uint64_t hash = s->seed ^ (uint64_t)n << 32 ^ (uint32_t)type, last = 0;
    const uint8_t *end = p + n;
    if (KR_LIKELY(n >= 16)) { /* the last two words may overlap those before */
        for (; end - p > 16; p += 16) hash = kr_mixed(kr_load_word(p) ^ hash, kr_load_word(p + 8) ^ s->seed);
        hash = kr_mixed(kr_load_word(end - 16) ^ hash, kr_load_word(end - 8) ^ s->seed);
    } else if (n >= 8) {
        hash = kr_mixed(kr_load_word(p) ^ hash, kr_load_word(end - 8) ^ s->seed);
    } else {
        memcpy(&last, p, (size_t)n);
        hash = kr_mixed(last ^ hash, s->seed);
    }
    return kr_mixed(hash, s->seed);
}

static inline int kr_key_slots_open(kr_key_slots *s, uint64_t seed) {
    memset(s, 0, sizeof *s);
    s->seed = seed;
    s->free_slot = s->last_producer = KR_NO_SLOT;
    return kr_index_open(&s->index);
}

static inline void kr_key_slots_close(kr_key_slots *s) {
    kr_growing_free(&s->slots);
    kr_growing_free(&s->index.entries);
    kr_growing_free(&s->text);
}

#if defined(__SSE2__)
/* Which bits of 16 bytes differ. */
KR_ALWAYS_INLINE __m128i kr_differing(const uint8_t *a, const uint8_t *b) {
    return _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)a),
                         _mm_loadu_si128((const __m128i *)(const void *)b));
}
#endif

/* Whether n bytes are the same. */
KR_ALWAYS_INLINE int kr_same_bytes(const uint8_t *a, const uint8_t *b, int64_t n) {
#if defined(__SSE2__)
    if (KR_LIKELY(n >= 16)) {
        __m128i differing = kr_differing(a + n - 16, b + n - 16);
        for (int64_t i = 0; i < n - 16; i += 16) differing = _mm_or_si128(differing, kr_differing(a + i, b + i));
        return _mm_movemask_epi8(_mm_cmpeq_epi8(differing, _mm_setzero_si128())) == 0xffff;
    }
#endif
    return !memcmp(a, b, (size_t)n);
}

enum { KR_LEAST_COPY = 16, KR_MOST_COPY = 64 };

/* Copies n bytes. Values of a few dozen are usual: four pieces, which overlap, without a branch on how many. */
KR_ALWAYS_INLINE void kr_copy_bytes(uint8_t *to, const uint8_t *from, int64_t n) {
    if (KR_LIKELY(n >= KR_LEAST_COPY && n <= KR_MOST_COPY)) {
        int64_t second = n < 32 ? n - 16 : 16, third = n < 32 ? 0 : n - 32;
        memcpy(to, from, 16);
        memcpy(to + second, from + second, 16);
        memcpy(to + third, from + third, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else {
        memcpy(to, from, (size_t)n);
    }
}

/* Whether a slot is that of a key. */
KR_ALWAYS_INLINE int kr_is_slot_of(const kr_key_slots *s, const kr_key_slot *one, uint64_t hash, int32_t type,
                                   const uint8_t *key, int64_t n) {
    return one->hash == hash && one->kind == KR_SLOT_KEY && one->type == type && one->key_size == n &&
           kr_same_bytes(s->text.bytes + one->at, key, n);
}

/* The slot of a key. */
KR_ALWAYS_INLINE int32_t kr_find_key(const kr_key_slots *s, uint64_t hash, int32_t type, const uint8_t *key,
                                     int64_t n) {
    const kr_hash_index *x = &s->index;
    const int64_t *entries = kr_index_entries(x);
    const uint32_t half = kr_upper_half(hash);
    for (int64_t at = kr_index_seek(x, half, kr_index_home(x, half)); entries[at] != KR_NO_SLOT;
         at = kr_index_seek(x, half, kr_index_next(x, at))) {
        int32_t slot = kr_entry_slot(entries[at]);
        if (kr_is_slot_of(s, kr_key_slot_at(s, slot), hash, type, key, n)) return slot;
    }
    return KR_NO_SLOT;
}

/* The slot that a hash most likely has, by the half of it that entries hold: for callers that fetch it ahead. */
KR_ALWAYS_INLINE int32_t kr_likely_slot(const kr_key_slots *s, uint64_t hash) {
    const kr_hash_index *x = &s->index;
    const uint32_t half = kr_upper_half(hash);
    return kr_entry_slot(kr_index_entries(x)[kr_index_seek(x, half, kr_index_home(x, half))]);
}

/* The slot of a pending record, or of a producer, for which `of_key` is KR_NO_SLOT. */
static inline int32_t kr_find_pending(const kr_key_slots *s, uint64_t hash, int32_t of_key, int64_t producer_id) {
    const kr_hash_index *x = &s->index;
    const int64_t *entries = kr_index_entries(x);
    const uint32_t half = kr_upper_half(hash);
    int32_t kind = of_key == KR_NO_SLOT ? KR_SLOT_PRODUCER : KR_SLOT_PENDING;
    for (int64_t at = kr_index_seek(x, half, kr_index_home(x, half)); entries[at] != KR_NO_SLOT;
         at = kr_index_seek(x, half, kr_index_next(x, at))) {
        int32_t slot = kr_entry_slot(entries[at]);
        const kr_key_slot *one = kr_key_slot_at(s, slot);
        if (one->hash == hash && one->kind == kind && one->of_key == of_key && one->producer_id == producer_id)
            return slot;
    }
    return KR_NO_SLOT;
}

static inline uint64_t kr_pending_hash(const kr_key_slots *s, int32_t of_key, int64_t producer_id) {
    return kr_mixed(kr_mixed((uint64_t)producer_id, s->seed) ^ (uint32_t)of_key, s->seed);
}

/* The slot of a producer, most often that of the record before. */
static inline int32_t kr_find_producer(const kr_key_slots *s, int64_t producer_id) {
    if (s->last_producer != KR_NO_SLOT) {
        const kr_key_slot *last = kr_key_slot_at(s, s->last_producer);
        if (last->kind == KR_SLOT_PRODUCER && last->producer_id == producer_id) return s->last_producer;
    }
    return kr_find_pending(s, kr_pending_hash(s, KR_NO_SLOT, producer_id), KR_NO_SLOT, producer_id);
}

/* A slot that is not there yet; KR_NO_SLOT when memory is short. */
static int32_t kr_add_slot(kr_key_slots *s, uint64_t hash, int16_t kind) {
    int32_t slot = s->free_slot;
    if (!kr_index_reserve(&s->index, KR_SPARSE_KEYS) ||
        (slot == KR_NO_SLOT && !kr_reserve(&s->slots, (int64_t)sizeof(kr_key_slot)))) {
        s->no_memory = 1;
        return KR_NO_SLOT;
    }
    if (slot == KR_NO_SLOT) {
        slot = (int32_t)kr_key_slots_end(s);
        s->slots.size += (int64_t)sizeof(kr_key_slot);
    } else {
        s->free_slot = kr_key_slot_at(s, slot)->of_key;
    }
    kr_key_slot *one = kr_key_slot_at(s, slot);
    memset(one, 0, sizeof *one);
    one->hash = hash;
    one->kind = kind;
    one->producer_id = KR_NOT_IN_TRANSACTION;
    one->value_size = KR_NO_RECORD;
    one->of_key = one->next = one->previous = one->next_of_producer = KR_NO_SLOT;
    kr_index_put(&s->index, kr_entry_of(kr_upper_half(hash), slot));
    return slot;
}

/* Empties a slot and takes its entry out. */
static void kr_remove_slot(kr_key_slots *s, int32_t slot) {
    kr_key_slot *one = kr_key_slot_at(s, slot);
    const int64_t *entries = kr_index_entries(&s->index);
    int64_t at = kr_index_home(&s->index, kr_upper_half(one->hash));
    while (kr_entry_slot(entries[at]) != slot) at = kr_index_next(&s->index, at);
    kr_index_remove(&s->index, at);
    s->garbage += one->key_size + one->room;
    one->kind = KR_SLOT_FREE;
    one->of_key = s->free_slot;
    s->free_slot = slot;
}

/* Leaves out of the text what no slot has. */
static void kr_key_text_compact(kr_key_slots *s) {
    kr_growing made = {0, 0, 0};
    if (!kr_reserve(&made, s->text.size - s->garbage)) {
        s->no_memory = 1;
        return;
    }
    for (int64_t slot = 0; slot < kr_key_slots_end(s); slot++) {
        kr_key_slot *one = kr_key_slot_at(s, (int32_t)slot);
        int64_t size = one->key_size + one->room;
        if (one->kind == KR_SLOT_FREE || !size) continue;
        memcpy(made.bytes + made.size, s->text.bytes + one->at, (size_t)size);
        one->at = made.size;
        made.size += size;
    }
    kr_growing_free(&s->text);
    s->text = made;
    s->garbage = 0;
}

/* Gives a slot a key and a value, which are not in the text. */
static inline void kr_slot_put(kr_key_slots *s, int32_t slot, const uint8_t *key, int32_t key_size,
                               const uint8_t *value, int32_t value_size) {
    kr_key_slot *one = kr_key_slot_at(s, slot);
    if (KR_LIKELY(one->key_size && value_size <= one->room)) {
        kr_copy_bytes(s->text.bytes + one->at + one->key_size, value, value_size);
        one->value_size = value_size;
        return;
    }
    if (s->garbage >= KR_LEAST_GARBAGE && s->garbage > s->text.size / 2) kr_key_text_compact(s);
    if (s->no_memory || !kr_reserve(&s->text, key_size + value_size)) {
        s->no_memory = 1;
        return;
    }
    s->garbage += one->key_size + one->room;
    uint8_t *to = s->text.bytes + s->text.size;
    memcpy(to, key, (size_t)key_size);
    memcpy(to + key_size, value, (size_t)value_size);
    one->at = s->text.size;
    one->key_size = key_size;
    one->value_size = one->room = value_size;
    s->text.size += key_size + value_size;
}

#endif
