//! Estimates for people and for tools.
//!
//! Separate because the members of the JSON are a contract, and because numbers for people are
//! grouped.

use comfy_table::{CellAlignment, Table, presets};
use delivery::subscription::Subscription;
use delivery::time::duration::format_ms;
use serde_json::{Value, json};

use super::chain::HOP_MS;
use super::lines::{MONTH_DAYS, whole};
use super::needs::first;
use super::{Estimate, Line, Need, PRICES_FROM, Plan, Wait, dollars};

/// A whole number for people, in groups of three.
pub(crate) fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && index % 3 == first {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count, rounded to the nearest.
pub(crate) fn count(number: f64) -> String {
    grouped(whole(number))
}

/// A number with its decimals: three at most.
pub(crate) fn decimals(number: f64) -> String {
    thousandths(whole(number * 1_000.0)).trim_end_matches(".000").to_owned()
}

/// A number with nine decimals at most: enough to be multiplied by a thousand million.
pub(crate) fn precise(number: f64) -> String {
    let rounded = whole(number * 1e9);
    let text = format!("{}.{:09}", grouped(rounded / 1_000_000_000), rounded % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Thousandths of a unit.
fn thousandths(number: u128) -> String {
    let text = format!("{}.{:03}", grouped(number / 1_000), number % 1_000);
    if number.is_multiple_of(1_000) { grouped(number / 1_000) } else { text }
}

fn table(head: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_header(head);
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// For people.
pub(crate) fn text(plan: &Plan, subscription: &Subscription, estimate: &Estimate) -> String {
    let traffic = &plan.traffic;
    let down = match traffic.down_ms {
        0 => String::new(),
        ms => format!(
            "; destinations of {} of the deliveries are down for {}",
            precise(traffic.down_share),
            format_ms(ms)
        ),
    };
    let head = format!(
        "{} events of {} bytes a day; deliveries per event: {}; policy: {}\n\
         an attempt succeeds with probability {}, else {}; an answer takes {} ms{down}\n",
        count(traffic.events),
        count(traffic.event_bytes),
        decimals(traffic.fan_out),
        subscription.dialect.as_str(),
        precise(traffic.success),
        traffic.failure,
        count(traffic.answer_ms),
    );
    let average = &estimate.average;
    let one = format!(
        "\none delivery on average: {} attempts, {} waits as {} messages, {} dead letters\n{}",
        precise(average.attempts),
        precise(average.waits),
        precise(average.messages),
        precise(average.dead_letters),
        waits(&estimate.waits),
    );
    let total = estimate.total;
    let money = format!(
        "\na day: ${}   {MONTH_DAYS} days: ${}   a million events: ${}\nprices: {PRICES_FROM}\n",
        dollars(total.day),
        dollars(total.month),
        dollars(total.million_events)
    );
    let needs = format!("\n{}\n{}", needed(&estimate.needs), gives_way(plan, &estimate.needs));
    let others =
        format!("\nelsewhere, by list price, without the network\n{}\n", bill(&estimate.others));
    format!("{head}{one}\n{}\n{money}{needs}{others}", bill(&estimate.lines))
}

fn waits(waits: &[Wait]) -> String {
    if waits.is_empty() {
        return String::new();
    }
    let mut table =
        table(&["after attempt", "wait", "counted", "messages", "reached by"], &[0, 3, 4]);
    for wait in waits {
        let messages = match wait.messages {
            0 => "in place".to_owned(),
            messages => messages.to_string(),
        };
        table.add_row([
            wait.after_attempt.to_string(),
            format_ms(wait.wait_ms),
            format_ms(wait.counted_ms),
            messages,
            precise(wait.reached),
        ]);
    }
    format!("{table}\n")
}

fn bill(lines: &[Line]) -> String {
    let mut table =
        table(&["bill", "of", "quantity", "unit price", "$ a day", "the quantity is"], &[2, 4]);
    for line in lines {
        table.add_row([
            line.service.to_owned(),
            line.what.to_owned(),
            thousandths(line.thousandths),
            line.price.quoted(),
            dollars(line.pico_dollars()),
            line.how.clone(),
        ]);
    }
    table.to_string()
}

fn needed(needs: &[Need]) -> String {
    let mut table = table(
        &["needed", "amount", "limit", "of it, at full batches", "the amount is"],
        &[1, 2, 3],
    );
    for need in needs {
        let limit =
            need.limit.map_or(String::new(), |(limit, who)| format!("{} ({who})", count(limit)));
        let share = need.limit.map_or(String::new(), |_| percent(need.share));
        table.add_row([
            need.what.to_owned(),
            decimals(need.amount),
            limit,
            share,
            need.how.clone(),
        ]);
    }
    table.to_string()
}

fn percent(share: f64) -> String {
    let tenths = whole(share * 1_000.0);
    match tenths {
        0 if share > 0.0 => "< 0.1 %".to_owned(),
        _ => format!("{}.{} %", grouped(tenths / 10), tenths % 10),
    }
}

/// What gives way first, and when.
fn gives_way(plan: &Plan, needs: &[Need]) -> String {
    let Some((need, (limit, who))) = first(needs).and_then(|need| Some((need, need.limit?))) else {
        return String::new();
    };
    let (what, share, limit) = (need.what, percent(need.share), count(limit));
    let at = count(plan.traffic.events / need.share);
    let past = if need.share > 1.0 { ", so its queue grows" } else { "" };
    format!(
        "gives way first: {what}, with full batches {share} of {limit} ({who}){past}; all of it is {at} such events a day\n"
    )
}

/// For tools.
pub(crate) fn json(plan: &Plan, subscription: &Subscription, estimate: &Estimate) -> Value {
    let traffic = &plan.traffic;
    let average = &estimate.average;
    json!({
        "events": whole_number(traffic.events),
        "deliveries": whole_number(estimate.load.deliveries),
        "success": traffic.success,
        "dialect": subscription.dialect.as_str(),
        "delivery": {
            "attempts": average.attempts,
            "waits": average.waits,
            "messages": average.messages,
            "waiting_ms": average.waiting_ms,
            "dead_letters": average.dead_letters,
        },
        "waits": estimate.waits.iter().map(wait_json).collect::<Vec<_>>(),
        "lines": estimate.lines.iter().map(line_json).collect::<Vec<_>>(),
        "usd": {
            "day": dollars_plain(estimate.total.day),
            "month": dollars_plain(estimate.total.month),
            "million_events": dollars_plain(estimate.total.million_events),
        },
        "needs": estimate.needs.iter().map(need_json).collect::<Vec<_>>(),
        "gives_way_first": first(&estimate.needs).map(|need| need.what),
        "elsewhere": estimate.others.iter().map(line_json).collect::<Vec<_>>(),
        "prices": PRICES_FROM,
    })
}

fn whole_number(number: f64) -> Value {
    json!(u64::try_from(whole(number)).unwrap_or(u64::MAX))
}

fn wait_json(wait: &Wait) -> Value {
    json!({
        "after_attempt": wait.after_attempt,
        "wait_ms": wait.wait_ms,
        "messages": super::chain::hops(wait.wait_ms),
        "messages_counted": wait.messages,
        "messages_most": wait.messages_most,
        "over_one_message": wait.wait_ms > HOP_MS,
        "reached": wait.reached,
    })
}

fn line_json(line: &Line) -> Value {
    json!({
        "service": line.service,
        "what": line.what,
        "quantity": thousandths(line.thousandths).replace(',', ""),
        "unit": line.price.unit,
        "unit_price": line.price.quoted(),
        "usd": dollars_plain(line.pico_dollars()),
        "how": line.how,
        "source": line.price.source,
    })
}

fn need_json(need: &Need) -> Value {
    json!({
        "what": need.what,
        "amount": need.amount,
        "limit": need.limit.map(|(limit, _)| limit),
        "set_by": need.limit.map(|(_, who)| who),
        "share": need.limit.map(|_| need.share),
        "how": need.how,
    })
}

fn dollars_plain(pico_dollars: u128) -> String {
    dollars(pico_dollars).replace(',', "")
}
