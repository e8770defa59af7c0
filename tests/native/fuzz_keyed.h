/* Records with keys of some types: one pass over keys and values gives what the interpreter makes of each side alone,
 * and rows that are absent for tombstones. */
#ifndef KRAFTLOG_TESTS_FUZZ_KEYED_H
#define KRAFTLOG_TESTS_FUZZ_KEYED_H

#include "fuzz_messages.h"
#include "message/keyed_pass.h"

enum { FUZZ_KEYED_TYPES = 3, FUZZ_KEYED_RECORDS = 2 * MOST_MESSAGES };

typedef struct {
    const uint8_t *data;
    int64_t size;
    int32_t ends[FUZZ_KEYED_RECORDS + 1];
    uint8_t valid[(FUZZ_KEYED_RECORDS + 7) / 8];
} keyed_column;

typedef struct {
    int64_t count;
    int32_t type[FUZZ_KEYED_RECORDS], version[FUZZ_KEYED_RECORDS];
    keyed_column keys, values;
} keyed_records;

/* A key or value: an int16 and message i of an input; now and then with an odd beginning. */
static void put_keyed(bytes *b, const fuzz_messages_input *part, int64_t i, int64_t number, int is_odd) {
    int64_t from = b->size;
    put_int(b, is_odd && random_below(60) == 0 ? random_below(1 << 15) : number, 2);
    put_bytes(b, part->data + part->ends[i] + part->starts[i], part->ends[i + 1] - part->ends[i] - part->starts[i]);
    if (is_odd && random_below(60) == 0) b->size = from + random_below(3);
}

static void close_column(keyed_column *c, bytes *b) {
    if (random_below(2)) put_random(b, KR_PADDING);
    c->data = exact_copy(b->at, b->size);
    c->size = b->size;
}

static void make_keyed(keyed_records *r, const fuzz_messages_input *keys, const fuzz_messages_input *values) {
    static bytes of_keys, of_values;
    int64_t next[FUZZ_KEYED_TYPES] = {0};
    int is_odd = random_below(8) == 0, type = 0;
    of_keys.size = of_values.size = r->count = 0;
    memset(r->keys.valid, 0xff, sizeof r->keys.valid);
    memset(r->values.valid, 0xff, sizeof r->values.valid);
    for (int64_t left = FUZZ_KEYED_RECORDS; left > 0; left--) {
        if (random_below(4) == 0) type = (int)random_below(FUZZ_KEYED_TYPES);
        int64_t i = next[type]++, row = r->count;
        if (i >= keys[type].values || i >= values[type].values) continue;
        r->count++;
        r->type[row] = type;
        r->version[row] = values[type].versions[i];
        put_keyed(&of_keys, &keys[type], i, 7 * type, is_odd);
        if (random_below(6))
            put_keyed(&of_values, &values[type], i, r->version[row], is_odd);
        else
            r->values.valid[row >> 3] &= (uint8_t)~(1u << (row & 7));
        if (is_odd && random_below(60) == 0) r->keys.valid[row >> 3] &= (uint8_t)~(1u << (row & 7));
        r->keys.ends[row + 1] = (int32_t)of_keys.size;
        r->values.ends[row + 1] = (int32_t)of_values.size;
    }
    close_column(&r->keys, &of_keys);
    close_column(&r->values, &of_values);
}

/* What the interpreter makes of one side of the records of a type before a row; returns how many messages. */
static int64_t interpret_side(fuzz_columns *expected, const keyed_records *r, const keyed_column *c, int64_t to,
                              int type, const message_table *table, int is_key) {
    static fuzz_messages_input in;
    in.table = table;
    in.data = c->data;
    in.size = c->size;
    in.count = 0;
    memcpy(in.ends, c->ends, sizeof in.ends);
    for (int64_t row = 0; row < to && row < MOST_MESSAGES; row++) {
        in.starts[row] = KR_INT16_PREFIX;
        in.versions[row] = is_key ? 0 : r->version[row];
        if (r->type[row] == type && c->valid[row >> 3] >> (row & 7) & 1) in.rows[in.count++] = row;
    }
    if (in.count) run_messages(expected, &in, 0, in.count);
    return in.count;
}

/* ---- columns without the rows that are absent ---- */

static void drop_fixed(kr_growing *b, int64_t width, const uint8_t *is_absent, int64_t rows) {
    uint8_t *to = b->bytes;
    for (int64_t i = 0; b->size && i < rows; i++) {
        if (is_absent[i]) continue;
        memmove(to, b->bytes + width * i, (size_t)width);
        to += width;
    }
    b->size = b->size ? to - b->bytes : 0;
}

/* Values of varying size, of which `ends` says where they are; `data` is NULL for lists, whose absent rows are empty.
 */
static void drop_varying(kr_growing *ends, kr_growing *data, const uint8_t *is_absent, int64_t rows) {
    int32_t from = 0, to = 0, end;
    int64_t kept = 1;
    for (int64_t i = 0; i < rows; i++, from = end) {
        memcpy(&end, ends->bytes + 4 * (i + 1), 4);
        if (is_absent[i]) {
            CHECK_TRUE(data || end == from);
            continue;
        }
        if (data) memmove(data->bytes + to, data->bytes + from, (size_t)(end - from));
        to += end - from;
        memcpy(ends->bytes + 4 * kept++, &to, 4);
    }
    ends->size = 4 * kept;
    if (data) data->size = to;
}

static void drop_valid(kr_level *l, const uint8_t *is_absent, int64_t rows) {
    int64_t absent = rows - kr_count_zeros(is_absent, rows);
    drop_fixed(&l->valid, 1, is_absent, l->valid.size ? rows : 0);
    l->count -= absent;
    l->nulls = l->nulls ? kr_count_zeros(l->valid.bytes, l->count) : 0;
}

static void drop_struct(fuzz_columns *c, int32_t field, const uint8_t *is_absent, int64_t rows) {
    const kr_field *f = &c->d.program.fields[field];
    for (int32_t k = f->first; k < f->first + f->count; k++) {
        const kr_field *child = &c->d.program.fields[k];
        kr_column *column = &c->columns[k];
        kr_level *l = child->is_array ? &column->list : &column->item;
        drop_valid(l, is_absent, rows);
        if (child->is_array)
            drop_varying(&l->ends, 0, is_absent, rows);
        else if (child->kind == KR_KIND_STRUCT)
            drop_struct(c, k, is_absent, rows);
        else if (kr_wire_width(child->kind) && !(child->kind == KR_KIND_UUID && c->d.uuid_text))
            drop_fixed(&l->data, kr_column_width(child->kind), is_absent, rows);
        else
            drop_varying(&l->ends, &l->data, is_absent, rows);
    }
    drop_valid(&c->columns[f->unknown].list, is_absent, rows);
    drop_varying(&c->columns[f->unknown].list.ends, 0, is_absent, rows);
}

static void check_side(kr_side *side, fuzz_columns *found, const keyed_records *r, const keyed_column *c, int64_t to,
                       int type, const message_table *table, int is_key, const kr_growing *absent) {
    static fuzz_columns expected;
    fuzz_columns_open(&expected, table->columns, found->d.uuid_text);
    interpret_side(&expected, r, c, to, type, table, is_key);
    CHECK_INT(0, expected.d.faults.size);
    fill_columns(found, table, side->straight);
    if (absent && absent->size) {
        CHECK_INT(absent->size, found->columns[0].item.count);
        drop_struct(found, 0, absent->bytes, absent->size);
        found->columns[0].item.count = kr_count_zeros(absent->bytes, absent->size);
    }
    check_same_columns(&expected, found, table->columns);
    if (failures) printf("%s of %s\n", is_key ? "key" : "value", table->name);
    fuzz_columns_close(&expected);
}

/* What passes leave to the next one of the same messages and type. */
static kr_side *kept_side(const message_table *table, int type) {
    static kr_side kept[FUZZ_KEYED_TYPES][MESSAGE_TABLES];
    int k = 0;
    while (strcmp(message_tables[k].name, table->name)) k++;
    return &kept[type][k];
}

static kr_side side_of(const message_table *table, int type, fuzz_columns *columns, int uuid_text) {
    kr_side *kept = kept_side(table, type);
    fuzz_columns_open(columns, table->columns, uuid_text);
    kept->programs = table->programs;
    kept->straight = kr_straight_of(table->name, table->digest);
    kept->first = table->first;
    kept->versions = table->versions;
    if (random_below(2)) kept->expected = random_expected();
    kr_side side = kr_side_begin(kept);
    side.decoder = &columns->d;
    return side;
}

/* A message that a pass finds in keys, or in values. */
static const message_table *random_keyed_table(int is_key) {
    for (;;) {
        const message_table *table = &message_tables[random_below(MESSAGE_TABLES)];
        const char *name = table->name + strlen(table->name);
        if (!strcmp(name - 3, is_key ? "Key" : "lue") && kr_straight_of(table->name, table->digest)->run) return table;
    }
}

static void fuzz_keyed(const corpus *c) {
    static fuzz_messages_input keys[FUZZ_KEYED_TYPES], values[FUZZ_KEYED_TYPES];
    static fuzz_columns of_keys[FUZZ_KEYED_TYPES], of_values[FUZZ_KEYED_TYPES];
    static kr_keyed_type each[FUZZ_KEYED_TYPES];
    static keyed_records r;
    kr_keyed_type *types[KR_KEYED_TYPES] = {0};
    int uuid_text = random_below(2) != 0;
    (void)c;
    memset(each, 0, sizeof each);
    are_sound = random_below(8) != 0; /* a pass ends with the first fault, and there is nothing to compare then */
    for (int k = 0; k < FUZZ_KEYED_TYPES; k++) {
        message_table of_version = *random_keyed_table(1); /* keys are of version 0 alone */
        of_version.versions = 1;
        static message_table kept[FUZZ_KEYED_TYPES];
        kept[k] = of_version;
        make_messages(&keys[k], &kept[k]);
        make_messages(&values[k], random_keyed_table(0));
        each[k].key = side_of(keys[k].table, k, &of_keys[k], uuid_text);
        each[k].value = side_of(values[k].table, k, &of_values[k], uuid_text);
        types[7 * k] = &each[k];
    }
    are_sound = 0;
    make_keyed(&r, keys, values);
    int64_t most = r.count < MOST_MESSAGES ? r.count : MOST_MESSAGES;
    kr_lent_binary key_values = {.ends = r.keys.ends, .data = r.keys.data, .validity = r.keys.valid};
    kr_lent_binary value_values = {.ends = r.values.ends, .data = r.values.data, .validity = r.values.valid};
    int64_t to = kr_keyed_run(types, &key_values, &value_values, 0, most);
    CHECK_TRUE(to == KR_KEYED_FAULT || (to >= 0 && to <= most));
    if (to > 0) messages_decoded += 2 * to;
    for (int k = 0; k < FUZZ_KEYED_TYPES; k++) {
        int64_t rows = 0;
        for (int64_t row = 0; row < to; row++) {
            if (r.type[row] != k) continue;
            int64_t found;
            memcpy(&found, each[k].rows.bytes + 8 * rows, 8);
            CHECK_INT(row, found);
            CHECK_INT(!(r.values.valid[row >> 3] >> (row & 7) & 1), each[k].tombstones.bytes[rows++]);
        }
        if (to >= 0) {
            CHECK_INT(8 * rows, each[k].rows.size);
            CHECK_TRUE(kr_keyed_end(&each[k]));
            check_side(&each[k].key, &of_keys[k], &r, &r.keys, to, k, keys[k].table, 1, 0);
            check_side(&each[k].value, &of_values[k], &r, &r.values, to, k, values[k].table, 0, &each[k].tombstones);
        }
        kr_side_leave(kept_side(keys[k].table, k), &each[k].key);
        kr_side_leave(kept_side(values[k].table, k), &each[k].value);
        kr_growing_free(&each[k].rows);
        kr_growing_free(&each[k].tombstones);
        fuzz_columns_close(&of_keys[k]);
        fuzz_columns_close(&of_values[k]);
        exact_free((uint8_t *)keys[k].data, keys[k].size);
        exact_free((uint8_t *)values[k].data, values[k].size);
    }
    exact_free((uint8_t *)r.keys.data, r.keys.size);
    exact_free((uint8_t *)r.values.data, r.values.size);
}

#endif
