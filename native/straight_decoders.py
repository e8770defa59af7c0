"""Writes the C decoders of messages, of which there is one for each definition.

``python native/straight_decoders.py FILE`` writes a header for ``native/c/message/straight.h``. A decoder reads the
fields of a message in their order by the bodies of ``message/bodies.h``; what a version does not have is left out by
a comparison with the version. It needs no module that must be built, or that is no part of Python.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "python"))

from kraftlog.messages import definition as kinds  # noqa: E402
from kraftlog.messages import layout as places  # noqa: E402
from kraftlog.messages.default_text import WIRE_WIDTHS, default_wire  # noqa: E402
from kraftlog.messages.definition import Definition, digest  # noqa: E402
from kraftlog.messages.definition_text import parse  # noqa: E402
from kraftlog.messages.layout import PLACE_IN_ORDER, PLACE_TAGGED, Node, layout  # noqa: E402

DEFINITIONS = ROOT / "python" / "kraftlog" / "messages" / "definitions"
LIMITS = {
    "KR_DEEPEST": places.DEEPEST,
    "KR_MOST_FIELDS": places.MOST_FIELDS,
    "KR_MOST_TAGGED": places.MOST_TAGGED,
    "KR_PLACE_NONE": places.PLACE_NONE,
    "KR_PLACE_IN_ORDER": places.PLACE_IN_ORDER,
    "KR_PLACE_TAGGED": places.PLACE_TAGGED,
}
PARAMETERS = "kr_message_decoder *d, const uint8_t *p, const uint8_t *end, int32_t version, int64_t i"
RUN = "kr_message_decoder *d, kr_straight_run *run"
SHAPED = "kr_message_decoder *d, const kr_message_shape *s, const uint8_t *p, int64_t i"
NO_RUN = NO_SHAPED = "0"
MOST_SHAPED = 16  # fields, as in message/shape.h
FIXED_BELOW = 64 - 32  # bytes that there are behind every row, without those that are compared at once
FRAMES = "frames"
INT16_PREFIX = 2  # bytes in front of keys and values
MOST_SOUGHT = 2  # tagged fields: each costs time in every message, whether it is there or not
ONE_BYTE = 0x80  # a number below has one byte in a frame
ROWS = "kr_message_decoder *d, const kr_versioned *v, int64_t from, int64_t to, int64_t at"
LOOK_UP = """/* The decoder that was generated of a definition; NULL when there is none. */
static inline const kr_straight *kr_straight_of(const char *name, uint64_t digest) {
    for (size_t k = 0; k < sizeof kr_straight_decoders / sizeof *kr_straight_decoders; k++) {
        const kr_straight *one = &kr_straight_decoders[k];
        if (one->digest == digest && strcmp(one->name, name) == 0) return one;
    }
    return 0;
}
"""
Lines = Iterator[str]


def header() -> str:
    """Return the header with all decoders."""
    definitions = [one for file in sorted(DEFINITIONS.glob("*.messages")) for one in parse(file.read_text(), file.name)]
    parts = ["/* Written by native/straight_decoders.py. */", '#include "message/straight.h"', ""]
    parts += ['#pragma GCC diagnostic ignored "-Wunused-parameter"', ""]
    parts += [f'_Static_assert({name} == {value}, "as in Python");' for name, value in LIMITS.items()]
    for definition in definitions:
        parts += ["", *Decoder(definition).lines()]
    parts += ["", "static const kr_straight kr_straight_decoders[] = {"]
    parts += [
        f'    {{"{one.name}", {digest(one)}u, kr_prompt_{one.name}, kr_rows_{one.name}, {Decoder(one).runs}}},'
        for one in definitions
    ]
    return "\n".join([*parts, "};", "", LOOK_UP])


class Decoder:
    """The decoder of one definition."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.name = definition.name
        self.layout = layout(definition)
        self.versions = set(range(definition.versions.first, definition.versions.last + 1))
        self.rows_of_run = self.kind_of_run()
        self.run = f"kr_run_{self.name}" if self.rows_of_run else NO_RUN
        self.runs = f"{self.run}, {int(self.has_shapes())}"
        self.compact = self.condition({one for one in self.versions if one in definition.flexible}, self.versions)

    def lines(self) -> Lines:
        """Return its functions: of structs before what they are in, and of the message last."""
        prompt = ", ".join(str(int(self.is_prompt(node))) for node in self.layout.nodes)
        yield f"static const uint8_t kr_prompt_{self.name}[] = {{{prompt}}};"
        for node in reversed(self.layout.nodes):
            if node.field.kind == kinds.STRUCT:
                yield from self.struct(node)
        one = self.function(self.layout.root)
        shaped, parsed = NO_SHAPED, one
        if self.has_shapes():
            shaped, parsed = f"kr_shaped_{self.name}", f"{one}_parsed"
            yield from self.shaped(shaped)
            yield f"static __attribute__((noinline)) const uint8_t *{parsed}({PARAMETERS}) {{"
            yield f"    return {one}(d, p, end, version, i);"
            yield "}"
        yield f"static int64_t kr_rows_{self.name}({ROWS}) {{"
        yield f"    return kr_straight_each(d, v, from, to, at, {one});"
        yield "}"
        if self.run != NO_RUN:
            yield f"static void {self.run}({RUN}) {{"
            of_shapes = "" if self.rows_of_run == FRAMES else f", {shaped}, {self.fixed_bytes()}"
            yield f"    kr_straight_{self.rows_of_run}(d, run, {parsed}{of_shapes});"
            yield "}"

    def kind_of_run(self) -> str:
        """Return which rows a pass finds its messages in: frames all of whose numbers have one byte, keys or values."""
        api_key, last = self.definition.api_key, self.definition.versions.last
        if self.definition.role == "metadata" and api_key is not None and api_key < ONE_BYTE and last < ONE_BYTE:
            return FRAMES
        return {"coordinator-key": "keys", "coordinator-value": "values"}.get(self.definition.role, "")

    def has_shapes(self) -> bool:
        """Return whether keys or values have shapes: all fields are values, text or lists of values of fixed width."""
        if self.rows_of_run in ("", FRAMES):
            return False
        fields = self.layout.root.children
        can_be = all(self.is_flat(one) or not self.is_prompt(one) for one in fields)  # what is not prompt may be absent
        return can_be and 0 < len(fields) <= MOST_SHAPED and self.fixed_bytes() < FIXED_BELOW

    def is_flat(self, node: Node) -> bool:
        """Return whether a field is a value, text or a list of values of fixed width."""
        return node.field.kind in WIRE_WIDTHS or (node.field.kind != kinds.STRUCT and not node.field.is_array)

    def may_be_null(self, node: Node) -> bool:
        """Return whether a field is null in messages of some version."""
        return bool(node.field.nullable) and any(one in node.field.nullable for one in self.of(node))

    def fixed_bytes(self) -> int:
        """Return how many bytes of a row come before the first that is not of a value of fixed width."""
        at = INT16_PREFIX
        return at + sum(WIRE_WIDTHS[child.field.kind] for child in self.at_fixed_places())

    def at_fixed_places(self) -> list[Node]:
        """Return the fields at the beginning of messages that are at the same places in all of them."""
        found = []
        for child in self.layout.root.children:
            if self.placed(child, PLACE_IN_ORDER) != self.versions or not self.is_fixed(child):
                break
            found.append(child)
        return found

    def shaped(self, name: str) -> Lines:
        """Return the function that writes the fields of a message that has a shape."""
        yield f"KR_ALWAYS_INLINE int {name}({SHAPED}) {{"
        yield "    kr_column *const columns = d->columns;"
        at, fixed, others = INT16_PREFIX, self.at_fixed_places(), []
        for child in fixed:
            yield f"    {self.put(child, f'p + {at}')}"
            at += WIRE_WIDTHS[child.field.kind]
        for k, child in list(enumerate(self.layout.root.children))[len(fixed) :]:
            always = int(self.placed(child, PLACE_IN_ORDER) == self.versions)
            if self.is_fixed(child):
                yield f"    {self.put(child, f'kr_shaped_at(&s->fields[{k}], p, {always})')}"
            elif self.is_prompt(child):
                yield from self.shaped_sized(child, k, always)
            elif self.is_flat(child):
                level = f"columns[{child.index}].{'list' if child.field.is_array else 'item'}"
                lines = [self.reach(child), *self.shaped_sized(child, k, 1), f"    {level}.count = i + 1;"]
                others += inside(f"s->fields[{k}].is_read", lines)
        if others:
            yield from inside("KR_UNLIKELY(s->has_others)", others)
        yield "    return 1;"
        yield "}"

    def shaped_sized(self, node: Node, k: int, always: int) -> Lines:
        """Return how a field that has no fixed width is written, which is number ``k`` of its message."""
        is_list, prompt = node.field.is_array, int(self.is_prompt(node))
        if self.may_be_null(node):
            level = f"columns[{node.index}].{'list' if is_list else 'item'}"
            valid = f"kr_body_valid(&{level}, i, s->fields[{k}].is_there, {prompt})"
            yield f"    if (KR_UNLIKELY(!{valid})) return 0;"
        how = f"{column(node)}, i, &s->fields[{k}], p"
        yield f"    kr_shaped_{f'list(d, {how}, {kind(node)}' if is_list else f'text({how}'}, {always});"

    def function(self, node: Node) -> str:
        """Return the name of the function that reads a struct."""
        return f"kr_one_{self.name}" + (f"_{node.index}" if node.index else "")

    def struct(self, node: Node) -> Lines:
        """Return the function that reads a struct."""
        of_struct = self.of(node)
        for version in of_struct:
            fields = [self.placed(child, PLACE_IN_ORDER) for child in node.children]
            if node.index and version not in self.definition.flexible and not any(version in one for one in fields):
                raise ValueError(f"{self.name}: {node.field.name} may take no byte")
        how = "KR_ALWAYS_INLINE" if not node.index else "static inline"
        yield f"{how} const uint8_t *{self.function(node)}({PARAMETERS}) {{"
        if node.children:
            yield "    kr_column *const columns = d->columns; /* what is written to columns cannot change it */"
        unread: list[Node] = []  # fields of fixed width that stand next to each other
        for child in node.children:
            in_order = self.placed(child, PLACE_IN_ORDER)
            if self.is_fixed(child) and in_order != of_struct and child not in self.sought(node):
                yield f"    {self.put(child, absent(child))}"
            if self.is_fixed(child) and in_order == of_struct:
                unread.append(child)
                continue
            yield from self.fixed(unread)
            unread = []
            if in_order:
                when = self.condition(in_order, of_struct)
                yield from inside(when, self.fixed([child]) if self.is_fixed(child) else self.sized(child, in_order))
        yield from self.fixed(unread)
        flexible = {version for version in of_struct if version in self.definition.flexible}
        if flexible:
            yield from inside(self.condition(flexible, of_struct), self.tagged(node))
        yield "    return p;"
        yield "}"

    def fixed(self, nodes: list[Node]) -> Lines:
        """Return how fields of fixed width are read that stand next to each other."""
        at = 0
        width = sum(WIRE_WIDTHS[node.field.kind] for node in nodes)
        if nodes:
            yield f"    if (KR_UNLIKELY(end - p < {width})) return 0;"
        for node in nodes:
            source = f"p + {at}"
            yield f"    {self.put(node, source)}"
            at += WIRE_WIDTHS[node.field.kind]
        if nodes:
            yield f"    p += {width};"

    def put(self, node: Node, source: str) -> str:
        """Return how a value of fixed width gets into its column."""
        return f"kr_body_fixed(d, {column(node)}, i, {source}, {kind(node)});"

    def sized(self, node: Node, versions: set[int], end: str = "end", *, is_tagged: bool = False) -> Lines:
        """Return how a field is read that has no fixed width."""
        field, index = node.field, node.index
        nullable = self.condition({version for version in versions if version in field.nullable}, versions)
        level = f"columns[{index}].{'list' if field.is_array else 'item'}"
        how = f"{self.compact}, {nullable}, {int(self.is_prompt(node) and self.may_be_null(node))}"
        if not self.is_prompt(node):
            yield self.reach(node)
        if field.kind == kinds.STRUCT and not field.is_array and nullable != "0":
            yield from self.nullable_struct(node, end, is_tagged=is_tagged)
            return
        if field.kind == kinds.STRUCT and not field.is_array:
            yield f"    if (!(p = {self.function(node)}(d, p, {end}, version, i))) return 0;"
        elif field.kind == kinds.STRUCT:
            yield "    int64_t elements = 0;"
            yield f"    p = kr_body_elements(&{level}, i, p, {end}, 1, {how}, &elements);"
            yield f"    for (int64_t k = 0; p && k < elements; k++, columns[{index}].item.count++)"
            yield f"        p = {self.function(node)}(d, p, {end}, version, columns[{index}].item.count);"
            yield "    if (!p) return 0;"
            yield f"    kr_body_end_list(&columns[{index}], i);"
        else:
            body = "text" if not field.is_array else "list" if field.kind in WIRE_WIDTHS else "texts"
            decoder = "d, " if body == "list" else ""
            yield f"    p = kr_body_{body}({decoder}{column(node)}, i, p, {end}, {kind(node)}, {how});"
            yield "    if (KR_UNLIKELY(!p)) return 0;"
        if not self.is_prompt(node):
            yield f"    {level}.count = i + 1;"

    def reach(self, node: Node) -> str:
        """Return how the column of a field that is not prompt gets the rows before this one."""
        if node.field.is_array:
            null = int(node.field.default is None)
            return f"    if (KR_UNLIKELY(!kr_body_reach(d, kr_prompt_{self.name}, {node.index}, i, {null}))) return 0;"
        count = f"columns[{node.index}].item.count"
        return f"    if ({count} != i && !kr_catch_up(d, kr_prompt_{self.name}, {node.index}, i)) return 0;"

    def nullable_struct(self, node: Node, end: str, *, is_tagged: bool) -> Lines:
        """Return how a struct is read that may be null, behind what comes before it in its column."""
        prompt, item = f"kr_prompt_{self.name}", f"columns[{node.index}].item"
        is_null = "*p == 0" if is_tagged else "*p >= 0x80"
        if is_tagged:
            yield f"    if ({end} - p < 1 || *p >= 0x80) return 0;"
        else:
            yield f"    if ({end} - p < 1) return 0;"
        yield f"    if ({is_null}) {{"
        yield f"        if (!kr_body_null_struct(d, {prompt}, {node.index}, i)) return 0;"
        yield "        p++;"
        yield "    } else {"
        yield f"        if (!kr_body_valid(&{item}, i, 1, 0)) return 0;"
        yield f"        if (!(p = {self.function(node)}(d, p + 1, {end}, version, i))) return 0;"
        yield f"        {item}.count = i + 1;"
        yield "    }"

    def tagged(self, node: Node) -> Lines:
        """Return how the tagged fields of a struct are read."""
        yield "    if (KR_UNLIKELY(p >= end)) return 0;"
        known = [child for child in node.children if self.placed(child, PLACE_TAGGED)]
        if not known:
            yield "    if (KR_UNLIKELY(*p++)) return 0;"
            return
        yield "    kr_tags tags = {p + 1, *p};"
        sought = self.sought(node)
        for child in sought:
            of_column, of_field = f"d, {column(child)}, i, tags", f"{child.field.tag}, {kind(child)}"
            if self.is_fixed(child):
                yield f"    tags = kr_body_tagged_fixed({of_column}, {of_field}, {absent(child)});"
            else:
                yield f"    tags = kr_body_tagged_list({of_column}, end, {of_field});"
                yield "    if (KR_UNLIKELY(!tags.p)) return 0;"
        yield "    p = tags.p;"
        yield f"    int tag = {sought[-1].field.tag if sought else -1};"
        often = "KR_UNLIKELY(tags.left)" if sought else "tags.left"
        yield f"    for (; {often}; tags.left--) {{"
        if sought:
            yield "        i = kr_seldom(i);"
        yield "        const uint8_t *tag_end;"
        yield "        if (!(p = kr_body_tag(p, end, &tag, &tag_end))) return 0;"
        yield "        switch (tag) {"
        for child in known:
            if child in sought:
                continue
            versions = self.placed(child, PLACE_TAGGED)
            lacking = self.of(node).intersection(range(self.definition.flexible.first, 1 << 15)) - versions
            yield f"        case {child.field.tag}: {{"
            if lacking:
                yield f"            if (!({self.condition(versions, versions | lacking)})) return 0;"
            if self.is_fixed(child):
                yield f"            if (tag_end - p != {WIRE_WIDTHS[child.field.kind]}) return 0;"
                yield f"            {self.put(child, 'p')}"
                yield "            p = tag_end;"
            else:
                yield from indented(indented(self.sized(child, versions, "tag_end", is_tagged=True)))
            yield "            break;"
            yield "        }"
        yield "        default:"
        yield "            return 0;"
        yield "        }"
        yield "        if (KR_UNLIKELY(p != tag_end)) return 0;"
        yield "    }"

    def sought(self, node: Node) -> list[Node]:
        """Return the tagged fields of a message that are looked for before all others: those with the lowest tags."""
        of_struct = self.of(node)
        if node.index or any(version not in self.definition.flexible for version in of_struct):
            return []
        known = [child for child in node.children if self.placed(child, PLACE_TAGGED)]
        found = []
        for child in sorted(known, key=lambda one: one.field.tag or 0)[:MOST_SOUGHT]:
            field = child.field
            is_list = field.is_array and field.kind == kinds.INT32 and field.default is None
            is_list = is_list and all(version in field.nullable for version in of_struct)
            is_short = (field.tag or 0) < ONE_BYTE and self.placed(child, PLACE_TAGGED) == of_struct
            if not is_short or not (is_list or (self.is_fixed(child) and field.kind != kinds.UUID)):
                break
            found.append(child)
        return found

    def of(self, node: Node) -> set[int]:
        """Return the versions that have a field."""
        return {version for version in self.versions if version in node.field.versions}

    def placed(self, node: Node, place: int) -> set[int]:
        """Return the versions in which a field is in a place."""
        return {version for version in self.of(node) if places.place(self.definition, node.field, version) == place}

    def is_fixed(self, node: Node) -> bool:
        """Return whether a field has a fixed width."""
        return node.field.kind in WIRE_WIDTHS and not node.field.is_array

    def is_prompt(self, node: Node) -> bool:
        """Return whether every message writes a value of a field."""
        if node.field.kind == kinds.STRUCT and not node.field.is_array and node.field.nullable:
            return False
        outer = next((one for one in self.layout.nodes if node in one.children), node)
        is_sought = node in self.sought(self.layout.root)
        return is_sought or self.is_fixed(node) or self.placed(node, PLACE_IN_ORDER) == self.of(outer)

    def condition(self, wanted: set[int], among: set[int]) -> str:
        """Return an expression that is true for versions that are wanted, of those that there can be."""
        if not wanted or wanted == among:
            return str(int(bool(wanted)))
        first, last = min(wanted), max(wanted)
        if among.intersection(range(first, last + 1)) != wanted:
            raise ValueError(f"{self.name}: versions {sorted(wanted)} of {sorted(among)} are no range")
        parts = [f"version >= {first}"] if first > min(among) else []
        return " && ".join(parts + ([f"version <= {last}"] if last < max(among) else []))


def absent(node: Node) -> str:
    """Return the default of a field of fixed width, as it is on the wire."""
    wire = "".join(f"\\x{byte:02x}" for byte in default_wire(node.field.kind, node.field.default))
    return f'(const uint8_t *)"{wire}"'


def column(node: Node) -> str:
    """Return a field's column in C."""
    return f"&columns[{node.index}]"


def kind(node: Node) -> str:
    """Return a field's kind in C."""
    return f"KR_KIND_{node.field.kind.upper()}"


def inside(condition: str, lines: Iterable[str]) -> Lines:
    """Return lines in a block of their own, under a condition unless it is always true."""
    yield "    {" if condition == "1" else f"    if ({condition}) {{"
    yield from indented(lines)
    yield "    }"


def indented(lines: Iterable[str]) -> Lines:
    """Return lines one step to the right."""
    return ("    " + line for line in lines)


if __name__ == "__main__":
    target, text = Path(sys.argv[1]), header()
    if not target.exists() or target.read_text() != text:  # a file that is newer is compiled again
        target.write_text(text)
