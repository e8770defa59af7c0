"""A log directory as a registry and its serializers write it, by the package's own producer."""

import json

from avro_cases import written

import kraftlog


def framed(schema_id, schema, value):
    return b"\0" + schema_id.to_bytes(4, "big") + written(schema, value)


def schema_record(subject, version, schema_id, schema, **more):
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    text = schema if isinstance(schema, str) else json.dumps(schema)
    value = {"subject": subject, "version": version, "id": schema_id, "schema": text, "deleted": False} | more
    return json.dumps(key), json.dumps(value)


def write(path, schemas=(), **topics):
    """Write records, each a key and a value, or a dict, into topics of one partition."""
    with kraftlog.LogStore(path) as store, store.producer() as producer:
        for topic, records in {"_schemas": schemas, **topics}.items():
            store.create_topic(topic)
            for record in records:
                named = record if isinstance(record, dict) else dict(zip(("key", "value"), record, strict=True))
                producer.send(topic, **named)
    return path
