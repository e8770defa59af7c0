/* Redaction of places in JSON documents, for a column of them: what stands at a path becomes null, a mask, or room for
 * the digits of a hash, which the caller puts there.
 *
 * A document with such a place is rewritten without the white space between its tokens; all else is copied. One
 * without it stays as it is. What is not plain is left to the caller, who has a whole parser: text that is no JSON or
 * no UTF-8, a name that stands twice or has an escape, an escape that a writer of JSON would not use, a hash of an
 * array or object, places of rules that overlap, and deep nesting.
 */
#ifndef KRAFTLOG_JSON_REDACT_H
#define KRAFTLOG_JSON_REDACT_H

#include "arrow/lent.h"
#include "base/murmur2.h"
#include "base/varint.h"
#include "text/json.h"
#include "text/utf8.h"

enum { KR_REDACT_NAME, KR_REDACT_ITEM, KR_REDACT_EVERY };         /* kinds of steps */
enum { KR_REDACT_TO_NULL, KR_REDACT_TO_MASK, KR_REDACT_TO_HASH }; /* what becomes of a place */
enum { KR_REDACT_MOST_RULES = 64, KR_REDACT_MOST_DEPTH = 64, KR_REDACT_MOST_NAMES = 1024, KR_REDACT_FEW_NAMES = 24 };
enum { KR_REDACT_HASH_DIGITS = 64 };
enum { KR_REDACT_DONE, KR_REDACT_NOT_PLAIN, KR_REDACT_NO_ROOM };

typedef struct {
    int32_t kind;
    int64_t number; /* of the item; of a name its bytes */
    const uint8_t *name;
} kr_redaction_step;

typedef struct {
    const kr_redaction_step *steps; /* one at least */
    int32_t count, how;
} kr_redaction_rule;

typedef struct {
    int64_t at, from,
        size; /* where the digits go in what is written, and what they are of, in the data of the column */
} kr_redaction_place;

enum { KR_REDACT_PLACE_NUMBERS = sizeof(kr_redaction_place) / sizeof(int64_t) };

typedef struct {
    const kr_redaction_rule *rules;
    int32_t rules_count, mask_size;
    const uint8_t *mask; /* as JSON */
    uint8_t *out;
    int64_t room, written;
    kr_redaction_place *places;
    int64_t places_room, places_count;
    /* of the document */
    const uint8_t *data, *p, *end, *copied; /* what lies between the last two is to be copied */
    int32_t has_changed, names_count;
    uint32_t names[KR_REDACT_MOST_NAMES]; /* hashes of the names of each object that is open */
} kr_redactor;

static inline void kr_redactor_flush(kr_redactor *r) {
    int64_t size = r->p - r->copied;
    if (size) memcpy(r->out + r->written, r->copied, (size_t)size);
    r->written += size;
    r->copied = r->p;
}

static inline int kr_is_json_space(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

KR_ALWAYS_INLINE void kr_redactor_pass_space(kr_redactor *r) {
    if (KR_LIKELY(r->p < r->end && *r->p > ' ')) return;
    kr_redactor_flush(r);
    while (r->p < r->end && kr_is_json_space(*r->p)) r->p++;
    r->copied = r->p;
}

KR_ALWAYS_INLINE int kr_redactor_takes(kr_redactor *r, uint8_t byte) {
    if (r->p == r->end || *r->p != byte) return 0;
    r->p++;
    return 1;
}

/* Passes over a string. Its escapes are those that a writer would use, so that it can be copied. */
static inline int kr_redactor_pass_string(kr_redactor *r, int *has_escape) {
    *has_escape = 0;
    for (r->p++;;) {
        r->p += kr_json_plain(r->p, r->end - r->p);
        if (r->p == r->end || *r->p < 0x20) return KR_REDACT_NOT_PLAIN;
        if (*r->p++ == '"') return KR_REDACT_DONE;
        if (r->p == r->end || !*r->p || !strchr("\"\\bfnrt", *r->p)) return KR_REDACT_NOT_PLAIN;
        *has_escape = 1;
        r->p++;
    }
}

static inline int kr_redactor_pass_digits(kr_redactor *r) {
    const uint8_t *start = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') r->p++;
    return r->p > start;
}

static inline int kr_redactor_pass_number(kr_redactor *r) {
    kr_redactor_takes(r, '-');
    if (!kr_redactor_takes(r, '0') && !kr_redactor_pass_digits(r)) return KR_REDACT_NOT_PLAIN;
    if (kr_redactor_takes(r, '.') && !kr_redactor_pass_digits(r)) return KR_REDACT_NOT_PLAIN;
    if (kr_redactor_takes(r, 'e') || kr_redactor_takes(r, 'E')) {
        if (!kr_redactor_takes(r, '-')) kr_redactor_takes(r, '+');
        if (!kr_redactor_pass_digits(r)) return KR_REDACT_NOT_PLAIN;
    }
    return KR_REDACT_DONE;
}

static inline int kr_redactor_pass_word(kr_redactor *r, const char *word, int64_t size) {
    if (r->end - r->p < size || memcmp(r->p, word, (size_t)size)) return KR_REDACT_NOT_PLAIN;
    r->p += size;
    return KR_REDACT_DONE;
}

/* Which of the rules go on with this name, or with this item where `name` is NULL. */
static inline uint64_t kr_redactor_matched(const kr_redactor *r, uint64_t active, int depth, const uint8_t *name,
                                           int64_t number) {
    uint64_t matched = 0;
    for (; active; active &= active - 1) {
        int i = __builtin_ctzll(active);
        const kr_redaction_step *s = &r->rules[i].steps[depth];
        int fits = s->kind == KR_REDACT_EVERY;
        if (!fits && s->kind == (name ? KR_REDACT_NAME : KR_REDACT_ITEM) && s->number == number)
            fits = !name || !memcmp(s->name, name, (size_t)number);
        matched |= (uint64_t)fits << i;
    }
    return matched;
}

/* Whether two of the names from `first` on may be one. */
static inline int kr_redactor_has_twins(kr_redactor *r, int first) {
    uint32_t *names = r->names + first;
    int count = r->names_count - first;
    if (count <= KR_REDACT_FEW_NAMES) {
        int same = 0;
        for (int i = 1; i < count; i++)
            for (int j = 0; j < i; j++) same |= names[i] == names[j];
        return same;
    }
    static const int gaps[] = {701, 301, 132, 57, 23, 10, 4, 1}; /* Shell's sort */
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (int i = gaps[g]; i < count; i++) {
            uint32_t one = names[i];
            int j = i;
            for (; j >= gaps[g] && names[j - gaps[g]] > one; j -= gaps[g]) names[j] = names[j - gaps[g]];
            names[j] = one;
        }
    for (int i = 1; i < count; i++)
        if (names[i] == names[i - 1]) return 1;
    return 0;
}

static int kr_redactor_pass_child(kr_redactor *r, uint64_t matched, int depth);

static int kr_redactor_pass_object(kr_redactor *r, uint64_t active, int depth) {
    int first = r->names_count, status, has_escape;
    r->p++;
    kr_redactor_pass_space(r);
    if (kr_redactor_takes(r, '}')) return KR_REDACT_DONE;
    for (;;) {
        const uint8_t *name = r->p + 1;
        if (r->p == r->end || *r->p != '"' || r->names_count == KR_REDACT_MOST_NAMES) return KR_REDACT_NOT_PLAIN;
        if ((status = kr_redactor_pass_string(r, &has_escape)) || has_escape) return KR_REDACT_NOT_PLAIN;
        int64_t size = r->p - 1 - name;
        r->names[r->names_count++] = (uint32_t)kr_murmur2(name, size);
        kr_redactor_pass_space(r);
        if (!kr_redactor_takes(r, ':')) return KR_REDACT_NOT_PLAIN;
        kr_redactor_pass_space(r);
        uint64_t matched = active ? kr_redactor_matched(r, active, depth, name, size) : 0;
        if ((status = kr_redactor_pass_child(r, matched, depth + 1))) return status;
        kr_redactor_pass_space(r);
        if (kr_redactor_takes(r, '}')) break;
        if (!kr_redactor_takes(r, ',')) return KR_REDACT_NOT_PLAIN;
        kr_redactor_pass_space(r);
    }
    int has_twins = kr_redactor_has_twins(r, first);
    r->names_count = first;
    return has_twins ? KR_REDACT_NOT_PLAIN : KR_REDACT_DONE;
}

static int kr_redactor_pass_array(kr_redactor *r, uint64_t active, int depth) {
    int status;
    r->p++;
    kr_redactor_pass_space(r);
    if (kr_redactor_takes(r, ']')) return KR_REDACT_DONE;
    for (int64_t i = 0;; i++) {
        uint64_t matched = active ? kr_redactor_matched(r, active, depth, 0, i) : 0;
        if ((status = kr_redactor_pass_child(r, matched, depth + 1))) return status;
        kr_redactor_pass_space(r);
        if (kr_redactor_takes(r, ']')) return KR_REDACT_DONE;
        if (!kr_redactor_takes(r, ',')) return KR_REDACT_NOT_PLAIN;
        kr_redactor_pass_space(r);
    }
}

/* Passes over a value; `active` are the rules whose paths lead into it, by as many steps as it is deep. */
static int kr_redactor_pass_value(kr_redactor *r, uint64_t active, int depth) {
    int has_escape;
    if (r->p == r->end || depth == KR_REDACT_MOST_DEPTH) return KR_REDACT_NOT_PLAIN;
    switch (*r->p) {
    case '{':
        return kr_redactor_pass_object(r, active, depth);
    case '[':
        return kr_redactor_pass_array(r, active, depth);
    case '"':
        return kr_redactor_pass_string(r, &has_escape);
    case 't':
        return kr_redactor_pass_word(r, "true", 4);
    case 'f':
        return kr_redactor_pass_word(r, "false", 5);
    case 'n':
        return kr_redactor_pass_word(r, "null", 4);
    default:
        return kr_redactor_pass_number(r);
    }
}

/* Writes what stands for a value from `start` on, which is passed; what is left of the document still has room. */
static inline int kr_redactor_replace(kr_redactor *r, const uint8_t *start, int how) {
    static const uint8_t null[] = "null";
    const int64_t size = how == KR_REDACT_TO_NULL   ? 4
                         : how == KR_REDACT_TO_MASK ? r->mask_size
                                                    : KR_REDACT_HASH_DIGITS + 2;
    if (r->room - r->written < size + (r->end - r->p)) return KR_REDACT_NO_ROOM;
    uint8_t *out = r->out + r->written;
    if (how == KR_REDACT_TO_HASH) {
        const int is_text = *start == '"';
        if (*start == '{' || *start == '[') return KR_REDACT_NOT_PLAIN;
        if (is_text && memchr(start, '\\', (size_t)(r->p - start))) return KR_REDACT_NOT_PLAIN;
        if (r->places_count == r->places_room) return KR_REDACT_NO_ROOM;
        kr_redaction_place *place = &r->places[r->places_count++];
        place->at = r->written + 1;
        place->from = start + is_text - r->data;
        place->size = r->p - start - 2 * is_text;
        memset(out, '"', (size_t)size);
    } else {
        memcpy(out, how == KR_REDACT_TO_MASK ? r->mask : null, (size_t)size);
    }
    r->written += size;
    r->copied = r->p;
    r->has_changed = 1;
    return KR_REDACT_DONE;
}

/* Passes over a value that `matched` rules lead to; it is replaced where one of them ends. */
static int kr_redactor_pass_child(kr_redactor *r, uint64_t matched, int depth) {
    int how = -1, status;
    for (uint64_t left = matched; left; left &= left - 1) {
        const kr_redaction_rule *rule = &r->rules[__builtin_ctzll(left)];
        if (rule->count != depth) continue;
        if (how >= 0 && (how != rule->how || how == KR_REDACT_TO_HASH)) return KR_REDACT_NOT_PLAIN;
        how = rule->how;
    }
    if (KR_LIKELY(how < 0)) return kr_redactor_pass_value(r, matched, depth);
    kr_redactor_flush(r);
    const uint8_t *start = r->p;
    int64_t written = r->written;
    if ((status = kr_redactor_pass_value(r, 0, depth))) return status;
    r->written = written; /* white space within made it write */
    if (*start != 'n') return kr_redactor_replace(r, start, how);
    r->copied = start; /* null stays null */
    return KR_REDACT_DONE;
}

/* Writes one document. Nothing of it is written unless it is done. */
static inline int kr_redact(kr_redactor *r, const uint8_t *from, int64_t size) {
    int64_t written = r->written, places = r->places_count;
    if (r->room - written < size) return KR_REDACT_NO_ROOM;
    if (!kr_is_utf8(from, size)) return KR_REDACT_NOT_PLAIN;
    r->p = r->copied = from;
    r->end = from + size;
    r->has_changed = r->names_count = 0;
    kr_redactor_pass_space(r);
    uint64_t every = r->rules_count == KR_REDACT_MOST_RULES ? ~0ull : (1ull << r->rules_count) - 1;
    int status = kr_redactor_pass_child(r, every, 0);
    if (!status) {
        kr_redactor_pass_space(r);
        if (r->p < r->end) status = KR_REDACT_NOT_PLAIN;
    }
    if (status) {
        r->written = written;
        r->places_count = places;
    } else if (r->has_changed) {
        kr_redactor_flush(r);
    } else {
        if (size) memcpy(r->out + written, from, (size_t)size);
        r->written = written + size;
    }
    return status;
}

/* Writes documents from a row on, until there is no room for one; returns that row. Those that are not plain are
 * written as nothing. ends[row + 1] is where the document of a row ends. */
static inline int64_t kr_redact_column(kr_redactor *r, const kr_lent_large *v, int64_t row, int64_t *ends,
                                       uint8_t *is_plain) {
    r->data = v->data;
    for (; row < v->rows; row++) {
        int status = kr_redact(r, v->data + v->ends[row], v->ends[row + 1] - v->ends[row]);
        if (status == KR_REDACT_NO_ROOM) break;
        is_plain[row] = status == KR_REDACT_DONE;
        ends[row + 1] = r->written;
    }
    return row;
}

#endif
