/* metadata_stretch.h: columns of random headers, compared with sums over all headers before each, and the outline of
 * the same headers, compared with the columns. */
#include "check.h"
#include "metadata_stretch.h"

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

/* Markers at random offsets; what is said of them and of all batches, by the columns. */
static void check_outline(const kr_batch_header *batches, int64_t n, int64_t place, const kr_stretch_columns *all) {
    int64_t batch_of[ROWS], offsets[ROWS], keys[ROWS], count = 0, expected = random_below(20), next = expected;
    kr_stretch_sums before = {random_below(99), random_below(99), random_below(99)};
    kr_stretch_marker found[ROWS];
    int is_whole = 1, is_rising = 1;
    for (int64_t i = 0; i < n; i++) {
        is_whole &= batches[i].base_offset <= next;
        is_rising &= batches[i].base_offset >= next;
        next = all->last[i] + 1;
        for (int64_t k = random_below(ROWS / BATCHES + 1); k > 0; k--, count++) {
            batch_of[count] = i;
            offsets[count] = batches[i].base_offset + random_below(9);
            keys[count] = KR_FIRST_MARKER_KEY + random_below(3);
        }
    }
    kr_marker_rows rows = {count, batch_of, offsets, keys};
    kr_stretch_outline o = kr_stretch_look(batches, n, place, expected, before, &rows, found);
    CHECK_INT(is_whole, o.is_whole);
    CHECK_INT(is_rising, o.is_rising);
    CHECK_INT(before.records + (n ? all->records[n - 1] : 0) - count, o.sums.records);
    CHECK_INT(before.batches + (n ? all->data_batches[n - 1] : 0), o.sums.batches);
    CHECK_INT(before.bytes + (n ? all->bytes[n - 1] : 0), o.sums.bytes);
    CHECK_INT(n ? all->last[n - 1] : -1, o.last);
    CHECK_INT(n ? all->last_data[n - 1] : -1, o.last_data);
    for (int64_t i = 0; i < count; i++) {
        const kr_batch_header *h = &batches[batch_of[i]];
        int64_t bytes = before.bytes + all->bytes[batch_of[i]], within = offsets[i] - h->base_offset;
        CHECK_INT(offsets[i], found[i].offset);
        CHECK_INT(keys[i], found[i].api_key);
        CHECK_INT(h->base_offset, found[i].base_offset);
        CHECK_INT(h->partition_leader_epoch, found[i].epoch);
        CHECK_INT(all->places[batch_of[i]], found[i].place);
        CHECK_INT(before.records + all->records[batch_of[i]] - h->records_count + within - i, found[i].records);
        CHECK_INT(before.batches + all->data_batches[batch_of[i]], found[i].batches);
        CHECK_INT(bytes, found[i].bytes_through);
        CHECK_INT(bytes - h->batch_length - KR_LOG_OVERHEAD, found[i].bytes_before);
    }
}

static void test_random_headers(void) {
    int64_t numbers[8][BATCHES];
    uint8_t is_data[BATCHES];
    for (int round = 0; round < ROUNDS; round++) {
        kr_batch_header batches[BATCHES];
        kr_stretch_columns to = {.base = numbers[0],
                                 .last = numbers[1],
                                 .epochs = numbers[2],
                                 .places = numbers[3],
                                 .records = numbers[4],
                                 .data_batches = numbers[5],
                                 .bytes = numbers[6],
                                 .last_data = numbers[7],
                                 .is_data = is_data};
        int64_t n = random_headers(batches), place = random_below(1 << 20);
        kr_stretch(batches, n, place, &to);
        for (int64_t i = 0; i < n; i++) check_batch(batches, i, place, &to);
        check_outline(batches, n, place, &to);
    }
}

/* Which rows are markers, by looking at each alone. */
static void test_marker_rows(void) {
    enum { MOST_VALUE = 4 };
    static const uint8_t firsts[] = {0, 1, 0x81, 1, 1}, seconds[] = {0, 12, 0x97, 22, 23, 24, 25, 26, 0x80};
    for (int round = 0; round < ROUNDS; round++) {
        kr_batch_header batches[BATCHES];
        int32_t ends[ROWS + 1] = {0};
        uint8_t data[ROWS * MOST_VALUE];
        int64_t offsets[ROWS], rows[ROWS], of[ROWS], count = 0, row = 0, before = random_below(8);
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
        int64_t found = kr_marker_rows_find(&c, before, rows, of, &is_rising);
        CHECK_INT(expected, is_rising);
        for (int64_t i = 0; i < c.batches; i++)
            for (int32_t k = 0; k < batches[i].rows; k++, row++) {
                if (!kr_is_marker_or_level(data + ends[row], ends[row + 1] - ends[row])) continue;
                CHECK_INT(row, rows[count]);
                CHECK_INT(i, of[count]);
                count++;
            }
        CHECK_INT(count, found);
    }
}

int main(void) {
    test_random_headers();
    test_marker_rows();
    return check_report("metadata_stretch");
}
