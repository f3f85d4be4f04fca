//! An estimate as text for people and as JSON for tools.
//!
//! Separate because the members of the JSON are a contract.

use delivery::subscription::Subscription;
use delivery::time::duration::format_ms;
use serde_json::{Value, json};

use super::average::{HOP_MS, Wait, hops};
use super::cost_items::{CostItem, MONTH_DAYS, Total};
use super::estimate::Estimate;
use super::levers::{Advice, Lever, advice};
use super::needs::{Need, tightest};
use super::outage::{DELIVERIES, Outage};
use super::pause::{self, Pause};
use super::plan::Plan;
use super::prices::{PRICES_FROM, dollars};
use crate::numbers::{count, decimals, percent, precise, rounded, thousandths};
use crate::text::Table;

/// A table whose columns `right` are numbers.
fn table(head: &[&str], right: &[usize]) -> Table {
    let mut table = crate::text::table(head);
    table.align_right(right);
    table
}

/// The estimate as text.
pub(crate) fn text(plan: &Plan, subscription: &Subscription, estimate: &Estimate) -> String {
    let traffic = &plan.traffic;
    let down = match traffic.down_ms {
        0 => String::new(),
        ms => format!(
            "; the destinations of {} of the deliveries are down for {}",
            precise(traffic.down_share),
            format_ms(ms)
        ),
    };
    let head = format!(
        "{} events of {} bytes a day; deliveries per event: {}; policy: {}\n\
         an attempt succeeds with probability {}, else {}; the response time is {} ms{down}\n",
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
        "\nthe average delivery: {} attempts, {} waits as {} messages, {} dead letters\n{}",
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
    let levers = advised(&advice(plan, subscription, estimate));
    let needs = format!("\n{}\n{}", needed(&estimate.needs), bottleneck(plan, &estimate.needs));
    let alternatives = format!(
        "\nother services, by list price, without network costs\n{}\n",
        bill(&estimate.alternatives)
    );
    let outage = estimate.outage.as_ref().map_or_else(String::new, outage);
    let pause = pause(&estimate.pause);
    format!(
        "{head}{one}\n{}\n{money}{levers}{outage}{pause}{needs}{alternatives}",
        bill(&estimate.items)
    )
}

fn waits(waits: &[Wait]) -> String {
    if waits.is_empty() {
        return String::new();
    }
    let mut table = table(
        &["after attempt", "wait", "with half the jitter", "messages", "probability"],
        &[0, 3, 4],
    );
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

fn bill(items: &[CostItem]) -> String {
    bill_of(items, "$ a day")
}

/// Prints a bill with this head for the costs.
fn bill_of(items: &[CostItem], head: &str) -> String {
    let mut table = table(&["service", "item", "quantity", "unit price", head, "formula"], &[2, 4]);
    for item in items {
        table.add_row([
            item.price.service.to_owned(),
            item.what.to_owned(),
            thousandths(item.thousandths),
            item.price.quoted(),
            dollars(item.pico_dollars()),
            item.formula.clone(),
        ]);
    }
    table.to_string()
}

/// The bill of a day's outage.
fn outage(outage: &Outage) -> String {
    let day = Total::of(&outage.waiting, DELIVERIES).day;
    let ends = Total::of(&outage.dead_letters, DELIVERIES).day;
    let then = match ends {
        0 => String::new(),
        ends => format!("; if all of them become dead letters then: ${} more", dollars(ends)),
    };
    format!(
        "\na day's outage: {} deliveries wait for a destination that is down\n{}\n\
         the day of waiting: ${}{then}\n",
        count(DELIVERIES),
        bill(&outage.waiting),
        dollars(day)
    )
}

/// The bill of a pause.
fn pause(pause: &Pause) -> String {
    let [stored, sent] =
        [&pause.set_aside, &pause.replay].map(|items| Total::of(items, pause::DELIVERIES).day);
    format!(
        "\na pause: {} deliveries are set aside as dead letters\n{}\nstoring them: ${}\n\
         \nafter it they are replayed\n{}\nreplaying them: ${}\n",
        count(pause::DELIVERIES),
        bill_of(&pause.set_aside, "$"),
        dollars(stored),
        bill_of(&pause.replay, "$"),
        dollars(sent)
    )
}

/// The levers that save most.
fn advised(advice: &Advice) -> String {
    if advice.levers.is_empty() {
        return String::new();
    }
    let head = ["what saves most, each alone", "option", "$ a day less", "latency", "and"];
    let mut table = table(&head, &[2]);
    for Lever { change, saves, latency } in &advice.levers {
        let [what, option] = [&change.what, &change.option].map(ToOwned::to_owned);
        table.add_row([what, option, dollars(*saves), latency.clone(), change.besides.to_owned()]);
    }
    let total = advice.together.total;
    let (day, million) = (dollars(total.day), dollars(total.million_events));
    format!("\n{table}\nwith all of them: a day: ${day}   a million events: ${million}\n")
}

fn needed(needs: &[Need]) -> String {
    let mut table =
        table(&["need", "amount", "limit", "used, with full batches", "formula"], &[1, 2, 3]);
    for need in needs {
        let limit = need
            .limit
            .map_or(String::new(), |(limit, set_by)| format!("{} ({set_by})", count(limit)));
        let share = need.limit.map_or(String::new(), |_| percent(need.share));
        table.add_row([
            need.what.to_owned(),
            decimals(need.amount),
            limit,
            share,
            need.formula.clone(),
        ]);
    }
    table.to_string()
}

/// The first bottleneck, and the load that reaches it.
fn bottleneck(plan: &Plan, needs: &[Need]) -> String {
    let Some((need, (limit, set_by))) = tightest(needs).and_then(|need| Some((need, need.limit?)))
    else {
        return String::new();
    };
    let (what, share, limit) = (need.what, percent(need.share), count(limit));
    let at = count(plan.traffic.events / need.share);
    let past = if need.share > 1.0 { ", so its queue grows" } else { "" };
    format!(
        "first bottleneck: {what}, with full batches {share} of {limit} ({set_by}){past}; reached at {at} such events a day\n"
    )
}

/// The estimate as JSON.
pub(crate) fn json(plan: &Plan, subscription: &Subscription, estimate: &Estimate) -> Value {
    let traffic = &plan.traffic;
    let average = &estimate.average;
    let advice = advice(plan, subscription, estimate);
    json!({
        "events": rounded(traffic.events),
        "deliveries": rounded(estimate.load.deliveries),
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
        "lines": estimate.items.iter().map(item_json).collect::<Vec<_>>(),
        "usd": {
            "day": dollars_plain(estimate.total.day),
            "month": dollars_plain(estimate.total.month),
            "million_events": dollars_plain(estimate.total.million_events),
        },
        "levers": advice.levers.iter().map(lever_json).collect::<Vec<_>>(),
        "usd_with_levers": dollars_plain(advice.together.total.day),
        "outage": estimate.outage.as_ref().map(outage_json),
        "pause": pause_json(&estimate.pause),
        "needs": estimate.needs.iter().map(need_json).collect::<Vec<_>>(),
        "gives_way_first": tightest(&estimate.needs).map(|need| need.what),
        "elsewhere": estimate.alternatives.iter().map(item_json).collect::<Vec<_>>(),
        "prices": PRICES_FROM,
    })
}

fn wait_json(wait: &Wait) -> Value {
    json!({
        "after_attempt": wait.after_attempt,
        "wait_ms": wait.wait_ms,
        "messages": hops(wait.wait_ms),
        "messages_counted": wait.messages,
        "messages_most": wait.messages_most,
        "over_one_message": wait.wait_ms > HOP_MS,
        "reached": wait.reached,
    })
}

fn item_json(item: &CostItem) -> Value {
    json!({
        "service": item.price.service,
        "what": item.what,
        "quantity": thousandths(item.thousandths).replace(',', ""),
        "unit": item.price.unit,
        "unit_price": item.price.quoted(),
        "usd": dollars_plain(item.pico_dollars()),
        "how": item.formula,
        "source": item.price.source,
    })
}

fn outage_json(outage: &Outage) -> Value {
    let items = |of: &[CostItem]| of.iter().map(item_json).collect::<Vec<_>>();
    let usd = |of: &[CostItem]| dollars_plain(Total::of(of, DELIVERIES).day);
    json!({
        "deliveries": rounded(DELIVERIES),
        "lines": items(&outage.waiting),
        "dead_letter_lines": items(&outage.dead_letters),
        "usd": { "day": usd(&outage.waiting), "dead_letters": usd(&outage.dead_letters) },
    })
}

fn pause_json(pause: &Pause) -> Value {
    let items = |of: &[CostItem]| of.iter().map(item_json).collect::<Vec<_>>();
    let usd = |of: &[CostItem]| dollars_plain(Total::of(of, pause::DELIVERIES).day);
    json!({
        "deliveries": rounded(pause::DELIVERIES),
        "lines": items(&pause.set_aside),
        "replay_lines": items(&pause.replay),
        "usd": { "set_aside": usd(&pause.set_aside), "replay": usd(&pause.replay) },
    })
}

fn lever_json(lever: &Lever) -> Value {
    json!({
        "what": lever.change.what,
        "option": lever.change.option,
        "usd_less": dollars_plain(lever.saves),
        "latency": lever.latency,
        "besides": lever.change.besides,
    })
}

fn need_json(need: &Need) -> Value {
    json!({
        "what": need.what,
        "amount": need.amount,
        "limit": need.limit.map(|(limit, _)| limit),
        "set_by": need.limit.map(|(_, set_by)| set_by),
        "share": need.limit.map(|_| need.share),
        "how": need.formula,
    })
}

fn dollars_plain(pico_dollars: u128) -> String {
    dollars(pico_dollars).replace(',', "")
}
