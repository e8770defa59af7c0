/* Decoders and encoders of their own in several threads, over the same input, with what they share: blocks and contexts
 * that are used again, and tables of checksums. ci/sanitize runs it under ThreadSanitizer as well. */
#include <pthread.h>

#include "base/block_pool.h"
#include "compression/context_pool.h"
#include "drive.h"
#include "record/encoder.h"

enum { THREADS = 4, ROUNDS = 300, BATCHES = 20, RECORDS = 10 };

static bytes input;
static kr_context_pool contexts;

typedef struct {
    int number;
    int64_t rows, sum, encoded;
    int was_shared; /* whether memory of another thread was seen */
} work;

/* Fills a block and looks whether another thread wrote into it meanwhile. */
static void use_block(work *w) {
    int64_t capacity = (int64_t)1 << (KR_POOL_FIRST + w->number % 3);
    uint8_t *block = kr_take_pooled(&capacity, 0);
    if (!block) abort();
    memset(block, w->number, (size_t)capacity);
    for (int64_t i = 0; i < capacity; i++) w->was_shared |= block[i] != w->number;
    kr_give_pooled(block, capacity, 0);
}

static void use_context(work *w) {
    int *context = kr_context_take(&contexts, w->number % 2);
    if (!context) context = malloc(sizeof *context);
    if (!context) abort();
    *context = w->number;
    w->was_shared |= *context != w->number;
    if (!kr_context_give(&contexts, w->number % 2, context)) free(context);
}

static void decode_all(work *w) {
    drive v;
    drive_open(&v, input.at, input.size, BATCHES * RECORDS, BYTES_CAPACITY);
    if (kr_decoder_run(&v.d) != KR_END) abort();
    w->rows += v.d.columns.rows;
    for (int64_t i = 0; i < v.d.columns.rows; i++) w->sum += v.d.columns.offset[i];
    room_free(&v.d.columns); /* checks are counted by one thread alone */
    exact_free(v.input, v.size);
}

static void encode_some(work *w) {
    static const int32_t ends[] = {0, 1, 3, 6};
    static uint8_t data[6 + KR_PADDING] = "abcdef";
    uint8_t out[1024];
    kr_source s;
    kr_encoder e;
    memset(&s, 0, sizeof s);
    memset(&e, 0, sizeof e);
    s.rows = 3;
    s.value.ends = ends;
    s.value.data = data;
    s.value.data_size = 6;
    e.max_batch_bytes = sizeof out;
    e.max_batch_records = 100;
    e.out = out;
    e.capacity = sizeof out;
    e.batch_at = -1;
    if (kr_encoder_run(&e, &s) != KR_OK) abort();
    kr_encoder_close_batch(&e);
    w->encoded += e.written;
}

static void *run(void *argument) {
    work *w = argument;
    for (int i = 0; i < ROUNDS; i++) {
        use_block(w);
        use_context(w);
        decode_all(w);
        encode_some(w);
    }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    work works[THREADS];
    memset(works, 0, sizeof works);
    kr_crc_init();
    for (int64_t i = 0; i < BATCHES; i++) put_small_batch(&input, i * RECORDS, RECORDS);
    for (int i = 0; i < THREADS; i++) {
        works[i].number = i;
        if (pthread_create(&threads[i], 0, run, &works[i])) abort();
    }
    for (int i = 0; i < THREADS; i++) {
        if (pthread_join(threads[i], 0)) abort();
        CHECK_INT((int64_t)ROUNDS * BATCHES * RECORDS, works[i].rows);
        CHECK_INT((int64_t)ROUNDS * (BATCHES * RECORDS) * (BATCHES * RECORDS - 1) / 2, works[i].sum);
        CHECK_INT(works[0].encoded, works[i].encoded);
        CHECK_INT(0, works[i].was_shared);
    }
    while (contexts.count) free(contexts.kept[--contexts.count]);
    return check_report("threads");
}
