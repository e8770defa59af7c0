"""What keys and values of records mean: columns of bytes to typed columns, by a format and a schema.

``formats`` has the formats by name, ``framing`` finds the id of the schema that a serializer has put before a value or
into headers, ``schema_store`` what stands behind an id, and ``typed`` puts all of it between a reader of records and
its rows. Avro is decoded by programs (``avro_program``) that the core runs.
"""
