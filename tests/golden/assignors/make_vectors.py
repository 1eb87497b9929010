"""Makes java.tsv beside it with Kafka's own assignors; run by people, never by tests.

    python tests/golden/assignors/make_vectors.py FOLDER_OF_JARS

Random groups: members with and without group.instance.id, each with its own topics, some of which
nobody has made. The version of the kafka-clients among the jars is in the file's first line.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CASES = 150
TOPICS = ("orders", "clicks", "Ärger", "a", "missing")


def cases() -> list[str]:
    rng = random.Random(20261121)
    lines = []
    for _ in range(CASES):
        counts = {topic: rng.randrange(0, 12) for topic in TOPICS[:-1]}
        members = []
        for number in rng.sample(range(1, 40), rng.randrange(1, 8)):
            instance = f"@i{rng.randrange(100)}-{number}" if rng.random() < 0.3 else ""
            # Half of the groups are all of one mind.
            topics = TOPICS if number % 2 else rng.sample(TOPICS, rng.randrange(1, 5))
            members.append(f"m{number}{instance}={'+'.join(topics)}")
        shown = ",".join(f"{topic}:{count}" for topic, count in counts.items() if count)
        lines += [f"{name}\t{shown}\t{';'.join(members)}" for name in ("range", "roundrobin")]
    return lines


def ask_java(jars: Path) -> None:
    clients = next(jars.glob("kafka-clients-*.jar"))
    done = subprocess.run(
        ["java", "-Dfile.encoding=UTF-8", "-cp", f"{jars}/*", str(HERE / "JavaAssignors.java")],
        input="".join(f"{line}\n" for line in cases()),
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    origin = f"# {clients.name}, tests/golden/assignors/make_vectors.py\n"
    (HERE / "java.tsv").write_text(f"{origin}{done.stdout}", encoding="utf-8")


if __name__ == "__main__":
    ask_java(Path(sys.argv[1]))
