/* json/redact.h: places of plain documents, and documents that are cut, damaged or short of room. */
#include "json/redact.h"

#include "bytes.h"
#include "check.h"

#define CHECK_TEXT(expected, n, found, m) CHECK_BYTES((const uint8_t *)(expected), n, (const uint8_t *)(found), m)

enum { ROOM = 1 << 16, PLACES = 64 };

static const kr_redaction_step steps[] = {
    {KR_REDACT_NAME, 1, (const uint8_t *)"a"}, {KR_REDACT_NAME, 2, (const uint8_t *)"hh"},
    {KR_REDACT_NAME, 1, (const uint8_t *)"l"}, {KR_REDACT_EVERY, 0, 0},
    {KR_REDACT_NAME, 1, (const uint8_t *)"n"}, {KR_REDACT_ITEM, 1, 0},
};
static const kr_redaction_rule rules[] = {
    {steps, 1, KR_REDACT_TO_MASK},
    {steps + 1, 1, KR_REDACT_TO_HASH},
    {steps + 2, 2, KR_REDACT_TO_NULL},
    {steps + 4, 2, KR_REDACT_TO_MASK},
};
static uint8_t out[ROOM];
static kr_redaction_place places[PLACES];

static void open_redactor(kr_redactor *r, int64_t room, int64_t places_room) {
    memset(r, 0, sizeof *r);
    r->rules = rules;
    r->rules_count = sizeof rules / sizeof *rules;
    r->mask = (const uint8_t *)"\"***\"";
    r->mask_size = 5;
    r->out = exact_copy(out, room);
    r->room = room;
    r->places = places;
    r->places_room = places_room;
}

static int redact(kr_redactor *r, const uint8_t *from, int64_t size) {
    uint8_t *p = exact_copy(from, size);
    r->data = p;
    int status = kr_redact(r, p, size);
    exact_free(p, size);
    return status;
}

static const struct {
    const char *from, *to; /* NULL: not plain */
} cases[] = {
    {"{\"a\":1}", "{\"a\":\"***\"}"},
    {" { \"a\" : [ 1 , {} ] , \"b\" : -1.5e+3 } ", "{\"a\":\"***\",\"b\":-1.5e+3}"},
    {" { \"b\" : [ ] } ", " { \"b\" : [ ] } "},
    {"{\"a\":null}", "{\"a\":null}"},
    {"{\"l\":[1,null,\"x\",{\"a\":2}]}", "{\"l\":[null,null,null,null]}"},
    {"{\"n\":[1,2,3]}", "{\"n\":[1,\"***\",3]}"},
    {"{\"n\":[1]}", "{\"n\":[1]}"},
    {"{\"b\":{\"a\":1}}", "{\"b\":{\"a\":1}}"},
    {"{\"a\":1,\"c\":\"\\\"\\\\\\b\\f\\n\\r\\t\xc3\xbc\"}",
     "{\"a\":\"***\",\"c\":\"\\\"\\\\\\b\\f\\n\\r\\t\xc3\xbc\"}"},
    {"1", "1"},
    {"true", "true"},
    {"", 0},
    {" ", 0},
    {"{\"a\":1", 0},
    {"{\"a\":1,}", 0},
    {"{\"a\":01}", 0},
    {"{\"b\":1,\"b\":2}", 0},
    {"{\"\\n\":1}", 0},
    {"{\"c\":\"\\u0061\"}", 0},
    {"{\"c\":\"\\/\"}", 0},
    {"{\"c\":\"\t\"}", 0},
    {"{\"c\":\"\xff\"}", 0},
    {"{\"hh\":[]}", 0},
    {"{\"hh\":\"\\n\"}", 0},
    {"[1,]", 0},
    {"[1 2]", 0},
    {"-", 0},
    {"1.", 0},
    {"1e", 0},
    {"nul", 0},
    {"NaN", 0},
    {"1 1", 0},
};

static void test_documents(void) {
    kr_redactor r;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_redactor(&r, 100, PLACES);
        int status = redact(&r, (const uint8_t *)cases[i].from, (int64_t)strlen(cases[i].from));
        CHECK_INT(cases[i].to ? KR_REDACT_DONE : KR_REDACT_NOT_PLAIN, status);
        const char *to = cases[i].to ? cases[i].to : "";
        CHECK_TEXT(to, strlen(to), r.out, r.written);
        exact_free(r.out, r.room);
    }
}

static const char whole[] =
    "{ \"a\": {\"x\": [1, 2.5]}, \"hh\": \"secret\", \"l\": [7, \"\xc3\xbc\"], \"n\": [0, \"y\"]}";

static void test_places_of_hashes(void) {
    kr_redactor r;
    open_redactor(&r, 400, PLACES);
    CHECK_INT(KR_REDACT_DONE, redact(&r, (const uint8_t *)whole, sizeof whole - 1));
    CHECK_INT(1, r.places_count);
    CHECK_TEXT("secret", 6, whole + places[0].from, places[0].size);
    CHECK_TEXT("\"hh\":\"", 6, r.out + places[0].at - 6, 6);
    CHECK_TEXT("\",\"l\":[null,null],\"n\":[0,\"***\"]}", 32, r.out + places[0].at + KR_REDACT_HASH_DIGITS, 32);
    exact_free(r.out, r.room);
}

/* With any room it is done, or nothing was written. */
static void test_short_of_room(void) {
    kr_redactor r;
    int done = 0;
    for (int64_t room = 0; room < 400; room++) {
        open_redactor(&r, room, PLACES);
        int status = redact(&r, (const uint8_t *)whole, sizeof whole - 1);
        CHECK_INT(done || status == KR_REDACT_DONE ? KR_REDACT_DONE : KR_REDACT_NO_ROOM, status);
        if (status) CHECK_INT(0, r.written + r.places_count);
        done |= status == KR_REDACT_DONE;
        exact_free(r.out, r.room);
    }
    CHECK_TRUE(done);
    open_redactor(&r, 400, 0);
    CHECK_INT(KR_REDACT_NO_ROOM, redact(&r, (const uint8_t *)whole, sizeof whole - 1));
    CHECK_INT(0, r.written);
    exact_free(r.out, r.room);
}

static void test_cut_and_damaged(void) {
    static const char bytes_of_json[] = "{}[]\",:\\u0 -.eatrulsn\x80\xc3\xff";
    kr_redactor r;
    uint8_t changed[sizeof whole - 1];
    for (int64_t n = 0; n < (int64_t)sizeof whole - 1; n++) {
        open_redactor(&r, 400, PLACES);
        CHECK_INT(KR_REDACT_NOT_PLAIN, redact(&r, (const uint8_t *)whole, n));
        exact_free(r.out, r.room);
    }
    for (int i = 0; i < 200000; i++) {
        memcpy(changed, whole, sizeof changed);
        for (int64_t k = random_below(4); k >= 0; k--)
            changed[random_below(sizeof changed)] = (uint8_t)bytes_of_json[random_below(sizeof bytes_of_json)];
        open_redactor(&r, 100 + random_below(200), random_below(3));
        int status = redact(&r, changed, random_below(sizeof changed + 1));
        if (status) CHECK_INT(0, r.written + r.places_count);
        exact_free(r.out, r.room);
    }
}

static void test_names_and_depth(void) {
    static bytes b;
    kr_redactor r;
    for (int count = 1; count < 1200; count += count < 40 ? 1 : 97)
        for (int twin = 0; twin < 2; twin++) {
            char name[32];
            b.size = 0;
            for (int i = 0; i < count; i++) {
                snprintf(name, sizeof name, "%s\"n%d\":1", i ? "," : "{", i);
                put_bytes(&b, name, (int64_t)strlen(name));
            }
            if (twin) put_bytes(&b, ",\"n0\":2", 7);
            put_bytes(&b, "}", 1);
            open_redactor(&r, b.size, PLACES);
            int is_plain = !twin && count <= KR_REDACT_MOST_NAMES;
            CHECK_INT(is_plain ? KR_REDACT_DONE : KR_REDACT_NOT_PLAIN, redact(&r, b.at, b.size));
            exact_free(r.out, r.room);
        }
    for (int depth = 1; depth < 2 * KR_REDACT_MOST_DEPTH; depth++) {
        b.size = 0;
        put_fill(&b, '[', depth);
        put_fill(&b, ']', depth);
        open_redactor(&r, b.size, PLACES);
        CHECK_INT(depth <= KR_REDACT_MOST_DEPTH ? KR_REDACT_DONE : KR_REDACT_NOT_PLAIN, redact(&r, b.at, b.size));
        exact_free(r.out, r.room);
    }
}

static void test_column(void) {
    static const char data[] = "{\"a\":1}x{\"a\":2}";
    static const int64_t from[] = {0, 7, 8, 8, 15};
    const kr_lent_large v = {4, from, (const uint8_t *)data, 15};
    int64_t ends[5] = {0};
    uint8_t is_plain[4];
    kr_redactor r;
    open_redactor(&r, 100, PLACES);
    CHECK_INT(4, kr_redact_column(&r, &v, 0, ends, is_plain));
    CHECK_TEXT("{\"a\":\"***\"}{\"a\":\"***\"}", 22, r.out, r.written);
    CHECK_TEXT("\1\0\0\1", 4, is_plain, 4);
    CHECK_INT(11, ends[1]);
    CHECK_INT(11, ends[3]);
    CHECK_INT(22, ends[4]);
    exact_free(r.out, r.room);
    open_redactor(&r, 12, PLACES);
    CHECK_INT(3, kr_redact_column(&r, &v, 0, ends, is_plain));
    exact_free(r.out, r.room);
}

int main(void) {
    test_documents();
    test_places_of_hashes();
    test_short_of_room();
    test_cut_and_damaged();
    test_names_and_depth();
    test_column();
    return check_report("test_json_redact");
}
