/* Messages of all definitions, most of them damaged: the generated decoders give what the interpreter gives. */
#ifndef KRAFTLOG_TESTS_FUZZ_MESSAGES_H
#define KRAFTLOG_TESTS_FUZZ_MESSAGES_H

#include "fuzz_mutate.h"
#include "message/pass.h"
#include "message_programs.h"
#include "message_tables.h"
#include "straight_decoders.h"

enum { MESSAGE_TABLES = sizeof message_tables / sizeof *message_tables, MOST_COLUMNS = 64, MOST_MESSAGES = 700 };

/* ---- random messages ---- */

static void put_random_struct(bytes *b, const kr_program *m, int32_t field, int depth);

/* Few in what is in lists itself, so that a message stays small. */
static int64_t random_count(int depth) { return random_below(depth ? 3 : random_below(16) ? 5 : 40); }

static void put_random_items(bytes *b, const kr_program *m, int32_t field, int64_t count, int depth) {
    const kr_field *f = &m->fields[field];
    for (; count > 0; count--) {
        if (f->kind == KR_KIND_STRUCT)
            put_random_struct(b, m, field, depth + 1);
        else if (kr_wire_width(f->kind))
            put_random(b, kr_wire_width(f->kind));
        else
            put_random_text(b, m->is_compact, f->kind == KR_KIND_STRING ? 2 : 4, f->is_nullable && !f->is_array);
    }
}

/* Null where that is allowed, and now and then where it is not. */
static void put_random_field(bytes *b, const kr_program *m, int32_t field, int depth) {
    const kr_field *f = &m->fields[field];
    int is_null = f->is_nullable ? random_below(4) == 0 : random_below(200) == 0;
    if (f->is_array) {
        int64_t count = is_null ? -1 : random_count(depth);
        put_size(b, m->is_compact, count, 4);
        put_random_items(b, m, field, count, depth);
    } else if (f->kind == KR_KIND_STRUCT && f->is_nullable) {
        put_int(b, f->place == KR_PLACE_TAGGED ? !is_null : is_null ? -1 : 1, 1);
        if (!is_null) put_random_struct(b, m, field, depth + 1);
    } else {
        put_random_items(b, m, field, 1, depth);
    }
}

static int32_t field_of_tag(const kr_program *m, int32_t field, int tag) {
    const kr_field *f = &m->fields[field];
    for (int32_t k = f->first; k < f->first + f->count; k++)
        if (m->fields[k].place == KR_PLACE_TAGGED && m->fields[k].tag == tag) return k;
    return -1;
}

static void put_random_struct(bytes *b, const kr_program *m, int32_t field, int depth) {
    static bytes known_at[KR_DEEPEST + 2], one_at[KR_DEEPEST + 2];
    bytes *known = &known_at[depth], *one = &one_at[depth];
    const kr_field *f = &m->fields[field];
    for (int32_t k = f->first; k < f->first + f->count; k++)
        if (m->fields[k].place == KR_PLACE_IN_ORDER) put_random_field(b, m, k, depth);
    if (!m->is_compact) return;
    int count = 0, wanted = (int)random_below(4);
    known->size = 0;
    for (int tag = 0; tag < KR_LOW_TAGS; tag++) {
        int32_t k = field_of_tag(m, field, tag);
        if (random_below(4) >= wanted || (k < 0 && random_below(40))) continue;
        one->size = 0;
        if (k < 0)
            put_random(one, random_below(5));
        else
            put_random_field(one, m, k, depth);
        put_tagged(known, tag, one);
        count++;
    }
    put_unsigned(b, (uint64_t)count);
    put_bytes(b, known->at, known->size);
}

/* A few bytes of the message from `at` on are others, or are gone. */
static void damage_message(bytes *b, int64_t at) {
    for (int64_t n = random_below(3); n > 0 && b->size > at; n--) {
        int64_t place = at + random_below(b->size - at);
        switch (random_below(5)) {
        case 0:
            b->at[place] ^= (uint8_t)(1u << random_below(8));
            break;
        case 1:
            b->at[place] = (uint8_t)interesting();
            break;
        case 2:
            b->size = place;
            break;
        case 3:
            put_random(b, 1 + random_below(3));
            break;
        default:
            b->at[place] = (uint8_t)(b->at[place] + random_below(3) - 1);
        }
    }
}

/* ---- messages of one definition, in one block that ends where they end ---- */

typedef struct {
    const message_table *table;
    const uint8_t *data;
    int64_t size, values, count;
    int32_t ends[MOST_MESSAGES + 1], starts[MOST_MESSAGES], versions[MOST_MESSAGES];
    int64_t rows[MOST_MESSAGES];
} fuzz_messages_input;

static int are_sound; /* whether no message is damaged */
static int64_t most_messages = MOST_MESSAGES;
static int64_t messages_decoded; /* by generated decoders, since the start */

static void make_messages(fuzz_messages_input *in, const message_table *table) {
    static bytes b, like;
    in->table = table;
    int again = random_below(2) != 0;
    like.size = 0;
    int64_t most = random_below(256) ? 1 + random_below(12) : 1 + random_below(MOST_MESSAGES);
    if (most > most_messages) most = most_messages;
    int is_one_version = random_below(2) != 0, is_sound = are_sound || random_below(4) == 0;
    int32_t version = (int32_t)random_below(in->table->versions);
    b.size = in->values = in->count = 0;
    in->ends[0] = 0;
    while (in->values < most && b.size < BYTES_CAPACITY / 4) {
        int64_t i = in->values++;
        if (!is_one_version && !again) version = (int32_t)random_below(in->table->versions);
        in->versions[i] = in->table->first + version;
        in->starts[i] = (int32_t)random_below(3);
        put_random(&b, in->starts[i]);
        int64_t at = b.size;
        if (again && like.size &&
            random_below(8)) { /* one like it, now and then with another bit: shapes are made of the others */
            put_bytes(&b, like.at, like.size);
            if (!is_sound && random_below(4) == 0)
                b.at[at + random_below(like.size)] ^= (uint8_t)(1u << random_below(8));
        } else {
            put_random_struct(&b, &in->table->programs[version], 0, 0);
            like.size = 0;
            put_bytes(&like, b.at + at, b.size - at);
        }
        if (!is_sound && random_below(4) == 0) damage_message(&b, at);
        in->ends[i + 1] = (int32_t)b.size;
        if (random_below(16)) in->rows[in->count++] = i;
    }
    if (random_below(2)) put_random(&b, KR_PADDING); /* so that the last ones are no exception */
    in->data = exact_copy(b.at, b.size);
    in->size = b.size;
}

/* ---- both decoders ---- */

typedef struct {
    kr_message_decoder d;
    int32_t opened;
    kr_column columns[MOST_COLUMNS];
} fuzz_columns;

/* How many rows of a type the pass before may have had. */
static int64_t random_expected(void) { return random_below(4) ? 0 : (int64_t)random_below(20000); }

static void fuzz_columns_open(fuzz_columns *c, int32_t columns, int uuid_text) {
    c->d.columns = c->columns;
    c->d.uuid_text = uuid_text;
    c->d.no_memory = 0;
    c->d.interpreted = c->d.faults.size = 0;
    c->opened = columns;
    CHECK_TRUE(columns <= MOST_COLUMNS);
    for (int32_t i = 0; i < columns; i++) kr_column_open(&c->columns[i]);
}

static void fuzz_columns_close(fuzz_columns *c) {
    for (int32_t i = 0; i < c->opened; i++) kr_column_free(&c->columns[i]);
}

/* Decodes in two steps, since columns may have rows already. */
static void run_messages(fuzz_columns *c, const fuzz_messages_input *in, const kr_straight *straight, int64_t cut) {
    kr_versioned v = {{{.ends = in->ends, .data = in->data}, in->rows, in->starts, cut}, in->versions};
    c->d.limit = in->data + in->size;
    CHECK_TRUE(kr_versions_within(&v, in->table->first, in->table->versions));
    CHECK_TRUE(kr_decode_versions(&c->d, in->table->programs, in->table->first, straight, &v));
    v.messages.rows += cut;
    v.messages.count = in->count - cut;
    if (v.messages.count) CHECK_TRUE(kr_decode_versions(&c->d, in->table->programs, in->table->first, straight, &v));
}

/* Fills the columns that no row had, which need no memory else. */
static void fill_columns(fuzz_columns *c, const message_table *table, const kr_straight *straight) {
    c->d.program = table->programs[0];
    kr_settle_struct(&c->d, straight->prompt, 0, c->columns[0].item.count, KR_FILL);
    CHECK_TRUE(!c->d.no_memory);
}

static int compare_faults(const void *a, const void *b) {
    const kr_message_fault *x = a, *y = b;
    int64_t first = x->row * 512 + x->field, second = y->row * 512 + y->field;
    return (first > second) - (first < second);
}

static void check_same_faults(fuzz_columns *expected, fuzz_columns *found) {
    int64_t count = expected->d.faults.size / (int64_t)sizeof(kr_message_fault);
    CHECK_INT(expected->d.faults.size, found->d.faults.size);
    if (failures || !count) return;
    kr_message_fault *e = (void *)expected->d.faults.bytes, *f = (void *)found->d.faults.bytes;
    qsort(e, (size_t)count, sizeof *e, compare_faults);
    qsort(f, (size_t)count, sizeof *f, compare_faults);
    for (int64_t i = 0; i < count; i++) {
        CHECK_INT(e[i].row, f[i].row);
        CHECK_INT(e[i].field, f[i].field);
        CHECK_ERROR(e[i].error, &f[i].error);
    }
}

static void check_same_level(const kr_level *expected, const kr_level *found) {
    CHECK_INT(expected->count, found->count);
    CHECK_INT(expected->nulls, found->nulls);
    CHECK_BYTES(expected->data.bytes, expected->data.size, found->data.bytes, found->data.size);
    CHECK_BYTES(expected->ends.bytes, expected->ends.size, found->ends.bytes, found->ends.size);
    if (expected->nulls)
        CHECK_BYTES(expected->valid.bytes, expected->valid.size, found->valid.bytes, found->valid.size);
}

static void check_same_columns(const fuzz_columns *expected, const fuzz_columns *found, int32_t columns) {
    for (int32_t i = 0; i < columns; i++) {
        const kr_column *e = &expected->columns[i], *f = &found->columns[i];
        check_same_level(&e->list, &f->list);
        check_same_level(&e->item, &f->item);
        CHECK_BYTES(e->tags.bytes, e->tags.size, f->tags.bytes, f->tags.size);
    }
}

static void fuzz_messages(const corpus *c) {
    static fuzz_messages_input in;
    static fuzz_columns straight, interpreted;
    (void)c;
    make_messages(&in, &message_tables[random_below(MESSAGE_TABLES)]);
    const kr_straight *generated = kr_straight_of(in.table->name, in.table->digest);
    int uuid_text = random_below(2) != 0;
    int64_t cut = random_below(4) ? in.count : random_below(in.count + 1);
    CHECK_TRUE(generated != 0);
    fuzz_columns_open(&straight, in.table->columns, uuid_text);
    fuzz_columns_open(&interpreted, in.table->columns, uuid_text);
    if (cut) {
        run_messages(&straight, &in, generated, cut);
        messages_decoded += in.count;
        fill_columns(&straight, in.table, generated);
        run_messages(&interpreted, &in, 0, cut);
        CHECK_INT(in.count, interpreted.columns[0].item.count);
        check_same_faults(&interpreted, &straight);
    }
    check_same_columns(&interpreted, &straight, in.table->columns);
    if (failures) printf("of %s\n", in.table->name);
    fuzz_columns_close(&straight);
    fuzz_columns_close(&interpreted);
    exact_free((uint8_t *)in.data, in.size);
}

/* ---- values with frames, of some types ---- */

enum { PASS_TYPES = 4 };

/* Puts the values of several inputs together, at random, each behind a frame; now and then with an odd one. */
static void make_framed(fuzz_messages_input *out, fuzz_messages_input *parts, const uint8_t *keys, int32_t *of) {
    static bytes b;
    int64_t next[PASS_TYPES] = {0};
    b.size = out->values = 0;
    out->ends[0] = 0;
    int is_odd = random_below(8) == 0, type = 0;
    for (int64_t left = 4 * MOST_MESSAGES; left > 0 && out->values < MOST_MESSAGES; left--) {
        if (random_below(3) == 0) type = (int)random_below(PASS_TYPES);
        fuzz_messages_input *part = &parts[type];
        if (next[type] == part->values) continue;
        int64_t i = next[type]++, row = out->values++;
        put_unsigned(&b, KR_FRAME_VERSION);
        put_unsigned(&b, is_odd && random_below(50) == 0 ? 0x81 : keys[type]);
        put_unsigned(&b, (uint64_t)part->versions[i]);
        put_bytes(&b, part->data + part->ends[i] + part->starts[i],
                  part->ends[i + 1] - part->ends[i] - part->starts[i]);
        if (is_odd && random_below(50) == 0) b.size = out->ends[row] + random_below(4);
        of[row] = type;
        out->versions[row] = part->versions[i];
        out->ends[row + 1] = (int32_t)b.size;
    }
    if (random_below(2)) put_random(&b, KR_PADDING);
    out->data = exact_copy(b.at, b.size);
    out->size = b.size;
}

/* Whether a pass finds a message behind frames: not in keys or in the values behind them. */
static int is_framed(const message_table *table, const kr_straight *straight) {
    const char *name = table->name + strlen(table->name);
    return straight->run && strcmp(name - 3, "Key") != 0 && strcmp(name - 5, "Value") != 0;
}

/* A pass over records of several types gives what the interpreter makes of each type alone. */
static void fuzz_pass_of_types(const corpus *c) {
    static fuzz_messages_input parts[PASS_TYPES], in;
    static fuzz_columns found[PASS_TYPES], expected;
    static int32_t of[MOST_MESSAGES];
    static const uint8_t keys[PASS_TYPES] = {5, 0, 77, 127};
    static kr_pass_type types[KR_PASS_TYPES];
    int uuid_text = random_below(2) != 0;
    (void)c;
    memset(types, 0, sizeof types);
    for (int k = 0; k < PASS_TYPES; k++) {
        const message_table *table;
        const kr_straight *straight;
        do {
            table = &message_tables[random_below(MESSAGE_TABLES)];
            straight = kr_straight_of(table->name, table->digest);
        } while (!is_framed(table, straight) && random_below(16));
        make_messages(&parts[k], table);
        fuzz_columns_open(&found[k], table->columns, uuid_text);
        if (!is_framed(table, straight)) continue;
        kr_pass_type type = {.values = {.programs = table->programs,
                                        .straight = straight,
                                        .first = table->first,
                                        .versions = table->versions,
                                        .expected = random_expected(),
                                        .decoder = &found[k].d}};
        types[keys[k]] = type;
    }
    make_framed(&in, parts, keys, of);
    kr_lent_binary values = {.ends = in.ends, .data = in.data};
    int64_t to = kr_pass_run(types, &values, 0, in.values);
    CHECK_TRUE(to >= 0 && to <= in.values);
    messages_decoded += to;
    for (int k = 0; k < PASS_TYPES; k++) {
        kr_pass_type *type = &types[keys[k]];
        in.table = parts[k].table;
        in.count = 0;
        for (int64_t row = 0; row < to; row++) {
            in.starts[row] = KR_SHORT_FRAME;
            if (of[row] == k && type->values.straight) in.rows[in.count++] = row;
        }
        fuzz_columns_open(&expected, in.table->columns, uuid_text);
        if (in.count) run_messages(&expected, &in, 0, in.count);
        if (type->values.straight) {
            CHECK_TRUE(kr_side_end(&type->values));
            fill_columns(&found[k], in.table, type->values.straight);
            CHECK_BYTES((const uint8_t *)in.rows, 8 * in.count, type->rows.bytes, type->rows.size);
            check_same_faults(&expected, &found[k]);
            check_same_columns(&expected, &found[k], in.table->columns);
        }
        if (failures) printf("of %s\n", in.table->name);
        kr_side_close(&type->values);
        kr_growing_free(&type->rows);
        fuzz_columns_close(&expected);
        fuzz_columns_close(&found[k]);
        exact_free((uint8_t *)parts[k].data, parts[k].size);
    }
    exact_free((uint8_t *)in.data, in.size);
}

#endif
