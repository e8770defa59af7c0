/* metadata/stretch.h: columns of random headers, compared with sums over all headers before each, and the outline of
 * the same headers, compared with the columns. */
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

int main(void) {
    test_random_headers();
    test_marker_rows();
    return check_report("metadata_stretch");
}
