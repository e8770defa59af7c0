/* Usage: walks decode|headers|scan|encode FILE. Does a walk over a small log once, in `measured`, whose instructions
 * bench/instructions.py counts; prints how many records it met, of a scan how many batches. */
#include "batch/scanner.h"
#include "drive.h"
#include "record/encoder.h"

enum { ENCODED_BATCH_BYTES = 64 << 10, COLUMNS = KR_WANT_KEY | KR_WANT_VALUE | KR_WANT_OFFSET };

typedef struct {
    drive reader;
    kr_scanner scanner;
    kr_batch_header *headers;
    int64_t headers_count, most_headers;
    kr_encoder encoder;
    kr_source source;
} walk;

static __attribute__((noinline)) int measured(walk *w, int (*run)(walk *)) { return run(w); }

static int decode(walk *w) { return kr_decoder_run(&w->reader.d); }

static int scan(walk *w) { return kr_scanner_run(&w->scanner, w->headers, w->most_headers, &w->headers_count); }

static int encode(walk *w) { return kr_encoder_run(&w->encoder, &w->source); }

static uint8_t *load(const char *name, int64_t *size) {
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END)) abort();
    *size = ftell(file);
    uint8_t *p = room_block(*size);
    rewind(file);
    if (fread(p, 1, (size_t)*size, file) != (size_t)*size) abort();
    fclose(file);
    return p;
}

static int64_t run(walk *w, int (*what)(walk *), int expected, int is_measured) {
    int status = is_measured ? measured(w, what) : what(w);
    if (status != expected || w->reader.d.faults_count) {
        fprintf(stderr, "status %d, %d faults\n", status, (int)w->reader.d.faults_count);
        exit(1);
    }
    return w->reader.d.columns.rows;
}

static kr_lent_binary source_of(const kr_binary_column *c, int64_t rows) {
    kr_lent_binary s = {0};
    s.ends = c->ends;
    s.data = c->data;
    s.data_size = c->ends[rows];
    return s;
}

static void prepare_encoder(walk *w, int64_t size) {
    const kr_columns *c = &w->reader.d.columns;
    w->source.rows = c->rows;
    w->source.key = source_of(&c->key, c->rows);
    w->source.value = source_of(&c->value, c->rows);
    w->source.timestamp = c->timestamp_ms;
    w->encoder.producer_id = w->encoder.timestamp = w->encoder.batch_at = -1;
    w->encoder.max_batch_bytes = ENCODED_BATCH_BYTES;
    w->encoder.max_batch_records = INT32_MAX;
    w->encoder.out = room_block(2 * size + KR_PADDING);
    w->encoder.capacity = 2 * size;
}

int main(int count, char **arguments) {
    static walk w;
    int64_t size, met;
    if (count != 3) return 2;
    const char *name = arguments[1];
    int is_encode = !strcmp(name, "encode"), is_headers = !strcmp(name, "headers");
    kr_crc_init();
    uint8_t *log = load(arguments[2], &size);
    drive_open(&w.reader, log, size, size / KR_SMALLEST_RECORD, size);
    w.reader.d.want =
        COLUMNS | (is_encode ? KR_WANT_TIMESTAMP_MS : KR_WANT_TIMESTAMP) | (is_headers ? KR_WANT_HEADERS : 0);
    if (!strcmp(name, "scan")) {
        w.scanner.input = kr_input_make(log, size);
        w.scanner.end = size;
        w.scanner.torn_at = -1;
        w.most_headers = size / KR_RECORD_BATCH_OVERHEAD;
        w.headers = room_block(w.most_headers * (int64_t)sizeof *w.headers);
        run(&w, scan, KR_END, 1);
        met = w.headers_count;
    } else if (is_encode) {
        met = run(&w, decode, KR_END, 0);
        prepare_encoder(&w, size);
        run(&w, encode, KR_OK, 1);
    } else {
        met = run(&w, decode, KR_END, 1);
    }
    printf("%lld\n", (long long)met);
    return 0;
}
