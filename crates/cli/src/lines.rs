//! The functions' log lines, for people.

use delivery::duration::format_ms;
use local::watch::{Line, Watch};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts to watch what the functions log in this process.
pub(crate) fn watch() -> UnboundedReceiver<Line> {
    let (sender, lines) = unbounded_channel();
    tracing_subscriber::registry().with(Watch::new(sender).with_filter(LevelFilter::INFO)).init();
    lines
}

/// One line for people; `None` for lines that say nothing new to them.
pub(crate) fn describe(line: &Line) -> Option<String> {
    let field = |name| line.field(name);
    let wait = || field("wait_ms").parse().map_or(String::new(), format_ms);
    Some(match line.name.as_str() {
        "delivery.attempted" => {
            let status = field("status");
            let answer =
                if status.is_empty() { field("outcome").to_owned() } else { format!("{status} {}", field("outcome")) };
            let next = match field("verdict") {
                "retry" if field("wait_ms").is_empty() => "that was the last attempt".to_owned(),
                "retry" => format!("again in {}", wait()),
                verdict => verdict.to_owned(),
            };
            let (id, subscription, attempt) = (field("event_id"), field("subscription"), field("attempt"));
            format!("{subscription}  event {id}  attempt {attempt}  {answer} in {} ms  {next}", field("duration_ms"))
        }
        "delivery.ended" if field("end") == "DeadLettered" => {
            let (id, subscription, attempts) = (field("event_id"), field("subscription"), field("attempts"));
            format!("{subscription}  event {id}  dead-lettered after {attempts} attempts: {}", field("reason"))
        }
        "deadletter.stored" => format!("{}  stored {}/{}", field("subscription"), field("container"), field("key")),
        "destination.retired" => {
            format!("{}  says that it is gone for good: {}", field("subscription"), field("destination"))
        }
        "subscriptions.loaded" => format!("{} subscriptions from {}", field("subscriptions"), field("source")),
        "delivery.ended" => return None,
        name => {
            let fields: Vec<String> = line.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{} {name}  {}", line.level, fields.join("  "))
        }
    })
}
