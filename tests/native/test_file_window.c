/* input/file_window.h: whatever is asked for, held or not, the bytes in the window are those of the file. */
#include "bytes.h"
#include "check.h"
#include "input/file_window.h"

enum { FILE_BYTES = 20000, USUAL = 500, MOST_HELD = 4000, MOVES = 20000 };

static uint8_t file_bytes[FILE_BYTES];
static int64_t most_capacity, read_bytes;

static int64_t below(int64_t n) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (int64_t)(random_state >> 33) % n;
}

static uint8_t *grow(kr_window *w, int64_t capacity, const uint8_t *kept, int64_t size) {
    uint8_t *block = malloc((size_t)capacity); /* that size: the sanitizer sees what is read behind it */
    if (size) memcpy(block, kept, (size_t)size);
    free(w->block);
    w->block = block;
    w->capacity = capacity;
    if (capacity > most_capacity) most_capacity = capacity;
    return block;
}

static int64_t fill(kr_window *w, uint8_t *target, int64_t start, int64_t size) {
    CHECK_TRUE(target >= w->block && target + size <= w->block + w->capacity);
    memcpy(target, file_bytes + start, (size_t)size);
    read_bytes += size;
    return size;
}

static kr_input open_window(kr_window *w) {
    kr_input in = kr_input_make(0, FILE_BYTES);
    memset(w, 0, sizeof *w);
    w->file = -1;
    w->grow = grow;
    w->fill = fill;
    in.until = 0;
    in.move = kr_window_move;
    in.owner = w;
    in.ahead = in.window_bytes = USUAL;
    in.stop = FILE_BYTES;
    most_capacity = read_bytes = 0;
    return in;
}

static void check_window(const kr_input *in, int64_t a, int64_t b) {
    CHECK_TRUE(in->from <= a && b <= in->until);
    const kr_window *w = (const kr_window *)in->owner;
    CHECK_TRUE(in->start + in->from >= w->block);
    CHECK_BYTES(file_bytes + in->from, in->until - in->from, in->start + in->from, in->until - in->from);
}

static void test_bytes_of_the_file(void) {
    kr_window w;
    kr_input in = open_window(&w);
    int64_t a = 0;
    for (int move = 0; move < MOVES; move++) {
        in.is_held = below(3) > 0;
        int64_t most = in.is_held ? MOST_HELD : 2 * USUAL;
        a = below(50) ? a + below(300) : below(FILE_BYTES);
        if (a >= FILE_BYTES) a = 0;
        int64_t b = a + 1 + below(most);
        if (b > FILE_BYTES) b = FILE_BYTES;
        CHECK_TRUE(kr_need(&in, a, b));
        check_window(&in, a, b);
    }
    CHECK_TRUE(most_capacity <= 2 * MOST_HELD);
    free(w.block);
}

/* A window that is not held is as large as what is asked for; bytes that are in it are not read again. */
static void test_room(void) {
    kr_window w;
    kr_input in = open_window(&w);
    CHECK_TRUE(kr_need(&in, 0, 10));
    CHECK_INT(USUAL, in.until);
    CHECK_TRUE(kr_need(&in, 100, 3000));
    CHECK_INT(2900, most_capacity);
    in.is_held = 1;
    for (int64_t end = 3100; end <= 4100; end += 100) CHECK_TRUE(kr_need(&in, 100, end));
    CHECK_INT(4100, read_bytes);
    CHECK_INT(6000, most_capacity);
    check_window(&in, 100, 4100);
    in.is_held = 0;
    CHECK_TRUE(kr_need(&in, 4050, 4200));
    CHECK_TRUE(in.start + 4050 == w.block);
    free(w.block);
}

int main(void) {
    for (int64_t i = 0; i < FILE_BYTES; i++) file_bytes[i] = (uint8_t)below(256);
    test_bytes_of_the_file();
    test_room();
    return check_report("file_window");
}
