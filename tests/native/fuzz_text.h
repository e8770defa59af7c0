/* Columns of Arrow in all layouts, sound and damaged: what arrow/text_column.h says of them, and copies out of them, is
 * what a plain reading of their buffers gives, and the encoder writes just that. Each buffer is a block of just its
 * size. */
#ifndef KRAFTLOG_TESTS_FUZZ_TEXT_H
#define KRAFTLOG_TESTS_FUZZ_TEXT_H

#include "arrow/text_column.h"
#include "encode_round_trip.h"
#include "fuzz_mutate.h"

enum { TEXT_ROWS = 40, TEXT_DATA = 3, TEXT_BUFFERS = 32, TEXT_LONGEST = 40, TEXT_NULL = -1, TEXT_NOWHERE = -2 };

__extension__ typedef __int128 wide; /* no sum of two numbers of 64 bits is too large for it */

static struct {
    uint8_t *block[TEXT_BUFFERS];
    int count;
} text_blocks;

/* What holds buffers of views until they are asked for, each once. */
typedef struct {
    kr_lent_buffer all[TEXT_DATA], *lent;
    int looks;
} text_lender;

static text_lender text_lenders[2];
static int text_lenders_count;

static int look_at_text(void *owner, int64_t buffer) {
    text_lender *lender = owner;
    CHECK_TRUE(buffer >= 0 && buffer < TEXT_DATA && lender->lent[buffer].size == KR_NOT_LOOKED_AT);
    lender->lent[buffer] = lender->all[buffer];
    lender->looks++;
    return 1;
}

/* Lets the data of views be asked for. */
static void hide_data(kr_text_values *v, kr_lent_buffer *data) {
    text_lender *lender = &text_lenders[text_lenders_count++];
    memcpy(lender->all, data, sizeof lender->all);
    lender->lent = data;
    lender->looks = 0;
    for (int i = 0; i < TEXT_DATA; i++) data[i] = (kr_lent_buffer){0, KR_NOT_LOOKED_AT};
    v->look = look_at_text;
    v->owner = lender;
}

static void free_texts(void) {
    text_lenders_count = 0;
    while (text_blocks.count) free(text_blocks.block[--text_blocks.count]);
}

/* A block that ends where the buffer ends; now and then it begins at an odd address. */
static kr_lent_buffer lend(const uint8_t *p, int64_t size) {
    int64_t shift = random_below(8) ? 0 : random_below(8);
    uint8_t *block = malloc((size_t)(size + shift ? size + shift : 1));
    if (!block || text_blocks.count == TEXT_BUFFERS) abort();
    text_blocks.block[text_blocks.count++] = block;
    if (size) memcpy(block + shift, p, (size_t)size);
    return (kr_lent_buffer){block + shift, size};
}

/* The same, sometimes shorter than it was. */
static kr_lent_buffer lend_bytes(const bytes *b, int is_cut) {
    int64_t size = is_cut && random_below(6) == 0 ? random_below(b->size + 1) : b->size;
    if (size == 0 && random_below(2)) return (kr_lent_buffer){0, 0};
    return lend(b->at, size);
}

static void put_little(bytes *b, int64_t value, int width) {
    for (int i = 0; i < width; i++) put_fill(b, (int)((uint64_t)value >> (8 * i) & 0xff), 1);
}

static int64_t bent(int64_t value, int is_bent) {
    if (!is_bent || random_below(20)) return value;
    return random_below(2) ? interesting() : (int64_t)((uint64_t)value + (uint64_t)random_below(9) - 4);
}

static kr_lent_buffer random_bits(int64_t count, int is_bent) {
    static bytes b;
    b.size = 0;
    if (random_below(2)) return (kr_lent_buffer){0, 0};
    for (int64_t i = 0; i < count; i += 8) put_fill(&b, (int)(random_next() | random_next()) & 0xff, 1);
    return lend_bytes(&b, is_bent);
}

static void put_letters(bytes *b, int64_t count) {
    for (int64_t i = 0; i < count; i++) put_fill(b, 'a' + (int)(b->size % 26), 1);
}

/* Ends of values that lie one behind the other, in ends of so many bytes. */
static void put_ends(bytes *places, bytes *data, int64_t all, int width, int is_bent) {
    put_letters(data, random_below(5));
    for (int64_t i = 0; i <= all; i++) {
        put_little(places, bent(data->size, is_bent), width);
        if (i < all && random_below(5)) put_letters(data, random_below(random_below(8) ? 12 : TEXT_LONGEST));
    }
}

static void put_views(bytes *places, const int64_t *sizes, int64_t all, int is_bent) {
    for (int64_t i = 0; i < all; i++) {
        int64_t buffer = random_below(TEXT_DATA), begin = random_below(sizes[buffer] + 1), left = sizes[buffer] - begin;
        int64_t length = random_below(2) ? random_below(KR_VIEW_INLINE + 1) : random_below(left + 1);
        put_little(places, bent(length, is_bent), 4);
        if (length <= KR_VIEW_INLINE) {
            put_letters(places, KR_VIEW_INLINE);
            continue;
        }
        put_letters(places, 4);
        put_little(places, bent(buffer, is_bent), 4);
        put_little(places, bent(begin, is_bent), 4);
    }
}

static kr_text_values random_values(kr_lent_buffer data[TEXT_DATA], int64_t rows, int is_bent) {
    static bytes places, texts;
    int64_t offset = random_below(9), all = rows + offset, sizes[TEXT_DATA];
    kr_text_values v = {.layout = (enum kr_text_layout)random_below(KR_TEXT_FIXED + 1), .rows = rows, .offset = offset};
    places.size = texts.size = 0;
    memset(data, 0, TEXT_DATA * sizeof *data);
    v.data = data;
    v.data_count = 1;
    if (v.layout == KR_TEXT_ENDS32 || v.layout == KR_TEXT_ENDS64) {
        put_ends(&places, &texts, all, v.layout == KR_TEXT_ENDS32 ? 4 : 8, is_bent);
        data[0] = lend_bytes(&texts, is_bent);
    } else if (v.layout == KR_TEXT_VIEWS) {
        v.data_count = TEXT_DATA;
        for (int i = 0; i < TEXT_DATA; i++) {
            texts.size = 0;
            put_letters(&texts, sizes[i] = random_below(60));
            data[i] = lend_bytes(&texts, is_bent);
        }
        put_views(&places, sizes, all, is_bent);
        if (random_below(2)) hide_data(&v, data);
    } else if (v.layout == KR_TEXT_FIXED) {
        v.width = bent(random_below(9), is_bent);
        put_letters(&texts, (v.width > 0 && v.width < TEXT_LONGEST ? v.width : 3) * all);
        data[0] = lend_bytes(&texts, is_bent);
    }
    if (v.layout != KR_TEXT_NULLS) v.validity = random_bits(all, is_bent);
    v.places = lend_bytes(&places, is_bent);
    v.rows = bent(rows, is_bent);
    v.offset = bent(offset, is_bent);
    return v;
}

static kr_text_column random_texts(kr_lent_buffer data[TEXT_DATA], int64_t rows, int is_bent) {
    static bytes indexes;
    int is_dictionary = random_below(3) == 0;
    int64_t values = is_dictionary ? 1 + random_below(12) : rows;
    kr_text_column c = {.values = random_values(data, values, is_bent), .rows = rows};
    if (!is_dictionary) {
        c.rows = c.values.rows;
        return c;
    }
    c.index_width = 1 << random_below(4);
    c.index_is_signed = (int)random_below(2);
    c.offset = random_below(9);
    indexes.size = 0;
    for (int64_t i = 0; i < rows + c.offset; i++)
        put_little(&indexes, bent(random_below(values), is_bent), c.index_width);
    c.index_validity = random_bits(rows + c.offset, is_bent);
    c.indexes = lend_bytes(&indexes, is_bent);
    c.rows = bent(rows, is_bent);
    c.offset = bent(c.offset, is_bent);
    return c;
}

/* ---- the plain reading ---- */

static wide plain_number(const kr_lent_buffer *b, wide at, int width, int is_signed) {
    wide value = 0;
    for (int i = width - 1; i >= 0; i--) value = value * 256 + b->start[at * width + i];
    return is_signed && value >= (wide)1 << (8 * width - 1) ? value - ((wide)1 << (8 * width)) : value;
}

static int plain_null(const kr_lent_buffer *bits, wide at) {
    return bits->start && !(bits->start[at / 8] & (1 << (int)(at % 8)));
}

/* Whether so many items fit into a buffer. */
static int plain_fits(const kr_lent_buffer *b, wide items, wide width) {
    return items * width == 0 || (b->start && items * width <= b->size);
}

static int plain_rows(int64_t rows, int64_t offset) {
    return rows >= 0 && offset >= 0 && (wide)rows + offset < INT64_MAX;
}

static int plain_bits(const kr_lent_buffer *b, wide bits) { return !b->start || (bits + 7) / 8 <= b->size; }

static int plain_room(const kr_text_column *c) {
    const kr_text_values *v = &c->values;
    wide all = (wide)v->rows + v->offset;
    int ends = v->layout == KR_TEXT_ENDS32 ? 4 : v->layout == KR_TEXT_ENDS64 ? 8 : 0;
    if (!plain_rows(v->rows, v->offset)) return 0;
    if (v->rows && v->layout != KR_TEXT_NULLS && !plain_bits(&v->validity, all)) return 0;
    if (v->rows && ends && !plain_fits(&v->places, all + 1, ends)) return 0;
    if (v->rows && v->layout == KR_TEXT_VIEWS && !plain_fits(&v->places, all, KR_VIEW_BYTES)) return 0;
    if (v->rows && v->layout == KR_TEXT_FIXED && (v->width < 0 || !plain_fits(v->data, all, v->width))) return 0;
    if (!c->index_width) return 1;
    all = (wide)c->rows + c->offset;
    return plain_rows(c->rows, c->offset) &&
           (!c->rows || (plain_bits(&c->index_validity, all) && plain_fits(&c->indexes, all, c->index_width)));
}

/* The bytes [begin, end) of a buffer. */
static int64_t plain_between(const kr_lent_buffer *b, wide begin, wide end, const uint8_t **p) {
    if (begin < 0 || end < begin || end > b->size) return TEXT_NOWHERE;
    *p = end > begin ? b->start + begin : 0;
    return (int64_t)(end - begin);
}

static int64_t plain_value(const kr_text_values *v, wide at, const uint8_t **p) {
    if (v->layout == KR_TEXT_FIXED) return plain_between(v->data, at * v->width, (at + 1) * v->width, p);
    if (v->layout != KR_TEXT_VIEWS) {
        int width = v->layout == KR_TEXT_ENDS32 ? 4 : 8;
        return plain_between(v->data, plain_number(&v->places, at, width, 1),
                             plain_number(&v->places, at + 1, width, 1), p);
    }
    wide length = plain_number(&v->places, 4 * at, 4, 1), buffer = plain_number(&v->places, 4 * at + 2, 4, 1);
    wide begin = plain_number(&v->places, 4 * at + 3, 4, 1);
    if (length < 0) return TEXT_NOWHERE;
    *p = v->places.start + KR_VIEW_BYTES * at + 4;
    if (length <= KR_VIEW_INLINE) return (int64_t)length;
    if (buffer < 0 || buffer >= v->data_count) return TEXT_NOWHERE;
    const kr_lent_buffer *data = v->look ? ((text_lender *)v->owner)->all : v->data;
    return plain_between(&data[buffer], begin, begin + length, p);
}

/* The length of a row and where it lies; with `under_nulls` that of a null as well, which ends have. */
static int64_t plain_text(const kr_text_column *c, int64_t row, int under_nulls, const uint8_t **p) {
    const kr_text_values *v = &c->values;
    wide at = (wide)v->offset + row;
    if (c->index_width) {
        if (plain_null(&c->index_validity, (wide)c->offset + row)) return TEXT_NULL;
        wide index = plain_number(&c->indexes, (wide)c->offset + row, c->index_width, c->index_is_signed);
        if (index < 0 || index >= v->rows) return TEXT_NOWHERE;
        at = v->offset + index;
    }
    if (v->layout == KR_TEXT_NULLS) return TEXT_NULL;
    int is_null = plain_null(&v->validity, at);
    return is_null && !(under_nulls && v->layout == KR_TEXT_ENDS32 && !c->index_width) ? TEXT_NULL
                                                                                       : plain_value(v, at, p);
}

/* What kr_text_measure should answer; *row is the one that stopped it. */
static int64_t plain_measure(const kr_text_column *c, int64_t first, int64_t count, int64_t most, int64_t most_of_one,
                             int64_t *size, int64_t *row) {
    const uint8_t *p;
    *size = 0;
    for (int64_t taken = 0; taken < count; taken++) {
        int64_t length = plain_text(c, *row = first + taken, 1, &p);
        if (length == TEXT_NOWHERE) return -1;
        if (length > (taken ? most - *size : most_of_one) && length > 0) {
            if (!taken) *size = length;
            return taken;
        }
        *size += length > 0 ? length : 0;
    }
    return count;
}

/* ---- what is compared ---- */

/* Rows that were measured, as the encoder takes them: lent where they may be, else copied into blocks of just the size.
 */
static kr_lent_binary text_source(const kr_text_column *c, int64_t first, int64_t count, int64_t size) {
    const kr_text_values *v = &c->values;
    int64_t nulls = 0;
    if (v->layout == KR_TEXT_NULLS && !c->index_width) return (kr_lent_binary){0};
    if (v->layout == KR_TEXT_ENDS32 && !c->index_width && (uintptr_t)v->places.start % 4 == 0 && random_below(2))
        return (kr_lent_binary){(const int32_t *)(const void *)v->places.start + v->offset + first, v->data->start,
                                v->data->size, v->validity.start, v->offset + first};
    uint8_t *ends = malloc((size_t)(4 * (count + 1))), *bits = malloc((size_t)(count / 8 + 1));
    uint8_t *data = malloc((size_t)(size ? size : 1));
    if (!ends || !bits || !data || text_blocks.count + 3 > TEXT_BUFFERS) abort();
    text_blocks.block[text_blocks.count++] = ends;
    text_blocks.block[text_blocks.count++] = bits;
    text_blocks.block[text_blocks.count++] = data;
    nulls = kr_text_gather(c, first, count, (int32_t *)(void *)ends, bits, data);
    return (kr_lent_binary){(const int32_t *)(const void *)ends, data, size, nulls ? bits : 0, 0};
}

static void check_source(const kr_text_column *c, int64_t first, int64_t count, const kr_lent_binary *s) {
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *p = 0;
        int64_t expected = plain_text(c, first + i, 0, &p), found = kr_lent_length(s, i);
        CHECK_INT(expected, found);
        if (expected > 0 && found == expected) CHECK_BYTES(p, expected, s->data + s->ends[i], found);
    }
}

/* How many buffers views of [first, end) are into, at most. */
static int plain_buffers(const kr_text_column *c, int64_t first, int64_t end) {
    const kr_text_values *v = &c->values;
    int is_used[TEXT_DATA] = {0}, used = 0;
    for (int64_t i = first; i < end; i++) {
        wide at = (wide)v->offset + i;
        if (c->index_width) {
            if (plain_null(&c->index_validity, (wide)c->offset + i)) continue;
            wide index = plain_number(&c->indexes, (wide)c->offset + i, c->index_width, c->index_is_signed);
            if (index < 0 || index >= v->rows) continue;
            at = v->offset + index;
        }
        wide length = plain_number(&v->places, 4 * at, 4, 1), buffer = plain_number(&v->places, 4 * at + 2, 4, 1);
        if (plain_null(&v->validity, at) || length <= KR_VIEW_INLINE || buffer < 0 || buffer >= TEXT_DATA) continue;
        used += !is_used[buffer];
        is_used[buffer] = 1;
    }
    return used;
}

/* A part of the rows: 1 when it was measured, and *s then has it. */
static int measure_and_copy(const kr_text_column *c, int64_t first, int64_t *count, kr_lent_binary *s) {
    kr_text_error e = {KR_TEXT_OK, -1, 0, 0};
    int64_t most = random_below(2) ? INT32_MAX : random_below(200), most_of_one = random_below(3) ? INT32_MAX : most;
    int64_t size, expected_size, row = -1;
    int64_t expected = plain_measure(c, first, *count, most, most_of_one, &expected_size, &row);
    int64_t found = kr_text_measure(c, first, *count, most, most_of_one, &size, &e);
    CHECK_INT(expected, found);
    if (found != expected) return 0;
    if (c->values.look) /* those of the rows that were looked at: of the one, too, that stopped it */
        CHECK_INT(plain_buffers(c, first, *count ? row + 1 : first), ((text_lender *)c->values.owner)->looks);
    if (expected < 0) {
        CHECK_INT(row, e.row);
        CHECK_TRUE(e.fault != KR_TEXT_OK && e.fault != KR_TEXT_BUFFER_SHORT);
        return 0;
    }
    CHECK_INT(expected_size, size);
    *count = found;
    if (!found) return 0;
    *s = text_source(c, first, found, size);
    check_source(c, first, found, s);
    return 1;
}

static void fuzz_lists(int is_bent) {
    static bytes places;
    int64_t rows = random_below(TEXT_ROWS), items = random_below(60), end = random_below(4);
    kr_lent_list c = {.rows = rows, .offset = random_below(9), .width = random_below(2) ? 4 : 8, .items = items};
    kr_text_error e = {KR_TEXT_OK, -1, 0, 0};
    places.size = 0;
    for (int64_t i = 0; i <= rows + c.offset; i++) {
        put_little(&places, bent(end < items ? end : items, is_bent), c.width);
        end += random_below(4);
    }
    c.validity = random_bits(rows + c.offset, is_bent);
    c.ends = lend_bytes(&places, is_bent);
    c.rows = bent(rows, is_bent);
    c.offset = bent(c.offset, is_bent);
    wide all = (wide)c.rows + c.offset;
    int has_room = plain_rows(c.rows, c.offset) &&
                   (!c.rows || (plain_bits(&c.validity, all) && plain_fits(&c.ends, all + 1, c.width)));
    CHECK_INT(has_room, kr_lent_list_has_room(&c, &e));
    if (!has_room || !c.rows) return;
    int64_t first = random_below(c.rows), count = random_below(c.rows - first + 1), most = random_below(80),
            found_items;
    int64_t most_of_one = random_below(2) ? INT32_MAX : most, expected = count, sum = 0, row = first;
    for (int64_t taken = 0; taken < count && expected == count; taken++) {
        wide from = plain_number(&c.ends, (wide)c.offset + (row = first + taken), c.width, 1);
        wide to = plain_number(&c.ends, (wide)c.offset + row + 1, c.width, 1);
        if (from < 0 || to < from || to > items) {
            expected = -1;
        } else if (to - from > (taken ? most - sum : most_of_one)) {
            expected = taken;
            if (!taken) sum = (int64_t)(to - from);
        } else {
            sum += (int64_t)(to - from);
        }
    }
    CHECK_INT(expected, kr_lent_list_measure(&c, first, count, most, most_of_one, &found_items, &e));
    if (expected < 0) CHECK_INT(row, e.row);
    if (expected >= 0) CHECK_INT(sum, found_items);
    for (int64_t i = 0; i < c.rows; i++)
        CHECK_INT(plain_null(&c.validity, (wide)c.offset + i), kr_lent_list_is_null(&c, i));
}

/* Rows of two columns through the encoder and back. Now and then there is no memory when it asks for room: it asks for
 * the same again, and has written nothing meanwhile. */
static void encode_texts(const kr_source *s) {
    kr_encoder w = encoder_of(1 << 20, random_below(2) ? 1 + (int32_t)random_below(9) : INT32_MAX);
    while (kr_encoder_run(&w, s) == KR_NEEDS_ROOM) {
        int64_t written = w.written, row = w.row, expected = w.error.expected;
        if (random_below(3) == 0) {
            CHECK_STATUS(KR_NEEDS_ROOM, kr_encoder_run(&w, s));
            CHECK_TRUE(w.written == written && w.row == row && w.error.expected == expected);
        }
        give_room(&w, w.written + w.error.expected + random_below(1 << 10));
    }
    kr_encoder_close_batch(&w);
    check_decoded(&w, s);
    free(w.out);
}

static void fuzz_text(const corpus *c) {
    kr_lent_buffer data[2][TEXT_DATA];
    kr_source s = {0};
    kr_text_error e = {KR_TEXT_OK, -1, 0, 0};
    int is_bent = random_below(2) != 0, taken = 0;
    int64_t rows = random_below(8) ? random_below(TEXT_ROWS) : 0, first = 0, count = 0;
    (void)c;
    for (int i = 0; i < 2; i++) {
        kr_text_column column = random_texts(data[i], rows, is_bent);
        int has_room = plain_room(&column);
        CHECK_INT(has_room, kr_text_has_room(&column, &e));
        if (!has_room || column.rows <= 0) break;
        if (!i) {
            first = random_below(column.rows < TEXT_ROWS ? column.rows : TEXT_ROWS);
            count = random_below(TEXT_ROWS);
        }
        if (first > column.rows) break;
        if (count > column.rows - first) count = column.rows - first;
        if (!measure_and_copy(&column, first, &count, i ? &s.value : &s.key)) break;
        taken++;
    }
    s.rows = count;
    if (taken && !failures) {
        if (taken == 1) s.value.ends = 0;
        encode_texts(&s);
    }
    fuzz_lists(is_bent);
    free_texts();
}

#endif
