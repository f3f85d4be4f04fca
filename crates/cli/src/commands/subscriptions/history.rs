//! `lastmile subscriptions history`: lists the changes of a topic, with their authors and reasons.

use std::process::ExitCode;

use adapters::live_topics::Location;
use adapters::storage::Version;
use anyhow::bail;
use delivery::subscription::name::TopicName;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::operations::change_record::ChangeRecord;
use crate::operations::place::{Place, SubscriptionsPlace};
use crate::operations::shell;
use crate::operations::topics::{Changes, Object, Topics};
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::{Output, note};
use crate::terminal::text;

const COLUMNS: [&str; 6] = ["time", "by", "message", "bytes", "content", "changes"];
/// The maximum number of versions that are read concurrently.
const VERSIONS_AT_ONCE: usize = 4;
/// The maximum number of subscriptions in the table for each type of change; JSON contains all.
const NAMES_SHOWN: usize = 5;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "lastmile subscriptions history [OPTIONS] <--to <URI>|--stack <NAME>> \\\n           <NS/TOPIC>",
    after_long_help = examples!(
        "docs/reference/storage.md",
        "lastmile subscriptions history shop/orders --stack orders-prod",
        "lastmile subscriptions history shop/orders --output json \\\n      --to s3://config-bucket/subscriptions/",
    )
)]
pub(super) struct Arguments {
    /// Topic whose changes to list
    #[arg(value_name = "NS/TOPIC")]
    name: TopicName,
    #[command(flatten)]
    place: SubscriptionsPlace,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

/// A version of the topic, with its record of change and a summary of its content.
struct Row {
    version: Version,
    record: ChangeRecord,
    bytes: usize,
    state: State,
    /// The differences from the previous version; `None` if one of the two is missing or invalid.
    changes: Option<Changes>,
}

enum State {
    Removed,
    /// The number of subscriptions in the version.
    Subscriptions(usize),
    Unusable(String),
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, place, output } = arguments;
    let location = Place::from(place).subscriptions().await?;
    let topics = Topics::at(&location).await;
    if let Location::Folder(_) = location {
        bail!(
            "{} is a folder, which has no history; only buckets with versioning have one",
            topics.objects
        );
    }
    let rows = rows(&topics, &name).await?;
    if rows.is_empty() {
        note(text::line(&format!("there is no topic {name} in {}", topics.objects)));
    } else if rows.iter().all(|row| !row.version.is_current) {
        let rollback = shell::command(&["lastmile", "rollback", &name.to_string()]);
        note(text::line(&format!("the object of {name} was deleted; restore it with {rollback}")));
    }
    output.write(rows.is_empty(), || rows.iter().map(json).collect(), || table(&rows))?;
    Ok(if rows.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Reads the versions, and compares each version with the previous one. Only a few versions are in
/// memory at a time.
async fn rows(topics: &Topics, name: &TopicName) -> anyhow::Result<Vec<Row>> {
    let mut reads = Vec::new();
    for version in topics.versions(name).await? {
        reads.push(async move { (topics.version(name, &version).await, version) });
    }
    let mut reads = stream::iter(reads).buffered(VERSIONS_AT_ONCE);
    let mut rows: Vec<Row> = Vec::new();
    let mut newer: Option<Option<Object>> = None;
    while let Some((read, version)) = reads.next().await {
        let read = read?;
        let (object, state) = match read.object {
            Ok(object) => {
                let count = object.as_ref().map(|object| object.subscriptions.len());
                (Some(object), count.map_or(State::Removed, State::Subscriptions))
            }
            Err(problem) => (None, State::Unusable(problem.to_string())),
        };
        if let (Some(row), Some(newer), Some(older)) = (rows.last_mut(), &newer, &object) {
            row.changes = Some(Changes::between(older.as_ref(), newer.as_ref()));
        }
        newer = object;
        rows.push(Row { version, record: read.record, bytes: read.bytes, state, changes: None });
    }
    Ok(rows)
}

fn json(Row { version, record, bytes, state, changes }: &Row) -> Value {
    let (subscriptions, problem) = match state {
        State::Removed => (None, None),
        State::Subscriptions(count) => (Some(count), None),
        State::Unusable(problem) => (None, Some(problem)),
    };
    let changes = changes.as_ref().map(|changes| {
        let Changes { settings, added, changed, removed } = changes;
        json!({"settings": settings, "added": added, "changed": changed, "removed": removed})
    });
    json!({
        "version": version.id,
        "time": text::at(Some(version.modified_ms)),
        "current": version.is_current,
        "by": record.by,
        "message": record.message,
        "bytes": bytes,
        "removed": matches!(state, State::Removed),
        "subscriptions": subscriptions,
        "problem": problem,
        "changes": changes,
    })
}

fn table(rows: &[Row]) -> String {
    let mut table = text::table(&COLUMNS);
    for Row { version, record, bytes, state, changes } in rows {
        let state = match state {
            State::Removed => "removed".to_owned(),
            State::Subscriptions(count) => text::counted(*count as u64, "subscription"),
            State::Unusable(problem) => format!("unusable: {problem}"),
        };
        table.add_row([
            text::at(Some(version.modified_ms)),
            record.by.clone().unwrap_or_default(),
            record.message.clone().unwrap_or_default(),
            bytes.to_string(),
            state,
            changes.as_ref().map(shown).unwrap_or_default(),
        ]);
    }
    format!("{table}\n")
}

/// Formats the changes in one line, with the same marks as `apply`.
fn shown(Changes { settings, added, changed, removed }: &Changes) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(settings.then(|| "settings of the topic".to_owned()));
    for (mark, names) in [("+", added), ("~", changed), ("-", removed)] {
        parts.extend(names.iter().take(NAMES_SHOWN).map(|name| format!("{mark}{name}")));
        let more = names.len().saturating_sub(NAMES_SHOWN);
        parts.extend((more > 0).then(|| format!("{mark}{more} more")));
    }
    parts.join(", ")
}
