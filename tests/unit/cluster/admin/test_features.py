"""Features: what a broker knows, what is in force, and how that changes."""

from __future__ import annotations

import re

import pytest

from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.cluster.admin import Direction, Feature
from pyspark_kafkaproto.cluster.admin.features import (
    METADATA_VERSION,
    level_of_release,
    release_of,
)
from pyspark_kafkaproto.devbroker import DEFAULT_VERSION
from pyspark_kafkaproto.errors import BrokerError, ConfigError, UnsupportedVersion
from pyspark_kafkaproto.messages.api_versions import ApiVersionsResponse
from pyspark_kafkaproto.messages.update_features import UpdateFeaturesResponse
from tests.fake_broker import api_versions

API = "UpdateFeatures"


def known(brokers, epoch=5):
    """Answers ApiVersions with two features."""

    def tell(call):
        plain = api_versions(brokers, call)
        return ApiVersionsResponse(
            api_keys=plain.api_keys,
            supported_features=tuple(
                ApiVersionsResponse.SupportedFeature(name=name, min_version=least, max_version=most)
                for name, least, most in (("metadata.version", 7, 30), ("group.version", 0, 1))
            ),
            finalized_features_epoch=epoch,
            finalized_features=(
                ApiVersionsResponse.FinalizedFeature(
                    name="metadata.version", max_version_level=29, min_version_level=29
                ),
            ),
        )

    brokers.on("ApiVersions", tell)


def test_what_is_known_and_what_is_in_force(brokers, kafka):
    known(brokers)
    found = kafka.describe_features()
    assert found.epoch == 5
    assert found.by_name == {
        "group.version": Feature(0, 1, 0),
        "metadata.version": Feature(7, 30, 29),
    }
    # A connection that is open knows what was in force when it was made.
    before = len(brokers.asked("ApiVersions"))
    kafka.describe_features()
    (anew,) = brokers.asked("ApiVersions")[before:]
    assert anew.client_software_name == "pyspark-kafkaproto"


def test_broker_that_does_not_know_what_is_in_force(brokers, kafka):
    known(brokers, epoch=-1)
    found = kafka.describe_features()
    assert found.epoch is None
    assert found.by_name["metadata.version"].finalized == 0


@pytest.mark.parametrize("direction", Direction)
def test_controller_is_told_the_levels_and_which_way(brokers, kafka, direction):
    known(brokers)
    brokers.controller = 2
    brokers.on(API, UpdateFeaturesResponse())
    levels = {"metadata.version": 29, "group.version": 0}
    kafka.update_features(levels, direction, validate_only=True)
    (request,) = brokers.asked(API, node=2)
    assert {item.feature: item.max_version_level for item in request.feature_updates} == levels
    assert {item.upgrade_type for item in request.feature_updates} == {direction.value}
    assert request.validate_only


def test_the_docstring_names_a_level_that_a_new_cluster_takes():
    """The dev broker's, which refuses a lower one as a downgrade."""
    told = KafkaCluster.update_features.__doc__
    assert told is not None
    (level,) = re.findall(r'"metadata\.version": (\d+)', told)
    assert int(level) == level_of_release(METADATA_VERSION, DEFAULT_VERSION)


def test_what_is_refused_says_why(brokers, kafka):
    text = "The update failed: group.version"
    brokers.on(API, UpdateFeaturesResponse(error_code=95, error_message=text))
    with pytest.raises(BrokerError, match=f"features a, b.*{text}"):
        kafka.update_features({"b": 1, "a": 1})


def test_older_controllers_tell_of_each(brokers, kafka):
    brokers.versions[API] = (0, 1)
    part = UpdateFeaturesResponse.Feature
    results = (part(feature="a", error_code=95, error_message="no"), part(feature="b"))
    brokers.on(API, UpdateFeaturesResponse(results=results))
    with pytest.raises(BrokerError, match=r"feature 'a'.*INVALID_UPDATE_VERSION.*no"):
        kafka.update_features({"b": 1, "a": 1})


def test_controller_that_moved_is_looked_up_again(brokers, kafka, clock):
    brokers.on(API, UpdateFeaturesResponse(error_code=41), UpdateFeaturesResponse())
    kafka.update_features({"a": 1})
    assert len(brokers.asked(API)) == 2


def test_what_is_not_there_cannot_be_taken_out_of_force(brokers, kafka):
    """Controllers of Kafka 3.9 say that it is done: a name that is misspelt stays in force."""
    known(brokers)
    wanted = {"metadata.version": 29, "grup.version": 0, "share.version": 0}
    unknown = r"features grup.version, share.version: .*there is no such feature"
    with pytest.raises(BrokerError, match=unknown):
        kafka.update_features(wanted, Direction.SAFE_DOWNGRADE)
    assert brokers.asked(API) == []


def test_right_that_is_missing_is_named(brokers, kafka):
    brokers.on(API, UpdateFeaturesResponse(error_code=31))
    with pytest.raises(BrokerError, match="needs the right ALTER on the cluster"):
        kafka.update_features({"a": 1})


def test_brokers_before_3_3_cannot_be_asked(brokers, kafka):
    brokers.versions[API] = (0, 0)
    with pytest.raises(UnsupportedVersion, match="speaks UpdateFeatures 0 to 0"):
        kafka.update_features({"a": 1})


@pytest.mark.parametrize("wrong", [{"a": -1}, {"a": "1"}, {"a": 2**15}, {"a": True}, "a"])
def test_what_cannot_be_a_level_is_refused_here(brokers, kafka, wrong):
    with pytest.raises(ConfigError, match="level"):
        kafka.update_features(wrong)
    assert brokers.calls == []


def test_nothing_to_update_asks_nobody(brokers, kafka):
    kafka.update_features({})
    assert brokers.calls == []


def test_way_that_there_is_not_is_refused_here(kafka):
    with pytest.raises(ConfigError, match=r"'direction' is 'upgrade': expected one of Direction"):
        kafka.update_features({"group.version": 1}, "upgrade")


def test_older_controllers_are_asked_about_all_before_any_is_in_force(brokers, kafka):
    """Kafka 3.9 downgrades the one, refuses the other."""
    part = UpdateFeaturesResponse.Feature
    refused = UpdateFeaturesResponse(
        results=(part(feature="a.version"), part(feature="b.version", error_code=95))
    )
    brokers.versions[API] = (0, 1)
    brokers.on(API, refused)
    with pytest.raises(BrokerError, match=r"feature 'b.version'") as caught:
        kafka.update_features({"a.version": 1, "b.version": 1}, Direction.SAFE_DOWNGRADE)
    assert caught.value.usable is None
    assert [item.validate_only for item in brokers.asked(API)] == [True]
    well = UpdateFeaturesResponse(results=tuple(part(feature=f"{n}.version") for n in "ab"))
    brokers.on(API, well)
    kafka.update_features({"a.version": 1, "b.version": 1})
    assert [item.validate_only for item in brokers.asked(API)] == [True, True, False]


@pytest.mark.parametrize(
    ("word", "level"),
    [
        ("4.1-IV0", 26),
        ("4.1-IV1", 27),
        ("4.1", 27),
        ("4.1.1", 27),
        ("3.3-IV3", 7),
        ("4.4-IV0", 31),
        ("4.4", 33),
        ("4.5-IV0", None),
        ("4", None),
        ("4.1-IV2", None),
        ("4.1-", None),
        ("9.9", None),
        ("27", None),
        ("٤.1", None),
    ],
)
def test_words_of_releases_are_levels_of_metadata_version(word, level):
    assert level_of_release("metadata.version", word) == level
    assert level_of_release("group.version", word) is None


def test_each_level_has_a_word_that_stands_for_it():
    words = [release_of("metadata.version", level) for level in range(1, 34)]
    assert [level_of_release("metadata.version", word) for word in words] == list(range(1, 34))
    assert release_of("metadata.version", 0) is release_of("metadata.version", 34) is None
    assert release_of("group.version", 1) is None
