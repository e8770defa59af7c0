/* Arrays share blocks, and blocks come back when the last array is released; run under AddressSanitizer. */
#include "check.h"
#include "record/chunk.h"

static int owners(kr_block *block) { return atomic_load(&block->owners); }

static void test_capacities(void) {
    CHECK_INT(512, kr_pool_capacity(0));
    CHECK_INT(512, kr_pool_capacity(512));
    CHECK_INT(640, kr_pool_capacity(513));
    CHECK_INT(1024, kr_pool_capacity(897));
    CHECK_INT((int64_t)1 << KR_POOL_LAST, kr_pool_capacity((int64_t)1 << KR_POOL_LAST));
    CHECK_INT(((int64_t)1 << KR_POOL_LAST) + KR_LARGE_PAGE, kr_pool_capacity(((int64_t)1 << KR_POOL_LAST) + 1));
    for (int64_t size = 512; size < 1 << 20; size += 97) {
        int64_t capacity = kr_pool_capacity(size);
        CHECK_TRUE(capacity >= size && capacity - size <= size / KR_POOL_STEPS);
        CHECK_INT(capacity, kr_pool_capacity(capacity));
        CHECK_TRUE(kr_pool_slot(capacity) < KR_POOL_SLOTS);
        CHECK_TRUE(capacity == size || kr_pool_slot(size) < kr_pool_slot(capacity));
    }
}

static void test_rows_release_their_columns(void) {
    kr_block *block = kr_block_open(4096, 0);
    kr_columns c;
    struct ArrowArray rows;
    memset(&c, 0, sizeof c);
    c.rows = 3;
    c.headers.count = 2;
    c.headers.key.nulls = 1;
    c.offset = (int64_t *)(void *)kr_block_bytes(block);
    CHECK_TRUE(kr_array_of_rows(&rows, 3, 3));
    CHECK_TRUE(kr_array_of_numbers(rows.children[0], block, 3, c.offset, 0, 0));
    CHECK_TRUE(kr_array_of_headers(rows.children[1], block, 3, &c.headers)); /* the third one is never made */
    CHECK_INT(2, rows.children[0]->n_buffers);
    CHECK_TRUE(rows.children[0]->buffers[0] == 0 && rows.children[0]->buffers[1] == c.offset);
    CHECK_INT(1, rows.children[1]->children[0]->children[0]->null_count);
    CHECK_INT(5, owners(block)); /* numbers, lists, keys, values and this function */
    struct ArrowArray moved = *rows.children[0];
    rows.children[0]->release = 0;
    rows.release(&rows);
    CHECK_TRUE(rows.release == 0);
    CHECK_INT(2, owners(block));
    kr_block_close(block);
    c.offset[2] = 7; /* the array that was moved still has it */
    moved.release(&moved);
}

/* Every column has its regions, none of which overlap, and can be had as an array that outlives the chunk. */
static void test_chunk_of_every_column(int64_t rows, uint32_t want) {
    static kr_chunk chunk;
    kr_columns c = {.max_rows = rows, .max_bytes = 64 * rows, .max_batches = 1, .max_headers = rows};
    struct ArrowArray arrays[KR_COLUMN_COUNT];
    CHECK_INT(0, kr_chunk_open(&chunk, &c, want));
    c.rows = rows;
    memset(c.offset, 1, 8 * (size_t)rows);
    memset(c.timestamp.values, 2, 8 * (size_t)rows);
    memset(c.control_type, 3, 2 * (size_t)rows);
    memset(c.timestamp_ms, 4, 8 * (size_t)rows);
    chunk.columns = c;
    CHECK_TRUE(kr_chunk_has(&chunk, KR_BATCHES) && !kr_chunk_has(&chunk, KR_COLUMN_COUNT + 2));
    for (int i = 0; i < KR_COLUMN_COUNT; i++) {
        CHECK_INT((want >> i) & 1, kr_chunk_has(&chunk, i));
        CHECK_TRUE(kr_chunk_array(&arrays[i], &chunk, i, rows / 2, rows - rows / 2));
        CHECK_INT(rows - rows / 2, arrays[i].length);
    }
    kr_chunk_close(&chunk);
    const int64_t *offsets = arrays[KR_COLUMN_OFFSET].buffers[1], *ms = arrays[KR_COLUMN_TIMESTAMP_MS].buffers[1];
    const int64_t *timestamps = arrays[KR_COLUMN_TIMESTAMP].buffers[1];
    CHECK_TRUE(offsets[rows - 1] == 0x0101010101010101 && timestamps[rows - 1] == 0x0202020202020202);
    CHECK_TRUE(ms[0] == 0x0404040404040404 && c.control_type[rows - 1] == 0x0303);
    CHECK_INT(0, *(const int32_t *)arrays[KR_COLUMN_KEY].buffers[1]);
    for (int i = 0; i < KR_COLUMN_COUNT; i++) arrays[i].release(&arrays[i]);
}

static void test_chunk_without_memory(void) {
    kr_chunk chunk = {.size = 0};
    kr_columns c = {.max_rows = INT64_MAX / 16, .max_batches = 1};
    CHECK_TRUE(kr_chunk_open(&chunk, &c, KR_WANT_OFFSET) > INT64_MAX / 2);
    kr_chunk_close(&chunk);
}

static void check_names(struct ArrowArray *array, const char *expected, int64_t row) {
    const int32_t *ends = (const int32_t *)array->buffers[1];
    CHECK_INT((int64_t)strlen(expected), ends[row + 1] - ends[row]);
    CHECK_TRUE(memcmp(expected, (const char *)array->buffers[2] + ends[row], strlen(expected)) == 0);
}

static void test_timestamp_types(void) {
    kr_batch_header batches[3];
    struct ArrowArray one, same, mixed;
    memset(batches, 0, sizeof batches);
    for (int i = 0; i < 3; i++) batches[i] = (kr_batch_header){.magic = 2, .rows = i + 1};
    CHECK_TRUE(kr_timestamp_type_column(&one, batches, 1, 0, 1) && kr_timestamp_type_column(&same, batches, 3, 0, 6));
    CHECK_TRUE(one.buffers[2] == same.buffers[2]);
    check_names(&same, "CreateTime", 5);
    batches[1].attributes = KR_TIMESTAMP_TYPE_BIT;
    batches[2].magic = 0;
    CHECK_TRUE(kr_timestamp_type_column(&mixed, batches, 3, 0, 6));
    check_names(&mixed, "CreateTime", 0);
    check_names(&mixed, "LogAppendTime", 2);
    check_names(&mixed, "NoTimestampType", 5);
    one.release(&one);
    same.release(&same);
    mixed.release(&mixed);
    batches[0].rows = KR_SHARED_ROWS + 1;
    CHECK_TRUE(kr_timestamp_type_column(&one, batches, 1, 0, KR_SHARED_ROWS + 1));
    check_names(&one, "CreateTime", KR_SHARED_ROWS);
    one.release(&one);
}

/* A batch may have more records than ends can count the bytes of their names: no memory is touched for so many. */
static void test_timestamp_types_of_too_many_rows(void) {
    static const int64_t rows[] = {KR_MOST_NAMED_ROWS + 1, 165191050, INT32_MAX};
    for (int type = 0; type < KR_TIMESTAMP_TYPES; type++) {
        CHECK_TRUE(strlen(kr_timestamp_types[type]) <= KR_LONGEST_TYPE);
        CHECK_TRUE((int64_t)KR_MOST_NAMED_ROWS * (int64_t)strlen(kr_timestamp_types[type]) <= INT32_MAX);
    }
    for (int i = 0; i < 3; i++) {
        kr_batch_header batches[2];
        struct ArrowArray array;
        memset(batches, 0, sizeof batches);
        batches[0] = (kr_batch_header){.magic = 2, .attributes = KR_TIMESTAMP_TYPE_BIT, .rows = (int32_t)rows[i]};
        batches[1] = (kr_batch_header){.magic = 2, .rows = 1};
        CHECK_TRUE(!kr_timestamp_type_column(&array, batches, 1, 0, rows[i]));
        CHECK_TRUE(!kr_timestamp_type_column(&array, batches, 2, 1, rows[i]));
        CHECK_TRUE(kr_timestamp_type_column(&array, batches, 2, rows[i] - 1, 2)); /* the last two of them */
        check_names(&array, "LogAppendTime", 0);
        check_names(&array, "CreateTime", 1);
        array.release(&array);
    }
}

int main(void) {
    test_capacities();
    test_rows_release_their_columns();
    test_chunk_of_every_column(1000, KR_WANT_ALL);
    test_chunk_of_every_column(KR_POOL_LARGE / 8, KR_WANT_ALL);
    test_chunk_without_memory();
    test_timestamp_types();
    test_timestamp_types_of_too_many_rows();
    return check_report("arrow_array");
}
