/* Idle blocks are counted by the bytes that were written to; the oldest go first. */
#include "base/idle_blocks.h"
#include "check.h"

/* The allocation writes to a page at each end, of which the system may make large ones. */
enum { LARGE = 16 << 20, OF_ALLOCATION = 2 * KR_LARGE_PAGE };

static kr_idle_blocks idle;
static kr_freed_blocks freed;
static uint8_t marks[KR_IDLE_BLOCKS + 2]; /* stand for blocks that are never written to */

static void give(uint8_t *bytes, int64_t touched, int kind) {
    kr_idle_block given = {bytes, LARGE, touched, kind, 0};
    kr_idle_give(&idle, given, &freed);
}

static uint8_t *take(int64_t capacity, int kind) { return kr_idle_take(&idle, &capacity, kind); }

static void begin(void) {
    memset(&idle, 0, sizeof idle);
    freed.count = 0;
}

static void test_touched_bytes(void) {
    uint8_t *block = kr_fresh_large_block(LARGE);
    CHECK_INT(0, (int64_t)(uintptr_t)block % KR_LARGE_PAGE);
    CHECK_TRUE(kr_touched_bytes(block, LARGE) <= OF_ALLOCATION);
    block[5 << 20] = 1;
    int64_t touched = kr_touched_bytes(block, LARGE);
    CHECK_TRUE(touched > 0 && touched <= KR_LARGE_PAGE + OF_ALLOCATION);
    memset(block, 1, LARGE);
    CHECK_INT(LARGE, kr_touched_bytes(block, LARGE));
    CHECK_TRUE(kr_offer_bytes(block, LARGE));
    memset(block, 2, LARGE); /* of use again */
    CHECK_INT(2, block[LARGE - 1]);
    free(block);
}

static void test_the_last_of_its_kind_is_taken(void) {
    begin();
    give(marks, 10, 1);
    give(marks + 1, 20, 1);
    give(marks + 2, 30, 2);
    CHECK_INT(60, idle.held);
    CHECK_TRUE(!take(LARGE, 3));
    CHECK_TRUE(!take(LARGE / 2, 1));
    CHECK_TRUE(take(LARGE, 1) == marks + 1);
    CHECK_TRUE(take(LARGE, 1) == marks);
    CHECK_TRUE(!take(LARGE, 1));
    CHECK_INT(30, idle.held);
    CHECK_INT(1, idle.count);
}

static void test_the_closest_capacity_is_taken(void) {
    int64_t wanted = LARGE / 4 * 3;
    begin();
    give(marks, 1, 0);
    kr_idle_give(&idle, (kr_idle_block){marks + 1, LARGE / 8 * 7, 1, 0, 0}, &freed);
    kr_idle_give(&idle, (kr_idle_block){marks + 2, LARGE / 8 * 5, 1, 0, 0}, &freed); /* too small */
    CHECK_TRUE(kr_idle_take(&idle, &wanted, 0) == marks + 1);
    CHECK_INT(LARGE / 8 * 7, wanted);
    wanted = LARGE / 4 * 3;
    CHECK_TRUE(kr_idle_take(&idle, &wanted, 0) == marks);
    CHECK_INT(LARGE, wanted);
    CHECK_INT(1, idle.held);
}

static void test_the_oldest_are_freed(void) {
    begin();
    give(marks, KR_IDLE_MOST / 2, 0);
    give(marks + 1, KR_IDLE_MOST / 2, 0);
    CHECK_INT(0, freed.count);
    give(marks + 2, 1, 0);
    CHECK_INT(1, freed.count);
    CHECK_TRUE(freed.block[0] == marks);
    CHECK_INT(KR_IDLE_MOST / 2 + 1, idle.held + idle.offered);
    give(marks + 3, KR_IDLE_MOST + 1, 0); /* too large by itself: the others stay */
    CHECK_INT(2, freed.count);
    CHECK_TRUE(freed.block[1] == marks + 3);
    CHECK_INT(2, idle.count);
    begin();
    for (int i = 0; i <= KR_IDLE_BLOCKS; i++) give(marks + i, 1, 0);
    CHECK_INT(KR_IDLE_BLOCKS, idle.count);
    CHECK_INT(1, freed.count);
    CHECK_TRUE(freed.block[0] == marks && take(LARGE, 0) == marks + KR_IDLE_BLOCKS);
}

static void test_the_oldest_are_offered(void) {
    uint8_t *blocks[] = {kr_fresh_large_block(LARGE), kr_fresh_large_block(LARGE), kr_fresh_large_block(LARGE)};
    begin();
    for (int i = 0; i < 3; i++) give(blocks[i], LARGE, 0);
    CHECK_TRUE(kr_idle_hold(&idle, 3 * LARGE));
    CHECK_INT(0, idle.offered);
    CHECK_TRUE(kr_idle_hold(&idle, 2 * LARGE - 1));
    CHECK_INT(2 * LARGE, idle.offered);
    CHECK_INT(LARGE, idle.held);
    CHECK_TRUE(idle.block[0].is_offered && idle.block[1].is_offered && !idle.block[2].is_offered);
    for (int i = 2; i >= 0; i--) CHECK_TRUE(take(LARGE, 0) == blocks[i]);
    CHECK_INT(0, idle.offered + idle.held);
    for (int i = 0; i < 3; i++) free(blocks[i]);
}

int main(void) {
    test_touched_bytes();
    test_the_last_of_its_kind_is_taken();
    test_the_closest_capacity_is_taken();
    test_the_oldest_are_freed();
    test_the_oldest_are_offered();
    return check_report("idle_blocks");
}
