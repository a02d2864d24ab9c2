"""Plans statements on a distributed database, and counts what Citus does with them.

Reads lines of `name<TAB>SQL`, as crates/cli/examples/statements.rs prints them. `test-postgres` sets the variables. Statements are
planned, not executed, with an example for each parameter. A statement runs if Citus plans it; its result was not checked. Citus fails
to explain an `INSERT … SELECT` with parameters that it can execute ("could not create distributed plan"); it counts as refused.
"""

import collections
import os
import re
import subprocess
import sys

# The examples' type; others are null. With two organizations, an array does not select a single shard.
EXAMPLES = {
    "uuid": "'01974d1a-7c00-7a00-8000-000000000002'::uuid",
    "uuid[]": "'{01974d1a-7c00-7a00-8000-000000000002,01974d1a-7c00-7a00-8000-000000000003}'::uuid[]",
    "timestamp with time zone": "now()",
    "integer": "5",
    "bigint": "26",
    "smallint": "5",
    "numeric": "5",
    "boolean": "true",
    "bytea": "'a'::bytea",
    "jsonb": "'{}'::jsonb",
    "inet": "'127.0.0.1'::inet",
    "text": "'1'",
}
DATABASE = "statements"


def psql(url, script, stop=True):
    """Returns what psql prints."""
    command = ["psql", "-XAtq", "-d", url] + ["-vON_ERROR_STOP=1"] * stop
    done = subprocess.run(command, input=script, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if stop and done.returncode:
        sys.exit(f"psql failed: {done.stdout}")
    return done.stdout


def example(kind):
    """Returns the example of a parameter."""
    return EXAMPLES.get(kind, "'{}'::" + kind if kind.endswith("[]") else f"NULL::{kind}")


def main():
    """Plans the statements of the standard input."""
    coordinator = os.environ["TEST_DATABASE_URL"]
    for url in [coordinator, *os.environ["TEST_CITUS_WORKERS"].split()]:
        psql(url, f"CREATE DATABASE {DATABASE} TEMPLATE template_fixture")
    database = coordinator.replace("///postgres?", f"///{DATABASE}?")
    statements = dict(line.rstrip("\n").split("\t", 1) for line in sys.stdin)
    parameters = "SELECT unnest(parameter_types) FROM pg_prepared_statements WHERE name = 's';"
    listed = psql(
        database,
        "".join(f"\\echo '@{name}'\nPREPARE s AS {sql};\n{parameters}\nDEALLOCATE s;\n" for name, sql in statements.items()),
        stop=False,
    )
    script = "SET client_min_messages = warning; SET statement_timeout = '30s';\n"
    for block in re.split(r"^@", listed, flags=re.M)[1:]:
        name, *kinds = block.splitlines()
        arguments = ", ".join(example(kind) for kind in kinds if not kind.startswith(("ERROR", "LINE", " ")))
        arguments = f"({arguments})" if arguments else ""
        script += f"\\echo '@{name}'\nPREPARE s AS {statements[name]};\nEXPLAIN (COSTS OFF) EXECUTE s{arguments};\nROLLBACK;\nDEALLOCATE s;\n"
    counts = collections.Counter()
    for block in re.split(r"^@", psql(database, script, stop=False), flags=re.M)[1:]:
        name, _, plan = block.partition("\n")
        tasks = [int(count) for count in re.findall(r"Task Count: (\d+)", plan)]
        error = re.search(r"ERROR:  (.*)", plan)
        if error:
            outcome = "refused"
            print(f"{name}: {error.group(1)}")
        elif "Citus" not in plan:
            outcome = "on the coordinator"
        elif max(tasks, default=1) > 1:
            outcome = "on several shards"
        else:
            outcome = "on one shard"
        counts[outcome] += 1
    for outcome, count in counts.most_common():
        print(f"{count:4} {outcome}")


if __name__ == "__main__":
    main()
