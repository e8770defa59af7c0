from libc.stdint cimport int64_t, uint8_t


cdef extern from "compression/compressed_frames.h" nogil:
    enum:
        KR_LZ4_HEADER

    int64_t kr_zstd_frames(const uint8_t *data, int64_t size, int64_t *most)
    int64_t kr_lz4_most(const uint8_t *data, int64_t size)
    int64_t kr_lz4_header_size(const uint8_t *data, int64_t size)
    uint8_t kr_lz4_header_checksum(const uint8_t *data, int64_t header)
    void kr_lz4_plain_header(const uint8_t *data, uint8_t *plain)
    int64_t kr_gzip_guess(const uint8_t *data, int64_t size)
    int kr_gzip_follows(const uint8_t *data, int64_t size)


cdef extern from "compression/snappy.h" nogil:
    int64_t kr_snappy_most(const uint8_t *data, int64_t size)
    int64_t kr_snappy_decompress(const uint8_t *data, int64_t size, uint8_t *out, int64_t room)
    int64_t kr_snappy_bound(int64_t size)
    int64_t kr_snappy_compress(const uint8_t *data, int64_t size, uint8_t *out)


cdef extern from "compression/context_pool.h" nogil:
    ctypedef struct kr_context_pool:
        pass

    void *kr_context_take(kr_context_pool *pool, int kind)
    int kr_context_give(kr_context_pool *pool, int kind, void *context)


cdef extern from "compression/codecs.h" nogil:
    enum:
        KR_LZ4_VERSION

    ctypedef struct kr_libzstd:
        void *(*create_context)() noexcept nogil
        size_t (*free_context)(void *context) noexcept nogil
        size_t (*decompress)(void *context, void *out, size_t room, const void *data, size_t size) noexcept nogil
        void *(*create_compressor)() noexcept nogil
        size_t (*free_compressor)(void *context) noexcept nogil
        size_t (*compress)(void *context, void *out, size_t room, const void *data, size_t size, int level) noexcept nogil
        size_t (*compress_bound)(size_t size) noexcept nogil
        unsigned (*is_error)(size_t code) noexcept nogil

    ctypedef struct kr_lz4_preferences:
        pass

    ctypedef struct kr_liblz4:
        size_t (*create_context)(void **context, unsigned version) noexcept nogil
        size_t (*free_context)(void *context) noexcept nogil
        void *decompress
        size_t (*compress)(void *out, size_t room, const void *data, size_t size,
                           const kr_lz4_preferences *preferences) noexcept nogil
        size_t (*compress_bound)(size_t size, const kr_lz4_preferences *preferences) noexcept nogil
        unsigned (*is_error)(size_t code) noexcept nogil

    ctypedef struct kr_libdeflate:
        void *(*create_context)() noexcept nogil
        void (*free_context)(void *context) noexcept nogil
        void *decompress
        void *(*create_compressor)(int level) noexcept nogil
        void (*free_compressor)(void *context) noexcept nogil
        size_t (*compress)(void *context, const void *data, size_t size, void *out, size_t room) noexcept nogil
        size_t (*compress_bound)(void *context, size_t size) noexcept nogil

    ctypedef struct kr_plain:
        uint8_t *out
        int64_t room, size
        const char *detail

    int kr_zstd_decompress(const kr_libzstd *lib, void *context, const uint8_t *data, int64_t size, kr_plain *plain)
    int kr_lz4_decompress(const kr_liblz4 *lib, void *context, const uint8_t *data, int64_t size, kr_plain *plain)
    int kr_gzip_decompress(const kr_libdeflate *lib, void *context, const uint8_t *data, int64_t size, int64_t *at,
                           kr_plain *plain)
    kr_lz4_preferences kr_lz4_prefer(int level)
