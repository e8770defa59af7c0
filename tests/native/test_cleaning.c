/* cleaning/offset_map.h: two keys of the same hash are two keys. cleaning/kept_records.h: every choice of a few
 * records, at any cut. cleaning/rewritten_records.h: records with the contents of others, at any cut. */
#include "cleaning.h"

enum { KEY = 12, SEED = 5, KEYS = 50 };

/* Keys whose hash is the same whatever their last bytes are: the first factor of kr_mixed is 0. */
static void make_colliding_keys(map_rows *r, uint8_t *text) {
    kr_key_slots s = {.seed = SEED};
    uint64_t first = 0x9E3779B97F4A7C15ull ^ (s.seed ^ (uint64_t)KEY << 32);
    memset(r, 0, sizeof *r);
    memset(r->valid, 0xff, sizeof r->valid);
    for (int i = 0; i < KEYS; i++) {
        memcpy(text + KEY * i, &first, 8);
        set_big_endian(text + KEY * i + 8, i, 4);
        r->ends[i + 1] = KEY * (i + 1);
        r->offsets[i] = i;
        r->wanted[i] = 1;
        CHECK_TRUE(kr_key_hash(&s, KR_MAP_TYPE, text, KEY) == kr_key_hash(&s, KR_MAP_TYPE, text + KEY * i, KEY));
    }
    r->n = KEYS;
    r->keys = (kr_lent_binary){.ends = r->ends, .data = text, .validity = r->valid};
}

static void test_keys_of_the_same_hash(void) {
    static map_rows r;
    uint8_t text[KEY * KEYS], is_superseded[KEYS];
    kr_offset_map m;
    make_colliding_keys(&r, text);
    CHECK_TRUE(kr_offset_map_open(&m, SEED, 1 << 20));
    CHECK_INT(KEYS, kr_offset_map_put(&m, &r.keys, r.offsets, r.wanted, 0, KEYS));
    CHECK_INT(KEYS, m.slots.index.used);
    kr_offset_map_superseded(&m, &r.keys, r.offsets, KEYS, is_superseded);
    for (int i = 0; i < KEYS; i++) CHECK_INT(0, is_superseded[i]);
    kr_offset_map_close(&m);
}

static void test_every_choice_at_every_cut(void) {
    static const char *const headers[] = {"name", "value", "", 0, 0};
    static bytes records;
    static const int64_t deltas[] = {7, 0, -3, 1ll << 40};
    enum { COUNT = sizeof deltas / sizeof *deltas };
    uint8_t keeps[COUNT + 1] = {0};
    for (int i = 0; i < COUNT; i++) put_record(&records, deltas[i], i, i ? "key" : 0, i == 2 ? 0 : "value", headers);
    for (int choice = 0; choice < 1 << COUNT; choice++) {
        for (int i = 0; i < COUNT; i++) keeps[i] = (uint8_t)(choice >> i & 1);
        for (int64_t cut = 0; cut <= records.size; cut++) {
            uint8_t *p = exact_copy(records.at, cut);
            if (!choice) check_rewritten(p, cut);
            for (int64_t count = COUNT - 1; count <= COUNT + 1; count++) {
                kr_filter f = {p, cut, keeps, count, 1000};
                check_kept(&f, 0, 0);
                check_kept(&f, 1, INT64_MIN);
            }
            exact_free(p, cut);
        }
    }
}

int main(void) {
    test_keys_of_the_same_hash();
    test_every_choice_at_every_cut();
    return check_report("cleaning");
}
