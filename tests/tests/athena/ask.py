"""ask.py <athena.sql> <container>: what infra/athena.sql says about a folder of blobs.

There is no Athena here. sqlglot parses each statement in the dialect that Athena has for it, Hive's for tables and Trino's
for the rest; a statement it cannot parse ends the program. Views and questions are then translated and run by DuckDB over
tables that hold what Athena would project. Printed is one JSON object: `tables` (partition columns and properties of each),
`deadletters` (the rows of the view) and `questions` (title: rows).
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
# Trino's functions that sqlglot leaves as they are.
database.execute("CREATE MACRO approx_percentile(x, share) AS quantile_cont(x, share)")


def of_duckdb(statement):
    """The statement in DuckDB's SQL; whatever cannot be translated is an error."""
    # DuckDB's TRY lets the error of a bad JSON text through, its TRY_CAST does not.
    tries = [node for node in statement.find_all(exp.ParseJSON) if node.find_ancestor(exp.Try, exp.Anonymous)]
    for node in tries:
        node.replace(exp.TryCast(this=node.this.copy(), to=exp.DataType.build("json")))
    text = statement.sql(dialect="duckdb", comments=False, unsupported_level=sqlglot.ErrorLevel.RAISE)
    # Of a list: both count from 1 and, below zero, from the end. DuckDB's own `element_at` is about maps.
    return text.replace("ELEMENT_AT(", "LIST_EXTRACT(")


def rows(query):
    found = database.execute(f"SELECT CAST(to_json(answer) AS TEXT) FROM ({query}) AS answer").fetchall()
    return [json.loads(row) for (row,) in found]


def table(statement):
    """Columns of partitions, and properties, of a CREATE EXTERNAL TABLE."""
    partitions = statement.find(exp.PartitionedByProperty)
    properties = {item.name: item.args["value"].name for item in statement.find_all(exp.Property) if type(item) is exp.Property}
    columns = partitions.find_all(exp.ColumnDef) if partitions else ()
    return {"partitions": [column.name for column in columns], "properties": properties}


def fill():
    """The lines of all blobs with their partitions, as Athena projects them, and those of the ledgers."""
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
told = {"tables": {}, "questions": {}}
# Comments of a statement begin before it; a semicolon ends one wherever it stands, as the file has none elsewhere.
for text in pathlib.Path(script).read_text().split(";\n"):
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
    titles = [line[len("-- Question: ") :] for line in text.splitlines() if line.startswith("-- Question: ")]
    if not code:
        continue
    if code.startswith("CREATE EXTERNAL TABLE"):
        statement = sqlglot.parse_one(code, dialect="athena")
        told["tables"][statement.find(exp.Table).name] = table(statement)
    elif code.startswith("CREATE OR REPLACE VIEW"):
        database.execute(of_duckdb(sqlglot.parse_one(code, dialect="trino")))
    else:
        (title,) = titles
        title = title.split("?")[0] + "?"
        told["questions"][title] = rows(of_duckdb(sqlglot.parse_one(code, dialect="trino")))
told["deadletters"] = rows("SELECT * FROM deadletters")
json.dump(told, sys.stdout)
