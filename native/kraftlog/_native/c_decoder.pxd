from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t

from kraftlog._native.memory cimport kr_input


cdef extern from "base/status.h" nogil:
    enum kr_status:
        KR_OK
        KR_END
        KR_CHUNK_FULL
        KR_NEEDS_ROOM
        KR_NEEDS_DECOMPRESSION
        KR_NEEDS_TRANSACTIONS
        KR_UNREADABLE
        KR_DECOMPRESSION_FAILED
        KR_DECOMPRESSION_LIMIT
        KR_RECORD_TOO_LARGE
        KR_BAD_CRC
        KR_STATUS_COUNT

    enum:
        KR_REST
    const char *kr_status_codes[]
    const char *kr_status_texts[]

    ctypedef struct kr_error:
        int32_t status
        int32_t record_index
        int64_t position
        int64_t expected
        int64_t actual
        int64_t lost


cdef extern from "batch/batch.h" nogil:
    enum:
        KR_LOG_OVERHEAD
        KR_RECORD_BATCH_OVERHEAD
        KR_COMPRESSION_MASK
        KR_TIMESTAMP_TYPE_BIT
        KR_TRANSACTIONAL_BIT
        KR_CONTROL_BIT
        KR_DELETE_HORIZON_BIT
        KR_LAST_COMPRESSION
        KR_LEGACY_MIN_LENGTH_V0

    ctypedef struct kr_batch_header:
        int64_t position
        int64_t base_offset
        int32_t batch_length
        int32_t rows
        int8_t magic

    int kr_compression(const kr_batch_header *h)
    int kr_header_read(kr_input *input, int64_t position, kr_batch_header *h, kr_error *e)


cdef extern from "record/columns.h" nogil:
    enum:
        KR_PADDING

    enum kr_column:
        KR_COLUMN_VALUE
        KR_COLUMN_OFFSET
        KR_COLUMN_TIMESTAMP_MS
        KR_COLUMN_CONTROL_TYPE
        KR_COLUMN_COUNT

    enum kr_want:
        KR_ONLY_MARKERS
        KR_EVERY_BATCH
        KR_FROM_HEADERS
        KR_HEADER_COLUMNS
        KR_VIEWS

    const char *kr_column_names[]

    ctypedef struct kr_columns:
        int64_t rows, batches
        int64_t *offset
        int64_t *timestamp_ms
        int16_t *control_type
        int64_t view_origin
        kr_batch_header *batch


cdef extern from "text/utf8.h" nogil:
    enum:
        KR_UTF8_GROWTH


cdef extern from "text/search.h" nogil:
    enum:
        KR_TEXT_BYTES

    ctypedef struct kr_text:
        const uint8_t *text
        int32_t size, first, second, clause

    ctypedef struct kr_texts:
        const kr_text *texts
        int32_t count, ignores_case


cdef extern from "record/decoder.h" nogil:
    enum:
        KR_MAX_FAULTS

    ctypedef struct kr_fault:
        kr_error error
        int64_t batch_position
        int64_t base_offset
        int64_t skipped

    ctypedef struct kr_aborted:
        int64_t producer_id, first, marker

    ctypedef struct kr_decoder:
        kr_input input
        int64_t position, end
        uint32_t want
        int8_t check_crc
        int8_t include_control
        int8_t strict
        int64_t start_offset, end_offset, start_timestamp
        const kr_aborted *aborted
        int64_t aborted_count
        int8_t aborted_by_offset, follows
        int64_t known
        const kr_texts *texts
        kr_columns columns
        kr_fault faults[16]
        int32_t faults_count
        int64_t torn_at, hidden_records
        int64_t next_offset
        kr_batch_header batch
        const uint8_t *payload
        int64_t payload_size

    int kr_decoder_run(kr_decoder *d)
    int kr_pass_decompressed(kr_decoder *d, const uint8_t *data, int64_t size)
    int kr_decode_decompressed(kr_decoder *d, const uint8_t *data, int64_t size)
    void kr_decompression_failed(kr_decoder *d, int status, int64_t expected)


cdef extern from "record/chunk_size.h" nogil:
    void kr_size_chunk(kr_decoder *d, int64_t most_rows, int64_t most_bytes)


cdef extern from "batch/step.h" nogil:
    enum kr_check:
        KR_CHECK_LENGTH
        KR_CHECK_ALL
        KR_CHECK_CONTROL


cdef extern from "batch/scanner.h" nogil:
    ctypedef struct kr_scanner:
        kr_input input
        int64_t position, end
        int8_t check
        kr_error error
        int64_t fault_at, torn_at

    int kr_scanner_run(kr_scanner *s, kr_batch_header *out, int64_t max, int64_t *count)
    int64_t kr_scanner_skip(kr_scanner *s, int64_t least)
