/* Messages of the shape of one before: of the same size, with the same lengths and tags at the same places. One
 * comparison under a mask says so, and each field is then at a known place: nothing is parsed.
 *
 * A shape is made of a row that a generated decoder has read. Its mask has all bits of what says how long something is
 * and which fields there are, and the high bit of each byte of text, which is ASCII then. What is under the mask must
 * be the same; all other bits are values. Keys and values of coordinators are read so: they are text and numbers, and
 * most are alike. (Frames are not: of their messages the tagged fields differ from one to the next.) */
#ifndef KRAFTLOG_MESSAGE_SHAPE_H
#define KRAFTLOG_MESSAGE_SHAPE_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "message/bodies.h"
#include "message/decode.h"

enum { KR_SHAPED_BYTES = 64, KR_SHAPED_FIELDS = 16, KR_SHAPES = 256, KR_SHAPED_STEP = 32 };

/* Where a field is: in the row, or at a place of its own where the row does not have it. */
typedef struct {
    uintptr_t keep;   /* all bits when it is in the row, else none */
    uintptr_t add;    /* the place in the row, or the address of the default */
    int32_t count;    /* elements of a list, or bytes of text */
    uint8_t is_there; /* it is not null */
    uint8_t is_read;  /* the row has it, null or not */
} kr_shaped_field;

/* Rows begin with an int16, and values of fixed width that all of them have: `fixed` bytes. Masks are of those behind.
 */
typedef struct {
    _Alignas(16) uint8_t mask[KR_SHAPED_BYTES];
    _Alignas(16) uint8_t same[KR_SHAPED_BYTES]; /* what rows have under the mask */
    int64_t size;                               /* of rows */
    int32_t head;                               /* the int16 in front of their messages */
    uint32_t has_others;                        /* whether a field that is not prompt is read */
    kr_shaped_field fields[KR_SHAPED_FIELDS];   /* those of the message, in their order */
} kr_message_shape;

/* The shapes of the messages of one type: each has a place of its own, which some of its bytes say. */
typedef struct {
    const kr_message_shape *of[KR_SHAPES];
    uint8_t is_own[KR_SHAPES]; /* else it is one that no row has, of whatever module */
    uint8_t missed[KR_SHAPES]; /* how many rows did not have the shape of their place */
} kr_message_shapes;

static const kr_message_shape kr_no_shape = {.size = -1};

/* The shape of a row that is absent: all its fields are in bytes that are zero. */
static const uint8_t kr_absent_row[KR_PADDING];
static const kr_message_shape kr_absent_shape = {.fields = {[0 ... KR_SHAPED_FIELDS - 1] = {.keep = ~(uintptr_t)0}}};

/* Where the shape of a row of so many bytes is kept. `hint` is a byte that its lengths depend on. */
KR_ALWAYS_INLINE int64_t kr_shape_place(int64_t size, uint8_t hint) { return (size + 37 * hint) & (KR_SHAPES - 1); }

/* Whether KR_SHAPED_STEP bytes are the same under a mask. */
KR_ALWAYS_INLINE int kr_has_same(const uint8_t *p, const uint8_t *mask, const uint8_t *same) {
#if defined(__SSE2__)
    __m128i differing = _mm_setzero_si128();
    for (int k = 0; k < KR_SHAPED_STEP; k += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(p + k));
        bytes = _mm_and_si128(bytes, _mm_load_si128((const __m128i *)(const void *)(mask + k)));
        bytes = _mm_xor_si128(bytes, _mm_load_si128((const __m128i *)(const void *)(same + k)));
        differing = _mm_or_si128(differing, bytes);
    }
    return _mm_movemask_epi8(_mm_cmpeq_epi8(differing, _mm_setzero_si128())) == 0xffff;
#else
    uint64_t differing = 0;
    for (int k = 0; k < KR_SHAPED_STEP; k += 8)
        differing |= (kr_load_word(p + k) & kr_load_word(mask + k)) ^ kr_load_word(same + k);
    return !differing;
#endif
}

/* Whether a row has a shape; there are KR_PADDING bytes behind it. */
KR_ALWAYS_INLINE int kr_has_shape(const kr_message_shape *s, const uint8_t *p, int64_t size, const int fixed) {
    if (KR_UNLIKELY(size != s->size || kr_load_int16(p) != s->head)) return 0;
    if (KR_UNLIKELY(!kr_has_same(p + fixed, s->mask, s->same))) return 0;
    for (int64_t k = KR_SHAPED_STEP; k < size - fixed; k += KR_SHAPED_STEP)
        if (KR_UNLIKELY(!kr_has_same(p + fixed + k, s->mask + k, s->same + k))) return 0;
    return 1;
}

/* ---- fields of a row that has a shape ---- */

/* Where the value of a field is; `always` says that every row has one. */
KR_ALWAYS_INLINE const uint8_t *kr_shaped_at(const kr_shaped_field *f, const uint8_t *p, const int always) {
    if (always) return p + f->add;
    return (const uint8_t *)(((uintptr_t)p & f->keep) + f->add); /* without a branch */
}

KR_ALWAYS_INLINE void kr_shaped_text(kr_column *c, int64_t i, const kr_shaped_field *f, const uint8_t *p,
                                     const int always) {
    kr_level *l = &c->item;
    const int64_t n = f->count, size = l->data.size + n;
    kr_copy_padded(l->data.bytes + size - n, kr_shaped_at(f, p, always), n);
    l->data.size = size;
    kr_store_end(l, i, size);
}

KR_ALWAYS_INLINE void kr_shaped_list(const kr_message_decoder *d, kr_column *c, int64_t i, const kr_shaped_field *f,
                                     const uint8_t *p, const int kind, const int always) {
    kr_store_end(&c->list, i, kr_put_elements(d, c, kr_shaped_at(f, p, always), f->count, kind));
}

/* ---- the shape of a row ---- */

/* A row that is being looked at. */
typedef struct {
    kr_message_shape *shape;
    const kr_program *program;
    const uint8_t *row, *p, *end;
    const uint8_t *from; /* where masks begin */
} kr_shape_walk;

/* Says of the next n bytes which bits all rows of the shape have. */
static void kr_shape_same(const kr_shape_walk *w, int64_t n, uint8_t bits) {
    for (int64_t k = w->p - w->from; n > 0; k++, n--) {
        w->shape->mask[k] = bits;
        w->shape->same[k] = w->from[k] & bits;
    }
}

/* A byte that all rows of the shape have; -1 where there is none below 0x80. */
static int kr_shape_byte(kr_shape_walk *w) {
    if (w->p == w->end || *w->p >= 0x80) return -1;
    kr_shape_same(w, 1, 0xff);
    return *w->p++;
}

/* The length of a list or of text; KR_LENGTH_FAILED for what a shape does not have. */
static int64_t kr_shape_length(kr_shape_walk *w, const kr_field *f, int width) {
    int64_t length;
    if (w->program->is_compact) {
        int byte = kr_shape_byte(w);
        if (byte < 0) return KR_LENGTH_FAILED;
        length = byte - 1;
    } else {
        if (w->end - w->p < width) return KR_LENGTH_FAILED;
        length = width == 2 ? kr_load_int16(w->p) : kr_load_int32(w->p);
        kr_shape_same(w, width, 0xff);
        w->p += width;
    }
    return length >= 0 || (length == KR_LENGTH_NULL && f->is_nullable) ? length : KR_LENGTH_FAILED;
}

/* Finds a field that the row has; 0 for one that a shape does not have. */
static int kr_shape_field(kr_shape_walk *w, const kr_field *f, kr_shaped_field *found) {
    int64_t n = 1, width = kr_wire_width(f->kind);
    const int is_text = f->kind == KR_KIND_STRING;
    if (f->kind == KR_KIND_STRUCT || (f->is_array && !width)) return 0;
    if (f->is_array || !width) n = kr_shape_length(w, f, is_text ? 2 : 4);
    if (n == KR_LENGTH_FAILED) return 0;
    found->is_read = 1;
    found->is_there = n != KR_LENGTH_NULL;
    found->count = (int32_t)(n < 0 ? 0 : n);
    found->keep = ~(uintptr_t)0;
    found->add = (uintptr_t)(w->p - w->row);
    int64_t size = found->count * (width ? width : 1);
    if (size > w->end - w->p) return 0;
    if (is_text) kr_shape_same(w, size, 0x80);
    for (int64_t k = 0; k < size && is_text; k++)
        if (w->p[k] >= 0x80) return 0;
    w->p += size;
    return 1;
}

static int kr_shape_tagged(kr_shape_walk *w) {
    const kr_field *fields = w->program->fields;
    int count = kr_shape_byte(w);
    for (int k = 0; k < count; k++) {
        int tag = kr_shape_byte(w), size = kr_shape_byte(w);
        if (tag < 0 || size < 0) return 0;
        int32_t known = kr_known_tag(fields, fields, tag);
        const uint8_t *from = w->p;
        if (!known || w->shape->fields[known - 1].is_read) return 0;
        if (!kr_shape_field(w, &fields[fields->first + known - 1], &w->shape->fields[known - 1])) return 0;
        if (w->p - from != size) return 0;
    }
    return count >= 0;
}

/* The shape of a row that was read, whose message starts so many bytes behind it; 0 when it has none. `prompt` may be
 * 0 where fields are not read by the shape. */
static int kr_shape_of_row(kr_message_shape *s, const kr_program *program, const uint8_t *prompt, const uint8_t *row,
                           int64_t start, int64_t size, int fixed) {
    const kr_field *root = &program->fields[0];
    kr_shape_walk w = {s, program, row, row + start, row + size, row + fixed};
    if (size > KR_SHAPED_BYTES || root->count > KR_SHAPED_FIELDS) return 0;
    memset(s, 0, sizeof *s);
    for (int32_t k = 0; k < root->count; k++) {
        const kr_field *f = &program->fields[root->first + k];
        if (f->place == KR_PLACE_IN_ORDER && !kr_shape_field(&w, f, &s->fields[k])) return 0;
    }
    if (program->is_compact && !kr_shape_tagged(&w)) return 0;
    for (int32_t k = 0; k < root->count; k++) {
        const kr_field *f = &program->fields[root->first + k];
        s->has_others |= s->fields[k].is_read && !(prompt && prompt[root->first + k]);
        if (s->fields[k].is_read) continue;
        s->fields[k].is_there = !f->null_default;
        s->fields[k].add = (uintptr_t)(f->is_array || !kr_wire_width(f->kind) ? kr_absent_row : f->default_wire);
    }
    s->size = size;
    s->head = kr_load_int16(row);
    return w.p == w.end;
}

/* ---- the shapes of a type ---- */

/* Notes that a row did not have the shape of its place, which becomes that of this row at every doubling of such. */
static __attribute__((noinline)) void kr_shape_note(kr_message_shapes *shapes, int64_t place, const kr_program *program,
                                                    const uint8_t *prompt, const uint8_t *row, int64_t start,
                                                    int64_t size, int fixed) {
    int missed = shapes->missed[place] + (shapes->missed[place] < 0xff);
    shapes->missed[place] = (uint8_t)missed;
    if (missed < 2 || (missed & (missed - 1))) return;
    kr_message_shape *own =
        (kr_message_shape *)(shapes->is_own[place] ? (void *)(uintptr_t)shapes->of[place] : malloc(sizeof *own));
    if (!own) return; /* without, rows are parsed */
    shapes->is_own[place] = 1;
    if (!kr_shape_of_row(own, program, prompt, row, start, size, fixed)) own->size = -1;
    shapes->of[place] = own;
}

/* NULL when memory is short. */
static kr_message_shapes *kr_shapes_open(void) {
    kr_message_shapes *shapes = (kr_message_shapes *)calloc(1, sizeof *shapes);
    for (int k = 0; shapes && k < KR_SHAPES; k++) shapes->of[k] = &kr_no_shape;
    return shapes;
}

static void kr_shapes_close(kr_message_shapes *shapes) {
    for (int k = 0; shapes && k < KR_SHAPES; k++)
        if (shapes->is_own[k]) free((void *)(uintptr_t)shapes->of[k]);
    free(shapes);
}

#endif
