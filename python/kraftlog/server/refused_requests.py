"""What a log that is only read answers to producers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request, UnsupportedRequestError
from kraftlog.server.server import Handler

PRODUCE = 0
_MESSAGE = "this log is only read"


class RefusedRequests:
    """Refuses ``Produce``, without which librdkafka does not read record batches of magic 2."""

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {PRODUCE: self._produce}

    async def _produce(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        if not values["acks"]:
            raise UnsupportedRequestError(_MESSAGE)
        return {
            "responses": [
                {
                    "name": topic["name"],
                    "topic_id": topic["topic_id"],
                    "partition_responses": [
                        {
                            "index": one["index"],
                            "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                            "base_offset": -1,
                            "error_message": _MESSAGE,
                        }
                        for one in topic["partition_data"]
                    ],
                }
                for topic in values["topic_data"]
            ]
        }
