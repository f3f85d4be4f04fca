//! Every HTTP status of every dialect: the outcome, the verdict, and the minimum wait.
//!
//! The snapshots are the tables of the dialects as ranges. Changing one changes a promise.

use std::fmt::Write as _;

use delivery::delivery::outcome::{Exchange, TransportResult, Verdict, judge};
use delivery::subscription::profile::{Dialect, Profile, RetryPolicy};
use delivery::time::duration::format_ms;

use crate::samples::answered;

/// The statuses of HTTP: three digits, the first one 1 to 5.
const STATUSES: std::ops::RangeInclusive<u16> = 100..=599;

/// Outcome and verdict of an exchange, as readable text.
fn line(policy: &RetryPolicy, exchange: &Exchange) -> String {
    let outcome = exchange.outcome(policy).as_str();
    match judge(policy, exchange) {
        Verdict::Delivered => format!("{outcome:<16} delivered"),
        Verdict::Retry { least_wait_ms: 0 } => format!("{outcome:<16} retry"),
        Verdict::Retry { least_wait_ms } => {
            format!("{outcome:<16} retry, not before {}", format_ms(least_wait_ms))
        }
        Verdict::Undeliverable(reason) => format!("{outcome:<16} undeliverable: {reason}"),
    }
}

/// Neighbours with the same meaning share a line. A reason that contains its status's number means
/// the same.
fn table(policy: &RetryPolicy) -> String {
    let mut ranges: Vec<(u16, u16, String)> = Vec::new();
    for status in STATUSES {
        let numbered = format!("HttpStatus{status}");
        let line = line(policy, &answered(status, 0)).replace(&numbered, "HttpStatus<code>");
        match ranges.last_mut() {
            Some((_, last, same)) if *same == line => *last = status,
            _ => ranges.push((status, status, line)),
        }
    }
    ranges.into_iter().fold(String::new(), |mut table, (first, last, line)| {
        let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
        writeln!(table, "{range:<8} {line}").expect("writing to a string never fails");
        table
    })
}

#[test]
fn every_status_of_every_dialect_has_the_verdict_of_its_table() {
    for dialect in Dialect::ALL {
        insta::assert_snapshot!(
            format!("{dialect:?}"),
            table(&Profile::for_dialect(dialect).retry)
        );
    }
}

#[test]
fn every_result_without_a_response_means_the_same_in_every_dialect_except_for_the_minimum_wait() {
    let endings = [
        TransportResult::TimedOut,
        TransportResult::SocketError,
        TransportResult::ResolutionError,
        TransportResult::TlsError,
        TransportResult::Blocked,
        TransportResult::Unsendable,
        TransportResult::Aborted,
    ];
    let mut text = String::new();
    for dialect in Dialect::ALL {
        writeln!(text, "{dialect:?}").expect("writing to a string never fails");
        for result in &endings {
            let exchange = Exchange::new(result.clone(), 0, 0);
            let line = line(&Profile::for_dialect(dialect).retry, &exchange);
            writeln!(text, "    {:<16} {line}", format!("{result:?}"))
                .expect("writing to a string never fails");
        }
    }
    insta::assert_snapshot!("endings_without_an_answer", text);
}
