//! Creates new sample events for `lastmile publish --sample`.
//!
//! Separate from publishing, because `try` creates sample events too. Each kind is a format that
//! publishers send; messages of AWS services have no samples. In a pipe, each document is printed
//! on one line; on a terminal, documents are indented. The ingress and the events queue accept both
//! forms. The CloudEvents SDK builds the CloudEvents.

use adapters::machine::Machine;
use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use cloudevents::{Event, EventBuilder as _, EventBuilderV10};
use delivery::event::Input;
use delivery::event::schema::Schema;
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::time::moment;
use serde::Serialize;
use serde_json::{Value, json};

use crate::terminal::output::{out_json, stdout_is_terminal};
use crate::terminal::usage::usage_error;

/// The maximum number of sample events of one command.
const EVENTS_MAX: u32 = 10_000;
/// The default number of events in a sample batch.
const BATCH_EVENTS: u32 = 3;
/// The default event type of the samples.
const TYPE: &str = "order.created";
/// The file arguments of `publish`. They cannot be combined with sample options. Each sample option
/// declares this conflict itself: clap does not enforce `requires` if the required option conflicts
/// with a given option.
const FILES: [&str; 2] = ["files", "more_files"];
/// The heading of the sample options in the help.
const HEADING: &str = "Samples";
/// The source that sample CloudEvents and JSON events name.
const SOURCE: &str = "https://shop.example.com/checkout";
/// The total price of each sample order.
const TOTAL: &str = "19.90";
/// The default of the field `topic` in sample Event Grid events. The field contains the id of an
/// Azure resource.
const EVENT_GRID_TOPIC: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/shop\
                                /providers/Microsoft.EventGrid/topics/orders";

/// The kind of a sample event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// CloudEvents 1.0, structured mode
    #[value(name = "cloudevents", alias = "cloudevents-structured")]
    CloudEvents,
    /// Event Grid event schema
    #[value(name = "eventgrid")]
    EventGrid,
    /// Custom JSON payload without a schema
    #[value(alias = "custom")]
    Json,
    /// Array of CloudEvents
    #[value(alias = "cloudevents-batch")]
    Batch,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SampleArgs {
    /// Publish sample events of this kind instead of files
    #[arg(long = "sample", value_name = "KIND", help_heading = HEADING)]
    kind: Option<Kind>,
    /// Print the samples and publish nothing
    #[arg(long, requires = "kind", conflicts_with_all = FILES, help_heading = HEADING)]
    dry_run: bool,
    #[command(flatten)]
    members: MemberArgs,
}

/// The options that set members of the sample events.
#[derive(Debug, clap::Args)]
struct MemberArgs {
    /// Event type of the samples
    #[arg(
        long = "type",
        requires = "kind", conflicts_with_all = FILES,
        help_heading = HEADING,
        value_name = "TYPE",
        default_value = TYPE,
        value_parser = NonEmptyStringValueParser::new()
    )]
    event_type: String,
    /// Source of the samples; with eventgrid, the topic as an Azure resource path. The default
    /// depends on KIND
    #[arg(long, requires = "kind", conflicts_with_all = FILES, help_heading = HEADING, value_name = "URI", value_parser = NonEmptyStringValueParser::new())]
    source: Option<String>,
    /// Subject of the samples; by default orders/NUMBER, such as orders/1
    #[arg(long, requires = "kind", conflicts_with_all = FILES, help_heading = HEADING, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    subject: Option<String>,
    /// Event id of the samples; several samples get the suffixes -1, -2 and so on. By default each
    /// sample has a new id
    #[arg(long, requires = "kind", conflicts_with_all = FILES, help_heading = HEADING, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    id: Option<String>,
    /// Number of samples; by default 3 for a batch, otherwise 1
    #[arg(
        long,
        requires = "kind", conflicts_with_all = FILES,
        help_heading = HEADING,
        value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(EVENTS_MAX))
    )]
    count: Option<u32>,
}

impl SampleArgs {
    /// Formats the samples as a text that `publish` reads; `None` without `--sample`.
    pub(crate) fn text(&self, now_ms: u64) -> anyhow::Result<Option<String>> {
        let Some(kind) = self.kind else { return Ok(None) };
        let lines = documents(kind, &self.members, now_ms)?;
        let lines = lines.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(lines.join("\n")))
    }

    /// Prints the samples and returns true if `--dry-run` is set.
    pub(crate) fn print_only(&self, now_ms: u64) -> anyhow::Result<bool> {
        let Some(kind) = self.kind.filter(|_| self.dry_run) else { return Ok(false) };
        for document in documents(kind, &self.members, now_ms)? {
            match stdout_is_terminal() {
                true => out_json(&serde_json::to_string_pretty(&document)?)?,
                false => out_json(&serde_json::to_string(&document)?)?,
            }
        }
        Ok(true)
    }
}

/// Creates a sample event in this input format. Returns `None` for formats that only other services
/// write.
pub(crate) fn event_for(input: Input) -> anyhow::Result<Option<String>> {
    let kind = match input {
        Input::Auto | Input::CloudEvents => Kind::CloudEvents,
        Input::EventGrid => Kind::EventGrid,
        Input::Custom | Input::Opaque => Kind::Json,
        Input::Sns | Input::SnsWhole | Input::EventBridge | Input::S3 => return Ok(None),
    };
    let event_type = TYPE.to_owned();
    let members = MemberArgs { event_type, source: None, subject: None, id: None, count: None };
    let documents = documents(kind, &members, Machine.now_ms())?;
    documents.first().map(serde_json::to_string).transpose().map_err(anyhow::Error::from)
}

/// One JSON document: a sample event, or a batch of sample events.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Document {
    CloudEvent(Box<Event>),
    Batch(Vec<Event>),
    EventGrid(EventGridEvent),
    Json(Order),
}

/// An event in the schema of Event Grid, as described in "Azure Event Grid event schema" on
/// Microsoft Learn.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EventGridEvent {
    id: String,
    topic: String,
    subject: String,
    event_type: String,
    event_time: String,
    data_version: &'static str,
    data: Value,
}

/// The payload of a publisher that uses no event schema.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
    kind: String,
    shop: String,
    path: String,
    created_at: String,
    total: &'static str,
}

/// The members that differ between the sample events of one command.
struct Members {
    number: u32,
    id: String,
    subject: String,
    at: String,
}

fn documents(kind: Kind, arguments: &MemberArgs, now_ms: u64) -> anyhow::Result<Vec<Document>> {
    let count = arguments.count.unwrap_or(match kind {
        Kind::Batch => BATCH_EVENTS,
        Kind::CloudEvents | Kind::EventGrid | Kind::Json => 1,
    });
    let all = (1..=count).map(|number| members(arguments, number, count, now_ms));
    match kind {
        Kind::CloudEvents => {
            let events = all.map(|members| cloud_event(arguments, members).map(Box::new));
            events.map(|event| event.map(Document::CloudEvent)).collect()
        }
        Kind::Batch => {
            let events = all
                .map(|members| cloud_event(arguments, members))
                .collect::<anyhow::Result<_>>()?;
            Ok(vec![Document::Batch(events)])
        }
        Kind::EventGrid => Ok(all
            .map(|members| Document::EventGrid(event_grid_event(arguments, members)))
            .collect()),
        Kind::Json => Ok(all.map(|members| Document::Json(order(arguments, members))).collect()),
    }
}

fn members(arguments: &MemberArgs, number: u32, count: u32, now_ms: u64) -> Members {
    let id = match &arguments.id {
        Some(id) if count == 1 => id.clone(),
        Some(id) => format!("{id}-{number}"),
        None => format!("sample-{now_ms}-{number}"),
    };
    let subject = arguments.subject.clone().unwrap_or_else(|| format!("orders/{number}"));
    Members { number, id, subject, at: moment::rfc3339(now_ms) }
}

fn cloud_event(arguments: &MemberArgs, members: Members) -> anyhow::Result<Event> {
    let event = EventBuilderV10::new()
        .id(members.id)
        .source(arguments.source.as_deref().unwrap_or(SOURCE))
        .ty(&arguments.event_type)
        .subject(members.subject)
        .time(members.at)
        .data("application/json", data(members.number))
        .build();
    event.map_err(|error| usage_error(error.to_string()))
}

fn event_grid_event(arguments: &MemberArgs, members: Members) -> EventGridEvent {
    EventGridEvent {
        id: members.id,
        topic: arguments.source.clone().unwrap_or_else(|| EVENT_GRID_TOPIC.to_owned()),
        subject: members.subject,
        event_type: arguments.event_type.clone(),
        event_time: members.at,
        data_version: "1.0",
        data: data(members.number),
    }
}

fn order(arguments: &MemberArgs, members: Members) -> Order {
    Order {
        order_id: members.id,
        kind: arguments.event_type.clone(),
        shop: arguments.source.clone().unwrap_or_else(|| SOURCE.to_owned()),
        path: members.subject,
        created_at: members.at,
        total: TOTAL,
    }
}

fn data(number: u32) -> Value {
    json!({ "orderId": number, "total": TOTAL, "currency": "EUR" })
}

/// Creates a sample event for a subscription, in a format that the destination's schema can
/// represent.
pub(crate) fn sample_for(subscription: &Subscription, input: Input) -> anyhow::Result<String> {
    let input = match (input, subscription.destination.schema) {
        (Input::Auto, Some(Schema::EventGrid)) => Input::EventGrid,
        (input, _) => input,
    };
    event_for(input)?.ok_or_else(|| {
        usage_error(format!(
            "the topic of {} reads messages of another service: specify a message with --event",
            subscription.name
        ))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use delivery::event::envelope::decode;
    use delivery::event::{Element, Input, Shape};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        samples: SampleArgs,
        /// Options of `publish` to which [`SampleArgs`] refers.
        #[arg(long)]
        files: Vec<String>,
        #[arg(long)]
        more_files: Vec<String>,
    }

    fn printed(words: &[&str]) -> Vec<Value> {
        let line = Line::parse_from([&["publish", "--sample"], words].concat());
        assert!(line.files.is_empty() && line.more_files.is_empty());
        let text = line.samples.text(1_795_158_180_123).expect("events").expect("samples");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn each_kind_is_an_event_of_its_schema() {
        for (kind, input, shape, count) in [
            ("cloudevents", Input::CloudEvents, Shape::CloudEvent, 1),
            ("eventgrid", Input::EventGrid, Shape::EventGrid, 1),
            ("json", Input::Custom, Shape::Custom, 1),
            ("batch", Input::CloudEvents, Shape::CloudEvent, 3),
        ] {
            for input in [input, Input::Auto] {
                let documents = printed(&[kind]);
                assert_eq!(documents.len(), 1, "{kind}");
                let elements = decode(&documents[0].to_string().into(), input);
                assert_eq!(elements.len(), count, "{kind}");
                for element in elements {
                    let Element::Event(event) = element else { panic!("{kind}: {element:?}") };
                    assert_eq!(event.shape(), shape, "{kind}");
                }
            }
        }
    }

    #[test]
    fn options_set_the_members_of_every_event() {
        let options = ["--type", "a.b", "--source", "/s", "--subject", "x", "--id", "7"];
        let [event] = &printed(&[&["cloudevents"], &options[..]].concat())[..] else { panic!() };
        for (member, value) in [("type", "a.b"), ("source", "/s"), ("subject", "x"), ("id", "7")] {
            assert_eq!(event[member], value, "{member}");
        }
        assert_eq!(event["time"], "2026-11-20T07:03:00.123Z");
        let [event] = &printed(&[&["eventgrid"], &options[..]].concat())[..] else { panic!() };
        for (member, value) in
            [("eventType", "a.b"), ("topic", "/s"), ("subject", "x"), ("id", "7")]
        {
            assert_eq!(event[member], value, "{member}");
        }
        let two = printed(&["json", "--id", "7", "--count", "2"]);
        assert_eq!((&two[0]["orderId"], &two[1]["orderId"]), (&"7-1".into(), &"7-2".into()));
        let batch = printed(&["batch", "--count", "2"]);
        assert_eq!(batch[0].as_array().expect("an array").len(), 2);
        assert_ne!(batch[0][0]["id"], batch[0][1]["id"]);
    }

    #[test]
    fn no_option_is_empty_and_no_count_zero() {
        let empty = ["--type", "--source", "--subject", "--id"].map(|name| [name, ""]);
        for option in [["--count", "0"]].into_iter().chain(empty) {
            let [name, value] = option;
            assert!(
                Line::try_parse_from(["publish", "--sample", "batch", name, value]).is_err(),
                "{name}"
            );
        }
    }
}
