"""A job with a password: it reads, and the password stands in no plan, no UI and no error."""

import pytest

from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.spark import DefaultSource
from tests.secure_broker import PASSWORD, TOPIC, login
from tests.spark.streaming import NOW, finish

pytestmark = pytest.mark.spark

# Enough of it to be recognised however the rest is quoted.
TELLING = PASSWORD.split(",", maxsplit=1)[0]


def _options(secure, password=PASSWORD):
    properties = secure.as_user("reports") | {
        "sasl.jaas.config": login("SCRAM-SHA-512", "reports", password)
    }
    return {f"kafka.{name}": value for name, value in properties.items()} | {"subscribe": TOPIC}


def _shown_in_the_ui(spark):
    """What the SQL page of the UI keeps: descriptions and plans of all queries."""
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    texts = []
    for number in range(executions.size()):
        one = executions.apply(number)
        texts += [one.description(), one.details(), one.physicalPlanDescription()]
        texts.append(one.modifiedConfigs().toString())
    return "\n".join(texts)


def test_a_job_logs_in_and_shows_its_password_nowhere(spark, secure, capfd):
    frame = spark.read.format("kafkaproto").options(**_options(secure)).load()
    assert [bytes(row.value) for row in frame.select("value").collect()] == [
        *(b"one", b"two", b"three")
    ]
    frame.explain(mode="extended")
    shown = f"{frame._jdf.queryExecution()} {_shown_in_the_ui(spark)} {capfd.readouterr()}"
    assert "kafkaproto" in shown
    assert TELLING not in shown
    source = DefaultSource(_options(secure))
    assert TELLING not in f"{source.reader(source.schema())!r}"


def test_a_job_has_a_delegation_token_and_no_password(spark, secure, capfd):
    """The driver's too: whoever made the token logged in with the password, and nobody else."""
    with KafkaCluster(secure.as_user("reports")) as cluster:
        token = cluster.create_delegation_token(max_lifetime_s=3600)
    properties = secure.properties("SASL") | token.login()
    options = {f"kafka.{name}": value for name, value in properties.items()}
    frame = spark.read.format("kafkaproto").options(**options, subscribe=TOPIC).load()
    assert [bytes(row.value) for row in frame.select("value").collect()] == [
        *(b"one", b"two", b"three")
    ]
    frame.explain(mode="extended")
    shown = f"{frame._jdf.queryExecution()} {_shown_in_the_ui(spark)} {capfd.readouterr()}"
    assert token.hmac.reveal() not in shown
    with KafkaCluster(secure.as_user("reports")) as cluster:
        cluster.expire_delegation_token(token)
        cluster.believed(
            cluster.describe_delegation_tokens,
            lambda found: token.token_id not in {item.token_id for item in found},
        )
    refused = spark.read.format("kafkaproto").options(**options, subscribe=TOPIC).load()
    with pytest.raises(Exception, match="knows no such delegation token") as caught:
        refused.collect()
    assert token.hmac.reveal() not in str(caught.value)


def test_a_wrong_password_says_so_and_is_not_shown(spark, secure, capfd):
    wrong = _options(secure, "not " + PASSWORD)
    frame = spark.read.format("kafkaproto").options(**wrong).load()
    with pytest.raises(Exception, match="SCRAM-SHA-512 authentication failed") as caught:
        frame.collect()
    assert TELLING not in f"{caught.value} {_shown_in_the_ui(spark)} {capfd.readouterr()}"


def test_a_stream_is_limited_by_bytes_without_any_right_on_the_cluster(spark, secure, tmp_path):
    """Brokers tell the size of logs to those alone who may DESCRIBE the cluster."""
    limited = {"startingOffsets": "earliest", "maxBytesPerTrigger": "1"}
    frame = spark.readStream.format("kafkaproto").options(**_options(secure), **limited).load()
    writer = frame.writeStream.format("noop").trigger(**NOW)
    progress = finish(writer.option("checkpointLocation", str(tmp_path)).start())
    assert [each["numInputRows"] for each in progress if each["numInputRows"]] == [1, 1, 1]
