"""UpdateFeatures, API key 57.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class UpdateFeaturesRequest(Request):
    API_KEY = 57
    API_NAME = "UpdateFeatures"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 0

    class FeatureUpdate(Struct):
        feature: str = field("string", "0+")
        max_version_level: int = field("int16", "0+")
        allow_downgrade: bool = field("bool", "0")
        upgrade_type: int = field("int8", "1+", default=1)

    timeout_ms: int = field("int32", "0+", default=60000)
    feature_updates: tuple[FeatureUpdate, ...] = array(FeatureUpdate, "0+")
    validate_only: bool = field("bool", "1+", default=False)


class UpdateFeaturesResponse(Response):
    API_KEY = 57
    API_NAME = "UpdateFeatures"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 0

    class Feature(Struct):
        feature: str = field("string", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    results: tuple[Feature, ...] = array(Feature, "0-1", ignorable=True)
