//! Checks that the account allows the number of concurrent executions that the mappings of the
//! stack may request.
//!
//! A template cannot read the limits of an account, so only this check compares the mappings with
//! these limits.

use anyhow::Context as _;
use aws_config::SdkConfig;
use aws_sdk_lambda::Client;

use super::failed;
use super::item::Item;
use crate::operations::queues::SHARES;
use crate::operations::stack::Stack;

const REQUEST: &str = "request a higher quota: aws service-quotas request-service-quota-increase \
                       --service-code lambda --quota-code L-B99A9384 --desired-value 1000";

/// The limits of an account on concurrent executions.
#[derive(Debug, Clone, Copy)]
struct Limits {
    all: u32,
    /// The number of executions that are not reserved for a function.
    unreserved: u32,
}

pub(super) async fn examine(aws: &SdkConfig, stack: &Stack) -> Option<Item> {
    // Returns `None` if the stack has no parameter `Concurrency`.
    let wanted = stack.concurrency()?;
    Some(match limits(&Client::new(aws)).await {
        Ok(limits) => judge(limits, wanted),
        Err(why) => Item::not_checked("account", &why),
    })
}

async fn limits(client: &Client) -> anyhow::Result<Limits> {
    let answer = client.get_account_settings().send().await;
    let answer = failed(answer, || "the account settings cannot be read".to_owned())?;
    let limit = answer.account_limit().context("Lambda returned no concurrency limits")?;
    let unreserved = limit
        .unreserved_concurrent_executions()
        .context("Lambda returned no concurrency limits")?;
    Ok(Limits {
        all: limit.concurrent_executions().try_into()?,
        unreserved: unreserved.try_into()?,
    })
}

fn judge(limits: Limits, wanted: u32) -> Item {
    let Limits { all, unreserved } = limits;
    let message = format!(
        "the mappings can use up to {wanted} concurrent executions, but the account allows {all}, \
         {unreserved} of them unreserved"
    );
    if wanted <= unreserved {
        return Item::ok("account", message);
    }
    let fits = SHARES.iter().rev().map(|row| row.all).find(|row| *row <= unreserved);
    let help = match fits {
        Some(fits) => format!("set the parameter Concurrency to {fits}, or {REQUEST}"),
        None => format!(
            "the mappings require at least {} concurrent executions, so {REQUEST}",
            SHARES[0].all
        ),
    };
    Item::warning(
        "account",
        format!("{message}: Lambda throttles the rest, and SQS redelivers their messages"),
        help,
    )
}

#[cfg(test)]
mod tests {
    use super::super::item::State;
    use super::*;

    /// Returns the state of the item and its advice.
    fn judged(all: u32, unreserved: u32, wanted: u32) -> (State, String) {
        let item = judge(Limits { all, unreserved }, wanted);
        for number in [all, unreserved, wanted] {
            assert!(item.message.contains(&format!(" {number}")), "{number}: {}", item.message);
        }
        (item.state, item.help.unwrap_or_default())
    }

    #[test]
    fn an_account_that_allows_less_than_the_mappings_may_ask_for_is_a_warning() {
        assert_eq!(judged(1_000, 1_000, 100), (State::Ok, String::new()));
        assert_eq!(judged(10, 10, 10), (State::Ok, String::new()));
        for (all, unreserved, fits) in [(10, 10, 10), (1_000, 99, 50), (1_000, 49, 20)] {
            let help = format!("set the parameter Concurrency to {fits}, or {REQUEST}");
            assert_eq!(judged(all, unreserved, 100), (State::Warning, help));
        }
        let help = format!("the mappings require at least 10 concurrent executions, so {REQUEST}");
        assert_eq!(judged(1_000, 9, 10), (State::Warning, help));
    }
}
