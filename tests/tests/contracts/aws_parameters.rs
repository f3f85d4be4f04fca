//! The sets of parameters for each action, with what is sent of them.

use serde_json::{Value as Json, json};

/// An action: its service, five resources, and what subscriptions state as parameters with what is sent of it.
pub(crate) struct Action {
    pub(crate) service: &'static str,
    pub(crate) resources: [&'static str; 5],
    pub(crate) parameters: Vec<(Json, Json)>,
}

/// The actions of all services.
pub(crate) fn actions() -> [Action; 7] {
    [queues(), buses(), functions(), topics(), machines(), streams(), delivery_streams()]
}

/// Parameters that are sent as they are stated.
fn literal(parameters: Json) -> (Json, Json) {
    (parameters.clone(), parameters)
}

/// The value of an attribute that is a text.
fn text(text: &str) -> Json {
    json!({ "DataType": "String", "StringValue": text })
}

/// Attributes of a message, of both types.
fn attributes() -> Json {
    json!({ "tenant": text("acme ä"), "key": { "DataType": "Binary", "BinaryValue": "AAEC/w==" } })
}

fn queues() -> Action {
    Action {
        service: "sqs",
        resources: ["orders", "orders.fifo", "a_b-C", "orders", "x.fifo"],
        parameters: vec![
            literal(json!({})),
            literal(json!({ "MessageGroupId": "a" })),
            literal(json!({ "MessageGroupId": "a", "MessageDeduplicationId": "b" })),
            literal(json!({ "DelaySeconds": 900 })),
            (json!({ "DelaySeconds": "{{ event.data.delay }}" }), json!({ "DelaySeconds": 30 })),
            (json!({ "MessageGroupId": "{{ event.data.id }}" }), json!({ "MessageGroupId": "42" })),
            literal(json!({ "MessageAttributes": attributes() })),
            (
                json!({ "MessageAttributes": { "type": text("{{ event.type }}") } }),
                json!({ "MessageAttributes": { "type": text("order.created") } }),
            ),
            literal(
                json!({ "MessageSystemAttributes": { "AWSTraceHeader": text("Root=1-5759e988-bd862e3fe1be46a994272793") } }),
            ),
        ],
    }
}

fn buses() -> Action {
    Action {
        service: "events",
        resources: [
            "event-bus/default",
            "event-bus/shop",
            "event-bus/a.b_c",
            "event-bus/shop/x",
            "event-bus/z",
        ],
        parameters: vec![
            literal(json!({})),
            literal(json!({ "DetailType": "order", "Source": "shop" })),
            (
                json!({ "DetailType": "{{ event.type | upper }}", "Resources": ["arn:aws:s3:::a", "{{ event.subject }}"] }),
                json!({ "DetailType": "ORDER.CREATED", "Resources": ["arn:aws:s3:::a", "orders/7"] }),
            ),
            literal(json!({ "Time": "2026-01-02T03:04:05Z" })),
            (
                json!({ "Time": "{{ event.time }}" }),
                json!({ "Time": "2026-11-20T07:03:00.123+00:00" }),
            ),
            literal(json!({ "Time": "2026-01-02T03:04:05+01:00", "Resources": [] })),
            literal(json!({ "TraceHeader": "Root=1-5759e988-bd862e3fe1be46a994272793" })),
        ],
    }
}

fn functions() -> Action {
    Action {
        service: "lambda",
        resources: [
            "function:orders",
            "function:orders:prod",
            "function:a_b",
            "function:orders:7",
            "function:x",
        ],
        parameters: vec![
            literal(json!({})),
            literal(json!({ "InvocationType": "Event" })),
            literal(json!({ "InvocationType": "RequestResponse", "LogType": "Tail" })),
            literal(json!({ "ClientContext": "eyJhIjoxfQ==" })),
            literal(json!({ "TenantId": "acme" })),
            (
                json!({ "DurableExecutionName": "{{ event.data.id }}" }),
                json!({ "DurableExecutionName": "42" }),
            ),
            literal(json!({ "LogType": "None" })),
            // The last of the eight sets meets no resource that has an alias already.
            literal(json!({ "Qualifier": "live" })),
        ],
    }
}

fn topics() -> Action {
    Action {
        service: "sns",
        resources: ["orders", "orders.fifo", "a_b-C", "orders", "x.fifo"],
        parameters: vec![
            literal(json!({})),
            literal(json!({ "Subject": "An order & more = 1+1 %" })),
            (json!({ "Subject": "Order {{ event.data.id }}" }), json!({ "Subject": "Order 42" })),
            literal(json!({ "MessageAttributes": attributes() })),
            literal(json!({ "MessageGroupId": "a b", "MessageDeduplicationId": "c" })),
            literal(json!({ "MessageStructure": "json" })),
            literal(json!({ "MessageAttributes": { "one": text("1") }, "Subject": "ä" })),
        ],
    }
}

fn machines() -> Action {
    Action {
        service: "states",
        resources: [
            "stateMachine:orders",
            "stateMachine:orders:prod",
            "stateMachine:a_b",
            "stateMachine:orders:3",
            "stateMachine:x",
        ],
        parameters: vec![
            literal(json!({})),
            literal(json!({ "name": "order-7" })),
            (json!({ "name": "order-{{ event.data.id }}" }), json!({ "name": "order-42" })),
            literal(json!({ "traceHeader": "Root=1-5759e988-bd862e3fe1be46a994272793" })),
            (json!({ "name": "{{ attempt.deliveryid }}" }), json!({})),
            literal(json!({ "name": "a", "traceHeader": "Root=1" })),
            (json!({ "name": null }), json!({})),
        ],
    }
}

fn streams() -> Action {
    Action {
        service: "kinesis",
        resources: ["stream/orders", "stream/a.b", "stream/a_b-C", "stream/orders", "stream/x"],
        parameters: vec![
            literal(json!({})),
            literal(json!({ "PartitionKey": "größe" })),
            (json!({ "PartitionKey": "{{ event.data.id }}" }), json!({ "PartitionKey": "42" })),
            literal(json!({ "ExplicitHashKey": "170141183460469231731687303715884105728" })),
            literal(json!({ "PartitionKey": "a", "ExplicitHashKey": "0" })),
            literal(
                json!({ "SequenceNumberForOrdering": "21269319989900637946712965403778482371" }),
            ),
            (
                json!({ "PartitionKey": "{{ event.source }}/{{ event.type }}" }),
                json!({ "PartitionKey": "/shop/order.created" }),
            ),
        ],
    }
}

fn delivery_streams() -> Action {
    Action {
        service: "firehose",
        resources: [
            "deliverystream/orders",
            "deliverystream/a.b",
            "deliverystream/a_b-C",
            "deliverystream/orders",
            "deliverystream/x",
        ],
        parameters: vec![literal(json!({}))],
    }
}
