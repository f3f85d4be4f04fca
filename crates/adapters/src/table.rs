//! The shared table on DynamoDB.
//!
//! Each change is one conditional `UpdateItem`, whose refusal returns the item. Therefore limits
//! change without a prior read, and concurrent processes lose no change. A read gets one item, a
//! read of the published changes (`delivery::delivery::health::news`) is one `Query`, and nothing
//! scans. Attribute names are not reserved words of DynamoDB, or are replaced by placeholders.
//!
//! Does not create the table or wait, and does not retry beyond the client's own retries.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::query::QueryError;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::table::{
    Change, Entry, Expected, ItemKey, Line, Permit, PermitAnswer, Places, Recovery, Refusal,
    Report, SlotQueue, Stored, Table, TableError, TakePermits, TakePlaces,
};
use delivery::time::duration::{HOUR_MS, SECOND_MS};

use crate::aws_error::sentence;

/// The partition key of every item.
pub const PARTITION: &str = "pk";
/// The sort key of every item.
pub const SORT: &str = "sk";
/// The attribute with the expiration time of an item, in seconds since 1970.
pub const EXPIRES: &str = "expires";
/// The attribute with the document of an item, as text.
const DOCUMENT: &str = "document";
/// The attribute that counts how often the document was replaced.
const REVISION: &str = "revision";
/// The attribute with the granted permits of a destination.
const PERMITS: &str = "permits";
/// The attribute with the average duration of an attempt.
const TAKES: &str = "takes_ms";
/// Maximum number of tries to get slots while other processes change the queue.
const TRIES: u32 = 3;
/// Maximum wait of the client before its second try; doubled before the third. The SDK's default of
/// a second is as long as dispatch waits for a response.
const BACKOFF: Duration = Duration::from_millis(50);
/// Lifetime of an item with limits after its last update. It is longer than any delivery waits in a
/// queue.
const LIMITS_LAST_MS: u64 = LIFETIME_MAX_MS + HOUR_MS;

type Item = HashMap<String, AttributeValue>;

/// A client of one DynamoDB table.
#[derive(Debug, Clone)]
pub struct DynamoTable {
    client: Client,
    name: String,
}

/// The limits of a destination, as its item stores them.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The granted permits, the time until which turns to ask again are taken, and the average
    /// duration of an attempt.
    pub permits: Refusal,
    /// The time until which all rate slots are taken, in microseconds since 1970.
    pub slots_us: Option<u64>,
    /// The last recovery of the destination.
    pub recovery: Option<Recovery>,
}

impl DynamoTable {
    /// Creates a client for the table with this name.
    #[must_use]
    pub fn new(config: &SdkConfig, name: String) -> Self {
        let retries = config.retry_config().cloned().unwrap_or_else(RetryConfig::standard);
        let config = Builder::from(config).retry_config(retries.with_initial_backoff(BACKOFF));
        Self { client: Client::from_conf(config.build()), name }
    }

    /// Returns all documents of a partition, with their keys.
    ///
    /// # Errors
    /// [`TableError`] if they cannot be read.
    pub async fn all(&self, partition: &str) -> Result<Vec<(ItemKey, Stored)>, TableError> {
        let request = self.query(partition);
        let mut pages = request.into_paginator().items().send();
        let mut all = Vec::new();
        while let Some(item) = pages.next().await {
            let item = item.map_err(|error| self.not_queried(partition, &error))?;
            let sort = item.get(SORT).and_then(|value| value.as_s().ok());
            if let (Some(sort), Ok(stored)) = (sort, stored(&item)) {
                let key = ItemKey { partition: partition.to_owned(), sort: sort.clone() };
                all.push((key, stored));
            }
        }
        Ok(all)
    }

    /// Returns the limits of a destination.
    ///
    /// # Errors
    /// [`TableError`] if they cannot be read.
    pub async fn limits(&self, key: &ItemKey) -> Result<Limits, TableError> {
        let request = self.client.get_item().table_name(&self.name).consistent_read(true);
        let request = request.key(PARTITION, text(&key.partition)).key(SORT, text(&key.sort));
        let answer = request.send().await;
        let answer =
            answer.map_err(|error| self.failure("read", key, Failure::from_sdk(&error)))?;
        let item = answer.item.unwrap_or_default();
        let slots_us = read(&item, SlotQueue::Slots.as_str());
        Ok(Limits { permits: refusal(&item), slots_us, recovery: recovery(&item) })
    }

    fn query(&self, partition: &str) -> QueryFluentBuilder {
        let request = self.client.query().table_name(&self.name);
        let request = request.key_condition_expression("pk = :pk");
        request.expression_attribute_values(":pk", text(partition))
    }

    fn not_queried(&self, partition: &str, error: &SdkError<QueryError>) -> TableError {
        let Failure { problem, is_refusal } = Failure::from_sdk(error);
        let problem = format!("query partition {partition} of table {}: {problem}", self.name);
        TableError { problem, is_refusal }
    }

    fn update(&self, key: &ItemKey) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.name)
            .key(PARTITION, text(&key.partition))
            .key(SORT, text(&key.sort))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    fn failure(&self, doing: &str, key: &ItemKey, failure: Failure) -> TableError {
        let Failure { problem, is_refusal } = failure;
        let problem = format!("{doing} item {key} of table {}: {problem}", self.name);
        TableError { problem, is_refusal }
    }
}

impl Table for DynamoTable {
    async fn entry(&self, key: &ItemKey, now_ms: u64) -> Result<Option<Stored>, TableError> {
        let request = self.client.get_item().table_name(&self.name).consistent_read(true);
        let request = request.key(PARTITION, text(&key.partition)).key(SORT, text(&key.sort));
        let answer = request.send().await;
        let answer =
            answer.map_err(|error| self.failure("read", key, Failure::from_sdk(&error)))?;
        let Some(item) = answer.item else { return Ok(None) };
        let not_ours = |problem: &str| Failure { problem: problem.to_owned(), is_refusal: true };
        let stored = stored(&item);
        let stored = stored.map_err(|problem| self.failure("read", key, not_ours(problem)))?;
        Ok(Some(stored).filter(|stored| !stored.has_expired(now_ms)))
    }

    async fn replace(
        &self,
        key: &ItemKey,
        entry: &Entry,
        expected: Expected,
        now_ms: u64,
    ) -> Result<bool, TableError> {
        let expires_s = entry.expires_s();
        let update = match expires_s {
            Some(_) => "SET document = :document, expires = :expires ADD revision :one",
            None => "SET document = :document REMOVE expires ADD revision :one",
        };
        let request = self.update(key).update_expression(update);
        let request = request.expression_attribute_values(":document", text(&entry.text));
        let request = request.expression_attribute_values(":one", number(1));
        let request = match expires_s {
            Some(expires_s) => request.expression_attribute_values(":expires", number(expires_s)),
            None => request,
        };
        let request = match expected {
            Expected::Anything => request,
            Expected::Nothing => request
                .condition_expression("attribute_not_exists(revision) OR expires <= :now")
                .expression_attribute_values(":now", number(now_ms / SECOND_MS)),
            Expected::Version(version) => request
                .condition_expression("revision = :version")
                .expression_attribute_values(":version", number(version)),
        };
        match request.send().await {
            Ok(_) => Ok(true),
            Err(error) => refused(error)
                .map(|_| false)
                .map_err(|problem| self.failure("replace", key, problem)),
        }
    }

    async fn newest(&self, partition: &str, most: u32) -> Result<Vec<Stored>, TableError> {
        let limit = i32::try_from(most).unwrap_or(i32::MAX);
        let answer = self.query(partition).scan_index_forward(false).limit(limit).send().await;
        let answer = answer.map_err(|error| self.not_queried(partition, &error))?;
        let items = answer.items.unwrap_or_default();
        // Skip an unreadable item, so that it does not hide the other items.
        Ok(items.iter().filter_map(|item| stored(item).ok()).collect())
    }

    async fn take_permits(
        &self,
        key: &ItemKey,
        take: &TakePermits,
        now_ms: u64,
    ) -> Result<PermitAnswer, TableError> {
        if take.left().is_none() {
            return Ok(PermitAnswer::Refused(Refusal::default()));
        }
        let mut refused_by = Refusal::default();
        // The first permit creates the map. The attribute is a map, because one update cannot both
        // add to and delete from a set.
        for is_there in [true, false] {
            let answer = self.take_update(key, take, is_there, now_ms).send().await;
            let Err(error) = answer else { return Ok(PermitAnswer::Taken) };
            let item = refused(error);
            let item = item.map_err(|problem| self.failure("acquire permits of", key, problem))?;
            refused_by = refusal(&item);
            if take.has_taken(&refused_by) {
                return Ok(PermitAnswer::Taken);
            }
            if item.contains_key(PERMITS) || !take.instead_of.is_empty() {
                break;
            }
        }
        Ok(PermitAnswer::Refused(refused_by))
    }

    async fn return_permits(
        &self,
        key: &ItemKey,
        permits: &[Permit],
        takes_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<(), TableError> {
        let (paths, request) = with_paths(self.update(key), "old", permits);
        let mut update = format!("REMOVE {} SET expires = :expires", paths.join(", "));
        let mut request = request.expression_attribute_values(":expires", limits_expire(now_ms));
        if let Some(takes_ms) = takes_ms {
            update += ", takes_ms = :takes";
            request = request.expression_attribute_values(":takes", number(takes_ms));
        }
        let request = request.update_expression(update);
        let answer = request.condition_expression("attribute_exists(permits)").send().await;
        let Err(error) = answer else { return Ok(()) };
        // The item has no permits, so there is nothing to return.
        let nothing = refused(error).map(drop);
        nothing.map_err(|problem| self.failure("return permits of", key, problem))
    }

    async fn take_places(
        &self,
        key: &ItemKey,
        queue: SlotQueue,
        take: &TakePlaces,
        now_ms: u64,
    ) -> Result<Places, TableError> {
        let (earliest_us, all_us) = (take.earliest_us(), take.all_us());
        // Append to the queue if others wait; otherwise begin at the earliest time. The queue may
        // have changed in the meantime.
        let mut begins_anew = !take.others_wait;
        // First assume that the item still has the recovery that the reporting process last read.
        let mut item = take.report.map(|report| report.known);
        for _ in 0..TRIES {
            let change = match reported(take, item, now_ms) {
                Ok(change) => change,
                Err(other) => {
                    return Ok(Places { line: Line::Overtaken, recovery: Some(other) });
                }
            };
            let request = self.line_update(key, queue, begins_anew, take, change, now_ms);
            let answer = request.return_values(ReturnValue::AllNew).send().await;
            let old = match answer {
                Ok(answer) => {
                    let new = answer.attributes.unwrap_or_default();
                    let end_us = read(&new, queue.as_str());
                    let end_us = end_us.unwrap_or_else(|| earliest_us.saturating_add(all_us));
                    let line = Line::Taken { first_us: end_us.saturating_sub(all_us) };
                    return Ok(Places { line, recovery: take.report.and(recovery(&new)) });
                }
                Err(error) => refused(error)
                    .map_err(|failure| self.failure("reserve turns of", key, failure))?,
            };
            item = take.report.and(recovery(&old));
            let end_us = read(&old, queue.as_str());
            begins_anew = !take.follows(end_us);
            if let Err(other) = reported(take, item, now_ms) {
                return Ok(Places { line: Line::Overtaken, recovery: Some(other) });
            }
            if let (_, full @ Line::Full { .. }) = take.take(end_us) {
                return Ok(Places { line: full, recovery: item });
            }
        }
        Ok(Places { line: Line::Overtaken, recovery: None })
    }
}

impl DynamoTable {
    /// Builds the update that adds permits to the item's map of granted permits. If `is_there` is
    /// false, the update creates the map.
    fn take_update(
        &self,
        key: &ItemKey,
        take: &TakePermits,
        is_there: bool,
        now_ms: u64,
    ) -> UpdateItemFluentBuilder {
        let request =
            self.update(key).expression_attribute_values(":expires", limits_expire(now_ms));
        let (mut condition, mut request) = if is_there {
            let (new, request) = with_paths(request, "new", &take.permits);
            let (old, request) = with_paths(request, "old", &take.instead_of);
            let set: String = new.iter().map(|path| format!("{path} = :given, ")).collect();
            let remove =
                if old.is_empty() { String::new() } else { format!(" REMOVE {}", old.join(", ")) };
            let has_own: String =
                old.iter().map(|path| format!(" AND attribute_exists({path})")).collect();
            let request = request
                .update_expression(format!("SET {set}expires = :expires{remove}"))
                .expression_attribute_values(":given", AttributeValue::Bool(true))
                .expression_attribute_values(
                    ":left",
                    number(take.left().unwrap_or_default().into()),
                );
            (format!("attribute_exists(permits) AND size(permits) <= :left{has_own}"), request)
        } else {
            let all =
                take.permits.iter().map(|permit| (permit.to_string(), AttributeValue::Bool(true)));
            let request = request
                .update_expression("SET permits = :permits, expires = :expires")
                .expression_attribute_values(":permits", AttributeValue::M(all.collect()));
            ("attribute_not_exists(permits)".to_owned(), request)
        };
        if take.only_if_nobody_waits {
            condition += " AND (attribute_not_exists(turns_us) OR turns_us <= :now)";
            request = request.expression_attribute_values(":now", number(now_ms * 1_000));
        }
        request.condition_expression(condition)
    }

    /// Builds the update that adds slots to a queue. If `begins_anew` is false, extends a queue
    /// that ends in the future; otherwise, starts a new queue at the earliest time. The same update
    /// applies `change` to the recovery.
    fn line_update(
        &self,
        key: &ItemKey,
        queue: SlotQueue,
        begins_anew: bool,
        take: &TakePlaces,
        change: Option<Change>,
        now_ms: u64,
    ) -> UpdateItemFluentBuilder {
        let (earliest_us, all_us) = (take.earliest_us(), take.all_us());
        let mut request = self
            .update(key)
            .expression_attribute_names("#line", queue.as_str())
            .expression_attribute_values(":expires", limits_expire(now_ms))
            .expression_attribute_values(":earliest", number(earliest_us))
            .expression_attribute_values(":plausible", number(take.plausible_us()));
        let (mut update, mut condition) = if begins_anew {
            request = request
                .expression_attribute_values(":end", number(earliest_us.saturating_add(all_us)));
            (
                "SET #line = :end, expires = :expires".to_owned(),
                "(attribute_not_exists(#line) OR #line <= :earliest OR #line > :plausible)"
                    .to_owned(),
            )
        } else {
            request = request
                .expression_attribute_values(":all", number(all_us))
                .expression_attribute_values(
                    ":latest",
                    number(take.latest_ms.saturating_mul(1_000)),
                );
            (
                "SET #line = #line + :all, expires = :expires".to_owned(),
                "#line > :earliest AND #line < :latest AND #line <= :plausible".to_owned(),
            )
        };
        if let Some((change, report)) = change.zip(take.report.as_ref()) {
            let parts = (&mut update, &mut condition);
            request = match change {
                Change::Add => with_results(request, parts, report, now_ms),
                Change::Replace { old, new } => with_recovery(request, parts, old, new),
            };
        }
        request.update_expression(update).condition_expression(condition)
    }
}

/// Returns the change of the recovery that the report of a process causes; `None` if there is no
/// report. If the report is based on an outdated recovery, returns the current one as the error.
fn reported(
    take: &TakePlaces,
    item: Option<Recovery>,
    now_ms: u64,
) -> Result<Option<Change>, Recovery> {
    take.report.map(|report| Recovery::reported(item, &report, now_ms)).transpose()
}

/// Adds the reported results to those of the item's recovery. The condition fails if the recovery
/// or its rate has changed, or if consecutive failures must change the rate.
fn with_results(
    request: UpdateItemFluentBuilder,
    (update, condition): (&mut String, &mut String),
    Report { known, results }: &Report,
    now_ms: u64,
) -> UpdateItemFluentBuilder {
    *condition += " AND began_ms = :began AND since_ms = :since AND in_a_row < :fall";
    *update += ", good = good + :good, failed = failed + :failed, away = away + :away, in_a_row = ";
    *update += if results.good > 0 { ":failed" } else { "in_a_row + :failed" };
    let request = request
        .expression_attribute_values(":began", number(known.began_ms))
        .expression_attribute_values(":since", number(known.since_ms))
        .expression_attribute_values(":fall", number(Recovery::fall().into()))
        .expression_attribute_values(":good", number(results.good.into()))
        .expression_attribute_values(":failed", number(results.failed.into()))
        .expression_attribute_values(":away", signed(results.away));
    if !results.waits {
        return request;
    }
    *update += ", waited_ms = :waited";
    request.expression_attribute_values(":waited", number(now_ms))
}

/// Replaces the recovery of the item, if it is still the expected one.
fn with_recovery(
    request: UpdateItemFluentBuilder,
    (update, condition): (&mut String, &mut String),
    old: Option<Recovery>,
    new: Recovery,
) -> UpdateItemFluentBuilder {
    let mut request = request;
    match old {
        None => *condition += " AND attribute_not_exists(began_ms)",
        Some(old) => {
            for (name, value) in attributes(old) {
                *condition += &format!(" AND {name} = :old_{name}");
                request = request.expression_attribute_values(format!(":old_{name}"), value);
            }
        }
    }
    for (name, value) in attributes(new) {
        *update += &format!(", {name} = :new_{name}");
        request = request.expression_attribute_values(format!(":new_{name}"), value);
    }
    request
}

/// Returns the attributes in which an item stores a recovery.
fn attributes(recovery: Recovery) -> [(&'static str, AttributeValue); 10] {
    let (ceiling, ceiling_until_ms) = recovery.ceiling.unwrap_or_default();
    [
        ("began_ms", number(recovery.began_ms)),
        ("rate", number(recovery.rate.into())),
        ("since_ms", number(recovery.since_ms)),
        ("good", number(recovery.good.into())),
        ("failed", number(recovery.failed.into())),
        ("in_a_row", number(recovery.in_a_row.into())),
        ("away", signed(recovery.away)),
        ("waited_ms", number(recovery.waited_ms)),
        ("ceiling", number(ceiling.into())),
        ("ceiling_until_ms", number(ceiling_until_ms)),
    ]
}

/// Reads the recovery from an item; returns `None` if the item has none.
fn recovery(item: &Item) -> Option<Recovery> {
    let count = |name: &str| u32::try_from(read(item, name)?).ok();
    Some(Recovery {
        began_ms: read(item, "began_ms")?,
        rate: count("rate")?,
        since_ms: read(item, "since_ms")?,
        good: count("good")?,
        failed: count("failed")?,
        in_a_row: count("in_a_row")?,
        away: item.get("away")?.as_n().ok()?.parse().ok()?,
        waited_ms: read(item, "waited_ms")?,
        ceiling: count("ceiling").filter(|rate| *rate > 0).zip(read(item, "ceiling_until_ms")),
    })
}

fn signed(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// A failed request to DynamoDB.
struct Failure {
    problem: String,
    /// True if DynamoDB responded with an error; false without a response.
    is_refusal: bool,
}

impl Failure {
    fn from_sdk<E: ProvideErrorMetadata + Error + 'static>(error: &SdkError<E>) -> Self {
        let is_refusal = matches!(error, SdkError::ServiceError(_));
        Self { problem: sentence(error), is_refusal }
    }
}

/// Returns the current item if the condition of the update failed.
///
/// # Errors
/// Returns the failure if the update failed for another reason.
fn refused(error: SdkError<UpdateItemError>) -> Result<Item, Failure> {
    let failure = Failure::from_sdk(&error);
    if let UpdateItemError::ConditionalCheckFailedException(refusal) = error.into_service_error() {
        return Ok(refusal.item.unwrap_or_default());
    }
    Err(failure)
}

fn stored(item: &Item) -> Result<Stored, &'static str> {
    let text = item.get(DOCUMENT).and_then(|value| value.as_s().ok());
    let (text, version) =
        text.zip(read(item, REVISION)).ok_or("the item contains no document of this program")?;
    Ok(Stored { text: text.clone(), version, expires_s: read(item, EXPIRES) })
}

fn refusal(item: &Item) -> Refusal {
    let names = item.get(PERMITS).and_then(|value| value.as_m().ok());
    let names = names.into_iter().flat_map(HashMap::keys);
    let given_out = names.filter_map(|name| name.parse().ok()).collect();
    let line_us = read(item, SlotQueue::Turns.as_str());
    Refusal { given_out, line_us, takes_ms: read(item, TAKES) }
}

fn limits_expire(now_ms: u64) -> AttributeValue {
    number(now_ms.saturating_add(LIMITS_LAST_MS) / SECOND_MS)
}

/// Returns the path of each permit, for use in an expression. The paths contain placeholders, whose
/// values are in the returned request.
fn with_paths(
    request: UpdateItemFluentBuilder,
    prefix: &str,
    permits: &[Permit],
) -> (Vec<String>, UpdateItemFluentBuilder) {
    let placeholder = |place: usize| format!("#{prefix}{place}");
    let paths = (0..permits.len()).map(|place| format!("permits.{}", placeholder(place)));
    let request = permits.iter().enumerate().fold(request, |request, (place, permit)| {
        request.expression_attribute_names(placeholder(place), permit.to_string())
    });
    (paths.collect(), request)
}

fn read(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}
