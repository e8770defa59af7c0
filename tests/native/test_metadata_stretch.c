/* metadata/stretch.h: columns of random headers, compared with sums over all headers before each, and the outline of
 * the same headers, compared with the columns. */
#include "bytes.h"
#include "check.h"
#include "metadata/stretch.h"

enum { BATCHES = 12, ROWS = 40, ROUNDS = 20000 };

static void check_batch(const kr_batch_header *batches, int64_t i, int64_t place, const kr_stretch_columns *found) {
    const kr_batch_header *h = &batches[i];
    int64_t records = 0, data = 0, bytes = 0, last_data = -1, last = h->base_offset;
    for (int64_t k = 0; k <= i; k++) {
        if (batches[k].attributes & KR_CONTROL_BIT) continue;
        if (batches[k].records_count > 0) records += batches[k].records_count;
        bytes += KR_LOG_OVERHEAD + (int64_t)batches[k].batch_length;
        data++;
        last_data = k;
    }
    if (h->last_offset_delta > 0) last += h->last_offset_delta;
    CHECK_INT(h->base_offset, found->base[i]);
    CHECK_INT(last, found->last[i]);
    CHECK_INT(h->partition_leader_epoch, found->epochs[i]);
    CHECK_INT(place + h->position, found->places[i]);
    CHECK_INT(records, found->records[i]);
    CHECK_INT(data, found->data_batches[i]);
    CHECK_INT(bytes, found->bytes[i]);
    CHECK_INT(last_data, found->last_data[i]);
    CHECK_INT(last_data == i, found->is_data[i]);
}

static int64_t random_headers(kr_batch_header *batches) {
    int64_t n = random_below(BATCHES + 1), offset = random_below(20);
    memset(batches, 0, BATCHES * sizeof *batches);
    for (int64_t i = 0; i < n; i++) {
        kr_batch_header *h = &batches[i];
        h->magic = 2;
        h->position = random_below(1 << 20);
        h->base_offset = offset + (random_below(20) ? 0 : random_below(5) - 2);
        h->last_offset_delta = (int32_t)random_below(20) - 5;
        h->partition_leader_epoch = (int32_t)random_below(9) - 1;
        h->records_count = (int32_t)random_below(9) - 2;
        h->batch_length = (int32_t)random_below(1 << 20);
        h->attributes = random_below(4) ? 0 : KR_CONTROL_BIT;
        offset = kr_stretch_last(h) + 1;
    }
    return n;
}

/* One marker, or feature level, behind so many markers, by the columns. */
static void check_marker(const kr_batch_header *batches, int64_t batch, const kr_stretch_columns *all, int64_t offset,
                         int64_t markers, const kr_stretch_marker *found) {
    const kr_batch_header *h = &batches[batch];
    int64_t bytes = all->bytes[batch], within = offset - h->base_offset;
    CHECK_INT(offset, found->offset);
    CHECK_INT(h->base_offset, found->base_offset);
    CHECK_INT(h->partition_leader_epoch, found->epoch);
    CHECK_INT(h->position, found->place);
    CHECK_INT(all->records[batch] - h->records_count + within - markers, found->records);
    CHECK_INT(all->data_batches[batch], found->batches);
    CHECK_INT(bytes, found->bytes_through);
    CHECK_INT(bytes - h->batch_length - KR_LOG_OVERHEAD, found->bytes_before);
}

static void check_outline(const kr_batch_header *batches, int64_t n, const kr_stretch_columns *all, int64_t markers,
                          const kr_stretch_outline *o) {
    int is_whole = 1, is_rising = 1;
    for (int64_t i = 1; i < n; i++) {
        is_whole &= batches[i].base_offset <= all->last[i - 1] + 1;
        is_rising &= batches[i].base_offset >= all->last[i - 1] + 1;
    }
    CHECK_INT(is_whole, o->is_whole);
    CHECK_INT(is_rising, o->is_rising);
    CHECK_INT((n ? all->records[n - 1] : 0) - markers, o->sums.records);
    CHECK_INT(n ? all->data_batches[n - 1] : 0, o->sums.batches);
    CHECK_INT(n ? all->bytes[n - 1] : 0, o->sums.bytes);
    CHECK_INT(n ? all->last[n - 1] : -1, o->last);
    CHECK_INT(n ? all->last_data[n - 1] : -1, o->last_data);
}

/* Markers at random offsets. */
static void check_known_markers(const kr_batch_header *batches, int64_t n, const kr_stretch_columns *all) {
    int64_t batch_of[ROWS], offsets[ROWS], keys[ROWS], count = 0;
    kr_stretch_marker found[ROWS];
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = random_below(ROWS / BATCHES + 1); k > 0; k--, count++) {
            batch_of[count] = i;
            offsets[count] = batches[i].base_offset + random_below(9);
            keys[count] = KR_FIRST_MARKER_KEY + random_below(3);
        }
    }
    kr_marker_rows rows = {count, batch_of, offsets, keys};
    kr_stretch_outline o = kr_stretch_look(batches, n, &rows, found);
    check_outline(batches, n, all, count, &o);
    for (int64_t i = 0; i < count; i++) {
        CHECK_INT(keys[i], found[i].api_key);
        check_marker(batches, batch_of[i], all, offsets[i], i, &found[i]);
    }
}

typedef struct {
    int64_t numbers[8][BATCHES];
    uint8_t is_data[BATCHES];
} room;

static kr_stretch_columns columns_of(room *r) {
    return (kr_stretch_columns){.base = r->numbers[0],
                                .last = r->numbers[1],
                                .epochs = r->numbers[2],
                                .places = r->numbers[3],
                                .records = r->numbers[4],
                                .data_batches = r->numbers[5],
                                .bytes = r->numbers[6],
                                .last_data = r->numbers[7],
                                .is_data = r->is_data};
}

static void test_random_headers(void) {
    for (int round = 0; round < ROUNDS; round++) {
        room r;
        kr_batch_header batches[BATCHES];
        kr_stretch_columns to = columns_of(&r);
        int64_t n = random_headers(batches), place = random_below(1 << 20);
        kr_stretch(batches, n, place, &to);
        for (int64_t i = 0; i < n; i++) check_batch(batches, i, place, &to);
        check_known_markers(batches, n, &to);
    }
}

/* Which rows are markers, by looking at each alone, and what is said of them and of all batches, by the columns. */
static void test_marker_rows(void) {
    enum { MOST_VALUE = 4 };
    static const uint8_t firsts[] = {0, 1, 0x81, 1, 1}, seconds[] = {0, 12, 0x97, 22, 23, 24, 25, 26, 0x80};
    for (int round = 0; round < ROUNDS; round++) {
        kr_batch_header batches[BATCHES];
        int32_t ends[ROWS + 1] = {0};
        uint8_t data[ROWS * MOST_VALUE];
        int64_t offsets[ROWS], rows[ROWS], of[ROWS], count = 0, levels = 0, row = 0, before = random_below(8);
        kr_stretch_marker markers[ROWS];
        kr_stretch_outline o;
        room r;
        int is_rising, expected = 1;
        kr_columns c;
        memset(&c, 0, sizeof c);
        c.batch = batches;
        c.batches = random_headers(batches);
        c.offset = offsets;
        c.value.ends = ends;
        c.value.data = data;
        for (int64_t i = 0; i < c.batches; i++) c.rows += batches[i].rows = (int32_t)random_below(ROWS / BATCHES + 1);
        for (int64_t i = 0; i < c.rows; i++) {
            int32_t length = (int32_t)random_below(MOST_VALUE + 1);
            ends[i + 1] = ends[i] + length;
            for (int32_t k = 0; k < length; k++) data[ends[i] + k] = (uint8_t)(random_below(2) ? 0 : 23);
            if (length > 0) data[ends[i]] = firsts[random_below(sizeof firsts)];
            if (length > 1) data[ends[i] + 1] = seconds[random_below(sizeof seconds)];
            offsets[i] = (i ? offsets[i - 1] : before) + (random_below(40) ? 1 : -random_below(2));
            expected &= offsets[i] > (i ? offsets[i - 1] : before);
        }
        kr_found_markers to = {rows, of, markers};
        kr_stretch_columns all = columns_of(&r);
        int64_t found = kr_marker_rows_find(&c, before, &to, &o, &is_rising);
        kr_stretch(batches, c.batches, 0, &all);
        CHECK_INT(expected, is_rising);
        for (int64_t i = 0; i < c.batches; i++)
            for (int32_t k = 0; k < batches[i].rows; k++, row++) {
                uint32_t key = kr_api_key(data + ends[row], ends[row + 1] - ends[row]);
                if (!kr_is_marker_or_level(data + ends[row], ends[row + 1] - ends[row])) continue;
                CHECK_INT(row, rows[count]);
                CHECK_INT(i, of[count]);
                CHECK_INT(key, markers[count].api_key);
                check_marker(batches, i, &all, offsets[row], count - levels, &markers[count]);
                count++;
                levels += key == KR_FEATURE_LEVEL_KEY;
            }
        CHECK_INT(count, found);
        check_outline(batches, c.batches, &all, count - levels, &o);
    }
}

enum { LONGEST_TEXT = 16384, MARKER_ROOM = LONGEST_TEXT + 16 };

static int64_t put_uvarint(uint8_t *p, int64_t value) {
    int64_t size = 0;
    for (; value >= 0x80; value >>= 7) p[size++] = (uint8_t)(value | 0x80);
    p[size++] = (uint8_t)value;
    return size;
}

/* A marker as Kafka writes it; without a text when `size` is negative. */
static int64_t put_marker(uint8_t *p, uint8_t key, const uint8_t *text, int64_t size) {
    uint8_t length[8];
    int64_t length_size = put_uvarint(length, size + 1), at = 0;
    const uint8_t head[] = {KR_FRAME_VERSION, key, 0, size >= 0};
    memcpy(p, head, sizeof head);
    if (size < 0) return sizeof head;
    at = sizeof head;
    p[at++] = 0; /* the tag of the text */
    at += put_uvarint(p + at, length_size + size);
    memcpy(p + at, length, (size_t)length_size);
    if (size) memcpy(p + at + length_size, text, (size_t)size);
    return at + length_size + size;
}

/* What is found in a block that ends where the value ends; a text is in it, behind the marker's other bytes. */
static void check_text(int64_t expected, const uint8_t *value, int64_t length, const uint8_t *text) {
    uint8_t *p = exact_copy(value, length);
    const uint8_t *found = 0;
    int64_t size = kr_marker_text(p, length, &found);
    CHECK_INT(expected, size);
    if (size >= 0 && size == expected) CHECK_BYTES(text, size, found, size);
    exact_free(p, length);
}

/* Lengths whose varints take one byte, two, and three, which are left to others; each cut short, and with a byte more.
 */
static void test_marker_text_lengths(void) {
    static const int64_t sizes[] = {-1, 0, 1, 124, 125, 126, 127, 128, 129, 16380, 16381, 16382, 16383, 16384};
    static uint8_t text[LONGEST_TEXT], value[MARKER_ROOM];
    memset(text, 'x', sizeof text);
    for (uint8_t key = KR_FIRST_MARKER_KEY - 1; key <= KR_LAST_MARKER_KEY + 1; key++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            int64_t size = sizes[i], length = put_marker(value, key, text, size);
            int has_text = key == KR_FIRST_MARKER_KEY || key == KR_LAST_MARKER_KEY;
            int is_odd = !kr_is_marker_key(key) || (size >= 0 && !has_text) || size > 16381;
            check_text(is_odd ? KR_ODD_MARKER : size < 0 ? KR_NO_TEXT : size, value, length, text);
            value[length] = 0;
            check_text(KR_ODD_MARKER, value, length + 1, text);
            for (int64_t less = length - 1; less >= 0; less -= less > 300 ? 97 : 1)
                check_text(KR_ODD_MARKER, value, less, text);
        }
}

static void test_odd_markers(void) {
    static const struct {
        int64_t length;
        uint8_t value[12];
    } odd[] = {
        {8, {2, 23, 0, 1, 0, 2, 2, 'a'}},                    /* another frame */
        {8, {1, 23, 1, 1, 0, 2, 2, 'a'}},                    /* another version */
        {9, {0x81, 0, 23, 0, 1, 0, 2, 2, 'a'}},              /* varints of more bytes than they need */
        {9, {1, 23, 0, 0x81, 0, 0, 2, 2, 'a'}},              /* of the tags */
        {9, {1, 23, 0, 1, 0, 0x82, 0, 2, 'a'}},              /* of the field */
        {9, {1, 23, 0, 1, 0, 3, 0x82, 0, 'a'}},              /* of the text */
        {10, {1, 23, 0, 1, 0, 0x82, 0x80, 0, 2, 'a'}},       /* of three bytes */
        {8, {1, 23, 0, 1, 1, 2, 2, 'a'}},                    /* another tag */
        {11, {1, 23, 0, 2, 0, 2, 2, 'a', 1, 1, 0}},          /* two tags */
        {7, {1, 23, 0, 1, 0, 1, 0}},                         /* a text that is null */
        {6, {1, 23, 0, 1, 0, 0}},                            /* a field of no bytes */
        {8, {1, 23, 0, 1, 0, 3, 2, 'a'}},                    /* a field beyond the end */
        {8, {1, 23, 0, 1, 0, 2, 3, 'a'}},                    /* a text beyond the field */
        {9, {1, 23, 0, 1, 0, 3, 2, 'a', 'b'}},               /* a field behind its text */
        {8, {1, 23, 0, 1, 0, 2, 2, 0x80}},                   /* no UTF-8 from here on: a byte that continues nothing, */
        {8, {1, 23, 0, 1, 0, 2, 2, 0xc3}},                   /* half a letter, */
        {9, {1, 23, 0, 1, 0, 3, 3, 0xc0, 0x80}},             /* a letter in more bytes than it needs, */
        {10, {1, 25, 0, 1, 0, 4, 4, 0xed, 0xa0, 0x80}},      /* half a pair, */
        {11, {1, 25, 0, 1, 0, 5, 5, 0xf4, 0x90, 0x80, 0x80}} /* a number above the last one */
    };
    static const uint8_t letters[] = {1, 25, 0, 1, 0, 6, 6, 0xc3, 0xa4, 0xe2, 0x82, 0xac};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) check_text(KR_ODD_MARKER, odd[i].value, odd[i].length, 0);
    check_text(5, letters, sizeof letters, letters + 7);
}

/* What is taken for a marker, with or without a text, is what would be written for it: every byte of one at random. */
static void test_mutated_markers(void) {
    uint8_t value[24], again[24];
    for (int round = 0; round < 10 * ROUNDS; round++) {
        uint8_t key = random_below(2) ? KR_FIRST_MARKER_KEY : KR_LAST_MARKER_KEY;
        const uint8_t *text = 0;
        int64_t length = put_marker(value, key, (const uint8_t *)"abcdefgh", random_below(10) - 1);
        for (int64_t k = random_below(3); k > 0; k--)
            value[random_below(length)] = (uint8_t)(random_below(2) ? random_below(256) : random_below(12));
        int64_t size = kr_marker_text(value, length, &text);
        if (size != KR_ODD_MARKER) CHECK_BYTES(value, length, again, put_marker(again, value[1], text, size));
    }
}

/* The texts of chosen rows of a column, one behind the other. */
static void test_marker_texts(void) {
    static const char *const texts[] = {"one", 0, "", "four", "odd"};
    static const int64_t rows[] = {3, 0, 1, 4, 2, 3};
    static const uint8_t has_text[] = {1, 1, 0, 0, 1, 1}, is_odd[] = {0, 0, 0, 1, 0, 0};
    static const int32_t ends[] = {0, 4, 7, 7, 7, 7, 11};
    int32_t value_ends[6] = {0}, found_ends[7];
    uint8_t data[80], found[11], found_has[6], found_odd[6];
    for (int i = 0; i < 5; i++) {
        int64_t size = texts[i] ? (int64_t)strlen(texts[i]) : -1;
        int64_t length = put_marker(data + value_ends[i], KR_LAST_MARKER_KEY, (const uint8_t *)texts[i], size);
        value_ends[i + 1] = value_ends[i] + (int32_t)length;
    }
    data[value_ends[4] + 2] = 7; /* a version that is not there */
    kr_columns c;
    memset(&c, 0, sizeof c);
    c.rows = 5;
    c.value.ends = value_ends;
    c.value.data = data;
    kr_marker_texts to = {found_ends, found, found_has, found_odd};
    CHECK_INT(11, kr_marker_texts_put(&c, rows, 6, &to));
    CHECK_BYTES((const uint8_t *)"fouronefour", 11, found, 11);
    for (int i = 0; i <= 6; i++) CHECK_INT(ends[i], found_ends[i]);
    CHECK_BYTES(has_text, 6, found_has, 6);
    CHECK_BYTES(is_odd, 6, found_odd, 6);
}

int main(void) {
    test_marker_text_lengths();
    test_odd_markers();
    test_mutated_markers();
    test_marker_texts();
    test_random_headers();
    test_marker_rows();
    return check_report("metadata_stretch");
}
