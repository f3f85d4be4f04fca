//! Response bodies with the wording of individual libraries, and the titles that they must get. The
//! test in [`super::frameworks_tests`] reads these rows too.

use super::frameworks_tests::{Row, row};

pub(super) const ROWS: [Row; 33] = [
    // Axum, Go and GraphQL name the field within a sentence
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
        "400 Int cannot represent non-integer value: <value>: input.lines.<number>.quantity",
        &[
            r#"{"errors":[{"message":"Variable \"$input\" got invalid value 2.5 at \"input.lines[0].quantity\"; Int cannot represent non-integer value: 2.5"}]}"#,
            r#"{"errors":[{"message":"Variable \"$input\" got invalid value 0.1 at \"input.lines[2].quantity\"; Int cannot represent non-integer value: 0.1"}]}"#,
            r#"{"errors":[{"message":"Variable \"$input\" got invalid value \"two\" at \"input.lines[1].quantity\"; Int cannot represent non-integer value: \"two\""}]}"#,
        ],
    ),
    // Jackson in Spring: the field comes last, after a copy of the message
    row(
        400,
        "400 JSON parse error: Cannot deserialize value of type `LocalDate` from String <value>: lines.<number>.due",
        &[
            r#"{"status":400,"error":"Bad Request","message":"JSON parse error: Cannot deserialize value of type `java.time.LocalDate` from String \"1.2.26\": Failed to deserialize java.time.LocalDate: (java.time.format.DateTimeParseException) Text '1.2.26' could not be parsed at index 0\n at [Source: (a.B); line: 1, column: 31] (through reference chain: a.b.Order[\"lines\"]->java.util.ArrayList[0]->a.b.Line[\"due\"])"}"#,
            r#"{"status":400,"error":"Bad Request","message":"JSON parse error: Cannot deserialize value of type `java.time.LocalDate` from String \"soon\": Failed to deserialize java.time.LocalDate: (java.time.format.DateTimeParseException) Text 'soon' could not be parsed at index 0\n at [Source: (a.B); line: 1, column: 377] (through reference chain: a.b.Order[\"lines\"]->java.util.ArrayList[4]->a.b.Line[\"due\"])"}"#,
        ],
    ),
    // V8 quotes the text around the wrong token
    row(
        400,
        "400 SyntaxError: Unexpected token <value>, not valid JSON: rate",
        &[
            r#"<html><title>Error</title><pre>SyntaxError: Unexpected token &#39;N&#39;, ...&quot;rate&quot;:NaN,&quot;lines&quot;:... is not valid JSON<br> at JSON.parse</pre></html>"#,
            r#"<html><title>Error</title><pre>SyntaxError: Unexpected token &#39;N&#39;, ...7,&quot;rate&quot;:NaN}&quot; is not valid JSON<br> at JSON.parse</pre></html>"#,
        ],
    ),
    // Laravel appends the SQL statement
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
    // SAP, OData version 2
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
    // AWS counts its errors before it lists them
    row(
        400,
        "400 Member must have length greater than or equal to <number>: partitionKey; Member must have length less than or equal to <number>: streamName",
        &[
            r#"{"__type":"ValidationException","message":"2 validation errors detected: Value '' at 'partitionKey' failed to satisfy constraint: Member must have length greater than or equal to 1; Value 'sssss' at 'streamName' failed to satisfy constraint: Member must have length less than or equal to 128"}"#,
            r#"{"__type":"ValidationException","message":"2 validation errors detected: Value 'tttt' at 'streamName' failed to satisfy constraint: Member must have length less than or equal to 128; Value '' at 'partitionKey' failed to satisfy constraint: Member must have length greater than or equal to 1"}"#,
        ],
    ),
    row(
        400,
        "400 Member must have length greater than or equal to <number>: partitionKey",
        &[
            r#"{"__type":"ValidationException","message":"1 validation error detected: Value '' at 'partitionKey' failed to satisfy constraint: Member must have length greater than or equal to 1"}"#,
        ],
    ),
    // HubSpot and Zod write JSON into the message
    row(
        400,
        "400 Property values were not valid: <value> was not a valid long: amount",
        &[
            r#"{"status":"error","category":"VALIDATION_ERROR","message":"Property values were not valid: [{\"isValid\":false,\"message\":\"'12 EUR' was not a valid long.\",\"name\":\"amount\"}]"}"#,
            r#"{"status":"error","category":"VALIDATION_ERROR","message":"Property values were not valid: [{\"isValid\":false,\"message\":\"'7,5' was not a valid long.\",\"name\":\"amount\"}]"}"#,
        ],
    ),
    // Elasticsearch ends with the rejected value
    row(
        400,
        "400 failed to parse field [total] of type [float] in document with id <value>",
        &[
            r#"{"error":{"type":"mapper_parsing_exception","reason":"failed to parse field [total] of type [float] in document with id '7Hs-a91'. Preview of field's value: '12,50 EUR'"},"status":400}"#,
            r#"{"error":{"type":"mapper_parsing_exception","reason":"failed to parse field [total] of type [float] in document with id 'pQ2-b07'. Preview of field's value: 'free'"},"status":400}"#,
        ],
    ),
    // Envoy may have retried the request
    row(
        503,
        "503 upstream connect error: connection timeout",
        &[
            "upstream connect error or disconnect/reset before headers. reset reason: connection timeout",
            "upstream connect error or disconnect/reset before headers. retried and the latest reset reason: connection timeout",
        ],
    ),
    // Apache states the reason in the second paragraph
    row(
        502,
        "502 Error reading from remote server",
        &[
            "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\"><html><head><title>502 Proxy Error</title></head><body><h1>Proxy Error</h1><p>The proxy server received an invalid\nresponse from an upstream server.<br />\nThe proxy server could not handle the request<p>Reason: <strong>Error reading from remote server</strong></p></p></body></html>",
        ],
    ),
    row(
        502,
        "502 DNS lookup failure for: orders.internal",
        &[
            "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\"><html><head><title>502 Proxy Error</title></head><body><h1>Proxy Error</h1><p>The proxy server received an invalid\nresponse from an upstream server.<br />\nThe proxy server could not handle the request<p>Reason: <strong>DNS lookup failure for: orders.internal</strong></p></p></body></html>",
        ],
    ),
    // SAP names objects with capital letters and a number
    row(
        400,
        "400 Material <id> not maintained in plant <number>",
        &[
            r#"{"error":{"code":"M7/305","message":{"lang":"en","value":"Material FG-2210 not maintained in plant 1010"}}}"#,
            r#"{"error":{"code":"M7/305","message":{"lang":"en","value":"Material RM-118 not maintained in plant 1710"}}}"#,
        ],
    ),
    // Salesforce ends with the rejected value of a picklist
    row(
        400,
        "400 INVALID_OR_NULL_FOR_RESTRICTED_PICKLIST: Industry: bad value for restricted picklist field: <value>",
        &[
            r#"[{"message":"Industry: bad value for restricted picklist field: Farming","errorCode":"INVALID_OR_NULL_FOR_RESTRICTED_PICKLIST","fields":["Industry"]}]"#,
            r#"[{"message":"Industry: bad value for restricted picklist field: fish & chips","errorCode":"INVALID_OR_NULL_FOR_RESTRICTED_PICKLIST","fields":["Industry"]}]"#,
        ],
    ),
    // Elasticsearch names an index that contains a date
    row(
        429,
        "429 index [<value>] blocked by: [FORBIDDEN/<number>/index read-only (api)];",
        &[
            r#"{"error":{"type":"cluster_block_exception","reason":"index [events-2026.11.05] blocked by: [FORBIDDEN/5/index read-only (api)];"},"status":429}"#,
            r#"{"error":{"type":"cluster_block_exception","reason":"index [event-lines-2026.11.06] blocked by: [FORBIDDEN/5/index read-only (api)];"},"status":429}"#,
        ],
    ),
    // Quarkus counts its errors after a UUID
    row(
        500,
        "500 Error id <id>, IllegalStateException: ledger closed",
        &[
            r#"{"details":"Error id 0c2f6a41-9b3e-4a55-8f70-1d2c3b4a5e6f-1, java.lang.IllegalStateException: ledger closed"}"#,
            r#"{"details":"Error id a1b2c3d4-0000-4111-8222-abcdefabcdef-27, java.lang.IllegalStateException: ledger closed"}"#,
        ],
    ),
    // Celebrate states the message beside the field
    row(
        400,
        "400 \"order.callback\" must be a valid uri",
        &[
            r#"{"statusCode":400,"error":"Bad Request","message":"Validation failed","validation":{"body":{"source":"body","keys":["order.callback"],"message":"\"order.callback\" must be a valid uri"}}}"#,
        ],
    ),
    // Django and Java do not begin with the cause
    row(
        500,
        "500 null value in column \"iban\" of relation \"payout\" violates not-null constraint",
        &[
            "IntegrityError at /hooks/payouts/\nnull value in column \"iban\" of relation \"payout\" violates not-null constraint\nDETAIL:  Failing row contains (7, null).\n\nRequest Method: POST\nRequest URL: http://x/hooks/payouts/\n",
            "<!DOCTYPE html><html><head><title>IntegrityError\n at /hooks/payouts/</title></head><body><h1>IntegrityError at /hooks/payouts/</h1><pre class=\"exception_value\">null value in column &quot;iban&quot; of relation &quot;payout&quot; violates not-null constraint</pre></body></html>",
        ],
    ),
    row(
        500,
        "500 Could not store the order: SQLTransientConnectionException: HikariPool-<number> - Connection is not available",
        &[
            "<!doctype html><html><head><title>HTTP Status 500 – Internal Server Error</title></head><body><h1>HTTP Status 500 – Internal Server Error</h1><p><b>Message</b> Could not store the order</p><p><b>Exception</b></p><pre>jakarta.servlet.ServletException: Could not store the order\n\tat a.B.c(B.java:18)\n</pre><p><b>Root Cause</b></p><pre>java.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available\n\tat x.Y.z(Y.java:5)\n</pre></body></html>",
        ],
    ),
    // Google states the permission in the details
    row(
        403,
        "403 PERMISSION_DENIED: pubsub.topics.publish for projects/shop/topics/orders: User not authorized to perform this action",
        &[
            r#"{"error":{"code":403,"message":"User not authorized to perform this action.","status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"IAM_PERMISSION_DENIED","metadata":{"permission":"pubsub.topics.publish","resource":"projects/shop/topics/orders"}}]}}"#,
        ],
    ),
    // Envoy prints the Linux `errno`
    row(
        503,
        "503 upstream connect error: connection refused",
        &[
            "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure, transport failure reason: delayed connect error: 111",
        ],
    ),
    row(
        503,
        "503 upstream connect error: CERTIFICATE_VERIFY_FAILED:self signed certificate",
        &[
            "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure, transport failure reason: TLS_error:|268435581:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:self signed certificate:TLS_error_end",
        ],
    ),
    // ASP.NET also reports an argument as missing if it could not read a part of the argument
    row(
        400,
        "400 The JSON value could not be converted to System.Decimal: lines.<number>.price",
        &[
            r#"{"title":"One or more validation errors occurred.","status":400,"errors":{"order":["The order field is required."],"$.lines[0].price":["The JSON value could not be converted to System.Decimal. Path: $.lines[0].price | LineNumber: 4 | BytePositionInLine: 20."]}}"#,
            r#"{"title":"One or more validation errors occurred.","status":400,"errors":{"$.lines[7].price":["The JSON value could not be converted to System.Decimal. Path: $.lines[7].price | LineNumber: 0 | BytePositionInLine: 190."],"order":["The order field is required."]}}"#,
        ],
    ),
    // Joi puts all errors into one text
    row(
        400,
        "400 \"lines[<number>].price\" must be a positive number",
        &[
            r#"{"message":"Validation failed","validation":{"body":{"source":"body","keys":["lines.0.price"],"message":"\"lines[0].price\" must be a positive number"}}}"#,
            r#"{"message":"Validation failed","validation":{"body":{"source":"body","keys":["lines.1.price","lines.6.price"],"message":"\"lines[1].price\" must be a positive number. \"lines[6].price\" must be a positive number"}}}"#,
        ],
    ),
    // Firestore names the document
    row(
        409,
        "409 ALREADY_EXISTS: Document already exists: projects/shop/databases/(default)/documents/orders/<value>",
        &[
            r#"{"error":{"code":409,"message":"Document already exists: projects/shop/databases/(default)/documents/orders/FV-31002-R1","status":"ALREADY_EXISTS"}}"#,
            r#"{"error":{"code":409,"message":"Document already exists: projects/shop/databases/(default)/documents/orders/17","status":"ALREADY_EXISTS"}}"#,
        ],
    ),
    // Envoy: a different `errno`
    row(
        503,
        "503 upstream connect error: connection timed out",
        &[
            "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure, transport failure reason: delayed connect error: 110",
        ],
    ),
    // PHP appends file paths
    row(
        500,
        "500 Fatal error : Uncaught TypeError: round(): Argument #<number> ($num) must be of type int|float, string given",
        &[
            "<br />\n<b>Fatal error</b>:  Uncaught TypeError: round(): Argument #1 ($num) must be of type int|float, string given in /srv/app/1/hook.php:10\nStack trace:\n#0 {main}",
            "<br />\n<b>Fatal error</b>:  Uncaught TypeError: round(): Argument #1 ($num) must be of type int|float, string given, called in /srv/app/2/hook.php on line 4\nStack trace:\n#0 {main}",
        ],
    ),
    // Elixir marks the exception
    row(
        500,
        "500 Ecto.NoResultsError: expected at least one result but got none",
        &[
            "# Ecto.NoResultsError at POST /hooks/1\n\nException:\n\n    ** (Ecto.NoResultsError) expected at least one result but got none\n        (app 0.1.0) lib/a.ex:1: A.b/2\n",
        ],
    ),
];
