from kraftlog._native.message import Grown, Int32s, MessageFault, Program, Values

def write_json(
    programs: list[Program], columns: int, values: Values, numbers: Int32s, starts: Int32s
) -> tuple[Int32s, Grown, list[MessageFault]]: ...
