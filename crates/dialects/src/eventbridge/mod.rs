//! Reads Amazon EventBridge: rules with API destinations as targets, and the connections of those
//! destinations.
//!
//! Separate because EventBridge is one of several foreign families. The files are output of the AWS
//! CLI (`aws events describe-rule`, `list-targets-by-rule`, `describe-api-destination`,
//! `describe-connection`), or CloudFormation templates.
//!
//! The input passes through these forms (modules in parentheses):
//! - documents
//! - rules, destinations and connections (`gathered`, `template`, `resources`)
//! - a native Subscription per target (`target`), with its filter (`pattern`), its body (`input`)
//!   and its request (`request`, `connection`, `secrets`)
//!
//! An event bus becomes a topic. The topic reads the events as EventBridge sends them to a queue,
//! so no byte of an event changes. Everything without an equivalent is reported at its field. No
//! condition of a pattern is dropped.

mod connection;
mod gathered;
mod input;
mod literal;
mod pattern;
mod request;
mod resources;
mod secrets;
mod target;
mod template;
mod template_text;

use std::collections::{BTreeMap, BTreeSet};

use delivery::document::findings::Message;
use delivery::document::node::Node;
use delivery::document::reader::{Cursor, Fields};
use delivery::native::{API_VERSION, LeftOut};
use delivery::subscription::name::TopicName;
use serde_json::{Value as Json, json};

use super::translation::Translated;
use literal::{literal, refuse_deployed};
use resources::{Resources, Rule};
use target::TargetReader;

pub(super) use gathered::{is_event_bridge, report_list};
pub(super) use template::body as template_body;

/// Namespace of the topics for all event buses.
const NAMESPACE: &str = "eventbridge";
/// Name of the event bus of rules that name no event bus.
const DEFAULT_BUS: &str = "default";

/// An event bus, and the sources of its events. `at` is the first rule that names the bus.
struct Bus<'a> {
    at: Cursor<'a>,
    sources: BTreeSet<String>,
}

/// Translates all EventBridge documents. Returns the topics of their event buses.
pub(super) fn translate(documents: &[Cursor<'_>], translated: &mut Translated<'_>) -> Vec<Node> {
    let resources = gathered::gathered(documents);
    let mut buses = BTreeMap::new();
    for rule in &resources.rules {
        let at = &rule.at;
        let read = at.result_or_error(|| at.mapping(|fields| reader(rule, fields, &resources))?);
        match read {
            Ok(Some(reader)) => translate_targets(rule, &reader, &mut buses, translated),
            Ok(None) => {}
            Err(error) => translated.left_out.push(LeftOut::at(at, &[rule.name], error)),
        }
    }
    buses.iter().map(|(name, bus)| topic(name, bus)).collect()
}

/// Reads the values that the targets of a rule share. Returns `Some(None)` if the rule has nothing
/// to convert.
fn reader<'a, 'r>(
    rule: &'r Rule<'a>,
    fields: &Fields<'a>,
    resources: &'r Resources<'a>,
) -> Option<Option<TargetReader<'a, 'r>>> {
    fields.accept(&["Name", "Arn", "Description", "RoleArn", "ManagedBy", "CreatedBy"]);
    fields.accept(&["Targets", "Tags"]);
    let [state, bus, pattern] =
        ["State", "EventBusName", "EventPattern"].map(|field| fields.given(field));
    if let Some(schedule) = fields.given("ScheduleExpression") {
        let help = "configure EventBridge Scheduler to send an event to the events queue, and \
                    write a Subscription for it";
        schedule.warn(Message::new("schedules are not converted").help(help));
    }
    let Some(filter_at) = pattern else { return Some(None) };
    state.as_ref().map_or(Some(""), literal)?;
    let Some(targets) = &rule.targets else {
        let command = "aws events list-targets-by-rule --rule";
        let help = format!("add the output of: {command} {0} > {0}-targets.json", rule.name);
        return rule.at.refuse(Message::new("the targets of this rule are missing").help(help));
    };
    let is_converted = |target: &&Cursor<'a>| target::is_api_destination(target, resources);
    let targets: Vec<&Cursor<'a>> = targets.iter().filter(is_converted).collect();
    if targets.is_empty() {
        return Some(None);
    }
    let pattern = pattern::read(&filter_at)?;
    let filter = pattern::filter(&pattern, &filter_at)?;
    let topic = TopicName {
        namespace: NAMESPACE.to_owned(),
        topic: bus_name(bus.as_ref(), &resources.buses)?,
    };
    let sources = pattern::sources(&pattern).unwrap_or_else(|| {
        let help = format!(
            "add the sources to `from` of the topic {topic}, or set the topic as DefaultTopic"
        );
        filter_at.warn(Message::new("the pattern does not name every source exactly").help(help));
        Vec::new()
    });
    Some(Some(TargetReader { rule, topic, sources, filter, filter_at, state, targets, resources }))
}

fn translate_targets<'a>(
    rule: &Rule<'a>,
    reader: &TargetReader<'a, '_>,
    buses: &mut BTreeMap<TopicName, Bus<'a>>,
    translated: &mut Translated<'_>,
) {
    let bus = buses.entry(reader.topic.clone());
    let bus = bus.or_insert_with(|| Bus { at: rule.at.clone(), sources: BTreeSet::new() });
    bus.sources.extend(reader.sources.iter().cloned());
    for target in &reader.targets {
        let read = || target.mapping(|fields| reader.subscription(fields))?;
        match target.result_or_error(read) {
            Ok(subscription) => translated.subscriptions.push(subscription),
            Err(error) => translated.left_out.push(LeftOut::at(target, &[rule.name], error)),
        }
    }
}

/// Returns the name of an event bus. The field contains the name, the ARN, or the logical id of a
/// resource.
fn bus_name(at: Option<&Cursor<'_>>, buses: &[resources::Resource<'_>]) -> Option<String> {
    let Some(at) = at else { return Some(DEFAULT_BUS.to_owned()) };
    let stated = at.peek_text().map(str::to_owned).or_else(|| resources::reference(at));
    let Some(stated) = stated else { return refuse_deployed(at) };
    let of_template = resources::named(buses, &stated, at).map(|bus| bus.name);
    let of_arn = stated.split_once(":event-bus/").map(|(_, name)| name);
    Some(of_template.or(of_arn).unwrap_or(&stated).replace('/', "-"))
}

/// Returns the topic of an event bus. The topic keeps events as EventBridge writes them; its
/// mapping states which members contain the id, the source, the time and the type.
fn topic(TopicName { namespace, topic }: &TopicName, bus: &Bus<'_>) -> Node {
    let from: Vec<Json> =
        bus.sources.iter().map(|source| json!({ "eventSource": source })).collect();
    let field = |name: &str| json!({ "field": name });
    let document = json!({
        "apiVersion": API_VERSION,
        "kind": "Topic",
        "metadata": { "namespace": namespace, "name": topic },
        "spec": {
            "input": "custom",
            "from": from,
            "mapping": {
                "id": field("id"),
                "topic": field("source"),
                "eventTime": field("time"),
                "eventType": field("detail-type"),
            },
        },
    });
    bus.at.translation(&document)
}

#[cfg(test)]
mod tests;
