"""Where does a body go that is too large to stand beside META?

S3, under a key that names the content's digest, so that the same content is written to the same place and nothing is
ever overwritten with something else.
"""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from breakwater.domain.errors import StoreUnavailable
from breakwater.store.client import answered, code_of


class S3Payloads:
    """`ports.Payloads` over one bucket."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client, self._bucket = client, bucket

    def put(self, key: str, body: bytes) -> str:
        """Store the body; the reference is the key."""
        with answered():
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType="application/json")
        return key

    def get(self, ref: str) -> bytes | None:
        """The body, None when it is gone."""
        try:
            with answered(StoreUnavailable, "NoSuchKey"):
                answer = self._client.get_object(Bucket=self._bucket, Key=ref)
                body: bytes = answer["Body"].read()
        except ClientError as error:
            if code_of(error) == "NoSuchKey":
                return None
            raise
        return body

    def presign(self, ref: str, seconds: int) -> str:
        """A URL that reads the object for `seconds`."""
        url: str = self._client.generate_presigned_url(
            "get_object",
            Params={"Bucket": self._bucket, "Key": ref},
            ExpiresIn=seconds,
        )
        return url
