/* base/hash_index.h: entries of few hashes, put, found and taken out at random, against a list of them. */
#include "base/hash_index.h"
#include "check.h"

enum { SLOTS = 400, STEPS = 60000 };

typedef struct {
    uint32_t hashes[SLOTS];
    uint8_t is_there[SLOTS];
    int64_t count;
} model;

/* The place of a slot by its hash, as tables look for it; -1 when it is not found. */
static int64_t place_of(const kr_hash_index *x, uint32_t hash, int32_t slot) {
    const int64_t *entries = kr_index_entries(x);
    int64_t at = kr_index_seek(x, hash, kr_index_home(x, hash));
    for (; entries[at] != KR_NO_SLOT; at = kr_index_seek(x, hash, kr_index_next(x, at)))
        if (kr_entry_slot(entries[at]) == slot) return at;
    return -1;
}

/* Hashes that crowd: few of them, from both ends of the table, so that runs go on at its start. */
static uint32_t crowded(int64_t spread) {
    uint32_t hash = (uint32_t)random_below(spread);
    return random_below(2) ? UINT32_MAX - hash : hash;
}

static void check_all(const kr_hash_index *x, const model *m) {
    CHECK_INT(m->count, x->used);
    for (int32_t slot = 0; slot < SLOTS; slot++) CHECK_INT(m->is_there[slot], place_of(x, m->hashes[slot], slot) >= 0);
}

static void test_against_list(int64_t spread, int sparse) {
    static model m;
    kr_hash_index x;
    memset(&m, 0, sizeof m);
    CHECK_TRUE(kr_index_open(&x));
    for (int step = 0; step < STEPS && !failures; step++) {
        int32_t slot = (int32_t)random_below(step % 8000 < 4000 ? SLOTS : 20); /* it fills, and empties again */
        if (!m.is_there[slot]) {
            m.hashes[slot] = crowded(spread);
            CHECK_INT(-1, place_of(&x, m.hashes[slot], slot));
            CHECK_TRUE(kr_index_reserve(&x, sparse));
            kr_index_put(&x, kr_entry_of(m.hashes[slot], slot));
        } else {
            kr_index_remove(&x, place_of(&x, m.hashes[slot], slot));
        }
        m.is_there[slot] = !m.is_there[slot];
        m.count += m.is_there[slot] ? 1 : -1;
        CHECK_TRUE(sparse * x.used <= x.mask + 1);
        if (step % 500 == 0) check_all(&x, &m);
    }
    check_all(&x, &m);
    kr_growing_free(&x.entries);
}

int main(void) {
    test_against_list(1, 2);
    test_against_list(40, 2);
    test_against_list(5000, 2);
    test_against_list(300, 4);
    return check_report("hash_index");
}
