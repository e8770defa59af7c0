/* metadata_stretch.h: columns of random headers, compared with sums over all headers before each. */
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

static void test_random_headers(void) {
    int64_t numbers[8][BATCHES];
    uint8_t is_data[BATCHES];
    for (int round = 0; round < ROUNDS; round++) {
        kr_batch_header batches[BATCHES];
        memset(batches, 0, sizeof batches);
        kr_stretch_columns to = {.base = numbers[0],
                                 .last = numbers[1],
                                 .epochs = numbers[2],
                                 .places = numbers[3],
                                 .records = numbers[4],
                                 .data_batches = numbers[5],
                                 .bytes = numbers[6],
                                 .last_data = numbers[7],
                                 .is_data = is_data};
        int64_t n = random_below(BATCHES + 1), rows = 0, place = random_below(1 << 20), batch_of[ROWS], most, row = 0;
        for (int64_t i = 0; i < n; i++) {
            batches[i].magic = 2;
            batches[i].position = random_below(1 << 20);
            batches[i].base_offset = random_below(1 << 20);
            batches[i].last_offset_delta = (int32_t)random_below(20) - 5;
            batches[i].partition_leader_epoch = (int32_t)random_below(9) - 1;
            batches[i].records_count = (int32_t)random_below(9) - 2;
            batches[i].batch_length = (int32_t)random_below(1 << 20);
            batches[i].attributes = random_below(4) ? 0 : KR_CONTROL_BIT;
            batches[i].rows = (int32_t)random_below(6);
            rows += batches[i].rows;
        }
        most = random_below(ROWS + 1);
        for (int64_t i = 0; i < ROWS; i++) batch_of[i] = -1;
        CHECK_INT(rows, kr_stretch(batches, n, place, &to, batch_of, most));
        for (int64_t i = 0; i < n; i++) {
            check_batch(batches, i, place, &to);
            for (int32_t k = 0; k < batches[i].rows; k++, row++)
                if (row < most) CHECK_INT(i, batch_of[row]);
        }
        for (row = rows < most ? rows : most; row < ROWS; row++) CHECK_INT(-1, batch_of[row]);
    }
}

int main(void) {
    test_random_headers();
    return check_report("metadata_stretch");
}
