/* header_chain.h: the walk over a file through a window comes to the batches that a walk over memory comes to. */
#include "bytes.h"
#include "check.h"
#include "header_chain.h"

enum { ROUNDS = 3000, MOST_BATCHES = 40 };

static bytes b;

static void put_control_batch(bytes *to, int64_t base_offset) {
    static bytes fields, records;
    fields.size = records.size = 0;
    put_fill(&fields, 0, 1);
    put_varint(&fields, 0);
    put_varint(&fields, 0);
    put_field(&fields, "\0\0\0\1", 4);
    put_field(&fields, "\0\0\0\0\0\7", 6);
    put_varint(&fields, 0);
    put_record_of(&records, &fields);
    put_batch(to, base_offset, KR_CONTROL_BIT | KR_TRANSACTIONAL_BIT, 1000, 1, &records);
}

static void put_large_batch(bytes *to, int64_t base_offset, int64_t size) {
    static bytes records;
    records.size = 0;
    put_fill(&records, 'r', size);
    put_batch(to, base_offset, 0, 1000, 1, &records);
}

static void put_any_batch(bytes *to, int64_t base_offset) {
    switch (random_below(6)) {
    case 0:
        put_control_batch(to, base_offset);
        return;
    case 1:
        put_large_batch(to, base_offset, KR_CHAIN_WINDOW - 100 + random_below(200));
        return;
    case 2:
        put_message(to, 0, base_offset, 0, 0, "k", 1, "v", 1);
        return;
    case 3:
        put_message(to, 1, base_offset, 0x08, 1234, "k", 1, 0, -1);
        return;
    default:
        put_small_batch(to, base_offset, 1 + (int32_t)random_below(3));
    }
}

static FILE *file_of(const bytes *from) {
    FILE *file = tmpfile();
    if (!file || fwrite(from->at, 1, (size_t)from->size, file) != (size_t)from->size || fflush(file)) abort();
    return file;
}

/* Walks over both, from the first batch; each step goes so many bytes further at least. */
static void compare(const bytes *from, int64_t step) {
    uint8_t *p = exact_copy(from->at, from->size);
    kr_input in = kr_input_make(p, from->size);
    kr_batch_header h, before = {.position = -1};
    FILE *file = file_of(from);
    kr_header_chain c;
    kr_header_chain_begin(&c, fileno(file), from->size, 0, INT64_MAX);
    int64_t least = 0;
    for (int64_t at = 0; kr_is_plausible(&in, at, &h); at = kr_batch_end(&h)) {
        if (before.position >= 0 && !kr_is_followed(&in, &before, at)) break;
        before = h;
        if (at < least) continue;
        CHECK_INT(at, kr_header_chain_next(&c, least));
        CHECK_INT(h.batch_length, c.last.batch_length);
        CHECK_INT(h.control_type, c.last.control_type);
        CHECK_INT(h.coordinator_epoch, c.last.coordinator_epoch);
        least = at + step;
    }
    CHECK_INT(-1, kr_header_chain_next(&c, least));
    CHECK_INT(-1, kr_header_chain_next(&c, least));
    fclose(file);
    exact_free(p, from->size);
}

static void test_random_files(void) {
    for (int round = 0; round < ROUNDS; round++) {
        b.size = 0;
        int64_t batches = random_below(MOST_BATCHES);
        for (int64_t i = 0; i < batches && b.size < BYTES_CAPACITY - 5000; i++) put_any_batch(&b, 3 * i);
        if (b.size && random_below(3) == 0) b.size = random_below(b.size);
        if (b.size && random_below(3)) b.at[random_below(b.size)] ^= (uint8_t)(1 << random_below(8));
        compare(&b, round % 2 ? 1 : 1 + random_below(9000));
    }
}

/* A file that is shorter than it was, and one that cannot be read. */
static void test_files_that_end_early(void) {
    b.size = 0;
    put_small_batch(&b, 0, 1);
    int64_t second = put_small_batch(&b, 1, 1), third = put_small_batch(&b, 2, 1);
    FILE *file = file_of(&b);
    kr_header_chain c;
    kr_header_chain_begin(&c, fileno(file), b.size + 1000, 0, INT64_MAX);
    CHECK_INT(0, kr_header_chain_next(&c, 0));
    CHECK_INT(second, kr_header_chain_next(&c, 1));
    CHECK_INT(-1, kr_header_chain_next(&c, third)); /* fewer bytes than a header may take */
    kr_header_chain_begin(&c, -1, b.size, 0, INT64_MAX);
    CHECK_INT(-1, kr_header_chain_next(&c, 0));
    kr_header_chain_begin(&c, fileno(file), b.size, second, second);
    CHECK_INT(-1, kr_header_chain_next(&c, 0));
    fclose(file);
}

int main(void) {
    kr_crc_init();
    test_random_files();
    test_files_that_end_early();
    return check_report("header_chain");
}
