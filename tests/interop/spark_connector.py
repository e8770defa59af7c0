"""Spark's own Kafka source: the jars that Maven fetches, in the version nearest to this Spark's that is published."""

from __future__ import annotations

import subprocess
from pathlib import Path

POM = Path(__file__).parent / "spark-connector" / "pom.xml"


def jars(target: Path) -> str:
    """Fetch the jars into a folder and return them as Spark's setting ``spark.jars`` takes them."""
    maven = ["mvn", "-q", "-B", "-f", str(POM), f"-Dtarget={target}", "process-resources"]
    fetched = subprocess.run(maven, check=False, capture_output=True, text=True, timeout=900)
    assert fetched.returncode == 0, f"Maven failed:\n{fetched.stdout}{fetched.stderr}"
    return ",".join(str(jar) for jar in sorted((target / "jars").glob("*.jar")))
