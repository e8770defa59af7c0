CODES: list[str]
TEXTS: dict[str, str]
