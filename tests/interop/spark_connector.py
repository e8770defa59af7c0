"""Spark's own Kafka source: the jars that Maven fetches, in the version nearest to this Spark's that is published."""

from __future__ import annotations

from pathlib import Path

from maven import run_maven

POM = Path(__file__).parent / "spark-connector" / "pom.xml"


def jars(target: Path) -> str:
    """Fetch the jars into a folder and return them as Spark's setting ``spark.jars`` takes them."""
    run_maven(POM, target, "process-resources")
    return ",".join(str(jar) for jar in sorted((target / "jars").glob("*.jar")))
