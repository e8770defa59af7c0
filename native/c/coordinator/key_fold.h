/* Folds the records of a coordinator's topic as the coordinator does when it loads them: the last record of each key
 * counts, a tombstone removes the key. In a transaction a record is pending until the marker of its producer: COMMIT
 * makes it count unless the record that counts then is a later one, ABORT drops it. A tombstone drops pending ones too.
 *
 * Keys are compared by their bytes, values are not decoded. The fold stops at a record whose key or value is odd. Most
 * values have the shape of one before (message/shape.h), which says that they are whole; others are walked. */
#ifndef KRAFTLOG_COORDINATOR_KEY_FOLD_H
#define KRAFTLOG_COORDINATOR_KEY_FOLD_H

#include "base/key_slots.h"
#include "message/frame.h"
#include "message/shape.h"
#include "message/whole.h"

enum kr_fold_rule { KR_FOLD_UNKNOWN, KR_FOLD_IGNORED, KR_FOLD_LAST, KR_FOLD_IN_TRANSACTION };
enum kr_fold_group { KR_GROUP_UNTOUCHED, KR_GROUP_MADE, KR_GROUP_REMOVED };
enum { KR_MOST_FOLD_TYPES = 64, KR_PREFIX = 2, KR_MOST_FLATS = 8 };

/* What is done with the records of a type. */
typedef struct {
    int32_t rule;
    int16_t same_as;                 /* the type whose keys mean the same */
    int32_t group;                   /* what a record does to the group that its key begins with */
    int32_t first_version, versions; /* of the values */
    const kr_program *key, *values;
    kr_flat flats[KR_MOST_FLATS]; /* of the first versions */
    kr_message_shapes *shapes;    /* of values that are whole */
    int64_t any_producer;         /* all bits when its producer does not matter */
    int is_plain;                 /* whether most records change one value and nothing else */
} kr_fold_type;

typedef struct {
    kr_key_slots slots;
    kr_fold_type types[KR_MOST_FOLD_TYPES]; /* by api key */
    int16_t group_type;                     /* the type of slots of groups; below zero when they are not asked for */
} kr_key_fold;

/* Transaction markers in the order of their offsets. */
typedef struct {
    const int64_t *offsets, *producer_ids;
    const uint8_t *is_commit;
    int64_t n, next;
} kr_fold_markers;

typedef struct {
    kr_lent_binary keys, values;
    const int64_t *offsets, *producer_ids;
    int64_t n;
    int is_checked; /* what is odd was left out, or written as it should be */
} kr_fold_rows;

/* Says what is done with the records of a type; `of_type` is copied. 0 when memory is short. */
static inline int kr_fold_expect(kr_key_fold *f, int32_t api_key, const kr_fold_type *of_type) {
    kr_fold_type *to = &f->types[api_key];
    kr_shapes_close(to->shapes);
    *to = *of_type;
    for (int32_t v = 0; v < to->versions && v < KR_MOST_FLATS; v++) to->flats[v] = kr_flat_of(&to->values[v]);
    to->shapes = kr_shapes_open();
    to->any_producer = to->rule == KR_FOLD_LAST ? -1 : 0;
    to->is_plain = to->rule >= KR_FOLD_LAST && (f->group_type < 0 || to->group == KR_GROUP_UNTOUCHED);
    return to->shapes != 0;
}

static inline void kr_key_fold_close(kr_key_fold *f) {
    for (int k = 0; k < KR_MOST_FOLD_TYPES; k++) kr_shapes_close(f->types[k].shapes);
    kr_key_slots_close(&f->slots);
}

/* ---- pending records ---- */

static inline void kr_unlink_pending(kr_key_slots *s, int32_t slot) {
    kr_key_slot *one = kr_key_slot_at(s, slot), *key = kr_key_slot_at(s, one->of_key);
    if (one->previous == KR_NO_SLOT)
        key->next = one->next;
    else
        kr_key_slot_at(s, one->previous)->next = one->next;
    if (one->next != KR_NO_SLOT) kr_key_slot_at(s, one->next)->previous = one->previous;
}

static inline void kr_link_pending(kr_key_slots *s, int32_t slot, int32_t key) {
    kr_key_slot *one = kr_key_slot_at(s, slot), *of_key = kr_key_slot_at(s, key);
    one->of_key = key;
    one->previous = KR_NO_SLOT;
    one->next = of_key->next;
    if (one->next != KR_NO_SLOT) kr_key_slot_at(s, one->next)->previous = slot;
    of_key->next = slot;
}

/* The slot of a producer's pending record of a key; KR_NO_SLOT when memory is short. */
static int32_t kr_take_pending(kr_key_slots *s, int32_t key, int64_t producer_id) {
    uint64_t hash = kr_pending_hash(s, key, producer_id);
    int32_t slot = kr_find_pending(s, hash, key, producer_id);
    if (slot != KR_NO_SLOT) return slot;
    int32_t producer = kr_find_producer(s, producer_id);
    if (producer == KR_NO_SLOT) {
        uint64_t of_producer = kr_pending_hash(s, KR_NO_SLOT, producer_id);
        producer = kr_add_slot(s, of_producer, KR_SLOT_PRODUCER);
        if (producer == KR_NO_SLOT) return KR_NO_SLOT;
        kr_key_slot_at(s, producer)->producer_id = producer_id;
        s->last_producer = producer;
    }
    slot = kr_add_slot(s, hash, KR_SLOT_PENDING);
    if (slot == KR_NO_SLOT) return KR_NO_SLOT;
    kr_key_slot *one = kr_key_slot_at(s, slot);
    one->producer_id = producer_id;
    one->type = kr_key_slot_at(s, key)->type;
    one->next_of_producer = kr_key_slot_at(s, producer)->next_of_producer;
    kr_key_slot_at(s, producer)->next_of_producer = slot;
    kr_link_pending(s, slot, key);
    return slot;
}

/* Takes a key's slot away when it has neither a record nor a pending one. */
static inline void kr_drop_idle_key(kr_key_slots *s, int32_t slot) {
    const kr_key_slot *key = kr_key_slot_at(s, slot);
    if (key->value_size == KR_NO_RECORD && key->next == KR_NO_SLOT) kr_remove_slot(s, slot);
}

/* Lets a pending record count: the two slots change their bytes. */
static inline void kr_commit_pending(kr_key_slot *pending, kr_key_slot *key) {
    kr_key_slot was = *key;
    key->at = pending->at;
    key->key_size = pending->key_size;
    key->value_size = pending->value_size;
    key->room = pending->room;
    key->offset = pending->offset;
    pending->at = was.at;
    pending->key_size = was.key_size;
    pending->room = was.room;
}

static void kr_fold_marker(kr_key_slots *s, int64_t producer_id, int is_commit) {
    int32_t producer = kr_find_pending(s, kr_pending_hash(s, KR_NO_SLOT, producer_id), KR_NO_SLOT, producer_id);
    if (producer == KR_NO_SLOT) return;
    int32_t slot = kr_key_slot_at(s, producer)->next_of_producer;
    while (slot != KR_NO_SLOT) {
        kr_key_slot *one = kr_key_slot_at(s, slot);
        int32_t next = one->next_of_producer;
        if (one->of_key != KR_NO_SLOT) { /* else a tombstone has dropped it */
            int32_t of_key = one->of_key;
            kr_key_slot *key = kr_key_slot_at(s, of_key);
            if (is_commit && (key->value_size == KR_NO_RECORD || one->offset > key->offset))
                kr_commit_pending(one, key);
            kr_unlink_pending(s, slot);
            kr_drop_idle_key(s, of_key);
        }
        kr_remove_slot(s, slot);
        slot = next;
    }
    kr_remove_slot(s, producer);
}

static inline void kr_fold_markers_before(kr_key_slots *s, kr_fold_markers *m, int64_t offset) {
    for (; m->next < m->n && m->offsets[m->next] < offset; m->next++)
        kr_fold_marker(s, m->producer_ids[m->next], m->is_commit[m->next]);
}

/* ---- records ---- */

static void kr_fold_remove(kr_key_slots *s, int32_t slot) {
    if (slot == KR_NO_SLOT) return;
    kr_key_slot_at(s, slot)->value_size = KR_NO_RECORD;
    for (int32_t at = kr_key_slot_at(s, slot)->next; at != KR_NO_SLOT;) {
        kr_key_slot *one = kr_key_slot_at(s, at);
        at = one->next;
        one->of_key = KR_NO_SLOT; /* its producer's list still has it */
        s->garbage += one->key_size + one->room;
        one->key_size = one->room = 0;
    }
    kr_key_slot_at(s, slot)->next = KR_NO_SLOT;
    kr_remove_slot(s, slot);
}

static void kr_fold_put(kr_key_slots *s, int32_t slot, uint64_t hash, int16_t type, const uint8_t *key,
                        int32_t key_size, const uint8_t *value, int32_t value_size, int64_t offset,
                        int64_t producer_id) {
    if (slot == KR_NO_SLOT) {
        slot = kr_add_slot(s, hash, KR_SLOT_KEY);
        if (slot == KR_NO_SLOT) return;
        kr_key_slot_at(s, slot)->type = type;
        if (producer_id != KR_NOT_IN_TRANSACTION) { /* the key's bytes, by which it is found */
            kr_slot_put(s, slot, key, key_size, value, 0);
            kr_key_slot_at(s, slot)->value_size = KR_NO_RECORD;
        }
    }
    if (producer_id != KR_NOT_IN_TRANSACTION) slot = kr_take_pending(s, slot, producer_id);
    if (slot == KR_NO_SLOT || s->no_memory) return;
    kr_slot_put(s, slot, key, key_size, value, value_size);
    kr_key_slot_at(s, slot)->offset = offset;
}

/* Notes a group of which something was committed, with the version of the value, or that its record was removed. */
static void kr_fold_group_of(kr_key_fold *f, const kr_fold_type *t, const uint8_t *key, const uint8_t *value,
                             int64_t offset) {
    int32_t size = 2 + kr_load_int16(key); /* a whole key: its first field is text */
    uint64_t hash = kr_key_hash(&f->slots, f->group_type, key, size);
    int32_t slot = kr_find_key(&f->slots, hash, f->group_type, key, size);
    if (t->group == KR_GROUP_REMOVED)
        kr_fold_remove(&f->slots, slot);
    else
        kr_fold_put(&f->slots, slot, hash, f->group_type, key, size, value, KR_PREFIX, offset, KR_NOT_IN_TRANSACTION);
}

/* A record of a block: the rest of it stands in its row. */
typedef struct {
    uint64_t hash;
    const kr_fold_type *type;
    const uint8_t *key; /* behind the type */
    int32_t key_size;
    int32_t slot; /* likely that of the key */
} kr_fold_record;

/* The value of a row, no bytes for a tombstone. */
typedef struct {
    const uint8_t *bytes;
    int32_t size;
} kr_fold_value;

KR_ALWAYS_INLINE kr_fold_value kr_fold_value_of(const kr_fold_rows *r, int64_t row) {
    kr_fold_value v = {r->values.data + r->values.ends[row], r->values.ends[row + 1] - r->values.ends[row]};
    if (kr_lent_is_null(&r->values, row)) v.bytes = 0;
    return v;
}

/* Finds the type and the key of a row; 0 when they are odd. */
KR_ALWAYS_INLINE int kr_fold_frame(const kr_key_fold *f, const kr_fold_rows *r, int64_t row, kr_fold_record *found) {
    const uint8_t *key = r->keys.data + r->keys.ends[row];
    int32_t key_size = r->keys.ends[row + 1] - r->keys.ends[row];
    if (KR_UNLIKELY(key_size < KR_PREFIX || kr_lent_is_null(&r->keys, row))) return 0;
    uint32_t api_key = (uint16_t)kr_load_int16(key);
    if (KR_UNLIKELY(api_key >= KR_MOST_FOLD_TYPES)) return 0;
    found->type = &f->types[api_key];
    found->key = key + KR_PREFIX;
    found->key_size = key_size - KR_PREFIX;
    return found->type->rule != KR_FOLD_UNKNOWN;
}

/* The number of the program of a value; below zero when there is none of its version. */
static inline int32_t kr_fold_version(const kr_fold_type *t, kr_fold_value v) {
    if (v.size < KR_PREFIX) return -1;
    int32_t version = kr_load_int16(v.bytes) - t->first_version;
    return version < t->versions ? version : -1;
}

/* Whether a value is whole, by a walk over its fields. */
static int kr_fold_value_is_whole(const kr_fold_type *t, kr_fold_value v) {
    int32_t version = kr_fold_version(t, v);
    if (version < 0) return 0;
    const uint8_t *message = v.bytes + KR_PREFIX, *end = v.bytes + v.size;
    if (version < KR_MOST_FLATS && t->flats[version].texts >= 0)
        return kr_flat_is_whole(&t->values[version], &t->flats[version], message, end);
    return kr_message_is_whole(&t->values[version], message, end);
}

static int kr_fold_is_odd(const kr_fold_record *r, kr_fold_value v) {
    const kr_fold_type *t = r->type;
    if (t->rule == KR_FOLD_IGNORED) return v.bytes && kr_fold_version(t, v) < 0;
    return (v.bytes && !kr_fold_value_is_whole(t, v)) || !kr_key_is_whole(t->key, r->key, r->key + r->key_size);
}

/* A record, whatever it is; 0 when it is odd. `is_shaped` says that its value is whole. */
static __attribute__((noinline)) int kr_fold_any(kr_key_fold *f, const kr_fold_record *r, kr_fold_value v,
                                                 int64_t offset, int64_t producer_id, int is_checked, int is_shaped) {
    const kr_fold_type *t = r->type;
    kr_key_slots *s = &f->slots;
    if (t->rule == KR_FOLD_IGNORED) return is_checked || !kr_fold_is_odd(r, v);
    if (v.bytes && !is_checked && !is_shaped) {
        if (!kr_fold_value_is_whole(t, v)) return 0;
        if (v.size <= KR_SHAPED_BYTES)
            kr_shape_note(t->shapes, kr_shape_place(v.size, v.bytes[1]), &t->values[kr_fold_version(t, v)], 0, v.bytes,
                          KR_PREFIX, v.size, KR_PREFIX);
    }
    int32_t slot = r->slot;
    if (slot == KR_NO_SLOT || !kr_is_slot_of(s, kr_key_slot_at(s, slot), r->hash, t->same_as, r->key, r->key_size))
        slot = kr_find_key(s, r->hash, t->same_as, r->key, r->key_size);
    if (slot == KR_NO_SLOT && !is_checked && !kr_key_is_whole(t->key, r->key, r->key + r->key_size)) return 0;
    if (!v.bytes)
        kr_fold_remove(s, slot);
    else
        kr_fold_put(s, slot, r->hash, t->same_as, r->key, r->key_size, v.bytes, v.size, offset,
                    t->rule == KR_FOLD_IN_TRANSACTION ? producer_id : KR_NOT_IN_TRANSACTION);
    if (f->group_type >= 0 && t->group == (v.bytes ? KR_GROUP_MADE : KR_GROUP_REMOVED))
        kr_fold_group_of(f, t, r->key, v.bytes, offset);
    return 1;
}

/* Whether a value has a shape of its type; KR_FOLD_READ bytes can be read. There is no branch on its size. */
KR_ALWAYS_INLINE int kr_fold_has_shape(const kr_fold_type *t, kr_fold_value v) {
    const kr_message_shape *s = t->shapes->of[kr_shape_place(v.size, v.bytes[1])];
    const uint8_t *p = v.bytes + KR_PREFIX;
    int is_same = kr_has_same(p, s->mask, s->same) &
                  kr_has_same(p + KR_SHAPED_STEP, s->mask + KR_SHAPED_STEP, s->same + KR_SHAPED_STEP);
    return is_same & (v.size == s->size) & (kr_load_int16(v.bytes) == s->head);
}

enum { KR_FOLD_BLOCK = 16, KR_FOLD_READ = KR_PREFIX + KR_SHAPED_BYTES };

/* What nearly all records are: a value that is whole for a key that has room for it, in no transaction. Returns 0, with
 * nothing done, for any other. */
KR_ALWAYS_INLINE int kr_fold_usual(kr_key_slots *s, const kr_fold_record *r, kr_fold_value v, int64_t offset,
                                   int64_t producer_id) {
    const kr_fold_type *t = r->type;
    if (KR_UNLIKELY(r->slot == KR_NO_SLOT || v.size < KR_LEAST_COPY || !t->is_plain)) return 0;
    if (KR_UNLIKELY((producer_id | t->any_producer) != KR_NOT_IN_TRANSACTION)) return 0;
    kr_key_slot *one = kr_key_slot_at(s, r->slot);
    if (KR_UNLIKELY(!kr_is_slot_of(s, one, r->hash, t->same_as, r->key, r->key_size) || one->room < v.size)) return 0;
    kr_copy_bytes(s->text.bytes + one->at + one->key_size, v.bytes, v.size);
    one->value_size = v.size;
    one->offset = offset;
    return 1;
}

/* Takes the keys of a block; returns how many until the first odd one. */
static __attribute__((noinline)) int64_t kr_fold_keys(const kr_key_fold *f, const kr_fold_rows *r, int64_t from,
                                                      int64_t n, kr_fold_record *records) {
    const kr_key_slots *s = &f->slots;
    const kr_hash_index index = s->index; /* a copy: what is written here may not change it */
    int64_t i = 0;
    for (; i < n && kr_fold_frame(f, r, from + i, &records[i]); i++) {
        records[i].hash = kr_key_hash(s, records[i].type->same_as, records[i].key, records[i].key_size);
        __builtin_prefetch(kr_index_entries(&index) + kr_index_home(&index, kr_upper_half(records[i].hash)));
    }
    return i;
}

/* Looks up their slots, and fetches what will be touched. */
static __attribute__((noinline)) void kr_fold_fetch(const kr_key_slots *s, kr_fold_record *records, int64_t n) {
    const uint8_t *texts = s->text.bytes;
    for (int64_t i = 0; i < n; i++) {
        records[i].slot = kr_likely_slot(s, records[i].hash);
        if (records[i].slot != KR_NO_SLOT) __builtin_prefetch(kr_key_slot_at(s, records[i].slot), 1);
    }
    for (int64_t i = 0; i < n; i++) {
        if (records[i].slot == KR_NO_SLOT) continue;
        const uint8_t *text = texts + kr_key_slot_at(s, records[i].slot)->at;
        __builtin_prefetch(text);
        __builtin_prefetch(text + 64, 1);
    }
}

/* Folds a block of records. Returns how many until the first odd one. */
static int64_t kr_fold_block(kr_key_fold *f, const kr_fold_rows *r, int64_t from, int64_t n, kr_fold_markers *m) {
    kr_fold_record records[KR_FOLD_BLOCK];
    int64_t usual = kr_fold_keys(f, r, from, n, records), safe = r->values.ends[r->n] - KR_FOLD_READ;
    kr_fold_fetch(&f->slots, records, usual);
    for (int64_t i = 0; i < usual; i++) {
        int64_t row = from + i, offset = r->offsets[row], producer_id = r->producer_ids[row];
        kr_fold_value v = kr_fold_value_of(r, row);
        int is_shaped = v.bytes && r->values.ends[row] <= safe && kr_fold_has_shape(records[i].type, v);
        kr_fold_markers_before(&f->slots, m, offset);
        if (KR_LIKELY(is_shaped && kr_fold_usual(&f->slots, &records[i], v, offset, producer_id))) continue;
        if (!kr_fold_any(f, &records[i], v, offset, producer_id, r->is_checked, is_shaped)) return i;
    }
    return usual;
}

/* Folds rows and the markers between them, up to the first odd one. Returns that, or the number of rows. */
static int64_t kr_fold_rows_from(kr_key_fold *f, const kr_fold_rows *r, int64_t from, kr_fold_markers *m) {
    while (from < r->n && !f->slots.no_memory) {
        int64_t n = r->n - from < KR_FOLD_BLOCK ? r->n - from : KR_FOLD_BLOCK;
        int64_t done = kr_fold_block(f, r, from, n, m);
        from += done;
        if (done < n) break;
    }
    return from;
}

/* Which rows from `from` on are odd. */
static void kr_fold_odd_rows(const kr_key_fold *f, const kr_fold_rows *r, int64_t from, uint8_t *is_odd) {
    for (int64_t i = from; i < r->n; i++) {
        kr_fold_record one;
        is_odd[i] = !kr_fold_frame(f, r, i, &one) || kr_fold_is_odd(&one, kr_fold_value_of(r, i));
    }
}

/* ---- what is left ---- */

static inline int kr_fold_has(const kr_key_slot *one, int32_t type) {
    if (one->type != type) return 0;
    return (one->kind == KR_SLOT_KEY && one->value_size != KR_NO_RECORD) ||
           (one->kind == KR_SLOT_PENDING && one->of_key != KR_NO_SLOT);
}

/* How many records of a type are left, and the bytes of their keys and values. */
static void kr_fold_count(const kr_key_fold *f, int32_t type, int64_t *rows, int64_t *key_bytes, int64_t *value_bytes) {
    *rows = *key_bytes = *value_bytes = 0;
    for (int64_t slot = 0; slot < kr_key_slots_end(&f->slots); slot++) {
        const kr_key_slot *one = kr_key_slot_at(&f->slots, (int32_t)slot);
        if (!kr_fold_has(one, type)) continue;
        ++*rows;
        *key_bytes += KR_PREFIX + one->key_size;
        *value_bytes += one->value_size;
    }
}

/* Columns with room for so much. */
typedef struct {
    int64_t *offsets, *producer_ids;
    int32_t *key_ends, *value_ends; /* one more than rows */
    uint8_t *keys, *values;
} kr_fold_columns;

static void kr_fold_copy(const kr_key_fold *f, int32_t type, kr_fold_columns *to) {
    int64_t row = 0;
    int32_t key_end = 0, value_end = 0;
    to->key_ends[0] = to->value_ends[0] = 0;
    for (int64_t slot = 0; slot < kr_key_slots_end(&f->slots); slot++) {
        const kr_key_slot *one = kr_key_slot_at(&f->slots, (int32_t)slot);
        if (!kr_fold_has(one, type)) continue;
        const uint8_t *key = f->slots.text.bytes + one->at;
        kr_store_int16(to->keys + key_end, (int16_t)type);
        memcpy(to->keys + key_end + KR_PREFIX, key, (size_t)one->key_size);
        memcpy(to->values + value_end, key + one->key_size, (size_t)one->value_size);
        key_end += KR_PREFIX + one->key_size;
        value_end += one->value_size;
        to->offsets[row] = one->offset;
        to->producer_ids[row++] = one->producer_id;
        to->key_ends[row] = key_end;
        to->value_ends[row] = value_end;
    }
}

#endif
