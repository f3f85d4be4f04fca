"""ask.py <athena.sql> <container>: runs infra/athena.sql over a folder of blobs.

There is no Athena here. sqlglot parses each statement in the dialect that Athena uses for it, Hive's for tables and
Trino's for the rest; a statement that it cannot parse is an error. DuckDB then runs the translated views and queries
over tables with the lines and partitions that Athena would project. Prints one JSON object: `tables` (partition
columns and properties of each), `deadletters` (the rows of the view) and `questions` (title: rows).
"""

import json
import pathlib
import sys

import duckdb
import sqlglot
from sqlglot import exp

_, script, container = sys.argv
container = pathlib.Path(container)
database = duckdb.connect()
database.execute("SET TimeZone = 'UTC'")
# A function of Trino that sqlglot does not translate.
database.execute("CREATE MACRO approx_percentile(x, share) AS quantile_cont(x, share)")


def of_duckdb(statement):
    """The statement in DuckDB's SQL; whatever cannot be translated is an error."""
    # DuckDB's TRY does not catch the error of invalid JSON, its TRY_CAST does.
    tries = [node for node in statement.find_all(exp.ParseJSON) if node.find_ancestor(exp.Try, exp.Anonymous)]
    for node in tries:
        node.replace(exp.TryCast(this=node.this.copy(), to=exp.DataType.build("json")))
    text = statement.sql(dialect="duckdb", comments=False, unsupported_level=sqlglot.ErrorLevel.RAISE)
    # For lists: both count from 1, and negative indexes from the end. DuckDB's own `element_at` is for maps.
    return text.replace("ELEMENT_AT(", "LIST_EXTRACT(")


def rows(query):
    found = database.execute(f"SELECT CAST(to_json(answer) AS TEXT) FROM ({query}) AS answer").fetchall()
    return [json.loads(row) for (row,) in found]


def table(statement):
    """Partition columns and properties of a CREATE EXTERNAL TABLE."""
    partitions = statement.find(exp.PartitionedByProperty)
    properties = {item.name: item.args["value"].name for item in statement.find_all(exp.Property) if type(item) is exp.Property}
    columns = partitions.find_all(exp.ColumnDef) if partitions else ()
    return {"partitions": [column.name for column in columns], "properties": properties}


def fill():
    """Loads the lines of all blobs with their partitions, as Athena projects them, and those of the ledgers."""
    database.execute(
        'CREATE TABLE deadletter_lines (line TEXT, namespace TEXT, topic TEXT, subscription TEXT,'
        ' year INT, month INT, day INT, hour INT, "$path" TEXT)'
    )
    database.execute('CREATE TABLE deadletter_ledger_lines (line TEXT, "$path" TEXT)')
    for path in sorted(container.rglob("*json")):
        key = path.relative_to(container)
        ledger = key.parts[0] == "_replays"
        for line in path.read_bytes().decode().removesuffix("\n").split("\n"):
            if ledger:
                database.execute("INSERT INTO deadletter_ledger_lines VALUES (?, ?)", [line, f"s3://letters/{key}"])
            else:
                values = [line, *key.parts[:7], f"s3://letters/{key}"]
                database.execute("INSERT INTO deadletter_lines VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


fill()
results = {"tables": {}, "questions": {}}
# A statement's comments precede it; the file has semicolons at the end of statements only.
for text in pathlib.Path(script).read_text().split(";\n"):
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
    titles = [line[len("-- Question: ") :] for line in text.splitlines() if line.startswith("-- Question: ")]
    if not code:
        continue
    if code.startswith("CREATE EXTERNAL TABLE"):
        statement = sqlglot.parse_one(code, dialect="athena")
        results["tables"][statement.find(exp.Table).name] = table(statement)
    elif code.startswith("CREATE OR REPLACE VIEW"):
        database.execute(of_duckdb(sqlglot.parse_one(code, dialect="trino")))
    else:
        (title,) = titles
        title = title.split("?")[0] + "?"
        results["questions"][title] = rows(of_duckdb(sqlglot.parse_one(code, dialect="trino")))
results["deadletters"] = rows("SELECT * FROM deadletters")
json.dump(results, sys.stdout)
