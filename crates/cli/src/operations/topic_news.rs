//! Notifies the processes of a stack that topics have changed. Otherwise, the processes would find
//! the changes only at their next listing.
//!
//! Nothing depends on the notification. If it fails, a note is printed.

use adapters::machine::Machine;
use delivery::delivery::health::news::{NEWS_MAX, News};
use delivery::delivery::health::shared::Document as _;
use delivery::ports::Clock as _;
use delivery::subscription::name::TopicName;
use delivery::table::{Expected, Table as _};
use futures::stream::{self, StreamExt as _};

use crate::operations::stack::Stack;
use crate::terminal::advice::chain;
use crate::terminal::output::note;
use crate::terminal::text;

/// The maximum number of topics in the notifications of one command. Processes read at most
/// [`NEWS_MAX`] changes, and half of these are left for changes of destinations.
const TOLD_MAX: usize = NEWS_MAX as usize / 2;
/// The maximum number of notifications that are written concurrently.
const WRITES_AT_ONCE: usize = 16;

/// Notifies the processes of the stack, if there is one, that these topics have changed.
pub(crate) async fn tell(stack: Option<&Stack>, topics: &[TopicName]) {
    let Some(stack) = stack.filter(|_| !topics.is_empty()) else { return };
    if let Err(problem) = tell_all(stack, topics).await {
        note(text::line(&format!(
            "the functions could not be notified of this change ({}). They apply it at the next \
             listing: within 30 seconds for up to 1,000 topics, within five minutes for up to \
             10,000",
            chain(&problem)
        )));
    }
}

async fn tell_all(stack: &Stack, topics: &[TopicName]) -> anyhow::Result<()> {
    let table = stack.table().await?;
    let now_ms = Machine.now_ms();
    let tell = async |topic: &TopicName| {
        let news = News::of_topic(topic, now_ms);
        table.replace(&news.item(), &news.entry(), Expected::Anything, now_ms).await
    };
    let results = stream::iter(topics.iter().take(TOLD_MAX)).map(tell);
    let mut results = results.buffer_unordered(WRITES_AT_ONCE);
    while let Some(result) = results.next().await {
        result?;
    }
    Ok(())
}
