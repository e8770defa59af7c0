/* zstd, lz4 and gzip by the functions of libzstd, liblz4 and libdeflate, which the caller finds at run time.
 *
 * The declarations repeat what is stable in the interfaces of these libraries (zstd.h, lz4frame.h, libdeflate.h). An
 * address that is NULL means that the library was not found; then the functions here must not be called.
 */
#ifndef KRAFTLOG_COMPRESSION_CODECS_H
#define KRAFTLOG_COMPRESSION_CODECS_H

#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "compression/compressed_frames.h"
#include "compression/snappy.h"

typedef struct {
    void *(*create_context)(void);
    size_t (*free_context)(void *context);
    size_t (*decompress)(void *context, void *out, size_t room, const void *data, size_t size);
    void *(*create_compressor)(void);
    size_t (*free_compressor)(void *context);
    size_t (*compress)(void *context, void *out, size_t room, const void *data, size_t size, int level);
    size_t (*compress_bound)(size_t size);
    unsigned (*is_error)(size_t code);
    const char *(*error_name)(size_t code);
} kr_libzstd;

typedef struct {
    unsigned stable_out, skip_checksums, reserved[2];
} kr_lz4_options;

typedef struct {
    int block_size, block_mode, content_checksum, frame_type;
    unsigned long long content_size;
    unsigned dictionary_id;
    int block_checksum;
    int level;
    unsigned auto_flush, favor_decompression, reserved[3];
} kr_lz4_preferences;

enum { KR_LZ4_BLOCKS_64_KIB = 4, KR_LZ4_INDEPENDENT_BLOCKS = 1, KR_LZ4_VERSION = 100, KR_ZSTD_NO_ROOM = 70 };

typedef struct {
    size_t (*create_context)(void **context, unsigned version);
    size_t (*free_context)(void *context);
    void (*reset_context)(void *context);
    size_t (*decompress)(void *context, void *out, size_t *room, const void *data, size_t *size,
                         const kr_lz4_options *options);
    size_t (*compress)(void *out, size_t room, const void *data, size_t size, const kr_lz4_preferences *preferences);
    size_t (*compress_bound)(size_t size, const kr_lz4_preferences *preferences);
    unsigned (*is_error)(size_t code);
    const char *(*error_name)(size_t code);
} kr_liblz4;

enum { KR_DEFLATE_OK, KR_DEFLATE_BAD_DATA, KR_DEFLATE_SHORT_OUTPUT, KR_DEFLATE_NO_ROOM };

typedef struct {
    void *(*create_context)(void);
    void (*free_context)(void *context);
    int (*decompress)(void *context, const void *data, size_t size, void *out, size_t room, size_t *used, size_t *made);
    void *(*create_compressor)(int level);
    void (*free_compressor)(void *context);
    size_t (*compress)(void *context, const void *data, size_t size, void *out, size_t room);
    size_t (*compress_bound)(void *context, size_t size);
} kr_libdeflate;

/* Plain bytes are put into out[0, room). `size` is set; `detail` says what is wrong with KR_DECOMPRESSION_FAILED.
 * KR_DECOMPRESSION_LIMIT: they do not fit. */
typedef struct {
    uint8_t *out;
    int64_t room, size;
    const char *detail;
} kr_plain;

static inline int kr_zstd_decompress(const kr_libzstd *lib, void *context, const uint8_t *data, int64_t size,
                                     kr_plain *plain) {
    size_t made = lib->decompress(context, plain->out, (size_t)plain->room, data, (size_t)size);
    if (made == (size_t)-KR_ZSTD_NO_ROOM) return KR_DECOMPRESSION_LIMIT;
    if (lib->is_error(made)) {
        plain->detail = lib->error_name(made);
        return KR_DECOMPRESSION_FAILED;
    }
    plain->size = (int64_t)made;
    return KR_OK;
}

/* Feeds data[0, size) to the frame that is open. `left`: 0 when the frame ended. */
static inline int kr_lz4_feed(const kr_liblz4 *lib, void *context, const uint8_t *data, int64_t size, kr_plain *plain,
                              size_t *left) {
    const kr_lz4_options options = {1, 0, {0, 0}};
    const uint8_t *end = data + size;
    size_t made, used;
    do {
        made = (size_t)(plain->room - plain->size);
        used = (size_t)(end - data);
        *left = lib->decompress(context, plain->out + plain->size, &made, data, &used, &options);
        if (lib->is_error(*left)) {
            plain->detail = lib->error_name(*left);
            return KR_DECOMPRESSION_FAILED;
        }
        plain->size += (int64_t)made;
        data += used;
    } while (*left && (made || used));
    return KR_OK;
}

/* One frame, of which kr_lz4_most knows; what is behind it is not read. The checksum of its header is not looked at. */
static inline int kr_lz4_decompress(const kr_liblz4 *lib, void *context, const uint8_t *data, int64_t size,
                                    kr_plain *plain) {
    uint8_t header[KR_LZ4_HEADER];
    int64_t header_size = kr_lz4_header_size(data, size);
    size_t left = 1;
    plain->size = 0;
    lib->reset_context(context);
    kr_lz4_plain_header(data, header);
    int status = kr_lz4_feed(lib, context, header, KR_LZ4_HEADER, plain, &left);
    if (status == KR_OK) status = kr_lz4_feed(lib, context, data + header_size, size - header_size, plain, &left);
    if (status != KR_OK || !left) return status;
    if (plain->size == plain->room) return KR_DECOMPRESSION_LIMIT;
    plain->detail = "the frame ends early";
    return KR_DECOMPRESSION_FAILED;
}

/* The members of a gzip stream from byte *at on, one behind the other, as Java reads them. KR_NEEDS_ROOM: to be called
 * again with more room, and what is there kept. */
static inline int kr_gzip_decompress(const kr_libdeflate *lib, void *context, const uint8_t *data, int64_t size,
                                     int64_t *at, kr_plain *plain) {
    if (*at == 0 && kr_gzip_header_size(data, size) < 0) {
        plain->detail = "the header is damaged, or none";
        return KR_DECOMPRESSION_FAILED;
    }
    do {
        size_t used = 0, made = 0, left = (size_t)(size - *at);
        int result = lib->decompress(context, data + *at, left, plain->out + plain->size,
                                     (size_t)(plain->room - plain->size), &used, &made);
        if (result == KR_DEFLATE_NO_ROOM) return KR_NEEDS_ROOM;
        if (result != KR_DEFLATE_OK) {
            plain->detail = "the stream is damaged or ends early";
            return KR_DECOMPRESSION_FAILED;
        }
        *at += (int64_t)used;
        plain->size += (int64_t)made;
    } while (kr_gzip_follows(data + *at, size - *at));
    return KR_OK;
}

/* Independent blocks: Kafka refuses others. */
static inline kr_lz4_preferences kr_lz4_prefer(int level) {
    kr_lz4_preferences preferences;
    memset(&preferences, 0, sizeof preferences);
    preferences.block_size = KR_LZ4_BLOCKS_64_KIB;
    preferences.block_mode = KR_LZ4_INDEPENDENT_BLOCKS;
    preferences.level = level;
    return preferences;
}

#endif
