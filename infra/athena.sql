-- Dead letters in Amazon Athena (engine version 3): two tables, two views, and sample queries.
--
-- Replace DEAD_LETTER_BUCKET by the stack's output DeadLetterBucketName in all four places. Athena runs one statement at a
-- time.
--
-- No crawler is needed and no partition has to be added: the partitions are projected from the key,
-- <namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json, in UTC, without leading zeros.
-- https://docs.aws.amazon.com/athena/latest/ug/partition-projection-supported-types.html
--
--   * namespace, topic and subscription are `injected`: new values need no change here, but every query has to name them, by
--     = or IN with literals. Otherwise Athena rejects it (CONSTRAINT_VIOLATION). They are written as in the key:
--     percent-encoded outside [A-Za-z0-9._-], with _malformed, _unknown and _unprocessed as possible subscriptions.
--     To query all of them at once, list them and keep the lists current; a few dozen at most:
--       ALTER TABLE deadletter_lines SET TBLPROPERTIES ('projection.subscription.type' = 'enum',
--         'projection.subscription.values' = 'billing,shipping,_unprocessed')
--   * year, month, day and hour are integers. Athena looks for every hour that a query does not exclude, so exclude them, by
--     integers: year() and the like return bigint, which has to be cast.

-- Blobs as lines of text. A JSON SerDe cannot read them: it accepts objects only, four of the five formats are arrays of one, and
-- a blob has the line breaks of the published event. The column delimiter cannot occur in JSON, so a line is one column.
-- The ledgers of replays, below _replays/, are in no such partition.
CREATE EXTERNAL TABLE IF NOT EXISTS deadletter_lines (line STRING)
PARTITIONED BY (
  `namespace` STRING, `topic` STRING, `subscription` STRING, `year` INT, `month` INT, `day` INT, `hour` INT
)
ROW FORMAT DELIMITED FIELDS TERMINATED BY '\001'
STORED AS TEXTFILE
LOCATION 's3://DEAD_LETTER_BUCKET/'
TBLPROPERTIES (
  'projection.enabled' = 'true',
  'projection.namespace.type' = 'injected',
  'projection.topic.type' = 'injected',
  'projection.subscription.type' = 'injected',
  'projection.year.type' = 'integer',
  'projection.year.range' = '2025,2045',
  'projection.month.type' = 'integer',
  'projection.month.range' = '1,12',
  'projection.day.type' = 'integer',
  'projection.day.range' = '1,31',
  'projection.hour.type' = 'integer',
  'projection.hour.range' = '0,23',
  'storage.location.template' = 's3://DEAD_LETTER_BUCKET/${namespace}/${topic}/${subscription}/${year}/${month}/${day}/${hour}/'
);

-- The ledgers of `lastmile deadletters replay`.
CREATE EXTERNAL TABLE IF NOT EXISTS deadletter_ledger_lines (line STRING)
ROW FORMAT DELIMITED FIELDS TERMINATED BY '\001'
STORED AS TEXTFILE
LOCATION 's3://DEAD_LETTER_BUCKET/_replays/';

-- One row per dead letter, whatever its format.
--
--   * A delivery that was duplicated may have two blobs: count DISTINCT deadletterid.
--   * A blob that cannot be parsed is a row without a deadletterid.
--   * event is JSON. In the flat formats (eventgrid, cloudevents, custom, knative, namespace with layout flat) the metadata
--     of the dead letter is among the members of the event, and the payload of a custom event is its member data. Athena
--     sorts members and reads numbers as doubles: `lastmile deadletters show ID --raw` prints the bytes. An event with
--     unpaired surrogates has U+FFFD in their place, and its bytes are in `original_base64`.
--   * The lines of a blob are joined in the order in which Athena reads them. A blob of one line, which is every blob whose
--     event was published without line breaks, does not depend on that.
CREATE OR REPLACE VIEW deadletters AS
WITH blobs AS (
  SELECT namespace, topic, subscription, year, month, day, hour, "$path" AS path,
    array_join(array_agg(line), chr(10)) AS text
  FROM deadletter_lines
  GROUP BY namespace, topic, subscription, year, month, day, hour, "$path"
),
letters AS (
  SELECT blobs.*, letter
  FROM blobs
  CROSS JOIN UNNEST(
    COALESCE(TRY(CAST(json_parse(text) AS ARRAY(JSON))), ARRAY[TRY(json_parse(text))])
  ) AS elements (letter)
),
told AS (
  SELECT letters.*,
    COALESCE(
      json_extract(letter, '$.deadletterProperties'),
      TRY(json_parse(json_extract_scalar(letter, '$.lastmile')))
    ) AS about
  FROM letters
),
lives AS (
  SELECT told.*,
    COALESCE(
      -- JSON that is stored as text, because it is malformed or nests too deep.
      CASE WHEN json_extract_scalar(about, '$.eventis') IS NULL
        THEN TRY(json_parse(json_extract_scalar(letter, '$.event'))) END,
      json_extract(letter, '$.event'),
      letter
    ) AS event_json,
    filter(
      CAST(json_extract(about, '$.history') AS ARRAY(JSON)),
      attempt -> json_extract_scalar(attempt, '$.outcome') <> 'Probation'
    ) AS attempts_made
  FROM told
)
SELECT
  json_extract_scalar(about, '$.deadletterid') AS deadletterid,
  namespace, topic, subscription, year, month, day, hour,
  json_extract_scalar(about, '$.subscription') AS subscription_name,
  json_extract_scalar(about, '$.deadletterreasoncode') AS reason,
  json_extract_scalar(element_at(attempts_made, -1), '$.outcome') AS outcome,
  CAST(json_extract_scalar(about, '$.lasthttpstatuscode') AS INTEGER) AS status,
  CAST(COALESCE(
    json_extract_scalar(about, '$.deliveryattempts'),
    json_extract_scalar(letter, '$.deliveryattempts'),
    json_extract_scalar(letter, '$.deliveryAttempts'),
    json_extract_scalar(letter, '$.errorretry')
  ) AS INTEGER) AS attempts,
  from_iso8601_timestamp(COALESCE(
    json_extract_scalar(about, '$.publishutc'),
    json_extract_scalar(letter, '$.publishtime'),
    json_extract_scalar(letter, '$.publishTime')
  )) AS published_at,
  from_iso8601_timestamp(json_extract_scalar(element_at(attempts_made, -1), '$.at')) AS last_attempt_at,
  json_extract_scalar(about, '$.destination') AS destination,
  COALESCE(
    json_extract_scalar(about, '$.lastresponse'),
    'base64:' || json_extract_scalar(about, '$.lastresponse_base64')
  ) AS last_response,
  json_extract_scalar(about, '$.deadletterdetail') AS detail,
  json_extract_scalar(about, '$.sinkerror') AS sink_error,
  json_extract_scalar(about, '$.sink.reason') AS sink_reason,
  json_extract_scalar(about, '$.sink.destination') AS sink_destination,
  json_extract_scalar(event_json, '$.id') AS event_id,
  COALESCE(json_extract_scalar(event_json, '$.type'), json_extract_scalar(event_json, '$.eventType')) AS event_type,
  COALESCE(json_extract_scalar(event_json, '$.source'), json_extract_scalar(event_json, '$.topic')) AS event_source,
  json_format(event_json) AS event,
  json_format(json_extract(about, '$.history')) AS history,
  path
FROM lives;

-- The replays, one row per dead letter and job; `sent` is certain, `intent` may have been sent.
CREATE OR REPLACE VIEW deadletter_replays AS
SELECT DISTINCT
  regexp_extract("$path", '_replays/([^/]+)/', 1) AS job,
  json_extract_scalar(line, '$.letter') AS deadletterid,
  json_extract_scalar(line, '$.delivery') AS delivery,
  json_extract_scalar(line, '$.state') AS state,
  from_iso8601_timestamp(json_extract_scalar(line, '$.at')) AS noted_at
FROM deadletter_ledger_lines
WHERE json_extract_scalar(line, '$.state') IS NOT NULL;

-- Question: how many of the last day, by reason?
SELECT reason, COUNT(DISTINCT deadletterid) AS letters
FROM deadletters
WHERE namespace = 'shop' AND topic = 'orders' AND subscription IN ('billing', 'shipping')
  AND year IN (CAST(year(current_date) AS INTEGER), CAST(year(current_date - INTERVAL '1' DAY) AS INTEGER))
  AND month IN (CAST(month(current_date) AS INTEGER), CAST(month(current_date - INTERVAL '1' DAY) AS INTEGER))
  AND day IN (CAST(day(current_date) AS INTEGER), CAST(day(current_date - INTERVAL '1' DAY) AS INTEGER))
  AND COALESCE(last_attempt_at, published_at) >= current_timestamp - INTERVAL '1' DAY
GROUP BY reason
ORDER BY letters DESC;

-- Question: why?
SELECT destination, outcome, status, COUNT(DISTINCT deadletterid) AS letters,
  MIN(published_at) AS first_published_at, MAX(published_at) AS last_published_at, MIN(deadletterid) AS example,
  MIN(split_part(last_response, chr(10), 1)) AS example_response
FROM deadletters
WHERE namespace = 'shop' AND topic = 'orders' AND subscription = 'billing' AND year = 2026 AND month = 11
GROUP BY destination, outcome, status
ORDER BY letters DESC;

-- Question: which were not sent again, the oldest first?
SELECT deadletterid, reason, published_at, event_id, path
FROM deadletters
WHERE namespace = 'shop' AND topic = 'orders' AND subscription = 'billing' AND year = 2026 AND month = 11
  AND deadletterid NOT IN (SELECT deadletterid FROM deadletter_replays WHERE state IN ('sent', 'intent'))
ORDER BY published_at
LIMIT 100;

-- Question: what became of one event?
SELECT subscription, deadletterid, reason, outcome, status, attempts, last_attempt_at, path
FROM deadletters
WHERE namespace = 'shop' AND topic = 'orders' AND subscription IN ('billing', 'shipping') AND year = 2026 AND month = 11
  AND event_id = '1' AND event_source = '/shop'
ORDER BY last_attempt_at;

-- Question: which endpoints are slow? The history of a dead letter has the duration of each attempt.
SELECT destination, COUNT(*) AS attempts,
  CAST(approx_percentile(CAST(json_extract_scalar(attempt, '$.durationms') AS DOUBLE), 0.5) AS BIGINT) AS median_ms,
  MAX(CAST(json_extract_scalar(attempt, '$.durationms') AS BIGINT)) AS longest_ms
FROM deadletters
CROSS JOIN UNNEST(CAST(json_parse(history) AS ARRAY(JSON))) AS made (attempt)
WHERE namespace = 'shop' AND topic = 'orders' AND subscription = 'billing' AND year = 2026 AND month = 11
  AND json_extract_scalar(attempt, '$.durationms') IS NOT NULL
GROUP BY destination
ORDER BY median_ms DESC;

-- Question: is there anything that cannot be read?
SELECT path
FROM deadletters
WHERE namespace = 'shop' AND topic = 'orders' AND subscription = 'billing' AND year = 2026 AND month = 11
  AND deadletterid IS NULL;
