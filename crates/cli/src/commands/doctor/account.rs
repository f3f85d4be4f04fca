//! The account: that it allows as many concurrent executions as the mappings of the stack may ask for.
//!
//! Separate from [`super::concurrency`], which is about a parameter: no template can read the limit of an account.

use anyhow::Context as _;
use aws_config::SdkConfig;
use aws_sdk_lambda::Client;

use super::failed;
use super::item::Item;
use crate::queues::{self, DEADLETTER, DISPATCH};
use crate::stack::Stack;

/// The least `MaximumConcurrency` of a mapping.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>
const LEAST: u32 = 2;
const REQUEST: &str = "request a higher quota: aws service-quotas request-service-quota-increase \
                       --service-code lambda --quota-code L-B99A9384 --desired-value 1000";

/// Concurrent executions of an account.
#[derive(Debug, Clone, Copy)]
struct Limits {
    all: u32,
    /// Not reserved by any function.
    unreserved: u32,
}

/// Concurrent invocations that the mappings of a stack may ask for, beside those that are reserved for its functions.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    now: u32,
    /// With the least values of the parameters.
    least: u32,
}

pub(super) async fn examine(aws: &SdkConfig, stack: &Stack) -> Option<Item> {
    let wanted = wanted(stack)?;
    Some(match limits(&Client::new(aws)).await {
        Ok(limits) => judge(limits, wanted),
        Err(why) => Item::not_checked("account", &why),
    })
}

async fn limits(client: &Client) -> anyhow::Result<Limits> {
    let answer = client.get_account_settings().send().await;
    let answer = failed(answer, || "its settings cannot be read".to_owned())?;
    let limit = answer.account_limit().context("it has no limits")?;
    let unreserved = limit.unreserved_concurrent_executions().context("it has no limits")?;
    Ok(Limits {
        all: limit.concurrent_executions().try_into()?,
        unreserved: unreserved.try_into()?,
    })
}

/// `None` where the stack has no such parameters.
fn wanted(stack: &Stack) -> Option<Wanted> {
    let unreserved = match stack.reserved_concurrency() {
        Some(_) => &[DEADLETTER][..],
        None => &[DISPATCH, DEADLETTER],
    };
    let now = unreserved.iter().map(|function| stack.concurrency(function)).sum::<Option<u32>>()?;
    let of_these = queues::mappings().filter(|mapping| unreserved.contains(&mapping.function));
    Some(Wanted { now, least: of_these.map(|_| LEAST).sum() })
}

fn judge(limits: Limits, wanted: Wanted) -> Item {
    let (Limits { all, unreserved }, Wanted { now, least }) = (limits, wanted);
    let message = format!(
        "the mappings may ask for {now} concurrent executions; the account allows {all}, {unreserved} of them unreserved"
    );
    if now <= unreserved {
        return Item::ok("account", message);
    }
    let help = match least <= unreserved {
        true => format!(
            "lower the parameters that end in Concurrency ({least} if each is {LEAST}), or {REQUEST}"
        ),
        false => format!("{least} is the least that they can ask for: {REQUEST}"),
    };
    Item::warning(
        "account",
        format!("{message}: Lambda throttles the rest, and their messages are received again"),
        help,
    )
}

#[cfg(test)]
mod tests {
    use super::super::item::State;
    use super::*;

    /// The state, and what to do.
    fn judged(all: u32, unreserved: u32, now: u32, least: u32) -> (State, String) {
        let item = judge(Limits { all, unreserved }, Wanted { now, least });
        for number in [all, unreserved, now] {
            assert!(item.message.contains(&format!(" {number}")), "{number}: {}", item.message);
        }
        (item.state, item.help.unwrap_or_default())
    }

    #[test]
    fn an_account_that_allows_less_than_the_mappings_may_ask_for_is_a_warning() {
        assert_eq!(judged(1_000, 1_000, 110, 14), (State::Ok, String::new()));
        assert_eq!(judged(14, 14, 14, 14), (State::Ok, String::new()));
        for (all, unreserved) in [(14, 14), (1_000, 109)] {
            let (state, help) = judged(all, unreserved, 110, 14);
            assert_eq!(state, State::Warning);
            assert!(help.starts_with("lower") && help.ends_with(REQUEST), "{help}");
        }
        for (all, unreserved) in [(10, 10), (13, 13), (1_000, 13)] {
            let (state, help) = judged(all, unreserved, 14, 14);
            assert_eq!(state, State::Warning);
            assert_eq!(help, format!("14 is the least that they can ask for: {REQUEST}"));
        }
    }

    #[test]
    fn invocations_that_are_reserved_for_dispatch_are_not_asked_of_the_others() {
        let with = |reserved: &'static str, pollers: &'static str| {
            let mut all: Vec<_> = queues::mappings().map(|it| (it.concurrency, "3")).collect();
            all.extend([("ReservedConcurrency", reserved)]);
            all.extend(["EventsPollersMinimum", "EventsPollersMaximum"].map(|it| (it, pollers)));
            wanted(&Stack::sample(&all, &[])).map(|Wanted { now, least }| (now, least))
        };
        assert_eq!(with("", "0"), Some((21, 14)));
        assert_eq!(with("15", "0"), Some((6, 4)));
        // Each event poller makes ten invocations at once.
        assert_eq!(with("", "2"), Some((18 + 20, 14)));
        assert!(wanted(&Stack::sample(&[], &[])).is_none());
    }
}
