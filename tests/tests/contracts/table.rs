//! `Table`: two emulations of DynamoDB and the table of the simulation give the same answers,
//! operation by operation.

use std::collections::BTreeSet;

use adapters::table::DynamoTable;
use delivery::delivery::health::news::News;
use delivery::delivery::health::shared::{DestinationState, Document as _, Findings};
use delivery::delivery::health::{DestinationKey, Finding};
use delivery::table::{
    Entry, Expected, ItemKey, Line, Permit, PermitAnswer, Places, Recovery, Refusal, Report,
    Results, SlotQueue, Stored, Table as _, TakePermits, TakePlaces,
};
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS};
use lastmile_tests::memory_table::MemoryTable;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::cloud::Cloud;

const NOW_MS: u64 = 1_795_158_180_000;

fn item(sort: &str) -> ItemKey {
    ItemKey { partition: "shop".to_owned(), sort: sort.to_owned() }
}

fn entry(text: &str, expires_ms: Option<u64>) -> Entry {
    Entry { text: text.to_owned(), expires_ms }
}

fn permit(number: u32) -> Permit {
    Permit { until_ms: NOW_MS + 60_000, process: 1, number }
}

/// Checks each promise for each emulation of DynamoDB.
macro_rules! promises {
    ($($promise:ident)*) => {
        mod of_the_local_aws {
            $(#[tokio::test]
            async fn $promise() {
                let cloud = super::Cloud::start().await;
                super::$promise(&cloud.table()).await;
            })*
        }

        mod of_ministack {
            $(#[tokio::test]
            async fn $promise() {
                if let Some(table) = crate::ministack::table().await {
                    super::$promise(&table).await;
                }
            })*
        }
    };
}

promises! {
    an_entry_is_replaced_by_whoever_knows_its_version
    an_entry_that_has_expired_is_none_though_it_is_still_there
    the_newest_of_a_partition_come_first_and_so_many_at_most
    permits_are_given_out_while_there_are_few_enough_and_nobody_waits
    a_permit_is_exchanged_for_another_while_it_is_given_out
    results_of_a_recovery_add_up_and_its_rate_is_changed_once
    a_later_recovery_replaces_an_earlier_one_and_keeps_its_ceiling
    a_thousand_operations_have_the_same_answers_in_memory
    a_switch_of_a_year_ago_still_holds_and_health_that_nobody_renewed_is_gone
}

async fn an_entry_is_replaced_by_whoever_knows_its_version(table: &DynamoTable) {
    let read = async || table.entry(&item("a"), NOW_MS).await.expect("an answer");
    let replace = async |text, expected| {
        table.replace(&item("a"), &entry(text, None), expected, NOW_MS).await.expect("an answer")
    };
    assert_eq!(read().await, None);
    assert!(replace("first", Expected::Nothing).await);
    assert!(!replace("another first", Expected::Nothing).await);
    let Stored { text, version, expires_s } = read().await.expect("it is there");
    assert_eq!((text.as_str(), expires_s), ("first", None));
    assert!(replace("second", Expected::Version(version)).await);
    assert!(!replace("third", Expected::Version(version)).await);
    assert!(replace("fourth", Expected::Anything).await);
    assert_eq!(read().await.map(|stored| stored.text), Some("fourth".to_owned()));
}

async fn an_entry_that_has_expired_is_none_though_it_is_still_there(table: &DynamoTable) {
    let expires = entry("a", Some(NOW_MS + 1_000));
    let replace =
        async |now_ms| table.replace(&item("a"), &expires, Expected::Nothing, now_ms).await;
    assert_eq!(replace(NOW_MS).await, Ok(true));
    assert_eq!(replace(NOW_MS).await, Ok(false));
    let read = async |now_ms| table.entry(&item("a"), now_ms).await.expect("an answer").is_some();
    assert!(read(NOW_MS + 999).await && !read(NOW_MS + 1_000).await);
    assert_eq!(replace(NOW_MS + 1_000).await, Ok(true));
}

async fn the_newest_of_a_partition_come_first_and_so_many_at_most(table: &DynamoTable) {
    for sort in ["1", "~", "2", "3"] {
        let (key, text) = (item(sort), entry(sort, None));
        let written = table.replace(&key, &text, Expected::Anything, NOW_MS).await;
        assert_eq!(written, Ok(true));
    }
    let elsewhere = ItemKey { partition: "other".to_owned(), sort: "4".to_owned() };
    let written = table.replace(&elsewhere, &entry("4", None), Expected::Anything, NOW_MS).await;
    assert_eq!(written, Ok(true));
    let newest = table.newest("shop", 3).await.expect("an answer");
    assert_eq!(newest.iter().map(|item| item.text.as_str()).collect::<Vec<_>>(), ["~", "3", "2"]);
    let all = table.all("shop").await.expect("an answer");
    assert_eq!(all.len(), 4);
}

async fn permits_are_given_out_while_there_are_few_enough_and_nobody_waits(table: &DynamoTable) {
    let permits = |numbers: &[u32]| numbers.iter().copied().map(permit).collect::<Vec<_>>();
    let take = async |numbers: &[u32], only_if_nobody_waits| {
        let permits = permits(numbers);
        let take = TakePermits { permits, instead_of: Vec::new(), most: 3, only_if_nobody_waits };
        table.take_permits(&item("l"), &take, NOW_MS).await.expect("an answer")
    };
    let refused = |numbers: &[u32], line_us| {
        let given_out: BTreeSet<Permit> = numbers.iter().copied().map(permit).collect();
        PermitAnswer::Refused(Refusal { given_out, line_us, takes_ms: None })
    };
    // The second call is the repetition of a client that lost the first answer.
    for _ in 0..2 {
        assert_eq!(take(&[1, 2], true).await, PermitAnswer::Taken);
    }
    assert_eq!(take(&[3, 4], false).await, refused(&[1, 2], None));
    assert_eq!(take(&[3], true).await, PermitAnswer::Taken);
    assert_eq!(take(&[4], false).await, refused(&[1, 2, 3], None));
    let give_back = async |numbers: &[u32]| {
        let returned = table.return_permits(&item("l"), &permits(numbers), None, NOW_MS).await;
        returned.expect("an answer");
    };
    give_back(&[1, 9]).await;
    assert_eq!(take(&[4], true).await, PermitAnswer::Taken);
    give_back(&[2, 3, 4]).await;
    // Now somebody waits.
    let places = TakePlaces {
        count: 1,
        each_us: 5,
        others_wait: false,
        earliest_ms: NOW_MS,
        latest_ms: u64::MAX,
        plausible_ms: u64::MAX,
        report: None,
    };
    let line = table.take_places(&item("l"), SlotQueue::Turns, &places, NOW_MS).await;
    let places = Places { line: Line::Taken { first_us: NOW_MS * 1_000 }, recovery: None };
    assert_eq!(line, Ok(places));
    assert_eq!(take(&[5], true).await, refused(&[], Some(NOW_MS * 1_000 + 5)));
    assert_eq!(take(&[5], false).await, PermitAnswer::Taken);
    let many = take(&[6, 7, 8, 9], false).await;
    assert!(matches!(many, PermitAnswer::Refused(_)), "more than there are: {many:?}");
}

async fn a_permit_is_exchanged_for_another_while_it_is_given_out(table: &DynamoTable) {
    let exchange = async |old: &[u32], new: u32| {
        let instead_of = old.iter().copied().map(permit).collect();
        let take = TakePermits {
            permits: vec![permit(new)],
            instead_of,
            most: 1,
            only_if_nobody_waits: false,
        };
        table.take_permits(&item("l"), &take, NOW_MS).await.expect("an answer")
    };
    let refused = |numbers: &[u32], takes_ms| {
        let given_out: BTreeSet<Permit> = numbers.iter().copied().map(permit).collect();
        PermitAnswer::Refused(Refusal { given_out, line_us: None, takes_ms })
    };
    // An item without permits exchanges none and accepts none back.
    assert_eq!(exchange(&[1], 2).await, refused(&[], None));
    let give_back = async |number, takes_ms| {
        let permits = [permit(number)];
        table.return_permits(&item("l"), &permits, takes_ms, NOW_MS).await.expect("an answer");
    };
    give_back(1, Some(20)).await;
    assert_eq!(exchange(&[], 2).await, PermitAnswer::Taken);
    assert_eq!(exchange(&[1], 3).await, refused(&[2], None));
    assert_eq!(exchange(&[2], 3).await, PermitAnswer::Taken);
    give_back(2, Some(30)).await;
    assert_eq!(exchange(&[], 4).await, refused(&[3], Some(30)));
    give_back(3, None).await;
    assert_eq!(exchange(&[3], 4).await, refused(&[], Some(30)));
}

/// Reports results at this time without taking a place. Returns whether they were added, and the
/// recovery of the item.
async fn report(
    table: &DynamoTable,
    known: Recovery,
    (good, failed): (u32, u32),
    now_ms: u64,
) -> (bool, Recovery) {
    let nothing = TakePlaces {
        count: 0,
        each_us: 0,
        others_wait: false,
        earliest_ms: now_ms,
        latest_ms: u64::MAX / 1_000,
        plausible_ms: now_ms + DAY_MS,
        report: Some(Report { known, results: Results { good, failed, ..Results::default() } }),
    };
    let places = table.take_places(&item("r"), SlotQueue::Recovery, &nothing, now_ms).await;
    let Places { line, recovery } = places.expect("an answer");
    (matches!(line, Line::Taken { .. }), recovery.expect("the item has a recovery"))
}

async fn results_of_a_recovery_add_up_and_its_rate_is_changed_once(table: &DynamoTable) {
    let began = Recovery::beginning(None, NOW_MS);
    let (_, first) = report(table, began, (30, 0), NOW_MS + 1).await;
    assert_eq!(first, Recovery { good: 30, ..began });
    // Another process knows only that the outage has ended.
    let (is_added, second) = report(table, began, (50, 1), NOW_MS + 2).await;
    assert_eq!((is_added, second.good, second.failed, second.in_a_row), (true, 80, 1, 1));
    // No delivery waits, so the time of the last waiting delivery stays.
    assert_eq!(second.waited_ms, first.waited_ms);
    // A process that changes the rate must know all results.
    let later_ms = NOW_MS + 10_000;
    assert_eq!(report(table, first, (1, 0), later_ms).await, (false, second));
    let (is_added, changed) = report(table, second, (0, 0), later_ms).await;
    assert_eq!((is_added, changed.rate, changed.good, changed.since_ms), (true, 10, 0, later_ms));
    assert_eq!(report(table, second, (0, 0), later_ms).await, (false, changed));
    // Ten failures in a row change the rate at once.
    let (_, falling) = report(table, changed, (0, 10), later_ms + 1).await;
    assert_eq!(report(table, changed, (0, 1), later_ms + 2).await, (false, falling));
    let (is_added, halved) = report(table, falling, (0, 1), later_ms + 2).await;
    assert_eq!((is_added, halved.rate), (true, 5));
    assert_eq!(halved.ceiling, Some((6, later_ms + 2 + HOUR_MS)));
}

async fn a_later_recovery_replaces_an_earlier_one_and_keeps_its_ceiling(table: &DynamoTable) {
    let ceiling = Some((7, NOW_MS + HOUR_MS));
    let (_, earlier) = report(table, Recovery::beginning(ceiling, NOW_MS), (3, 0), NOW_MS).await;
    let later = Recovery::beginning(None, NOW_MS + 5_000);
    let (is_added, begun) = report(table, later, (1, 0), NOW_MS + 5_001).await;
    assert_eq!((is_added, begun), (true, Recovery { ceiling, good: 1, ..later }));
    assert_eq!(report(table, earlier, (1, 0), NOW_MS + 5_002).await, (false, begun));
}

fn limits() -> ItemKey {
    ItemKey { partition: "limits".to_owned(), sort: "l".to_owned() }
}

/// The permits that are given out.
fn given_out(memory: &mut MemoryTable, now_ms: u64) -> Vec<Permit> {
    let nobody = TakePermits {
        permits: vec![permit(0)],
        instead_of: vec![permit(0)],
        most: 9,
        only_if_nobody_waits: false,
    };
    match memory.take_permits(&limits(), &nobody, now_ms) {
        PermitAnswer::Refused(refusal) => refusal.given_out.into_iter().collect(),
        PermitAnswer::Taken => Vec::new(),
    }
}

/// Permits that a process may want, some of them instead of one that is given out.
fn any_take(random: &mut StdRng, given_out: &[Permit]) -> TakePermits {
    let count = random.random_range(1..4);
    // Each permit occurs once, because DynamoDB refuses an expression that names something twice.
    let numbers = (0..count).map(|at| 100 + 3 * random.random_range(0..300) + at);
    TakePermits {
        permits: numbers.map(permit).collect(),
        instead_of: given_out.iter().copied().take(random.random_range(0..2)).collect(),
        most: 5,
        only_if_nobody_waits: random.random_bool(0.5),
    }
}

/// A report, mostly by a process that knows the current recovery.
fn any_report(random: &mut StdRng, memory: &MemoryTable, now_ms: u64) -> Report {
    let began = || Recovery::beginning(None, NOW_MS);
    let known = memory.recovery(&limits()).unwrap_or_else(began);
    let known = match random.random_range(0..10) {
        0 => Recovery::beginning(Some((random.random_range(1..50), now_ms)), now_ms),
        1 => Recovery { good: known.good + 1, ..known },
        2 => Recovery { since_ms: known.since_ms + 1, ..known },
        3 => Recovery { in_a_row: 0, ..known },
        _ => known,
    };
    let (good, failed) = (random.random_range(0..3), random.random_range(0..5));
    let (away, waits) = (random.random_range(-2..3), random.random_bool(0.3));
    Report { known, results: Results { good, failed, away, waits } }
}

/// Runs a random operation on both tables, compares the answers, and returns the answer.
async fn operate(random: &mut StdRng, table: &DynamoTable, memory: &mut MemoryTable) -> String {
    let now_ms = NOW_MS + random.random_range(0..20_000);
    let key = item(["a", "b"][random.random_range(0..2)]);
    let (answer, expected) = match random.random_range(0..6) {
        0 => {
            let stored = table.entry(&key, now_ms).await.expect("an answer");
            (format!("{stored:?}"), format!("{:?}", memory.entry(&key, now_ms)))
        }
        1 => {
            let expires_ms =
                random.random_bool(0.5).then(|| NOW_MS + random.random_range(0..30_000));
            let entry = entry(&random.random_range(0..100).to_string(), expires_ms);
            let expected = match random.random_range(0..3) {
                0 => Expected::Anything,
                1 => Expected::Nothing,
                _ => Expected::Version(random.random_range(0..8)),
            };
            let replaced = table.replace(&key, &entry, expected, now_ms).await.expect("an answer");
            let of_memory = memory.replace(&key, &entry, expected, now_ms);
            (
                format!("{entry:?} {expected:?} {replaced}"),
                format!("{entry:?} {expected:?} {of_memory}"),
            )
        }
        2 => {
            let newest = table.newest("shop", 1).await.expect("an answer");
            (format!("{newest:?}"), format!("{:?}", memory.newest("shop", 1)))
        }
        3 => {
            let take = any_take(random, &given_out(memory, now_ms));
            let limits = limits();
            let answer = table.take_permits(&limits, &take, now_ms).await.expect("an answer");
            (format!("{answer:?}"), format!("{:?}", memory.take_permits(&limits, &take, now_ms)))
        }
        4 => {
            let mut permits = given_out(memory, now_ms);
            permits.truncate(random.random_range(0..5));
            permits.push(permit(7));
            let limits = limits();
            let takes_ms = Some(random.random_range(1..9)).filter(|takes_ms| *takes_ms > 4);
            let returned = table.return_permits(&limits, &permits, takes_ms, now_ms).await;
            returned.expect("an answer");
            memory.return_permits(&limits, &permits, takes_ms);
            (String::new(), String::new())
        }
        _ => {
            let names = [SlotQueue::Turns, SlotQueue::Slots, SlotQueue::Recovery];
            let name = names[random.random_range(0..3)];
            let reports = name == SlotQueue::Recovery;
            let report = reports.then(|| any_report(random, memory, now_ms));
            let take = TakePlaces {
                count: random.random_range(u32::from(!reports)..5),
                each_us: random.random_range(1..2_000_000),
                others_wait: random.random_bool(0.5),
                earliest_ms: now_ms - random.random_range(0..2_000),
                latest_ms: now_ms + random.random_range(0..20_000),
                plausible_ms: now_ms + 15_000,
                report,
            };
            let limits = limits();
            let line = table.take_places(&limits, name, &take, now_ms).await.expect("an answer");
            let of_memory = memory.take_places(&limits, name, &take, now_ms);
            (format!("{line:?}"), format!("{of_memory:?}"))
        }
    };
    assert_eq!(answer, expected);
    answer
}

async fn a_thousand_operations_have_the_same_answers_in_memory(table: &DynamoTable) {
    let (mut random, mut memory) = (StdRng::seed_from_u64(0), MemoryTable::default());
    let mut answers = BTreeSet::new();
    for _ in 0..1_000 {
        answers.insert(operate(&mut random, table, &mut memory).await);
    }
    for kind in ["None", "true", "false", "Taken\"", "Refused", "Full", "first_us", "Overtaken"] {
        let kind = kind.trim_end_matches('"');
        assert!(answers.iter().any(|answer| answer.contains(kind)), "no answer is {kind}");
    }
}

/// The time for which an entry exists after it was written; `None` if it never expires.
type Lasts = Option<u64>;

/// The entries that processes and operators write about a destination and a topic, each with its
/// item and its lifetime.
fn written() -> Vec<(&'static str, ItemKey, Entry, Lasts)> {
    let key = DestinationKey::new("shop", &"https://a.example.com/".parse().expect("an address"));
    let healthy = DestinationState::healthy("https://a.example.com/", "shop/orders/a", NOW_MS);
    let findings = Findings {
        failing: Some((Finding::Began { lasts_ms: MINUTE_MS }, NOW_MS)),
        ..Findings::new(healthy.destination.clone(), healthy.subscription.clone())
    };
    let failing = DestinationState::merged(None, &findings, NOW_MS);
    let disabled = failing.clone().disabled_by_operator(NOW_MS);
    let enabled = disabled.clone().enabled(NOW_MS);
    let state = |state: &DestinationState| (key.health_item("shop"), state.entry());
    let news = |news: News| (news.item(), news.entry());
    let [health, _] = News::of_state(key, &failing, NOW_MS);
    let [recovered, _] = News::of_state(key, &healthy, NOW_MS);
    let [_, off] = News::of_state(key, &disabled, NOW_MS);
    let [_, on] = News::of_state(key, &enabled, NOW_MS);
    let topic = News::of_topic(&"shop/orders".parse().expect("a topic"), NOW_MS);
    [
        ("a destination fails", state(&failing), Some(7 * DAY_MS)),
        ("a destination is disabled", state(&disabled), None),
        ("a destination is enabled again", state(&enabled), Some(7 * DAY_MS)),
        ("the news that it fails", news(health), Some(3 * HOUR_MS)),
        ("the news that it has recovered", news(recovered), Some(3 * HOUR_MS)),
        ("the news that it is disabled", news(off), None),
        ("the news that it is enabled again", news(on), Some(2 * HOUR_MS)),
        ("the news of a topic", news(topic), Some(15 * MINUTE_MS)),
    ]
    .map(|(name, (item, entry), lasts)| (name, item, entry, lasts))
    .into()
}

async fn a_switch_of_a_year_ago_still_holds_and_health_that_nobody_renewed_is_gone(
    table: &DynamoTable,
) {
    const YEAR_MS: u64 = 365 * DAY_MS;
    for (name, item, entry, lasts) in written() {
        let written = table.replace(&item, &entry, Expected::Anything, NOW_MS).await;
        assert_eq!(written, Ok(true), "{name}");
        let is_there = async |after_ms: u64| {
            let now_ms = NOW_MS + after_ms;
            let read = table.entry(&item, now_ms).await.expect("an answer").is_some();
            let mut newest = table.newest(&item.partition, 10).await.expect("an answer");
            newest.retain(|stored| stored.text == entry.text && !stored.has_expired(now_ms));
            let is_listed = !newest.is_empty();
            assert_eq!(read, is_listed, "{name}, {after_ms} ms later");
            read
        };
        assert!(is_there(0).await, "{name}");
        assert_eq!(is_there(YEAR_MS).await, lasts.is_none(), "{name}, a year later");
        if let Some(lasts_ms) = lasts {
            assert!(is_there(lasts_ms - 1).await, "{name}, before its end");
            assert!(!is_there(lasts_ms).await, "{name}, at its end");
            // An expired entry counts as never written.
            let now_ms = NOW_MS + lasts_ms;
            let first = table.replace(&item, &entry, Expected::Nothing, now_ms).await;
            assert_eq!(first, Ok(true), "{name}");
        }
    }
}
