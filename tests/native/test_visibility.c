/* metadata/visibility.h: random transactions, compared with a search through all of them. */
#include "check.h"
#include "metadata/visibility.h"

enum { TRANSACTIONS = 8, ROWS = 64, BATCHES = 9, ROUNDS = 5000 };

static int64_t first[TRANSACTIONS], last[TRANSACTIONS], end[TRANSACTIONS], markers[2 * TRANSACTIONS], offsets[ROWS];
static int8_t state[TRANSACTIONS];
static kr_batch_header batches[BATCHES];

static void check_row(const kr_metadata_transactions *t, int64_t row, int is_control, int8_t found_state,
                      uint8_t found_shown, int64_t found_at) {
    int64_t at = -1, is_marker = 0;
    for (int64_t i = 0; i < t->n; i++)
        if (first[i] <= offsets[row]) at = i;
    for (int64_t i = 0; i < t->markers_n; i++) is_marker |= markers[i] == offsets[row];
    int is_within = at >= 0 && offsets[row] <= last[at] && !is_control;
    int expected = is_within ? state[at] : KR_NO_TRANSACTION;
    int is_shown = (expected == KR_NO_TRANSACTION || expected == KR_COMMITTED) && !is_marker;
    CHECK_INT(expected, found_state);
    CHECK_INT(is_shown, found_shown);
    CHECK_INT(!is_shown || is_control ? KR_NEVER : is_within ? end[at] : offsets[row], found_at);
}

static void test_random_transactions(void) {
    int8_t states[ROWS];
    uint8_t shown[ROWS];
    int64_t visible_at[ROWS];
    for (int round = 0; round < ROUNDS; round++) {
        kr_metadata_transactions t = {random_below(TRANSACTIONS + 1), 0, first, last, end, state, markers};
        int64_t offset = 0, rows = 0, n = random_below(BATCHES + 1);
        for (int64_t i = 0; i < t.n; i++) {
            first[i] = offset += random_below(5);
            last[i] = offset += random_below(9);
            end[i] = offset;
            state[i] = (int8_t)random_below(4);
            if (!t.markers_n || markers[t.markers_n - 1] < first[i]) markers[t.markers_n++] = first[i];
            if (markers[t.markers_n - 1] < last[i]) markers[t.markers_n++] = last[i];
        }
        for (int64_t i = 0; i < n; i++) {
            batches[i].attributes = random_below(5) ? 0 : KR_CONTROL_BIT;
            batches[i].rows = (int32_t)random_below(ROWS / BATCHES + 1);
            rows += batches[i].rows;
        }
        offset = random_below(9);
        for (int64_t row = 0; row < rows; row++)
            offsets[row] = round % 2 ? offset += random_below(4) : random_below(offset + 80); /* of a damaged log */
        CHECK_INT(rows, kr_metadata_visible(&t, batches, n, offsets, rows, states, shown, visible_at));
        int64_t row = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t stop = row + batches[i].rows; row < stop; row++)
                check_row(&t, row, batches[i].attributes != 0, states[row], shown[row], visible_at[row]);
        if (rows) CHECK_INT(rows, kr_metadata_visible(&t, batches, n, offsets, rows - 1, states, shown, visible_at));
    }
}

int main(void) {
    test_random_transactions();
    return check_report("visibility");
}
