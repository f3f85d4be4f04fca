//! Bodies whose sentences are those of single libraries; the test of [`super::frameworks_tests`] reads them too.

use super::frameworks_tests::{Row, row};

pub(super) const ROWS: [Row; 10] = [
    // Axum, Go and GraphQL name the place within a sentence
    row(
        422,
        "422 items[<number>].tax: unknown variant <value>, expected `full` or `zero`",
        &[
            "Failed to deserialize the JSON body into the target type: items[0].tax: unknown variant `half`, expected `full` or `zero`",
            "Failed to deserialize the JSON body into the target type: items[3].tax: unknown variant `none`, expected `full` or `zero`",
        ],
    ),
    row(
        400,
        "400 invalid payload: json: cannot unmarshal number into int64: Payout.fee_cents",
        &[
            "invalid payload: json: cannot unmarshal number 12.5 into Go struct field Payout.fee_cents of type int64",
            "invalid payload: json: cannot unmarshal number 1.25 into Go struct field Payout.fee_cents of type int64",
        ],
    ),
    row(
        400,
        "400 Int cannot represent non-integer value: <number>: input.lines.<number>.quantity",
        &[
            r#"{"errors":[{"message":"Variable \"$input\" got invalid value 2.5 at \"input.lines[0].quantity\"; Int cannot represent non-integer value: 2.5"}]}"#,
            r#"{"errors":[{"message":"Variable \"$input\" got invalid value 0.1 at \"input.lines[2].quantity\"; Int cannot represent non-integer value: 0.1"}]}"#,
        ],
    ),
    // Jackson in Spring: the place is last, after a copy of the message
    row(
        400,
        "400 JSON parse error: Cannot deserialize value of type `LocalDate` from String <value>: lines.<number>.due",
        &[
            r#"{"status":400,"error":"Bad Request","message":"JSON parse error: Cannot deserialize value of type `java.time.LocalDate` from String \"1.2.26\": Failed to deserialize java.time.LocalDate: (java.time.format.DateTimeParseException) Text '1.2.26' could not be parsed at index 0\n at [Source: (a.B); line: 1, column: 31] (through reference chain: a.b.Order[\"lines\"]->java.util.ArrayList[0]->a.b.Line[\"due\"])"}"#,
            r#"{"status":400,"error":"Bad Request","message":"JSON parse error: Cannot deserialize value of type `java.time.LocalDate` from String \"soon\": Failed to deserialize java.time.LocalDate: (java.time.format.DateTimeParseException) Text 'soon' could not be parsed at index 0\n at [Source: (a.B); line: 1, column: 377] (through reference chain: a.b.Order[\"lines\"]->java.util.ArrayList[4]->a.b.Line[\"due\"])"}"#,
        ],
    ),
    // V8 quotes what stands around the wrong token
    row(
        400,
        "400 SyntaxError: Unexpected token <value>, not valid JSON: rate",
        &[
            r#"<html><title>Error</title><pre>SyntaxError: Unexpected token &#39;N&#39;, ...&quot;rate&quot;:NaN,&quot;lines&quot;:... is not valid JSON<br> at JSON.parse</pre></html>"#,
            r#"<html><title>Error</title><pre>SyntaxError: Unexpected token &#39;N&#39;, ...7,&quot;rate&quot;:NaN}&quot; is not valid JSON<br> at JSON.parse</pre></html>"#,
        ],
    ),
    // Laravel appends the statement
    row(
        500,
        "500 SQLSTATE[22001]: String data, right truncated: <number> Data too long for column 'note' at row <number>",
        &[
            r#"{"message":"SQLSTATE[22001]: String data, right truncated: 1406 Data too long for column 'note' at row 1 (Connection: mysql, SQL: insert into `orders` (`note`) values (Dear Ann))"}"#,
            r#"{"message":"SQLSTATE[22001]: String data, right truncated: 1406 Data too long for column 'note' at row 1 (SQL: insert into `orders` (`note`) values (Happy birthday))"}"#,
        ],
    ),
    // Salesforce repeats the value without quotation marks
    row(
        400,
        "400 STRING_TOO_LONG: Account Site: data value too large: <value> (max length=<number>)",
        &[
            r#"[{"message":"Account Site: data value too large: Dock 7, near the old mill (max length=80)","errorCode":"STRING_TOO_LONG","fields":["Site"]}]"#,
            r#"[{"message":"Account Site: data value too large: Gate B (south) (max length=80)","errorCode":"STRING_TOO_LONG","fields":["Site"]}]"#,
        ],
    ),
    // Protocol Buffers name a position
    row(
        400,
        "400 proto: unknown field \"giftWrap\"",
        &[
            r#"{"code":3,"message":"proto: (line 1:98): unknown field \"giftWrap\"","details":[]}"#,
            r#"{"code":3,"message":"proto: (line 12:5): unknown field \"giftWrap\"","details":[]}"#,
        ],
    ),
    // OData 2 of SAP
    row(
        400,
        "400 Customer <number> is blocked",
        &[
            r#"{"error":{"code":"V1/7","message":{"lang":"en","value":"Customer 4711 is blocked"},"innererror":{"errordetails":[{"code":"V1/7","message":"Customer 4711 is blocked","severity":"error","target":"Customer"},{"message":"An exception was raised","target":""}]}}}"#,
            r#"{"error":{"code":"V1/7","message":{"lang":"en","value":"Customer 815 is blocked"},"innererror":{"errordetails":[{"code":"V1/7","message":"Customer 815 is blocked","severity":"error","target":"Customer"}]}}}"#,
        ],
    ),
    row(
        400,
        "400 the area is closed",
        &[
            r#"{"error":{"code":"V1/8","message":{"lang":"en","value":"the area is closed"},"innererror":{"transactionid":"5F0C"}}}"#,
        ],
    ),
];
