/* Slots of a table by their hashes: open addressing, linear probing, a power of two of entries. An entry is the number
 * of a slot and 32 bits of its hash; when two keys are one is for the table to say. Whoever takes an entry out moves
 * those behind it up that were probed past it, so that there are no tombstones. */
#ifndef KRAFTLOG_BASE_HASH_INDEX_H
#define KRAFTLOG_BASE_HASH_INDEX_H

#include "base/growing.h"

enum { KR_NO_SLOT = -1, KR_LEAST_ENTRIES = 64 };

typedef struct {
    kr_growing entries; /* of int64 */
    int64_t mask, used;
} kr_hash_index;

static inline int64_t *kr_index_entries(const kr_hash_index *x) { return (int64_t *)(void *)x->entries.bytes; }
static inline int32_t kr_entry_slot(int64_t entry) { return (int32_t)(uint32_t)(uint64_t)entry; }
static inline uint32_t kr_entry_hash(int64_t entry) { return (uint32_t)((uint64_t)entry >> 32); }
static inline int64_t kr_entry_of(uint32_t hash, int32_t slot) {
    return (int64_t)((uint64_t)hash << 32 | (uint32_t)slot);
}

/* Where an entry of a hash is if no other one was there before it. */
static inline int64_t kr_index_home(const kr_hash_index *x, uint32_t hash) { return hash & x->mask; }
static inline int64_t kr_index_next(const kr_hash_index *x, int64_t at) { return (at + 1) & x->mask; }

/* The first place from `at` on that has an entry of the hash, or none. */
KR_ALWAYS_INLINE int64_t kr_index_seek(const kr_hash_index *x, uint32_t hash, int64_t at) {
    const int64_t *entries = kr_index_entries(x);
    while (entries[at] != KR_NO_SLOT && kr_entry_hash(entries[at]) != hash) at = kr_index_next(x, at);
    return at;
}

/* Adds an entry, for which there is room. */
static inline void kr_index_put(kr_hash_index *x, int64_t entry) {
    int64_t *entries = kr_index_entries(x), at = kr_index_home(x, kr_entry_hash(entry));
    while (entries[at] != KR_NO_SLOT) at = kr_index_next(x, at);
    entries[at] = entry;
    x->used++;
}

/* Room for `count` entries, a power of two; 0 when memory is short. */
static int kr_index_resize(kr_hash_index *x, int64_t count) {
    kr_hash_index made = {{0, 0, 0}, count - 1, 0};
    if (!kr_reserve(&made.entries, count * 8)) return 0;
    made.entries.size = count * 8;
    memset(made.entries.bytes, 0xFF, (size_t)made.entries.size);
    const int64_t *entries = kr_index_entries(x);
    for (int64_t i = 0; i < x->entries.size / 8; i++)
        if (entries[i] != KR_NO_SLOT) kr_index_put(&made, entries[i]);
    kr_growing_free(&x->entries);
    *x = made;
    return 1;
}

static inline int kr_index_open(kr_hash_index *x) {
    memset(x, 0, sizeof *x);
    return kr_index_resize(x, KR_LEAST_ENTRIES);
}

/* Room for one more entry, where one in `sparse` is used at most; 0 when memory is short. */
static inline int kr_index_reserve(kr_hash_index *x, int sparse) {
    int64_t count = x->entries.size / 8;
    return sparse * (x->used + 1) <= count || kr_index_resize(x, 2 * count);
}

/* Takes out the entry at a place, and moves those behind it where they can be found. */
static inline void kr_index_remove(kr_hash_index *x, int64_t at) {
    int64_t *entries = kr_index_entries(x);
    for (int64_t behind = kr_index_next(x, at); entries[behind] != KR_NO_SLOT; behind = kr_index_next(x, behind)) {
        int64_t home = kr_index_home(x, kr_entry_hash(entries[behind]));
        if (((behind - home) & x->mask) < ((behind - at) & x->mask)) continue;
        entries[at] = entries[behind];
        at = behind;
    }
    entries[at] = KR_NO_SLOT;
    x->used--;
}

#endif
