/* Records of coordinators' topics, with transactions, groups and odd ones among them: the fold keeps what a list keeps
 * that is searched from end to end. */
#ifndef KRAFTLOG_TESTS_FUZZ_FOLD_H
#define KRAFTLOG_TESTS_FUZZ_FOLD_H

#include "coordinator/key_fold.h"
#include "fuzz_keyed.h"
#include "room.h"

enum { FOLD_TYPES = 3, FOLD_ROWS = 96, FOLD_MARKERS = 24, FOLD_RECORDS = 4 * FOLD_ROWS, FOLD_GROUP_TYPE = 40 };

static const int fold_api_keys[FOLD_TYPES] = {0, 7, 63};

/* What a list knows of a key, of a record of it that waits for the end of a transaction, or of a group. */
typedef struct {
    int32_t type;
    int64_t producer_id; /* KR_NOT_IN_TRANSACTION: it counts */
    const uint8_t *key, *value;
    int32_t key_size, value_size;
    int64_t offset;
} listed_record;

typedef struct {
    listed_record records[FOLD_RECORDS];
    int64_t count;
} record_list;

typedef struct {
    kr_fold_rows rows;
    int32_t key_ends[FOLD_ROWS + 1], value_ends[FOLD_ROWS + 1];
    uint8_t key_valid[FOLD_ROWS / 8 + 1], value_valid[FOLD_ROWS / 8 + 1];
    int64_t offsets[FOLD_ROWS], producer_ids[FOLD_ROWS];
    int64_t key_bytes, value_bytes;
    kr_fold_markers markers;
    int64_t marker_offsets[FOLD_MARKERS], marker_producers[FOLD_MARKERS];
    uint8_t marker_commits[FOLD_MARKERS];
} fold_input;

static int is_listed(const listed_record *r, int32_t type, const uint8_t *key, int32_t size) {
    return r->type == type && r->key_size == size && !memcmp(r->key, key, (size_t)size);
}

static listed_record *listed(record_list *l, int32_t type, const uint8_t *key, int32_t size, int64_t producer_id) {
    for (int64_t i = 0; i < l->count; i++)
        if (l->records[i].producer_id == producer_id && is_listed(&l->records[i], type, key, size))
            return &l->records[i];
    return 0;
}

static void list_put(record_list *l, listed_record put) {
    listed_record *was = listed(l, put.type, put.key, put.key_size, put.producer_id);
    if (was)
        *was = put;
    else
        l->records[l->count++] = put;
}

/* A tombstone: the record and all that wait. */
static void list_remove(record_list *l, int32_t type, const uint8_t *key, int32_t size) {
    int64_t kept = 0;
    for (int64_t i = 0; i < l->count; i++)
        if (!is_listed(&l->records[i], type, key, size)) l->records[kept++] = l->records[i];
    l->count = kept;
}

static void list_marker(record_list *l, int64_t producer_id, int is_commit) {
    for (int64_t i = 0; i < l->count; i++) {
        listed_record one = l->records[i];
        if (one.producer_id != producer_id) continue;
        l->records[i--] = l->records[--l->count];
        listed_record *counts = listed(l, one.type, one.key, one.key_size, KR_NOT_IN_TRANSACTION);
        one.producer_id = KR_NOT_IN_TRANSACTION;
        if (is_commit && (!counts || one.offset > counts->offset)) list_put(l, one);
    }
}

static const kr_fold_type *fold_type_of(const kr_fold_type *types, const fold_input *in, int64_t row) {
    const uint8_t *key = in->rows.keys.data + in->key_ends[row];
    if (in->key_ends[row + 1] - in->key_ends[row] < 2 || kr_lent_is_null(&in->rows.keys, row)) return 0;
    int api_key = key[0] << 8 | key[1];
    for (int k = 0; k < FOLD_TYPES; k++)
        if (fold_api_keys[k] == api_key && types[k].rule != KR_FOLD_UNKNOWN) return &types[k];
    return 0;
}

/* Whether a decoder has to look at a row: by walks over both, without flats and shapes. */
static int is_odd_row(const kr_fold_type *types, const fold_input *in, int64_t row) {
    const kr_fold_type *t = fold_type_of(types, in, row);
    if (!t) return 1;
    const uint8_t *key = in->rows.keys.data + in->key_ends[row], *key_end = in->rows.keys.data + in->key_ends[row + 1];
    const uint8_t *value = in->rows.values.data + in->value_ends[row];
    const uint8_t *value_end = in->rows.values.data + in->value_ends[row + 1];
    if (t->rule != KR_FOLD_IGNORED && !kr_key_is_whole(t->key, key + 2, key_end)) return 1;
    if (kr_lent_is_null(&in->rows.values, row)) return 0;
    if (value_end - value < 2) return 1;
    int32_t version = (int16_t)(value[0] << 8 | value[1]) - t->first_version;
    if (version < 0 || version >= t->versions) return 1;
    return t->rule != KR_FOLD_IGNORED && !kr_message_is_whole(&t->values[version], value + 2, value_end);
}

static void list_row(record_list *l, const kr_fold_type *types, const fold_input *in, int64_t row, int group_type) {
    const kr_fold_type *t = fold_type_of(types, in, row);
    if (t->rule == KR_FOLD_IGNORED) return;
    const uint8_t *key = in->rows.keys.data + in->key_ends[row] + 2;
    const uint8_t *value = in->rows.values.data + in->value_ends[row];
    int32_t key_size = in->key_ends[row + 1] - in->key_ends[row] - 2;
    int32_t value_size = in->value_ends[row + 1] - in->value_ends[row];
    int is_tombstone = kr_lent_is_null(&in->rows.values, row);
    int64_t producer_id = t->rule == KR_FOLD_IN_TRANSACTION ? in->producer_ids[row] : KR_NOT_IN_TRANSACTION;
    listed_record put = {t->same_as, producer_id, key, value, key_size, value_size, in->offsets[row]};
    if (is_tombstone)
        list_remove(l, t->same_as, key, key_size);
    else
        list_put(l, put);
    if (group_type < 0 || t->group != (is_tombstone ? KR_GROUP_REMOVED : KR_GROUP_MADE)) return;
    listed_record group = {group_type, KR_NOT_IN_TRANSACTION, key, value, 2 + (key[0] << 8 | key[1]),
                           2,          in->offsets[row]};
    if (is_tombstone)
        list_remove(l, group_type, key, group.key_size);
    else
        list_put(l, group);
}

static void check_listed(const kr_key_fold *f, record_list *l, int32_t type) {
    static int64_t offsets[FOLD_RECORDS], producer_ids[FOLD_RECORDS];
    static int32_t key_ends[FOLD_RECORDS + 1], value_ends[FOLD_RECORDS + 1];
    int64_t rows, key_bytes, value_bytes, expected = 0;
    kr_fold_count(f, type, &rows, &key_bytes, &value_bytes);
    for (int64_t i = 0; i < l->count; i++) expected += l->records[i].type == type;
    CHECK_INT(expected, rows);
    if (failures) return;
    uint8_t *keys = room_block(key_bytes), *values = room_block(value_bytes);
    kr_fold_columns to = {offsets, producer_ids, key_ends, value_ends, keys, values};
    kr_fold_copy(f, type, &to);
    for (int64_t i = 0; i < rows; i++) {
        const uint8_t *key = keys + key_ends[i];
        CHECK_INT(type, key[0] << 8 | key[1]);
        const listed_record *r = listed(l, type, key + 2, key_ends[i + 1] - key_ends[i] - 2, producer_ids[i]);
        CHECK_TRUE(r != 0);
        if (!r) break;
        CHECK_INT(r->offset, offsets[i]);
        CHECK_BYTES(r->value, r->value_size, values + value_ends[i], value_ends[i + 1] - value_ends[i]);
    }
    CHECK_INT(key_bytes, key_ends[rows]);
    CHECK_INT(value_bytes, value_ends[rows]);
    free(keys);
    free(values);
}

static void make_fold_rows(fold_input *in, const fuzz_messages_input *keys, const fuzz_messages_input *values) {
    static bytes of_keys, of_values;
    int is_odd = random_below(4) == 0;
    int64_t offset = random_below(10);
    of_keys.size = of_values.size = 0;
    memset(in->key_valid, 0xff, sizeof in->key_valid);
    memset(in->value_valid, 0xff, sizeof in->value_valid);
    in->rows.n = random_below(8) ? random_below(40) : random_below(FOLD_ROWS);
    in->markers.n = 0;
    for (int64_t row = 0; row < in->rows.n; row++) {
        if (of_keys.size > BYTES_CAPACITY / 2 || of_values.size > BYTES_CAPACITY / 2) in->rows.n = row;
        if (row == in->rows.n) break;
        int k = (int)random_below(FOLD_TYPES);
        put_keyed(&of_keys, &keys[k], random_below(keys[k].values), fold_api_keys[k], is_odd);
        if (random_below(5)) {
            int64_t i = random_below(values[k].values);
            put_keyed(&of_values, &values[k], i, values[k].versions[i], is_odd);
        } else {
            in->value_valid[row >> 3] &= (uint8_t)~(1u << (row & 7));
        }
        if (is_odd && random_below(60) == 0) in->key_valid[row >> 3] &= (uint8_t)~(1u << (row & 7));
        in->key_ends[row + 1] = (int32_t)of_keys.size;
        in->value_ends[row + 1] = (int32_t)of_values.size;
        in->offsets[row] = offset += 1 + random_below(3);
        in->producer_ids[row] = random_below(3) ? random_below(4) : KR_NOT_IN_TRANSACTION;
        if (random_below(4) || in->markers.n == FOLD_MARKERS) continue;
        in->marker_offsets[in->markers.n] = ++offset;
        in->marker_producers[in->markers.n] = random_below(4);
        in->marker_commits[in->markers.n++] = (uint8_t)random_below(2);
    }
    if (random_below(2)) put_random(&of_values, KR_FOLD_READ); /* so that the last ones are no exception */
    in->key_bytes = of_keys.size;
    in->value_bytes = of_values.size;
    in->rows.keys =
        (kr_lent_binary){in->key_ends, exact_copy(of_keys.at, of_keys.size), of_keys.size, in->key_valid, 0};
    in->rows.values =
        (kr_lent_binary){in->value_ends, exact_copy(of_values.at, of_values.size), of_values.size, in->value_valid, 0};
    in->rows.offsets = in->offsets;
    in->rows.producer_ids = in->producer_ids;
    in->markers.offsets = in->marker_offsets;
    in->markers.producer_ids = in->marker_producers;
    in->markers.is_commit = in->marker_commits;
    in->markers.next = 0;
}

static kr_fold_type random_fold_type(int k, const message_table *key, const message_table *values, int is_same) {
    kr_fold_type t = {.rule = (int32_t)(random_below(8) ? KR_FOLD_LAST + random_below(2) : random_below(4)),
                      .same_as = (int16_t)fold_api_keys[is_same ? 0 : k],
                      .group = (int32_t)random_below(3),
                      .first_version = values->first,
                      .versions = values->versions,
                      .key = key->programs,
                      .values = values->programs};
    const kr_field *first = &key->programs[0].fields[key->programs[0].fields[0].first];
    if (first->kind != KR_KIND_STRING || key->programs[0].is_compact) t.group = KR_GROUP_UNTOUCHED;
    return t;
}

static void fuzz_fold(const corpus *c) {
    static fuzz_messages_input keys[FOLD_TYPES], values[FOLD_TYPES];
    static message_table of_version[FOLD_TYPES];
    static fold_input in;
    static record_list list;
    kr_fold_type types[FOLD_TYPES];
    kr_key_fold f;
    uint8_t is_odd[FOLD_ROWS];
    int any_odd = 0, is_same = random_below(2) != 0;
    (void)c;
    memset(&f, 0, sizeof f);
    f.group_type = (int16_t)(random_below(2) ? FOLD_GROUP_TYPE : -1);
    CHECK_TRUE(kr_key_slots_open(&f.slots, random_next()));
    most_messages = random_below(8) ? 5 : 40;
    for (int k = 0; k < FOLD_TYPES; k++) {
        of_version[k] = k == 1 && is_same ? of_version[0] : *random_keyed_table(1);
        of_version[k].versions = 1;
        are_sound = random_below(8) != 0;
        make_messages(&keys[k], &of_version[k]);
        make_messages(&values[k], random_keyed_table(0));
        types[k] = random_fold_type(k, &of_version[k], values[k].table, k == 1 && is_same);
        CHECK_TRUE(kr_fold_expect(&f, fold_api_keys[k], &types[k]));
    }
    are_sound = 0;
    most_messages = MOST_MESSAGES;
    make_fold_rows(&in, keys, values);
    kr_fold_odd_rows(&f, &in.rows, 0, is_odd);
    for (int64_t row = 0; row < in.rows.n; row++) {
        CHECK_INT(is_odd_row(types, &in, row), is_odd[row]);
        any_odd |= is_odd[row];
    }
    in.rows.is_checked = !any_odd && random_below(2);
    list.count = 0;
    int64_t from = 0, marker = 0;
    for (int64_t row = 0; row < in.rows.n && !failures; row++) {
        for (; marker < in.markers.n && in.marker_offsets[marker] < in.offsets[row]; marker++)
            list_marker(&list, in.marker_producers[marker], in.marker_commits[marker]);
        if (!is_odd[row]) {
            list_row(&list, types, &in, row, f.group_type);
            continue;
        }
        CHECK_INT(row, kr_fold_rows_from(&f, &in.rows, from, &in.markers));
        from = row + 1;
    }
    if (!failures) CHECK_INT(in.rows.n, kr_fold_rows_from(&f, &in.rows, from, &in.markers));
    if (random_below(2)) {
        kr_fold_markers_before(&f.slots, &in.markers, INT64_MAX);
        for (; marker < in.markers.n; marker++)
            list_marker(&list, in.marker_producers[marker], in.marker_commits[marker]);
    } else { /* a marker in front of a row that was left out may have been taken with it, or not yet */
        for (; marker < in.markers.next; marker++)
            list_marker(&list, in.marker_producers[marker], in.marker_commits[marker]);
        if (in.markers.next < marker) kr_fold_markers_before(&f.slots, &in.markers, in.marker_offsets[marker - 1] + 1);
    }
    CHECK_TRUE(!f.slots.no_memory);
    for (int k = 0; k < FOLD_TYPES && !failures; k++) check_listed(&f, &list, fold_api_keys[k]);
    if (f.group_type >= 0 && !failures) check_listed(&f, &list, f.group_type);
    for (int k = 0; k < FOLD_TYPES; k++) {
        exact_free((uint8_t *)keys[k].data, keys[k].size);
        exact_free((uint8_t *)values[k].data, values[k].size);
    }
    exact_free((uint8_t *)in.rows.keys.data, in.key_bytes);
    exact_free((uint8_t *)in.rows.values.data, in.value_bytes);
    kr_key_fold_close(&f);
}

#endif
