/* Arrays share blocks, and blocks come back when the last array is released; run under AddressSanitizer. */
#include "arrow_array.h"
#include "check.h"
#include "timestamp_type.h"

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
    c.headers = 2;
    c.header_key.nulls = 1;
    c.offset = (int64_t *)(void *)kr_block_bytes(block);
    CHECK_TRUE(kr_array_of_rows(&rows, 3, 3));
    CHECK_TRUE(kr_array_of_numbers(rows.children[0], block, 3, c.offset, 0, 0));
    CHECK_TRUE(kr_array_of_headers(rows.children[1], block, &c)); /* the third one is never made */
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

int main(void) {
    test_capacities();
    test_rows_release_their_columns();
    test_timestamp_types();
    return check_report("arrow_array");
}
