//! Prints an upper bound of the dead letters to replay, and the command that replays them, when a
//! subscription is resumed or a destination is enabled.
//!
//! Separate because several commands can end a pause, and `doctor` prints the replay command for
//! dead letters that were never replayed.

use deadletters::ListedTotal;
use deadletters::filter::Filter;
use delivery::delivery::reason::Reason;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;

use crate::operations::container;
use crate::operations::shell;
use crate::operations::stack::Stack;
use crate::terminal::advice::chain;
use crate::terminal::output::note;
use crate::terminal::text;

/// The time after the end of a pause during which functions may still create dead letters because
/// of the pause. Functions read a change within half a minute. They may then process a message
/// received earlier for up to ten minutes. The rest is a margin.
pub(crate) const QUIET_AFTER: &str = "PT12M";

/// Prints the replay command for each subscription whose pause ends.
pub(crate) async fn tell_resumed(stack: Option<&Stack>, before: &Catalogue, after: &Catalogue) {
    let goes_on =
        |name: &SubscriptionName| after.subscription(name).is_some_and(|after| !after.paused);
    let paused = before
        .subscriptions()
        .filter(|subscription| subscription.paused)
        .map(|subscription| &subscription.name);
    tell(stack, paused.filter(|name| goes_on(name)), Reason::Paused).await;
}

/// Prints, for each subscription, the number of dead letters and the command that replays them. The
/// number is counted from object keys, which contain no reason, so it includes dead letters with
/// other reasons.
pub(crate) async fn tell(
    stack: Option<&Stack>,
    names: impl IntoIterator<Item = &SubscriptionName>,
    reason: Reason,
) {
    for name in names {
        let count = match stack {
            Some(stack) => count(stack, name).await,
            None => Ok(None),
        };
        let count = match count {
            Ok(Some(ListedTotal { count: 0, is_all: true })) => continue,
            Ok(Some(ListedTotal { count, is_all })) => {
                let than = if is_all { "at most" } else { "more than" };
                format!("{than} {}", text::dead_letters(count))
            }
            Ok(None) => "dead letters".to_owned(),
            Err(error) => format!("dead letters (not counted: {})", chain(&error)),
        };
        note(format_args!("{name} has {count} with the reason {reason}; replay them with:"));
        note(format_args!("  {}", command(stack.map(|stack| stack.name.as_str()), name, reason)));
    }
}

/// Formats the command that replays dead letters of a subscription until no more arrive.
pub(crate) fn command(stack: Option<&str>, name: &SubscriptionName, reason: Reason) -> String {
    let (name, reason) = (name.to_string(), reason.to_string());
    let mut words = vec!["lastmile", "deadletters", "replay"];
    words.extend(stack.into_iter().flat_map(|stack| ["--stack", stack]));
    words.extend(["--subscription", &name, "--reason", &reason, "--until-quiet", QUIET_AFTER]);
    shell::command(&words)
}

/// Counts the dead letters of a subscription by their keys, in the container of the stack.
async fn count(stack: &Stack, name: &SubscriptionName) -> anyhow::Result<Option<ListedTotal>> {
    let letters = container::of_stack(stack).await?;
    let filter = Filter {
        namespace: Some(name.topic.namespace.clone()),
        topic: Some(name.topic.topic.clone()),
        subscription: Some(name.name.clone()),
        ..Filter::default()
    };
    letters.listed_total(&filter).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_single_words_of_the_command() {
        let name: SubscriptionName = "a b/it's/$(id); `x`".parse().unwrap();
        let replay = "lastmile deadletters replay --stack 's; t' --subscription \
                      'a b/it'\\''s/$(id); `x`' --reason Paused --until-quiet PT12M";
        assert_eq!(command(Some("s; t"), &name, Reason::Paused), replay);
    }
}
